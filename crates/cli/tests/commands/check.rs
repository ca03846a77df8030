//! `slowpath check` on real commands: verdicts, exit codes, and who is named. Times are only ever compared with limits that
//! are ten times away.

use crate::running::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A check of `target` against a budget with this text.
fn check(budget: &str, options: &[&str], target: &[&str]) -> Done {
    let place = place();
    let path = place.path().join("budget.toml");
    fs::write(&path, budget).unwrap();
    let mut command = slowpath(["check", "--quiet"]);
    // Cargo's lies in a home directory that other users cannot enter: each of their look-ups would be refused.
    command.env_remove("LD_LIBRARY_PATH");
    run(command.args(options).arg(&path).arg("--").args(target))
}

fn limit<'a>(said: &'a Value, name: &str) -> &'a Value {
    let limits = said["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["name"] == name).unwrap_or_else(|| panic!("{name}: {said}"))
}

/// Names of those responsible for a limit.
fn responsible(said: &Value, name: &str) -> Vec<String> {
    let all = said["responsible"].as_array().unwrap();
    let of_limit = all.iter().filter(|one| one["limit"] == name);
    let shares = of_limit.flat_map(|one| one["named"].as_array().unwrap());
    shares.map(|share| share["name"].as_str().unwrap().to_owned()).collect()
}

const PYTHON: [&str; 3] = ["/usr/bin/python3", "-c", "import json"];

#[test]
fn a_command_within_its_budget_passes() {
    let budget = "[launch]\nruns = 3\n[limits]\nwall = \"20s\"\nwall_p75 = \"20s\"\ncpu = \"20s\"\nminor_faults = 1000000\n\
                  major_faults = 1000000\nbytes_read = \"10GB\"\npeak_rss = \"1GiB\"\n";
    let done = check(budget, &["--json"], &PYTHON);
    done.succeeds();
    let said = done.json();
    assert_eq!((said["schema"].as_str(), said["verdict"].as_str()), (Some("slowpath-check/1"), Some("within")));
    let names: Vec<&str> = said["limits"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["wall", "wall_p75", "cpu", "minor_faults", "major_faults", "bytes_read", "peak_rss"]);
    let (wall, faults) = (limit(&said, "wall"), limit(&said, "minor_faults"));
    assert!(wall["measured"]["high"].as_f64().unwrap() <= 20_000.0 && wall["quantile"] == 0.5, "{wall}");
    let launches = said["launches"].as_array().unwrap().len() as u64;
    assert!((6..=40).contains(&launches) && faults["launches"] == launches, "{said}");
    assert_eq!(faults["above"].as_u64(), Some(0));
    assert!(said["recording"].is_null() && said["responsible"].as_array().unwrap().is_empty());
    let checked = check("[launch]\nruns = 3\n[limits]\npeak_rss = \"1GB\"\n", &[], &PYTHON);
    checked.succeeds();
    assert!(checked.stdout.contains("peak_rss") && checked.stdout.contains("within"), "{checked:?}");
    assert!(checked.stdout.contains("3 launches, ready: exit; the budget asks for no more"), "{checked:?}");
}

#[test]
fn a_count_that_one_launch_exceeds_fails_and_names_who_is_responsible() {
    let budget = "[launch]\nruns = 3\n[limits]\nminor_faults = 10\npeak_rss = \"1GB\"\n";
    let script = "/bin/true; /bin/true; exec /usr/bin/python3 -c 'import json'";
    let done = check(budget, &["--json"], &["/bin/sh", "-c", script]);
    done.fails_with(1, &["over budget: minor_faults"]);
    let said = done.json();
    let faults = limit(&said, "minor_faults");
    assert_eq!((faults["verdict"].as_str(), faults["above"].as_u64()), (Some("exceeded"), Some(3)));
    assert!(faults["smallest"].as_f64().unwrap() > 100.0 && faults["largest"].as_f64() >= faults["smallest"].as_f64());
    if !root() {
        let gap = &said["unavailable"][0];
        assert!(gap["what"] == "privilege" && gap["remedy"].as_str().unwrap().contains("sudo"), "{said}");
        return;
    }
    let named = responsible(&said, "minor_faults");
    assert!(named.iter().any(|name| name.contains("python3") || name.starts_with("/usr/lib")), "{named:?}");
    assert!(responsible(&said, "peak_rss").is_empty(), "it was not exceeded");
}

#[test]
fn a_process_too_many_is_named_by_its_command_line_also_when_its_parent_waits_for_it() {
    if !root() {
        return;
    }
    let target = ["/bin/sh", "-c", "/bin/true; /bin/true; exec /usr/bin/python3 -c 'import json'"];
    check("[launch]\nruns = 2\n[limits]\nprocesses = 3\n", &[], &target).succeeds();
    let done = check("[launch]\nruns = 2\n[limits]\nprocesses = 2\n", &[], &target);
    done.fails_with(1, &["over budget: processes"]);
    assert!(done.stdout.contains("3 in the recorded launch"), "{done:?}");
    assert!(done.stdout.contains("responsible: processes:        2  /bin/true"), "{done:?}");
}

#[test]
fn a_refused_open_is_reported_with_its_path() {
    if !root() {
        return;
    }
    let place = place();
    let secret = place.path().join("secret\u{1b}[31m");
    fs::write(&secret, "x").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let script = format!("import sys\ntry: open('{}')\nexcept PermissionError: pass", secret.display());
    let target = ["/usr/bin/python3", "-c", &script];
    let budget = "[launch]\nruns = 1\n[limits]\ndenied_opens = 0\ncold_bytes = \"10GB\"\n";
    let done = check(budget, &["--json", "--user", "nobody"], &target);
    done.fails_with(1, &["over budget: denied_opens"]);
    let said = done.json();
    assert_eq!(limit(&said, "denied_opens")["largest"], 1.0, "{said}");
    assert_eq!(limit(&said, "cold_bytes")["verdict"], "within");
    let named = responsible(&said, "denied_opens");
    assert!(named.len() == 1 && named[0].starts_with(secret.to_str().unwrap()), "{named:?}");
    assert!(named[0].contains("(EACCES, python3"), "{named:?}");
    let checked = check(budget, &["--user", "nobody"], &target);
    assert!(checked.stdout.contains("secret\\u{1b}[31m (EACCES") && !checked.stdout.contains('\u{1b}'), "{checked:?}");
    // Root may open it.
    check(budget, &["--user", "root"], &target).succeeds();
}

#[test]
fn bytes_of_a_cold_launch_are_shown_by_file() {
    if !root() {
        return;
    }
    let budget =
        "[launch]\ncold = \"lab\"\nruns = 2\n[limits]\nbytes_read = \"1KB\"\ncold_bytes = \"1KB\"\nwall = \"1us\"\n";
    let done = check(budget, &["--json", "--max-time", "1s"], &PYTHON);
    done.fails_with(1, &["bytes_read", "cold_bytes"]);
    let said = done.json();
    for name in ["bytes_read", "cold_bytes"] {
        assert!(limit(&said, name)["largest"].as_f64().unwrap() > 1e6, "{said}");
        let named = responsible(&said, name);
        assert!(named.iter().any(|path| path.contains("python3")), "{named:?}");
    }
    assert!(said["conditions"][0].as_str().unwrap().contains("proved"), "{said}");
}

#[test]
fn a_recording_that_exists_is_taken_instead_of_one_more_launch() {
    if !root() {
        return;
    }
    let place = place();
    let recording: PathBuf = place.path().join("recording");
    record(&recording, &[], &PYTHON).succeeds();
    let log = place.path().join("log");
    let script = format!("echo >> {}", log.display());
    let budget = "[launch]\nruns = 2\n[limits]\nminor_faults = 1\ncold_bytes = \"10GB\"\n";
    let given = ["--json", "--recording", recording.to_str().unwrap()];
    let done = check(budget, &given, &["/bin/sh", "-c", &script]);
    done.fails_with(1, &["over budget: minor_faults"]);
    let said = done.json();
    assert_eq!(said["recording"].as_str(), recording.to_str());
    assert!(!responsible(&said, "minor_faults").is_empty(), "{said}");
    // One to warm up, two that count, none to record.
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 3);
    check(budget, &["--recording", "/"], &["/bin/true"]).fails_with(2, &["not a recording"]);
}

#[test]
fn a_time_far_above_its_limit_fails_and_one_far_below_passes() {
    let sleep = ["/bin/sleep", "0.05"];
    let done = check("[limits]\nwall = \"5ms\"\ncpu = \"40s\"\n", &["--json"], &sleep);
    done.fails_with(1, &["over budget: wall\n"]);
    let said = done.json();
    let wall = limit(&said, "wall");
    assert!(wall["measured"]["low"].as_f64().unwrap() > 5.0 && wall["level"].as_f64().unwrap() > 0.95, "{wall}");
    assert_eq!(limit(&said, "cpu")["verdict"], "within");
    let launches = said["launches"].as_array().unwrap().len();
    assert!((10..40).contains(&launches), "{launches} launches for a clear answer");
    check("[limits]\nwall = \"30s\"\n", &[], &sleep).succeeds();
}

#[test]
fn an_undecided_limit_passes_and_fails_with_strict() {
    let budget = "[launch]\nruns = 3\nmax_runs = 3\n[limits]\nwall = \"30s\"\n";
    let done = check(budget, &[], &["/bin/true"]);
    done.succeeds();
    assert!(done.stdout.contains("undecided: an interval takes 6 launches"), "{done:?}");
    assert!(done.stderr.contains("undecided: wall"), "{done:?}");
    let strict = check(budget, &["--strict", "--json"], &["/bin/true"]);
    strict.fails_with(1, &["undecided, and --strict: wall"]);
    assert_eq!(strict.json()["verdict"], "undecided");
}

#[test]
fn a_command_that_fails_is_no_verdict() {
    check("[limits]\nmajor_faults = 1\n", &[], &["/bin/false"])
        .fails_with(4, &["failed in its first launch", "status 1"]);
    check("[limits]\nmajor_faults = 1\n", &[], &["/no/such/program"]).fails_with(4, &["/no/such/program"]);
    let place = place();
    let count = place.path().join("count");
    // The first launch warms up; the third fails, and what it took is not a time.
    let script = format!("echo >> {0}; [ $(wc -l < {0}) != 3 ]", count.display());
    let done = check("[launch]\nruns = 3\n[limits]\npeak_rss = \"1GB\"\n", &["--json"], &["/bin/sh", "-c", &script]);
    done.fails_with(4, &["1 launch failed"]);
    let said = done.json();
    assert_eq!((said["failed"].as_u64(), said["launches"].as_array().unwrap().len()), (Some(1), 3));
    assert!(said["reasons"][0].as_str().unwrap().contains("exited with status 1"), "{said}");
}

#[test]
fn the_command_line_says_when_the_target_is_ready_before_the_budget_does() {
    let budget = "[launch]\nruns = 2\nready = \"line:^up$\"\n[limits]\nwall = \"30s\"\n";
    let script = "echo up; echo later; exec sleep 100";
    let ready = |options: &[&str]| {
        let done = check(budget, &[&["--json"], options].concat(), &["/bin/sh", "-c", script]);
        done.succeeds();
        done.json()["ready"].as_str().unwrap().to_owned()
    };
    assert_eq!(ready(&[]), "line:^up$");
    assert_eq!(ready(&["--ready", "line:^later$"]), "line:^later$");
}

#[test]
fn a_bad_budget_is_refused_with_its_line_before_anything_is_launched() {
    let place = place();
    let log = place.path().join("log");
    let script = format!("echo >> {}", log.display());
    let cases = [
        ("[limits]\nwal = \"1s\"\n", "line 2: there is no limit \"wal\"; known are wall, cpu"),
        ("[launch]\nrun = 3\n[limits]\nwall = \"1s\"\n", "line 2: unknown field `run`, expected one of `cold`, `runs`"),
        ("[limits]\nwall = \"1MB\"\n", "line 2: wall"),
        ("[limits]\nprocesses = \"1\"\n", "processes is a count"),
        ("[limits]\n", "nothing to check"),
        ("[limits\n", "line 1"),
    ];
    for (budget, words) in cases {
        check(budget, &[], &["/bin/sh", "-c", &script]).fails_with(2, &["budget.toml cannot be used", words]);
    }
    run(slowpath(["check", "/no/such/budget.toml", "--", "/bin/true"])).fails_with(2, &["/no/such/budget.toml"]);
    run(slowpath(["check", "/dev/zero", "--", "/bin/true"])).fails_with(2, &["is not a regular file"]);
    let large = place.path().join("large");
    std::fs::write(&large, vec![b'#'; 2 << 20]).unwrap();
    run(slowpath(["check"]).arg(&large).args(["--", "/bin/true"])).fails_with(2, &["cannot be used"]);
    run(slowpath(["check", "--", "/bin/true"])).fails_with(2, &["BUDGET.toml"]);
    assert!(!log.exists(), "it was launched");
    let json = check("[limits]\n", &["--json"], &["/bin/true"]);
    assert_eq!((json.code(), json.json()["schema"].as_str()), (2, Some("slowpath-error/1")));
}

#[test]
fn without_privilege_what_needs_a_recording_is_unavailable() {
    if !root() {
        return;
    }
    let place = place();
    let budget = place.path().join("budget.toml");
    fs::write(&budget, "[launch]\nruns = 1\n[limits]\ndenied_opens = 0\npeak_rss = \"1GB\"\n").unwrap();
    // The command under test lies where another user cannot reach it.
    let program = place.path().join("slowpath");
    copy_program(SLOWPATH, &program);
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
    let done = run(command.arg("check").arg(&budget).args(["--", "/bin/true"]).current_dir("/"));
    done.fails_with(3, &["not measured on this machine: denied_opens"]);
    assert!(done.stdout.contains("unavailable: privilege: ") && done.stdout.contains("; run it with sudo"), "{done:?}");
    assert!(done.stdout.lines().any(|line| line.starts_with("peak_rss") && line.contains("within")), "{done:?}");
}

#[test]
fn an_interrupted_check_has_no_verdict() {
    let place = place();
    let budget = place.path().join("budget.toml");
    fs::write(&budget, "[launch]\nruns = 1000\n[limits]\npeak_rss = \"1GB\"\n").unwrap();
    let log = place.path().join("log");
    let script = format!("echo >> {}; exec /bin/sleep 0.2", log.display());
    let mut running = start(slowpath(["check", "--quiet"]).arg(&budget).args(["--", "/bin/sh", "-c", &script]));
    assert!(soon(|| fs::read(&log).is_ok_and(|lines| lines.len() > 2)), "it launches nothing");
    running.signal(libc::SIGINT);
    running.wait().fails_with(130, &["interrupted"]);
}
