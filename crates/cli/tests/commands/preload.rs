//! Plans: made by root's diagnosis, used by anybody, and checked against the files.

use crate::running::*;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A diagnosis of a program that reads `data`, and the plan made from it, readable by all.
fn plan(place: &Path) -> PathBuf {
    let data = place.join("data");
    fs::write(&data, vec![7u8; 2 << 20]).unwrap();
    let out = place.join("diagnosis");
    run(slowpath(["diagnose", "--cold", "--blocks", "1", "-o"]).arg(&out).arg("--").arg("/bin/cat").arg(&data))
        .succeeds();
    let plan = place.join("cat.plan");
    run(slowpath(["preload", "plan"]).arg(&out).arg("-o").arg(&plan)).succeeds();
    plan
}

/// `preload run` as user 65534.
fn unprivileged(plan: &Path, report: Option<&Path>, target: &[&str]) -> Command {
    // SIGINT is ignored where the tests were started in the background by a shell, and by everything that they start.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args([SLOWPATH, "preload", "run"]);
    if let Some(report) = report {
        command.arg("--report").arg(report);
    }
    command.arg(plan).arg("--").args(target).current_dir("/");
    command
}

#[test]
fn a_plan_is_run_without_privilege_and_everything_passes_through() {
    if !root() {
        return;
    }
    let place = place();
    let plan = plan(place.path());
    let reports = place.path().join("reports");
    fs::create_dir(&reports).unwrap();
    std::os::unix::fs::chown(&reports, Some(65534), Some(65534)).unwrap();

    let mut running = start_with_input(unprivileged(&plan, None, &["/usr/bin/tr", "a-z", "A-Z"]).stdin(Stdio::piped()));
    running.child.stdin.take().unwrap().write_all(b"through and through\n").unwrap();
    let done = running.wait();
    done.succeeds();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("THROUGH AND THROUGH\n", ""));

    assert_eq!(run(unprivileged(&plan, None, &["/bin/sh", "-c", "exit 7"])).code(), 7);
    let killed = run(unprivileged(&plan, None, &["/bin/sh", "-c", "kill -TERM $$"]));
    assert_eq!(killed.status.signal(), Some(libc::SIGTERM));
    let mut running = start(unprivileged(&plan, None, &["/bin/sleep", "20"]));
    let started =
        || fs::read_to_string(format!("/proc/{}/comm", running.child.id())).is_ok_and(|name| name == "sleep\n");
    assert!(soon(started), "the command has taken the place of slowpath");
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().status.signal(), Some(libc::SIGINT));
    run(unprivileged(&plan, None, &["/no/such/program"])).fails_with(4, &["/no/such/program"]);

    let report = reports.join("report");
    assert_eq!(run(unprivileged(&plan, Some(&report), &["/usr/bin/id", "-u"])).stdout, "65534\n");
    let patient = reports.join("patient");
    // Goes on until the report is whole, half a minute at most: the prefetcher ends with it.
    let waits = "import json, sys, time\nfor _ in range(1500):\n  try: json.load(open(sys.argv[1])); break\n  except ValueError: time.sleep(0.02)";
    run(unprivileged(&plan, Some(&patient), &["/usr/bin/python3", "-c", waits, patient.to_str().unwrap()])).succeeds();
    let said: serde_json::Value = serde_json::from_slice(&fs::read(&patient).unwrap()).unwrap();
    assert!(said["bytes"].as_u64().is_some_and(|bytes| bytes >= 2 << 20), "{said}");
}

#[test]
fn a_changed_missing_or_forbidden_file_fails_the_check_and_is_skipped_by_the_run() {
    if !root() {
        return;
    }
    let place = place();
    let plan = plan(place.path());
    let data = place.path().join("data");
    let whole = run(slowpath(["preload", "check"]).arg(&plan));
    whole.succeeds();
    fs::write(&data, vec![8u8; 1 << 20]).unwrap();
    for change in ["changed", "missing"] {
        if change == "missing" {
            fs::remove_file(&data).unwrap();
        }
        let checked = run(slowpath(["preload", "check"]).arg(&plan));
        checked.fails_with(1, &[]);
        assert!(checked.stdout.contains(data.to_str().unwrap()), "{change}: {}", checked.stdout);
        let said = run(slowpath(["preload", "check", "--json"]).arg(&plan));
        assert_eq!((said.code(), said.json()["unusable"].as_array().unwrap().len()), (1, 1), "{change}");
        let replayed = run(slowpath(["preload", "replay"]).arg(&plan));
        replayed.succeeds();
        assert!(replayed.stdout.contains("left out: 1 files"), "{change}: {}", replayed.stdout);
        run(unprivileged(&plan, None, &["/bin/true"])).succeeds();
    }
}

#[test]
fn a_damaged_plan_is_refused_by_check_and_does_not_keep_the_command_from_running() {
    let place = place();
    let plan = place.path().join("plan");
    for content in ["", "no plan at all\n", "\u{0}\u{ff}\u{1b}[31m"] {
        fs::write(&plan, content).unwrap();
        let checked = run(slowpath(["preload", "check"]).arg(&plan));
        checked.fails_with(2, &["slowpath: "]);
        let done = run(slowpath(["preload", "run"]).arg(&plan).args(["--", "/bin/echo", "it runs"]));
        done.succeeds();
        assert_eq!(done.stdout, "it runs\n");
        assert!(!done.stderr.contains('\u{1b}') && done.stderr.lines().count() <= 1, "{}", done.stderr);
    }
}
