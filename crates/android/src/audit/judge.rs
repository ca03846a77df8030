//! The audit itself: for each package its APKs and libraries, for each of these the instruction sets.

use super::artifacts_of::{file_audit, listed_place, places};
use super::dex_amount::DexAmount;
use super::filter::{is_compiled, is_profile_guided};
use super::printed::{
    AUDIT_SCHEMA, AndroidAudit, CodeAudit, CodeOutcome, DeviceFacts, Engine, EnginePackage, OatFacts, PackageAudit,
    ReadState,
};
use super::repairs::repairs;
use super::words::verdict;
use crate::evidence::{Evidence, PackageEvidence, StepOutcome};
use crate::format::{Oat, Vdex};
use crate::isolation::{AUDITED_UID, isolation};
use crate::text::DexoptState;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::collections::BTreeMap;
use std::path::Path;

/// Audits evidence.
pub fn audit(evidence: &Evidence) -> AndroidAudit {
    let device = device(evidence);
    let packages: Vec<PackageAudit> =
        evidence.packages.iter().map(|(name, package)| of_package(evidence, name, package, device.api_level)).collect();
    let engines = engines(evidence, &packages);
    let unavailable = unavailable(evidence, &packages);
    AndroidAudit { schema: AUDIT_SCHEMA.to_owned(), device, uid: AUDITED_UID, packages, engines, unavailable }
}

fn device(evidence: &Evidence) -> DeviceFacts {
    let property = |key: &str| evidence.properties.get(key).map(str::to_owned);
    DeviceFacts {
        serial: evidence.manifest.as_ref().map(|manifest| manifest.serial.clone()).or_else(|| property("ro.serialno")),
        model: property("ro.product.model"),
        release: property("ro.build.version.release"),
        api_level: evidence.properties.api_level(),
        build: property("ro.build.fingerprint"),
    }
}

fn of_package(evidence: &Evidence, name: &str, package: &PackageEvidence, api_level: Option<u32>) -> PackageAudit {
    let own = package.apks.iter().map(|apk| (apk.as_str(), false));
    let libraries =
        package.about.library_files.iter().filter(|file| file.ends_with(".apk")).map(|apk| (apk.as_str(), true));
    let mut code = Vec::new();
    for (apk, is_library) in own.chain(libraries) {
        for state in states(evidence, name, apk) {
            code.push(of_code(evidence, &state, is_library, api_level));
        }
    }
    // An app without an instruction set of its own runs nothing there.
    code.sort_by_key(|one| one.is_library);
    let counted = |one: &&CodeAudit| one.is_primary != Some(false) || one.outcome == CodeOutcome::Unreadable;
    let outcome = code.iter().filter(counted).map(|one| one.outcome).min().unwrap_or(CodeOutcome::Unknown);
    let isolated = |processes: &Vec<crate::text::Process>| {
        processes.iter().filter(|one| one.is_of(name) && isolation(one.uid).is_some()).count() as u64
    };
    let mut verdicts: Vec<String> = Vec::new();
    for one in code.iter().filter(|one| one.outcome != CodeOutcome::Usable || one.vdex.state == ReadState::Unreadable) {
        let whose = if one.is_library { "library " } else { "" };
        verdicts.push(format!("{whose}{} {}: {}", file_name(&one.apk), one.isa, one.verdict));
    }
    let repairs = if outcome.calls_for_repair() { repairs(name, &code, api_level) } else { Vec::new() };
    PackageAudit {
        name: name.to_owned(),
        version: package.about.version.clone(),
        isolated_processes: evidence.processes.as_ref().map(isolated),
        code,
        outcome,
        verdicts,
        repairs,
        measured: None,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What dexopt says of an APK; without that the instruction sets of which the listing shows files, or the device's first one.
fn states(evidence: &Evidence, package: &str, apk: &str) -> Vec<DexoptState> {
    let reported: Vec<DexoptState> = evidence.dexopt.iter().filter(|state| state.apk == apk).cloned().collect();
    if !reported.is_empty() {
        return reported;
    }
    let unreported = |isa: &str| DexoptState {
        package: package.to_owned(),
        apk: apk.to_owned(),
        isa: isa.to_owned(),
        status: String::new(),
        reason: None,
        is_primary: None,
        location: None,
    };
    let sets = evidence.properties.instruction_sets();
    let sets = if sets.is_empty() { vec!["arm64", "arm", "x86_64", "x86"] } else { sets };
    let is_listed = |path: &str| evidence.listing.get(Path::new(path)).is_some();
    let with_files = sets
        .iter()
        .filter(|isa| places(apk, isa, None).iter().any(|place| is_listed(&place.odex) || is_listed(&place.vdex)));
    let mut found: Vec<DexoptState> = with_files.map(|isa| unreported(isa)).collect();
    if found.is_empty() {
        found.extend(sets.first().map(|isa| unreported(isa)));
    }
    found
}

fn of_code(evidence: &Evidence, state: &DexoptState, is_library: bool, api_level: Option<u32>) -> CodeAudit {
    let places = places(&state.apk, &state.isa, state.location.as_deref());
    let place = listed_place(evidence, &places);
    let runs_from_apk = state.status.starts_with("run-from-apk");
    let of = |path: Option<&String>| {
        let path = path.map(String::as_str).unwrap_or_default();
        file_audit(evidence, path, evidence.absent.contains(path) || runs_from_apk || is_missing_beside(evidence, path))
    };
    let (odex, vdex) = (of(place.as_ref().map(|place| &place.odex)), of(place.as_ref().map(|place| &place.vdex)));
    let oat = evidence.file(&odex.path).and_then(|bytes| Oat::parse(&bytes).ok());
    let vdex_header = evidence.file(&vdex.path).and_then(|bytes| Vdex::parse(&bytes).ok());
    let header = oat.map(|oat| OatFacts {
        oat_version: oat.version,
        release: oat.release().map(str::to_owned),
        filter: oat.compiler_filter().map(str::to_owned),
        reason: oat.compilation_reason().map(str::to_owned),
        class_path: oat.store.get("classpath").cloned(),
        dex_files: oat.dex_files,
    });
    let known = Some(state.status.clone()).filter(|status| !status.is_empty() && status != "unknown");
    let filter = known.or_else(|| header.as_ref()?.filter.clone());
    let reason = state.reason.clone().filter(|reason| reason != "unknown").or_else(|| header.as_ref()?.reason.clone());
    let mut code = CodeAudit {
        apk: state.apk.clone(),
        is_library,
        isa: state.isa.clone(),
        is_primary: state.is_primary,
        is_profile_guided: filter.as_deref().is_some_and(is_profile_guided),
        has_cloud_profile: cloud_profile(evidence, &state.apk, reason.as_deref()),
        dex: DexAmount::of(evidence, &state.apk, vdex_header.as_ref()),
        outcome: CodeOutcome::Unknown,
        verdict: String::new(),
        filter,
        reason,
        odex,
        vdex,
        header,
    };
    code.outcome = outcome(&code, runs_from_apk);
    code.verdict = verdict(&code, api_level);
    code
}

/// Whether the listing has other files of its directory, or the directory that would hold it is known not to be there.
fn is_missing_beside(evidence: &Evidence, path: &str) -> bool {
    let Some(directory) = Path::new(path).parent() else { return false };
    evidence.listing.files().any(|(listed, _)| listed.parent() == Some(directory) && listed != directory)
}

fn outcome(code: &CodeAudit, runs_from_apk: bool) -> CodeOutcome {
    let is_filter_compiled = code.filter.as_deref().map(is_compiled);
    match (code.odex.state, code.vdex.state) {
        // The main process cannot use it either.
        _ if runs_from_apk => CodeOutcome::Missing,
        (ReadState::Unreadable, _) if is_filter_compiled == Some(false) => CodeOutcome::NotCompiled,
        (ReadState::Unreadable, _) => CodeOutcome::Unreadable,
        (ReadState::Readable, _) if is_filter_compiled == Some(false) => CodeOutcome::NotCompiled,
        (ReadState::Readable, ReadState::Unknown) | (ReadState::Unknown, _) => CodeOutcome::Unknown,
        (ReadState::Readable, _) => CodeOutcome::Usable,
        (ReadState::Missing, ReadState::Readable | ReadState::Unreadable) => CodeOutcome::NotCompiled,
        (ReadState::Missing, _) => CodeOutcome::Missing,
    }
}

/// A dm file beside the APK, or a reason that names one (`install-dm`: ArtManagerService, `DEXOPT_REASON_WITH_DEX_METADATA_ANNOTATION`).
fn cloud_profile(evidence: &Evidence, apk: &str, reason: Option<&str>) -> Option<bool> {
    if reason.is_some_and(|reason| reason.ends_with("-dm")) {
        return Some(true);
    }
    let dm = format!("{}.dm", apk.strip_suffix(".apk").unwrap_or(apk));
    let is_listed = |path: &str| evidence.listing.get(Path::new(path)).is_some();
    match is_listed(&dm) {
        true => Some(true),
        false => is_listed(apk).then_some(false),
    }
}

fn engines(evidence: &Evidence, packages: &[PackageAudit]) -> Vec<Engine> {
    let mut users: BTreeMap<&str, Vec<EnginePackage>> = BTreeMap::new();
    for package in packages {
        let own = package.code.iter().filter(|one| !one.is_library).map(|one| one.outcome).min();
        let outcome = own.unwrap_or(CodeOutcome::Unknown);
        let libraries = evidence.packages.get(&package.name).map(|one| one.about.library_files.as_slice());
        for library in libraries.unwrap_or_default().iter().filter(|file| file.ends_with(".apk")) {
            users.entry(library).or_default().push(EnginePackage { name: package.name.clone(), outcome });
        }
    }
    let several = users.into_iter().filter(|(_, packages)| packages.len() > 1);
    several.map(|(library, packages)| Engine { library: library.to_owned(), packages }).collect()
}

fn unavailable(evidence: &Evidence, packages: &[PackageAudit]) -> Vec<Unavailable> {
    let mut found = Vec::new();
    if evidence.listing.is_labelled() || packages.iter().any(|package| !package.code.is_empty()) {
        found.push(declared::SELINUX_POLICY.because(
            "a listing shows labels and modes, and not what the policy allows a domain",
            "look for `avc: denied` of isolated_app in the device's log",
        ));
    }
    for step in evidence.manifest.iter().flat_map(|manifest| &manifest.steps) {
        if step.outcome != StepOutcome::Done {
            let why = step.said.clone().unwrap_or_else(|| "it did not end as it should".to_owned());
            let remedy = step.remedy.clone().unwrap_or_else(|| "collect again".to_owned());
            found.push(declared::DEVICE_STEP.of(&[&step.what], why, remedy));
        }
    }
    if evidence.manifest.as_ref().is_some_and(|manifest| !manifest.is_complete) {
        found.push(declared::DEVICE_REST.because("collecting ended before its end", "collect again"));
    }
    found
}
