//! Artifacts of families that say what a process does without them, though it saves nothing: a cache of fonts in a private directory, an
//! archive of a JVM that its user may not read.

use crate::artifact_case::{ArtifactCase, NOBODY, mode};
use crate::font_case::{FontCase, is_installed};
use crate::prices::{self, Price, median, unrecorded};
use crate::recorded_case::{RecordedCase, row};
use crate::running::*;
use serde_json::Value;
use std::fs;
use std::process::Command;

const NAMES: [&str; 3] = ["unreadable_artifact", "stale_artifact", "missing_artifact"];

fn record(case: &ArtifactCase, target: &[String]) -> RecordedCase {
    let out = case.path("out");
    let _ = fs::remove_dir_all(&out);
    let target: Vec<&str> = target.iter().map(String::as_str).collect();
    RecordedCase::record(&out, &["--quiet", "--off-cpu", "--user", NOBODY], &target, &NAMES)
}

#[test]
fn fonts_without_their_cache_are_parsed_by_every_child() {
    if !root() {
        return;
    }
    let Some(FontCase { artifacts: case, cache, settings, own }) = FontCase::new() else { return };
    let variable = format!("FONTCONFIG_FILE={}", settings.display());
    run(Command::new("env").args([&variable, "fc-cache"]).arg(&own)).succeeds();
    let target = case.start(&["env", &variable, "fc-match", "sans"]);
    record(&case, &target).none();
    let set = |bits: u32| mode(&cache, bits);
    set(0o700);
    let recorded = record(&case, &target);
    let finding = recorded.one();
    let subject = &finding["subject"];
    assert!(subject["artifact"].as_str().unwrap().starts_with(cache.to_str().unwrap()), "{finding:#}");
    assert_eq!((&subject["processes"], &finding["confidence"]), (&4.into(), &"medium".into()), "{finding:#}");
    prices::assert_priced(Price::of(&recorded), &|| Price::of(&record(&case, &target)), &|| {
        set(0o755);
        let without = unrecorded(NOBODY, &target);
        set(0o700);
        (unrecorded(NOBODY, &target), without)
    });
}

#[test]
fn an_archive_that_a_jvm_may_not_read_is_found_and_a_trial_says_what_it_saves() {
    if !root() || !is_installed("java") {
        return;
    }
    let case = ArtifactCase::new();
    let archive = case.path("classes.jsa");
    let option = format!("-XX:SharedArchiveFile={}", archive.display());
    run(Command::new("java").args(["-Xshare:dump", &option])).succeeds();
    let target = case.start(&["java", &option, "-Xshare:auto", "-version"]);
    mode(&archive, 0o644);
    record(&case, &target).none();
    mode(&archive, 0o600);
    let recorded = record(&case, &target);
    let finding = recorded.one();
    assert_eq!(finding["subject"]["artifact"], archive.to_str().unwrap(), "{finding:#}");
    assert_eq!((&finding["subject"]["processes"], &finding["confidence"]), (&4.into(), &"low".into()), "{finding:#}");
    // Nothing to all that a child does.
    let each = row(finding, "cpu_ms_each")["cpu_ms_each"].as_f64().unwrap();
    assert_eq!(finding["cost"]["low"], 0.0, "{finding:#}");
    assert!(each <= recorded.number("cpu_ms") * 1.05, "{each} of {}", recorded.number("cpu_ms"));
    let pair = || {
        mode(&archive, 0o644);
        let fast = unrecorded(NOBODY, &target);
        mode(&archive, 0o600);
        1.0 - fast / unrecorded(NOBODY, &target)
    };
    let measured = median((0..5).map(|_| pair()).collect());
    assert!(measured * recorded.number("cpu_ms") < each, "{measured} of a child, and at most {each} ms");
    // What it is, a trial says.
    let mut command =
        slowpath(["diagnose", "--warm", "--json", "--blocks", "9", "--max-time", "20m", "--user", NOBODY, "-o"]);
    let done = run(command.arg(case.path("trial")).arg("--").args(&target));
    done.succeeds();
    let printed = done.json();
    let of_fix = |list: &str| -> Value {
        let found = printed[list].as_array().unwrap().iter().find(|one| one["fix"] == "grant_read");
        found.unwrap_or_else(|| panic!("{printed:#}")).clone()
    };
    let verdict = of_fix("verdicts");
    assert_eq!((&verdict["outcome"], &verdict["decision"]), (&"helps".into(), &"proved".into()), "{verdict:#}");
    let plan = of_fix("fixes");
    assert_eq!(plan["treatment"]["files"][0]["path"], archive.to_str().unwrap(), "{plan:#}");
    println!("of a child's time: measured {measured:.3}; the trial: {:#}", verdict["measured"]);
}
