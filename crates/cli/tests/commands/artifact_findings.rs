//! Artifacts that the user of several children cannot use, found in recordings of them: the programs of `cases/artifacts`, each way in
//! which it can be, the price beside what unrecorded runs with and without it differ by, and near misses.

use crate::artifact_case::{ArtifactCase, CHILDREN, NOBODY, REST, WORK, deny_nobody, mode};
use crate::prices::{self, Price, unrecorded};
use crate::recorded_case::{RecordedCase, analyzed, row};
use crate::running::*;
use crate::traces::assert_nothing_left;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const ABOUT_ARTIFACTS: [&str; 3] = ["unreadable_artifact", "stale_artifact", "missing_artifact"];

fn record(case: &ArtifactCase, user: &str, target: &[String]) -> RecordedCase {
    let out = case.path("out");
    let _ = fs::remove_dir_all(&out);
    let target: Vec<&str> = target.iter().map(String::as_str).collect();
    RecordedCase::record(&out, &["--quiet", "--off-cpu", "--user", user], &target, &ABOUT_ARTIFACTS)
}

/// The price of the only finding is what `hide` makes a child take longer than `show`, in runs that nobody records; and the cost is that
/// of all its processes.
#[track_caller]
fn assert_priced(case: &ArtifactCase, target: &[String], recorded: &RecordedCase, show: impl Fn(), hide: impl Fn()) {
    let finding = recorded.one();
    let each = row(finding, "cpu_ms_each");
    let number = |value: &Value| value.as_f64().unwrap();
    let cost = number(&finding["cost"]["value"]) / number(&each["processes"]);
    assert!((cost / number(&each["cpu_ms_each"]) - 1.0).abs() < 0.05, "{finding:#}");
    prices::assert_priced(Price::of(recorded), &|| Price::of(&record(case, NOBODY, target)), &|| {
        show();
        let without = unrecorded(NOBODY, target);
        hide();
        (unrecorded(NOBODY, target), without)
    });
}

#[track_caller]
fn assert_subject(finding: &Value, artifact: &str, artifacts: u64) {
    let subject = &finding["subject"];
    assert!(subject["artifact"].as_str().unwrap().contains(artifact), "{subject:#}");
    assert_eq!(
        (subject["artifacts"].as_u64(), subject["processes"].as_u64()),
        (Some(artifacts), Some(4)),
        "{subject:#}"
    );
    assert_eq!(subject["uid"], 65534, "{subject:#}");
}

#[test]
fn bytecode_in_a_private_directory_is_compiled_again_by_every_child() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    let target = case.python(CHILDREN, &[]);
    record(&case, NOBODY, &target).none();
    let set = |bits: u32| mode(case.path("shop/__pycache__"), bits);
    set(0o700);
    let recorded = record(&case, NOBODY, &target);
    assert_subject(recorded.one(), "/shop/__pycache__/m", 4 + 1);
    assert_eq!(recorded.one()["confidence"], "medium");
    assert_priced(&case, &target, &recorded, || set(0o755), || set(0o700));
}

#[test]
fn a_directory_two_levels_up_that_cannot_be_entered_hides_the_bytecode_below() {
    if !root() {
        return;
    }
    // Bytecode in a tree of its own, below a directory that only root enters. No file is saved, for the tree is not seen to be there.
    let case = ArtifactCase::new();
    let prefix = case.path("kept/bytecode");
    let target = case.python(CHILDREN, &["-X", &format!("pycache_prefix={}", prefix.display())]);
    // Python's own modules have theirs there too, so all that a child imports is saved by one that may.
    run(Command::new(&target[0]).args(&target[1..]).env_remove("PYTHONDONTWRITEBYTECODE")).succeeds();
    record(&case, NOBODY, &target).none();
    let set = |bits: u32| mode(case.path("kept"), bits);
    set(0o744);
    let recorded = record(&case, NOBODY, &target);
    let finding = recorded.one();
    assert!(finding["subject"]["artifact"].as_str().unwrap().starts_with(case.path("kept").to_str().unwrap()));
    // Compiling ends where the directory for the result cannot be made.
    assert_eq!(finding["confidence"], "medium", "{finding:#}");
    assert_priced(&case, &target, &recorded, || set(0o755), || set(0o744));
}

#[test]
fn an_access_control_list_that_denies_one_user_is_found_for_that_user() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    let target = case.python(CHILDREN, &[]);
    let directory = case.path("shop/__pycache__");
    let allow = || rustix::fs::removexattr(&directory, "system.posix_acl_access").unwrap();
    deny_nobody(&directory);
    let recorded = record(&case, NOBODY, &target);
    assert_subject(recorded.one(), "/shop/__pycache__/m", 4 + 1);
    assert_priced(&case, &target, &recorded, allow, || deny_nobody(&directory));
    record(&case, "65533", &target).none();
}

#[test]
fn a_table_of_a_family_that_nobody_knows_is_found_by_what_is_done_without_it() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    let set = |bits: u32| mode(case.path("cache/table.cache"), bits);
    // Whether it opens the table and is denied, or asks first and opens nothing.
    for mode in ["saves", "asks"] {
        let target = case.table(mode);
        set(0o644);
        record(&case, NOBODY, &target).none();
        set(0o600);
        let recorded = record(&case, NOBODY, &target);
        assert_subject(recorded.one(), "/cache/table.cache", 1);
        assert_eq!(
            (&recorded.one()["name"], &recorded.one()["confidence"]),
            (&"unreadable_artifact".into(), &"medium".into())
        );
        assert_priced(&case, &target, &recorded, || set(0o644), || set(0o600));
        let each = row(recorded.one(), "cpu_ms_each")["cpu_ms_each"].as_f64().unwrap();
        assert!((each / 40.0 - 1.0).abs() < 0.2, "the truth is {WORK} ms: {each}");
    }
}

#[test]
fn a_process_that_could_read_it_says_what_its_siblings_pay() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    // By paths that start from where the program runs.
    let script = format!("cd {} && exec ./cached-table two {CHILDREN} . {WORK} {REST}", case.place.path().display());
    let target = ["/bin/sh", "-c", &script].map(str::to_owned);
    record(&case, "root", &target).none();
    mode(case.path("cache/table.cache"), 0o600);
    let recorded = record(&case, "root", &target);
    let finding = recorded.one();
    assert_eq!(finding["subject"]["artifact"], case.path("cache/table.cache").to_str().unwrap());
    assert_eq!((&finding["confidence"], &finding["subject"]["processes"]), (&"high".into(), &2.into()), "{finding:#}");
    let each = row(finding, "cpu_ms_each")["cpu_ms_each"].as_f64().unwrap();
    assert!((each / 40.0 - 1.0).abs() < 0.2, "the truth is {WORK} ms: {each}");
}

#[test]
fn bytecode_that_is_stale_or_was_never_made_is_compiled_again_by_every_child() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    let target = case.python(CHILDREN, &[]);
    let modules = [0, 1, 2, 3].map(|number| case.path(&format!("shop/m{number}.py")));
    let change = || {
        for module in &modules {
            let text = fs::read_to_string(module).unwrap();
            fs::write(module, format!("{text}\n# changed\n")).unwrap();
        }
    };
    change();
    let stale = record(&case, NOBODY, &target);
    assert_eq!(stale.one()["name"], "stale_artifact");
    assert_subject(stale.one(), "/shop/__pycache__/m", 4);
    assert_priced(&case, &target, &stale, || case.compile(), change);

    let remove = || {
        for entry in fs::read_dir(case.path("shop/__pycache__")).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_str().unwrap().contains("__init__") {
                fs::remove_file(path).unwrap();
            }
        }
    };
    remove();
    let missing = record(&case, NOBODY, &target);
    assert_eq!(missing.one()["name"], "missing_artifact");
    assert_subject(missing.one(), "/shop/__pycache__/m", 4);
    assert_priced(&case, &target, &missing, || case.compile(), remove);
}

#[test]
fn a_directory_of_bytecode_that_cannot_be_made_is_missing() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    let target = case.python(CHILDREN, &[]);
    let remove = || fs::remove_dir_all(case.path("shop/__pycache__")).unwrap();
    remove();
    let recorded = record(&case, NOBODY, &target);
    let finding = recorded.one();
    assert_eq!((&finding["name"], &finding["confidence"]), (&"missing_artifact".into(), &"medium".into()));
    assert!(finding["subject"]["artifact"].as_str().unwrap().contains("/shop/__pycache__/m"), "{finding:#}");
    assert_priced(&case, &target, &recorded, || case.compile(), remove);
}

#[test]
fn files_that_are_never_opened_searched_for_optional_or_opened_in_the_end_are_none() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    mode(case.path("cache/table.cache"), 0o600);
    // 300 ms of other work: slow for another reason.
    let slow = |mode: &str| {
        let mut target = case.table(mode);
        target[5] = "300".to_owned();
        target
    };
    for target in [slow("unused"), slow("searches"), slow("optional"), slow("glances")] {
        record(&case, NOBODY, &target).none();
    }
    record(&case, "root", &slow("retries")).none();
}

#[test]
fn bytecode_that_is_small_costs_what_compiling_at_all_costs_and_is_none_in_a_program_that_is_slow() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    fs::write(case.path("shop/m0.py"), "x = 1\n").unwrap();
    mode(case.path("shop/__pycache__"), 0o700);
    let place = case.place.path();
    for options in [&["-c"][..], &["-B", "-c"]] {
        let run = |seconds: &str| {
            let imports = format!("import sys, time; sys.path.insert(0, {place:?}); import shop.m0\n");
            let script = format!("{imports}while time.process_time() < {seconds}: pass");
            let python = ["/usr/bin/env", "-u", "PYTHONDONTWRITEBYTECODE", "/usr/bin/python3"];
            let words = python.iter().chain(options).copied().map(str::to_owned);
            record(&case, NOBODY, &words.chain([script]).collect::<Vec<_>>())
        };
        run("3").none();
        // The first that is compiled has the compiler's own pages faulted in: 1 to 3 ms, which can be just enough to be found in 0.5 s.
        for one in &run("0.5").findings {
            let cost = one["cost"]["value"].as_f64().unwrap();
            assert!(one["name"] == "unreadable_artifact" && cost < 5.0, "{one:#}");
        }
    }
}

#[test]
fn a_diagnosis_as_root_shows_what_root_hides() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    mode(case.path("shop/__pycache__"), 0o700);
    let out = case.path("out");
    let mut command = slowpath(["diagnose", "--warm", "--quiet", "--user", "root", "-o"]);
    let done = run(command.arg(&out).arg("--").args(case.python("2", &[])).env_remove("SUDO_UID"));
    done.succeeds();
    assert!(done.stderr.contains("the command runs as root"), "{}", done.stderr);
    let head = format!("user {NOBODY} may not read ");
    let denied_by = case.path("shop/__pycache__").to_str().unwrap().to_owned();
    let row = format!("    5  {denied_by}: other bits lack x");
    for part in [&head, "diagnose --user NAME", &row] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let written: Value = serde_json::from_slice(&fs::read(out.join("diagnosis.json")).unwrap()).unwrap();
    let hidden = &written["hidden_by_root"];
    // This machine may hide others from that user; those of the case are denied by one rule.
    assert_eq!(hidden["uid"], 65534, "{hidden:#}");
    assert!(hidden["used"].as_u64() > hidden["unreadable"].as_u64(), "{hidden:#}");
    let all = hidden["artifacts"].as_array().unwrap();
    let of_case: Vec<&Value> = all.iter().filter(|one| one["denied_by"] == denied_by.as_str()).collect();
    assert_eq!(of_case.len(), 5, "{hidden:#}");
    assert!(of_case.iter().all(|one| one["change"] == format!("chmod o+x {denied_by}")), "{hidden:#}");
}

#[test]
fn a_diagnosis_finds_it_by_itself_in_a_command_and_in_what_runs_already() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    mode(case.path("cache/table.cache"), 0o600);
    let out = case.path("out");
    let mut command = slowpath(["diagnose", "--warm", "--json", "--user", NOBODY, "-o"]);
    let done = run(command.arg(&out).arg("--").args(case.table("saves")));
    done.succeeds();
    assert_nothing_left(&done);
    let printed = done.json();
    let named = |printed: &Value| {
        let findings = printed["findings"].as_array().unwrap().iter();
        findings.filter(|one| one["name"] == "unreadable_artifact").cloned().collect::<Vec<Value>>()
    };
    let [one] = &named(&printed)[..] else { panic!("{printed:#}") };
    let each = row(one, "cpu_ms_each")["cpu_ms_each"].as_f64().unwrap();
    assert!((each / 40.0 - 1.0).abs() < 0.2, "the truth is {WORK} ms: {each}");
    assert!(analyzed(&out.join("warm"))["findings"].to_string().contains("unreadable_artifact"));
    // The fix is shown with the command that makes it, and not tried.
    let plan = printed["fixes"].as_array().unwrap().iter().find(|plan| plan["fix"] == "grant_read").unwrap();
    let artifact = case.path("cache/table.cache");
    assert_eq!(plan["changes"][0]["to"], format!("chmod o+r {}", artifact.display()), "{plan:#}");
    let verdict = printed["verdicts"].as_array().unwrap().iter().find(|one| one["fix"] == "grant_read").unwrap();
    assert_eq!(verdict["decision"], "not_tried", "{verdict:#}");
    // It changes the machine, which apply does not do, proved or not.
    let wrapper = case.path("wrapper");
    let apply =
        slowpath(["fix", "apply"]).arg(&out).args(["grant_read", "--unproved", "--wrapper"]).arg(&wrapper).output();
    assert!(!apply.unwrap().status.success() && !wrapper.exists());
    assert_eq!(fs::metadata(&artifact).unwrap().permissions().mode() & 0o777, 0o600);

    let mut target = case.table("saves");
    target[2] = "100000".to_owned();
    let mut running = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .args(target)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let later = case.path("later");
    let pid = running.id().to_string();
    let done = run(slowpath(["diagnose", "--json", "--duration", "2", "--pid", &pid, "-o"]).arg(&later));
    running.kill().unwrap();
    running.wait().unwrap();
    done.succeeds();
    let printed = done.json();
    let [one] = &named(&printed)[..] else { panic!("{printed:#}") };
    // How many there are in two seconds is for the machine to say.
    assert!(one["subject"]["processes"].as_u64().unwrap() > 1, "{one:#}");
    let each = row(one, "cpu_ms_each")["cpu_ms_each"].as_f64().unwrap();
    assert!((each / 40.0 - 1.0).abs() < 0.2, "the truth is {WORK} ms: {each}");
}
