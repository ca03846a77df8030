//! `diagnose --warm` on the real program of `cases/frame-buffer`: from the finding to fixes, arms and decisions. What is compared
//! here are counts of faults, which do not depend on how busy the machine is.

use crate::recorded_case::built;
use crate::running::*;
use crate::traces::assert_nothing_left;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// What makes the program's malloc map every block: the cost that is to be found, and taken away again.
const SET: &str = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:glibc.malloc.arena_test=3";

#[track_caller]
fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let all = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    all.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

#[test]
fn blocks_mapped_anew_are_found_and_the_allocators_setting_takes_their_faults_away() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let program = place.path().join("frame-buffer");
    let out = place.path().join("out");
    let mut command =
        slowpath(["diagnose", "--warm", "--json", "--blocks", "9", "--max-time", "20m", "--env", SET, "-o"]);
    let done = run(command.arg(&out).arg("--").arg(&program).args(["as-set", "60", "240"]));
    done.succeeds();
    assert_nothing_left(&done);
    let diagnosis = done.json();
    assert_eq!((&diagnosis["warm"], &diagnosis["launch"]["judged_by"]), (&true.into(), &"cpu".into()));
    assert_eq!(diagnosis["launch"]["blocks"], 9);
    let finding = named(&diagnosis["findings"], "name", "transient_large_allocation");
    assert!(finding["subject"]["function"].as_str().unwrap().contains("copy_frame"), "{finding:#}");

    let arms = &diagnosis["launch"]["arms"];
    let faults = |arm: &str| named(arms, "name", arm)["minor_faults"]["value"].as_f64().unwrap();
    let (before, with, sham) = (faults("untreated"), faults("allocator_tunables"), faults("sham_environment"));
    println!("faults: untreated {before}, allocator_tunables {with}, sham_environment {sham}");
    assert!(before > 60.0 * 338.0 && with <= before / 10.0, "{arms:#}");
    assert!((sham / before - 1.0).abs() < 0.01, "{arms:#}");

    let verdict = named(&diagnosis["verdicts"], "arm", "allocator_tunables");
    println!("{verdict:#}");
    assert!(["proved", "withdrawn", "not_shown"].iter().any(|word| verdict["decision"] == *word), "{verdict:#}");
    assert!(verdict["predicted"]["value"].as_f64().unwrap() < 0.0, "{verdict:#}");
    assert!(verdict["measured"]["low"].is_f64() && verdict["pairs"] == 9, "{verdict:#}");
    let fewer = named(&verdict["beside"], "metric", "minor_faults");
    assert!(fewer["outcome"] == "helps" && fewer["change"]["high"].as_f64().unwrap() < 0.0, "{verdict:#}");
    assert!(named(&verdict["beside"], "metric", "wall")["change"]["low"].is_f64(), "{verdict:#}");
    let kept = named(&diagnosis["verdicts"], "fix", "reuse_buffer");
    assert!(kept["decision"] == "not_tried" && kept["reason"].as_str().unwrap().contains("copy_frame"), "{kept:#}");
    let plan = named(&diagnosis["fixes"], "fix", "allocator_tunables");
    assert_eq!(
        plan["changes"][0]["to"],
        "glibc.malloc.arena_test=3:glibc.malloc.mmap_threshold=2097152:glibc.malloc.trim_threshold=8388608"
    );
    // What the arm had is what `slowpath fix apply` writes.
    assert_eq!(plan["treatment"]["variables"]["GLIBC_TUNABLES"], plan["changes"][0]["to"]);
    let mut show = slowpath(["fix", "show", "--json"]);
    let shown = run(show.arg(&out).args(["allocator_tunables", "--wrapper"]).arg(place.path().join("kept")));
    shown.succeeds();
    let value = plan["changes"][0]["to"].as_str().unwrap();
    assert!(shown.json()["change"]["files"][0]["diff"].as_str().unwrap().contains(value), "{}", shown.stdout);

    an_applied_fix_helps(&out, &program, before);

    assert!(!tables(&out.join("warm")).memory_calls.is_empty());
    assert!(std::fs::read_to_string(out.join("prediction-warm.json")).unwrap().contains("allocator_tunables"));
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("sham_environment"));
    let page = place.path().join("again.html");
    run(slowpath(["report"]).arg(&out).arg("-o").arg(&page)).succeeds();
    assert!(std::fs::read_to_string(page).unwrap().contains("sham_environment"));
}

/// Applies the fix of a diagnosis, and compares the program with what was written: all of its faults are gone there too.
fn an_applied_fix_helps(out: &Path, program: &Path, before: f64) {
    let wrapper = out.with_file_name("kept");
    // Its CPU time may be "not shown" where the machine is busy; what it changes does not depend on that.
    let apply = ["fix", "apply", "--unproved"];
    run(slowpath(apply).arg(out).args(["allocator_tunables", "--wrapper"]).arg(&wrapper)).succeeds();
    let arms = [format!("before={} as-set 60 240", program.display()), format!("after={}", wrapper.display())];
    let mut command = slowpath(["launch", "--json", "--blocks", "8", "--metric", "minor_faults", "--env", SET]);
    let done = run(command.args(arms.iter().flat_map(|arm| ["--arm", arm])));
    done.succeeds();
    let comparison = done.json();
    let saved = &named(&comparison["comparisons"], "arm", "after")["difference"];
    println!("applied: {saved}");
    assert!(saved["high"].as_f64().unwrap() < -0.9 * before, "{comparison:#}");
    run(slowpath(["fix", "undo"]).arg(out)).succeeds();
    assert!(!wrapper.exists());
}

#[test]
fn without_a_finding_nothing_is_launched_and_a_target_that_fails_is_reported_as_such() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let done = run(slowpath(["diagnose", "--warm", "-o"]).arg(&out).args(["--", "/bin/true"]));
    done.succeeds();
    assert!(done.stdout.starts_with("No hidden cost was found in a warm launch of true.\n"), "{}", done.stdout);
    let never = place.path().join("never");
    let done = run(slowpath(["diagnose", "--warm", "--json", "-o"]).arg(&never).args(["--", "/bin/false"]));
    done.fails_with(4, &["exited with status 1"]);
    assert!(done.json()["schema"] == "slowpath-error/1" && !never.exists());
    for options in [["--readahead", "0"], ["--arms", "quick"], ["--iops", "9"]] {
        let command = slowpath(["diagnose", "--warm"]).args(options).args(["--", "/bin/true"]).output().unwrap();
        assert_eq!(command.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn a_warm_diagnosis_tries_nothing_when_its_time_is_over() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let mut command = slowpath(["diagnose", "--warm", "--json", "--max-time", "1s", "--env", SET, "-o"]);
    let program = place.path().join("frame-buffer");
    let done = run(command.arg(place.path().join("out")).arg("--").arg(program).args(["as-set", "60", "240"]));
    done.succeeds();
    let diagnosis = done.json();
    named(&diagnosis["findings"], "name", "transient_large_allocation");
    let verdict = named(&diagnosis["verdicts"], "arm", "allocator_tunables");
    let reason = verdict["reason"].as_str().unwrap();
    assert!(verdict["decision"] == "not_tried" && reason.contains("--max-time"), "{verdict:#}");
}

#[test]
fn an_interrupted_warm_diagnosis_keeps_its_recording_and_leaves_nothing_else() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let out = place.path().join("out");
    let mut command = slowpath(["diagnose", "--warm", "--blocks", "1000", "--env", SET, "-o"]);
    let program = place.path().join("frame-buffer");
    let mut running = start(command.arg(&out).arg("--").arg(program).args(["as-set", "30", "240"]));
    let started = Instant::now();
    while !out.join("prediction-warm.json").exists() && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    running.signal(libc::SIGINT);
    let done = running.wait();
    done.fails_with(130, &["interrupted; the recording is kept"]);
    assert!(!tables(&out.join("warm")).faults.is_empty());
    assert_nothing_left(&done);
}
