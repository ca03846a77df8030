//! Trials of the fix `grant_read`: launches that see files with the change, in mounts of their own. What is proved and what is not, who
//! gets none, and that no file changes and nothing stays, also after a kill.

use crate::artifact_case::{ArtifactCase, NOBODY, deny_nobody, mode};
use crate::prices::{median, unrecorded};
use crate::running::*;
use crate::traces::{assert_nothing_left, processes_with};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::PathBuf;
use std::process::Command;

const GRANT_READ: &str = "grant_read";
/// With it malloc keeps what a compiler frees: the fix for that would be tried beside the one that is looked at here.
const KEEPS_MEMORY: &str =
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824";
/// Some user who called sudo.
const INVOKER: u32 = 12_345;

/// A warm diagnosis as nobody, in nine blocks.
pub fn diagnose(case: &ArtifactCase, target: &[String]) -> Command {
    let mut command =
        slowpath(["diagnose", "--warm", "--json", "--blocks", "9", "--max-time", "20m", "--user", NOBODY]);
    let _ = fs::remove_dir_all(case.path("out"));
    command.args(["--env", KEEPS_MEMORY, "-o"]).arg(case.path("out")).arg("--").args(target);
    command
}

/// What stat(2) says of all files of the case.
pub fn facts(case: &ArtifactCase) -> Vec<(PathBuf, [i64; 8])> {
    let mut found = Vec::new();
    for directory in ["", "shop", "shop/__pycache__", "cache"] {
        for entry in fs::read_dir(case.path(directory)).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.starts_with(case.path("out")) {
                continue;
            }
            let it = fs::symlink_metadata(&path).unwrap();
            let numbers = [i64::from(it.mode()), i64::from(it.uid()), it.ino() as i64, it.size() as i64];
            let times = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
            found.push((path, [numbers, times].concat().try_into().unwrap()));
        }
    }
    found.sort();
    found
}

/// Whether a process sees something of the case mounted.
pub fn is_mounted(case: &ArtifactCase) -> bool {
    let name = case.place.path().file_name().unwrap().to_str().unwrap();
    let tables = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("mountinfo"));
    tables.filter_map(|table| fs::read_to_string(table).ok()).any(|table| table.contains(name))
}

/// What a list of a diagnosis has of a fix.
pub fn of_fix<'a>(printed: &'a Value, list: &str, fix: &str) -> &'a Value {
    let found = printed[list].as_array().unwrap().iter().find(|one| one["fix"] == fix);
    found.unwrap_or_else(|| panic!("{printed:#}"))
}

/// That a fix got no trial, for a reason with these words, and what else helps is said.
#[track_caller]
pub fn assert_not_tried(printed: &Value, fix: &str, words: &str) {
    let verdict = of_fix(printed, "verdicts", fix);
    assert_eq!(verdict["decision"], "not_tried", "{verdict:#}");
    let what = format!("a trial of {fix}");
    let gap = printed["unavailable"].as_array().unwrap().iter().find(|gap| gap["what"] == what.as_str());
    let gap = gap.unwrap_or_else(|| panic!("{:#}", printed["unavailable"]));
    assert!(gap["reason"].as_str().unwrap().contains(words), "{gap:#}");
    assert!(!gap["remedy"].as_str().unwrap().is_empty());
}

/// Kills a diagnosis of the case's Python children when one of its launches has mounts: no mount, process or change stays.
#[track_caller]
pub fn assert_nothing_is_left_when_killed_with_mounts(case: &ArtifactCase) {
    let before = facts(case);
    let (name, value) = mark();
    let mut command = diagnose(case, &case.python("2", &[]));
    let mut running = start(command.env(name, &value));
    // The recorded launch comes first, which takes its time beside other tests.
    let was_mounted = (0..4).any(|_| soon(|| is_mounted(case)));
    running.signal(libc::SIGKILL);
    running.wait();
    assert!(was_mounted, "no launch has mounts");
    assert!(soon(|| processes_with(&format!("{name}={value}")).is_empty()), "processes are left");
    assert!(soon(|| !is_mounted(case)), "mounts are left");
    assert_eq!(facts(case), before);
    run(slowpath(["doctor", "--clean"]));
}

fn of_arm<'a>(printed: &'a Value, arm: &str) -> &'a Value {
    let found = printed["verdicts"].as_array().unwrap().iter().find(|one| one["arm"] == arm);
    found.unwrap_or_else(|| panic!("{printed:#}"))
}

/// CPU time of an arm's launches.
fn cpu_samples(printed: &Value, wanted: impl Fn(&Value) -> bool) -> Vec<Option<f64>> {
    let arms = printed["launch"]["arms"].as_array().unwrap();
    let arm = arms.iter().find(|arm| wanted(arm)).unwrap_or_else(|| panic!("{arms:#?}"));
    arm["cpu_samples_ms"].as_array().unwrap().iter().map(Value::as_f64).collect()
}

/// What share of an untreated launch an arm saves, in the median of the blocks.
fn saved_share(printed: &Value, name: &str) -> f64 {
    let untreated = cpu_samples(printed, |arm| arm["role"] == "baseline");
    let arm = cpu_samples(printed, |arm| arm["name"] == name);
    median(untreated.iter().zip(&arm).filter_map(|(untreated, arm)| Some(1.0 - (*arm)? / (*untreated)?)).collect())
}

/// How far a number is from an interval.
fn distance(number: f64, [low, high]: [f64; 2]) -> f64 {
    (low - number).max(number - high).max(0.0)
}

/// The trial proves the fix, near its prediction, and the same mounts without it do not do the same. As shares of an untreated launch, and
/// of what a verdict is sure of: what runs beside this makes the recorded launch, or others, take half as long again.
#[track_caller]
pub fn assert_proved(printed: &Value, fix: &str, sham: &str) {
    let verdict = of_fix(printed, "verdicts", fix);
    assert_eq!((&verdict["outcome"], &verdict["decision"]), (&"helps".into(), &"proved".into()), "{verdict:#}");
    let untreated = cpu_samples(printed, |arm| arm["role"] == "baseline").into_iter().flatten();
    let untreated = median(untreated.collect());
    let interval = |verdict: &Value| ["high", "low"].map(|end| -verdict["measured"][end].as_f64().unwrap() / untreated);
    let (saves, of_sham) = (interval(verdict), of_arm(printed, sham));
    let saved = saved_share(printed, verdict["arm"].as_str().unwrap());
    let predicted =
        -verdict["predicted"]["value"].as_f64().unwrap() / printed["time"][0]["cpu"]["value"].as_f64().unwrap();
    let by_mounts = interval(of_sham);
    println!("of a launch: predicted {predicted:.3}, saved {saved:.3} {saves:.3?}, by mounts alone {by_mounts:.3?}");
    assert!(distance(predicted, saves) < 0.15, "predicted {predicted}, saved {saves:?}: {verdict:#}");
    assert!(distance(0.0, by_mounts) < 0.25 * saved, "{by_mounts:?} of {saved}: {of_sham:#}");
    let middle = saved_share(printed, sham);
    assert!(middle.abs() < 0.5 * saved && saves[0] > 0.25 * saved, "{middle} of {saves:?}: {of_sham:#}");
}

#[test]
fn bytecode_in_a_private_directory_is_read_in_a_trial_and_no_file_changes() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    mode(case.path("shop/__pycache__"), 0o700);
    let before = facts(&case);
    let target = case.python("2", &[]);
    let done = run(diagnose(&case, &target));
    done.succeeds();
    assert_nothing_left(&done);
    let printed = done.json();
    assert_proved(&printed, GRANT_READ, "sham_files");
    let plan = of_fix(&printed, "fixes", GRANT_READ);
    let directory = case.path("shop/__pycache__");
    assert_eq!(plan["treatment"]["files"][0]["path"], directory.to_str().unwrap(), "{plan:#}");
    assert_eq!(plan["changes"][0]["to"], format!("chmod o+x {}", directory.display()), "{plan:#}");
    assert!(printed["notes"].to_string().contains("no file was changed"), "{:#}", printed["notes"]);
    assert_eq!(facts(&case), before);
    assert!(!is_mounted(&case));
    // Kept: each start is as much faster as the trial had it, until it is taken back.
    let fix = |arguments: &[&str]| {
        let mut command = slowpath(["fix"]);
        command.args(arguments).env("HOME", case.place.path()).env_remove("SUDO_UID");
        let done = run(&mut command);
        done.succeeds();
        done
    };
    // What the target's user could have changed is not applied: root copies it first, and names what was shown.
    let own = place();
    fs::copy(case.path("out/diagnosis.json"), own.path().join("diagnosis.json")).unwrap();
    let (out, name) = (own.path().to_str().unwrap(), plan["name"].as_str().unwrap());
    let shown = fix(&["show", out, name, "--permissions", "--json"]).json();
    let trust = shown["trust"].as_str().unwrap();
    let pair = || {
        let slow = unrecorded(NOBODY, &target);
        fix(&["apply", out, name, "--permissions", "--trust-diagnosis", trust]);
        let fast = unrecorded(NOBODY, &target);
        fix(&["undo", out]);
        1.0 - fast / slow
    };
    let (kept, tried) = (median((0..3).map(|_| pair()).collect()), saved_share(&printed, name));
    println!("of a child's time: {kept:.3} less with the fix applied; the trial saved {tried:.3} of a launch");
    assert!(kept / tried > 0.8, "{kept} less with the fix applied; the trial saved {tried}");
    // All but the time at which permissions changed last.
    let timeless = |facts: Vec<(PathBuf, [i64; 8])>| -> Vec<_> {
        facts.into_iter().map(|(path, facts)| (path, facts.first_chunk::<6>().copied())).collect()
    };
    assert_eq!(timeless(facts(&case)), timeless(before));
}

#[test]
fn an_entry_of_a_list_that_denies_the_user_is_tried_too() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    deny_nobody(&case.path("shop/__pycache__"));
    let before = facts(&case);
    let done = run(diagnose(&case, &case.python("2", &[])));
    done.succeeds();
    let printed = done.json();
    assert_proved(&printed, GRANT_READ, "sham_files");
    let change = of_fix(&printed, "fixes", GRANT_READ)["changes"][0]["to"].as_str().unwrap().to_owned();
    assert!(change.starts_with(&format!("setfacl -m u:{NOBODY}:")), "{change}");
    assert_eq!(facts(&case), before);
}

#[test]
fn an_installation_under_a_closed_mask_is_tried_whole() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    let bytecode = fs::read_dir(case.path("shop/__pycache__")).unwrap().map(|entry| entry.unwrap().path());
    let bytecode: Vec<PathBuf> = bytecode.collect();
    bytecode.iter().for_each(|file| mode(file, 0o600));
    mode(case.path("shop/__pycache__"), 0o700);
    let before = facts(&case);
    let done = run(diagnose(&case, &case.python("2", &[])));
    done.succeeds();
    let printed = done.json();
    assert_proved(&printed, GRANT_READ, "sham_files");
    let files = of_fix(&printed, "fixes", GRANT_READ)["treatment"]["files"].as_array().unwrap().len();
    assert_eq!(files, bytecode.len() + 1, "the directory, and each file in it");
    assert_eq!(facts(&case), before);
}

#[test]
fn what_belongs_to_another_user_is_not_given_to_a_target_through_sudo_nor_what_is_no_artifact() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    mode(case.path("cache/table.cache"), 0o600);
    let refused = |command: &mut Command, words: &str| {
        let done = run(command);
        done.succeeds();
        let printed = done.json();
        assert_not_tried(&printed, GRANT_READ, words);
    };
    refused(&mut diagnose(&case, &case.table("saves")), "of no family");
    // Nor what is private to who called sudo, where the target is somebody else.
    chown(case.path("cache/table.cache"), Some(INVOKER), Some(INVOKER)).unwrap();
    let of_invoker = |command: &mut Command| {
        command.env("SUDO_UID", INVOKER.to_string()).env("SUDO_GID", INVOKER.to_string());
        refused(command, "of no family");
    };
    of_invoker(&mut diagnose(&case, &case.table("saves")));
    mode(case.path("cache/table.cache"), 0o644);
    for entry in fs::read_dir(case.path("shop/__pycache__")).unwrap() {
        mode(entry.unwrap().path(), 0o600);
    }
    refused(diagnose(&case, &case.python("2", &[])).env("SUDO_UID", NOBODY), "belongs to user 0");
}

#[test]
fn a_killed_diagnosis_leaves_no_mount_no_process_and_no_change() {
    if !root() {
        return;
    }
    let case = ArtifactCase::new();
    mode(case.path("shop/__pycache__"), 0o700);
    assert_nothing_is_left_when_killed_with_mounts(&case);
}

#[test]
fn a_directory_above_is_opened_as_far_as_the_way_to_the_artifacts_goes() {
    if !root() {
        return;
    }
    // The bytecode lies below a directory that only root enters, with something that is nobody's business; the sources are elsewhere.
    let case = ArtifactCase::new();
    fs::create_dir(case.path("kept")).unwrap();
    fs::rename(case.path("shop/__pycache__"), case.path("kept/__pycache__")).unwrap();
    fs::write(case.path("kept/secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../kept/__pycache__", case.path("shop/__pycache__")).unwrap();
    mode(case.path("kept"), 0o700);
    // What a launch of the trial saw of the secret, in a place where nobody can write.
    let seen = case.path("seen");
    fs::create_dir(&seen).unwrap();
    mode(&seen, 0o777);
    let script = format!(
        "{{ echo launched; cat {0}/kept/secret 2>/dev/null; }} >> {0}/seen/secret; exec /usr/bin/python3 {0}/children.py 2",
        case.place.path().display()
    );
    let done = run(diagnose(&case, &["/bin/sh", "-c", &script].map(str::to_owned)));
    done.succeeds();
    let printed = done.json();
    assert_proved(&printed, GRANT_READ, "sham_files");
    let files = of_fix(&printed, "fixes", GRANT_READ)["treatment"]["files"].as_array().unwrap();
    let [kept] = &files[..] else { panic!("{files:#?}") };
    assert_eq!(kept["path"], case.path("kept").to_str().unwrap());
    assert_eq!(kept["only"], serde_json::json!(["__pycache__"]));
    let written = fs::read_to_string(seen.join("secret")).unwrap();
    assert!(written.lines().count() > 9 && written.lines().all(|line| line == "launched"), "{written}");
}
