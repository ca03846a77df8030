//! Verdicts on evidence whose truth is known.

use super::*;
use crate::evidence::{
    ABSENT, DEXOPT, Evidence, LISTING, PROCESSES, PROPERTIES, members_text, package_text, path_text,
};

const APK: &str = "/data/app/~~a==/com.x-b==/base.apk";
const PACKAGE: &str = "com.x";

/// Directories above the artifacts, as installd makes them.
const DIRECTORIES: [(&str, &str); 7] = [
    ("rwxr-xr-x", "/"),
    ("rwxrwx--x", "/data"),
    ("rwxrwx--x", "/data/app"),
    ("rwxrwxr-x", "/data/app/~~a=="),
    ("rwxr-xr-x", "/data/app/~~a==/com.x-b=="),
    ("rwxrwx--x", "/data/app/~~a==/com.x-b==/oat"),
    ("rwxrwx--x", "/data/app/~~a==/com.x-b==/oat/arm64"),
];

struct Case {
    status: &'static str,
    reason: &'static str,
    odex: Option<&'static str>,
    vdex: Option<&'static str>,
    level: u32,
    /// A directory with other bits.
    directory: Option<(&'static str, &'static str)>,
}

const BROKEN: Case = Case {
    status: "speed-profile",
    reason: "bg-dexopt",
    odex: Some("rw-r-----"),
    vdex: Some("rw-r-----"),
    level: 28,
    directory: None,
};

fn evidence(case: &Case) -> (tempfile::TempDir, Evidence) {
    let place = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mut listing = String::new();
    let row = |bits: &str, path: &str| {
        format!("{bits} 1 1000 50123 u:object_r:apk_data_file:s0 100 2024-01-01 10:00 {path}\n")
    };
    for (bits, path) in DIRECTORIES {
        let bits = case.directory.filter(|(other, _)| *other == path).map_or(bits, |(_, bits)| bits);
        listing += &row(&format!("d{bits}"), path);
    }
    listing += &row("-rw-r--r--", APK);
    let mut absent = String::new();
    for (bits, end) in [(case.odex, "odex"), (case.vdex, "vdex")] {
        let path = format!("/data/app/~~a==/com.x-b==/oat/arm64/base.{end}");
        match bits {
            Some(bits) => listing += &row(&format!("-{bits}"), &path),
            None => absent += &format!("{path}\n"),
        }
    }
    put(LISTING, &listing);
    put(ABSENT, &absent);
    put(
        DEXOPT,
        &format!("  [{PACKAGE}]\n    path: {APK}\n      arm64: [status={}] [reason={}]\n", case.status, case.reason),
    );
    put(PROPERTIES, &format!("[ro.build.version.sdk]: [{}]\n", case.level));
    put(PROCESSES, "PID UID NAME\n1 10123 com.x\n2 99001 com.x:sandboxed_process0:S:0\n");
    put(&path_text(PACKAGE), &format!("package:{APK}\n"));
    put(&package_text(PACKAGE), "versionName=1.2\n");
    put(&members_text(APK), "  8400000  1981-01-01 01:01   classes.dex\n");
    let read = Evidence::read(place.path()).unwrap();
    (place, read)
}

fn judged(case: &Case) -> PackageAudit {
    audit(&evidence(case).1).packages.remove(0)
}

#[test]
fn story_1_is_told_in_its_words_with_the_repair_and_its_price() {
    let package = judged(&BROKEN);
    assert_eq!(
        (package.outcome, package.isolated_processes, package.version.as_deref()),
        (CodeOutcome::Unreadable, Some(1), Some("1.2"))
    );
    assert_eq!(
        package.verdicts,
        [
            "base.apk arm64: renderers (isolated uid) cannot read base.odex (0640, profile-guided, reason bg-dexopt): each verifies up to 8.4 MB \
          of DEX again (estimate: all DEX of the APK)"
        ]
    );
    let code = &package.code[0];
    assert!(code.is_profile_guided && code.has_cloud_profile == Some(false));
    assert_eq!(code.odex.denied_by.as_ref().map(|one| one.words.as_str()), Some("other bits lack r"));
    let names: Vec<&str> = package.repairs.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["compile_speed", "compile_shared", "app_zygote", "drop_isolation", "grant_read"]);
    assert_eq!(package.repairs[0].command.as_deref(), Some("cmd package compile -m speed -f com.x"));
    assert_eq!(package.repairs[1].command.as_deref(), Some("cmd package compile -r shared com.x"));
    assert!(package.repairs.iter().all(|one| !one.price.is_empty() && !one.security.is_empty()));
    assert!(
        package.repairs[4]
            .command
            .as_deref()
            .unwrap()
            .contains("chmod o+r '/data/app/~~a==/com.x-b==/oat/arm64/base.odex'"),
        "{:?}",
        package.repairs[4]
    );
}

#[test]
fn a_readable_vdex_spares_the_verification_since_android_12_and_not_before() {
    let verdict = |level| judged(&Case { vdex: Some("rw-r--r--"), level, ..BROKEN }).verdicts.remove(0);
    assert!(verdict(30).contains("each verifies up to 8.4 MB"), "{}", verdict(30));
    assert!(verdict(31).contains("base.vdex can be read, so classes are not verified again"), "{}", verdict(31));
}

#[test]
fn repairs_are_those_of_the_release() {
    let names = |level| judged(&Case { level, ..BROKEN }).repairs.into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(29), ["compile_speed", "compile_shared", "app_zygote", "grant_read"]);
    assert_eq!(names(34), ["compile_speed", "app_zygote", "grant_read"]);
}

#[test]
fn every_component_of_the_path_counts() {
    let oat = "/data/app/~~a==/com.x-b==/oat";
    let case = Case { odex: Some("rw-r--r--"), vdex: Some("rw-r--r--"), directory: Some((oat, "rwxrwx---")), ..BROKEN };
    let package = judged(&case);
    assert_eq!(package.outcome, CodeOutcome::Unreadable);
    assert!(package.verdicts[0].contains("/com.x-b==/oat: other bits lack x"), "{:?}", package.verdicts);
}

#[test]
fn what_is_healthy_missing_not_compiled_or_unknown_is_told_apart() {
    let healthy = Case {
        status: "speed-profile",
        reason: "install-dm",
        odex: Some("rw-r--r--"),
        vdex: Some("rw-r--r--"),
        ..BROKEN
    };
    let package = judged(&healthy);
    assert_eq!(
        (package.outcome, package.verdicts.len(), package.repairs.len()),
        (CodeOutcome::Usable, 0, 0),
        "{package:?}"
    );
    assert_eq!(package.code[0].has_cloud_profile, Some(true));
    let missing = judged(&Case { status: "run-from-apk", reason: "unknown", odex: None, vdex: None, ..BROKEN });
    assert_eq!(missing.outcome, CodeOutcome::Missing);
    assert!(missing.verdicts[0].contains("nothing is compiled (run-from-apk)"), "{:?}", missing.verdicts);
    let verified = judged(&Case {
        status: "verify",
        reason: "install",
        odex: Some("rw-r--r--"),
        vdex: Some("rw-r--r--"),
        ..BROKEN
    });
    assert_eq!(verified.outcome, CodeOutcome::NotCompiled);
    let (place, _) = evidence(&healthy);
    let listing = std::fs::read_to_string(place.path().join(LISTING)).unwrap();
    let without: String =
        listing.lines().filter(|line| !line.ends_with(" /data/app")).map(|line| format!("{line}\n")).collect();
    std::fs::write(place.path().join(LISTING), without).unwrap();
    let unknown = audit(&Evidence::read(place.path()).unwrap()).packages.remove(0);
    assert_eq!(unknown.outcome, CodeOutcome::Unknown);
    assert!(unknown.code[0].odex.reason.as_deref().unwrap().contains("/data/app is not in the listing"));
}

#[test]
fn packages_of_one_engine_stand_side_by_side() {
    let (place, _) = evidence(&BROKEN);
    let library = "/data/app/t/base.apk";
    for name in [PACKAGE, "com.y"] {
        let path = place.path().join(package_text(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("usesLibraryFiles:\n  {library}\n  /system/framework/x.jar\nother\n")).unwrap();
    }
    let found = audit(&Evidence::read(place.path()).unwrap());
    assert_eq!(found.engines.len(), 1, "{:?}", found.engines);
    assert_eq!(found.engines[0].library, library);
    let outcomes: Vec<_> = found.engines[0].packages.iter().map(|one| (one.name.as_str(), one.outcome)).collect();
    assert_eq!(outcomes, [(PACKAGE, CodeOutcome::Unreadable), ("com.y", CodeOutcome::Unknown)]);
    assert!(found.packages[0].code.iter().any(|one| one.is_library && one.apk == library));
}

#[test]
fn a_policy_for_the_guard_names_the_files_and_the_isolated_user() {
    let found = audit(&evidence(&BROKEN).1);
    let policy = guard_policy(&found, &found.packages[0]).unwrap();
    assert!(
        policy.contains("\"/data/app/~~a==/com.x-b==/oat/arm64/base.odex\"") && policy.contains("uid = 99000"),
        "{policy}"
    );
}
