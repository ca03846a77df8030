//! Plans: made by root's diagnosis, used by anybody, and checked against the files.

use crate::fixes_kept::{diagnosis, fix, verdict};
use crate::running::*;
use serde_json::json;
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
    assert_eq!(said["schema"], "slowpath-replay/1");
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

/// A plan with so many ranges, all of it valid.
fn write_plan(plan: &Path, ranges: usize) {
    let header = json!({
        "schema": "slowpath-preload-plan/1",
        "provenance": {"created": "", "command": [], "recordings": []},
        "options": {
            "gap_pages": 2, "cap_bytes": 262_144, "order": "first_use", "threads": 1, "in_flight_bytes": null,
            "metadata": false, "whole_files": false,
        },
        "files": 1, "ranges": ranges,
    });
    let file = json!({"path": "/usr/bin/true", "size": 4096, "mtime_ns": 0});
    fs::write(plan, format!("{header}\n{file}\n{}", "[0,0,1]\n".repeat(ranges))).unwrap();
}

/// A field of proc_pid_status(5), its words with one space between.
fn status(pid: &Path, name: &str) -> String {
    let status = fs::read_to_string(pid.join("status")).unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn through_sudo_the_prefetcher_is_who_called_it_and_the_command_is_root() {
    if !root() {
        return;
    }
    let place = place();
    let plan = place.path().join("plan");
    // It takes a second to read.
    write_plan(&plan, 1_000_000);
    let mut command = slowpath(["preload", "run"]);
    let running = start(command.env("SUDO_UID", "65534").arg(&plan).args(["--", "/bin/sleep", "1"]));
    let is_at_the_plan = |process: &Path| {
        let mut files = fs::read_dir(process.join("fd")).ok()?;
        files
            .any(|file| file.is_ok_and(|file| fs::read_link(file.path()).is_ok_and(|target| target == plan)))
            .then_some(())
    };
    let mut prefetcher = None;
    let began = std::time::Instant::now();
    while prefetcher.is_none() && began.elapsed().as_secs() < 30 {
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        // With the thread that watches the command it is what it is to be. What starts it has none.
        let found = processes.filter(|process| is_at_the_plan(process).is_some() && status(process, "Threads") == "2");
        prefetcher = found.map(|found| ["Uid", "NoNewPrivs", "CapEff"].map(|name| status(&found, name))).next();
    }
    let expected = ["65534 65534 65534 65534", "1", "0000000000000000"];
    assert_eq!(prefetcher.expect("a prefetcher reads the plan"), expected);
    let command = PathBuf::from(format!("/proc/{}", running.child.id()));
    assert!(soon(|| fs::read_to_string(command.join("comm")).is_ok_and(|name| name == "sleep\n")));
    assert_eq!(status(&command, "Uid"), "0 0 0 0");
    running.wait().succeeds();
}

#[test]
fn a_pipe_as_plan_costs_a_line_and_the_command_does_not_wait_for_it() {
    let place = place();
    let plan = place.path().join("plan");
    nix::unistd::mkfifo(&plan, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let done = run(slowpath(["preload", "run"]).arg(&plan).args(["--", "/bin/echo", "it runs"]));
    done.succeeds();
    assert_eq!(done.stdout, "it runs\n");
    assert!(done.stderr.ends_with("plan cannot be opened: is not a regular file\n"), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
}

#[test]
fn root_keeps_no_plan_that_a_slowpath_replays_which_others_can_change() {
    if !root() {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    let treatments = [
        ("plan", json!({"kind": "preload_plan", "file": "p.plan"})),
        ("variable", json!({"kind": "environment", "variables": {"KEPT": "1"}})),
    ];
    let fixes = treatments.each_ref().map(|(name, treatment)| fix(name, treatment));
    let verdicts = treatments.each_ref().map(|(name, _)| verdict(name, "proved"));
    fs::write(at("diagnosis.json"), diagnosis(&fixes, &verdicts).to_string()).unwrap();
    write_plan(&at("p.plan"), 1);
    fs::write(at("app.desktop"), "[Desktop Entry]\nName=App\nExec=/bin/true\n").unwrap();
    // As `cargo build` leaves it in a user's checkout.
    fs::create_dir(at("theirs")).unwrap();
    let theirs = at("theirs/slowpath");
    fs::hard_link(SLOWPATH, &theirs).or_else(|_| fs::copy(SLOWPATH, &theirs).map(drop)).unwrap();
    std::os::unix::fs::chown(at("theirs"), Some(65534), Some(65534)).unwrap();
    let show = |program: &Path, name: &str, target: [&str; 2]| {
        let mut command = Command::new(program);
        command.args(["fix", "show"]).arg(place.path()).arg(name).args(target);
        run(command.env_remove("SUDO_UID").current_dir(place.path()))
    };
    for target in [["--wrapper", "run"], ["--desktop-file", "app.desktop"]] {
        show(&theirs, "plan", target).fails_with(2, &["theirs can be changed by other users", "make install"]);
        show(Path::new(SLOWPATH), "plan", target).succeeds();
    }
    // A drop-in replays no plan, and variables need no program of slowpath's.
    show(&theirs, "plan", ["--systemd-unit", "app"]).fails_with(2, &["--wrapper"]);
    for target in [["--wrapper", "run"], ["--desktop-file", "app.desktop"], ["--systemd-unit", "slowpath-test"]] {
        let shown = show(&theirs, "variable", target);
        shown.succeeds();
        let added = shown.stdout.lines().filter(|line| line.starts_with('+')).collect::<Vec<_>>().join("\n");
        assert!(added.contains("KEPT") && !added.contains(theirs.to_str().unwrap()), "{added}");
    }
}
