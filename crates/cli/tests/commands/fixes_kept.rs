//! `slowpath fix`: what a diagnosis proved is applied, taken back to the byte, also after a kill, and never by who may not.
//!
//! The diagnoses here are written by hand: applying does not depend on how a fix was proved.

use crate::running::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NOBODY: u32 = 65534;

/// Files by their paths: bytes, mode, owner and time.
type Files = BTreeMap<PathBuf, (Vec<u8>, u32, u32, i64)>;

/// A value that every syntax has to quote.
const VALUE: &str = "a=1:b=50% \"$HOME\" 'x' `y` \\ z";

/// A fix of a diagnosis, as it stands in the file.
pub fn fix(name: &str, treatment: &Value) -> Value {
    json!({
        "fix": name, "name": name, "title": format!("the fix {name}"),
        "changes": [{"what": "the environment", "from": null, "to": "another"}],
        "scope": "launch", "privilege": "user", "side_effects": ["children inherit it"], "price": "memory",
        "security_cost": "none", "undo": "unset it", "trial": {"possible": true, "how": "in the environment"},
        "treatment": treatment,
    })
}

/// The verdict on a fix.
pub fn verdict(name: &str, decision: &str) -> Value {
    let measured = json!({"value": -12.0, "low": -13.0, "high": -11.0, "unit": "ms"});
    json!({
        "arm": name, "fix": name, "judged_by": "cpu", "outcome": "helps", "decision": decision, "predicted": null,
        "measured": measured, "minimum_detectable_effect": null, "pairs": 9, "discarded": 0, "reason": "", "beside": [],
    })
}

/// A diagnosis with these fixes and verdicts.
pub fn diagnosis(fixes: &[Value], verdicts: &[Value]) -> Value {
    json!({
        "schema": "slowpath-diagnose/1", "warm": true,
        "command": ["/bin/sh", "-c", "printf '%s|%s|' \"$KEPT\" \"$*\"", "sh"],
        "recording": "", "launch": {"ready": "exit", "seed": 1, "blocks": 9, "conditions": [], "judged_by": "cpu", "arms": []},
        "findings": [], "fixes": fixes, "verdicts": verdicts,
        "share_of_gap_removed": [], "losses": {}, "unavailable": [], "notes": [],
    })
}

/// A directory with a diagnosis of three fixes, a home and a place for files, all of an unprivileged user where this is root.
struct Case {
    place: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let case = Self { place: place() };
        let variables = json!({"kind": "environment", "variables": {"KEPT": VALUE}});
        let (plan, source) =
            (json!({"kind": "preload_plan", "file": "p.plan"}), json!({"kind": "source", "place": "f (a.c:1)"}));
        let diagnosis = diagnosis(
            &[fix("variable", &variables), fix("plan", &plan), fix("weak", &variables), fix("source", &source)],
            &[verdict("variable", "proved"), verdict("plan", "proved"), verdict("weak", "not_shown")],
        );
        for name in ["out", "home", "files"] {
            fs::create_dir(case.at(name)).unwrap();
            fs::set_permissions(case.at(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        fs::write(case.at("out/diagnosis.json"), diagnosis.to_string()).unwrap();
        let mut plan = String::from(
            "{\"schema\":\"slowpath-preload-plan/1\",\"provenance\":{\"created\":\"\",\"command\":[],\"recordings\":[]},\
             \"options\":{\"gap_pages\":2,\"cap_bytes\":262144,\"order\":\"first_use\",\"threads\":1,\"in_flight_bytes\":null,\
             \"metadata\":false,\"whole_files\":false},\"files\":1,\"ranges\":20000}\n\
             {\"path\":\"/usr/bin/true\",\"size\":400000000,\"mtime_ns\":0}\n",
        );
        (0..20_000).for_each(|range| plan.push_str(&format!("[0,{range},1]\n")));
        fs::write(case.at("out/p.plan"), plan).unwrap();
        fs::write(case.at("files/app.desktop"), "[Desktop Entry]\nName=App\nExec=/bin/echo it runs %U\n").unwrap();
        fs::write(case.at("files/env"), "OTHER=1").unwrap();
        fs::set_permissions(case.at("files/env"), fs::Permissions::from_mode(0o640)).unwrap();
        if nix::unistd::geteuid().is_root() {
            case.give(NOBODY);
        }
        case
    }

    fn give(&self, uid: u32) {
        for name in ["", "out", "home", "files", "out/diagnosis.json", "out/p.plan", "files/app.desktop", "files/env"] {
            chown(self.at(name), Some(uid), Some(uid)).unwrap();
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.place.path().to_owned() } else { self.place.path().join(name) }
    }

    /// Without privilege.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", SLOWPATH]);
            command
        } else {
            Command::new(SLOWPATH)
        };
        command.args(["fix"]).args(arguments).current_dir(self.at("files"));
        command.env("HOME", self.at("home")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        command
    }

    fn fix(&self, arguments: &[&str]) -> Done {
        run(self.command(arguments))
    }

    /// Every file in the places that are written to: its bytes, mode and owner. A directory counts by its name.
    fn all(&self) -> Files {
        let mut found = BTreeMap::new();
        let mut left = vec![self.at("files"), self.at("home/.config")];
        while let Some(path) = left.pop() {
            let Ok(there) = fs::symlink_metadata(&path) else { continue };
            if there.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                found.insert(path, (Vec::new(), there.mode(), there.uid(), 0));
            } else {
                let content = match fs::read(&path) {
                    // What works for a command that was killed ends a moment after it, and renames what it has written.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    content => content.unwrap(),
                };
                found.insert(path, (content, there.mode(), there.uid(), there.mtime()));
            }
        }
        found
    }
}

const OUT: &str = "../out";

#[test]
fn each_kind_is_shown_applied_listed_and_taken_back_to_the_byte() {
    let case = Case::new();
    let before = case.all();
    for (name, target) in [
        ("variable", &["--wrapper", "run"][..]),
        ("variable", &["--environment-file", "env"]),
        ("variable", &["--environment-file", "new-env"]),
        ("variable", &["--systemd-unit", "app", "--user"]),
        ("variable", &["--desktop-file", "app.desktop"]),
        ("plan", &["--wrapper", "run"]),
        ("plan", &["--desktop-file", "app.desktop", "--plan", "kept.plan"]),
    ] {
        let with = |verb: &'static str| [&[verb, OUT, name][..], target, &["--json"]].concat();
        let shown = case.fix(&with("show"));
        shown.succeeds();
        assert_eq!(case.all(), before, "{target:?}: showing changed something");
        let applied = case.fix(&with("apply"));
        applied.succeeds();
        assert_eq!(shown.json()["change"], applied.json()["change"], "{target:?}");
        assert_eq!(
            (&applied.json()["schema"], &applied.json()["applied"]),
            (&"slowpath-fix-apply/1".into(), &true.into())
        );
        assert_ne!(case.all(), before, "{target:?}");
        for file in applied.json()["change"]["files"].as_array().unwrap() {
            assert!(file["diff"].as_str().unwrap().starts_with("--- "), "{file:#}");
        }
        let listed = case.fix(&["list", OUT, "--json"]).json();
        let here = listed["fixes"].as_array().unwrap().iter().find(|fix| fix["name"] == name).unwrap().clone();
        assert_eq!(
            (&here["decision"], &here["applied"][0]["state"]),
            (&"proved".into(), &"applied".into()),
            "{here:#}"
        );
        let undone = case.fix(&["undo", OUT, name, "--json"]);
        undone.succeeds();
        assert_eq!(undone.json()["undone"][0]["name"], name);
        assert_eq!(case.all(), before, "{target:?}: undo left a difference");
    }
    case.fix(&["undo", OUT]).fails_with(2, &["no fix", "was applied by this user"]);
}

#[test]
fn a_diagnosis_of_the_version_before_is_shown_applied_and_taken_back_by_its_names_and_by_todays() {
    let case = Case::new();
    let path = case.at("out/diagnosis.json");
    let mut diagnosis: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let (former, now) = ("another_allocator", "replace_allocator");
    for (list, field) in [("fixes", "fix"), ("fixes", "name"), ("verdicts", "fix"), ("verdicts", "arm")] {
        for one in diagnosis[list].as_array_mut().unwrap() {
            match one[field].as_str() {
                Some("variable") => one[field] = former.into(),
                Some("source") => one[field] = "keep_buffer".into(),
                _ => {}
            }
        }
    }
    fs::write(&path, diagnosis.to_string()).unwrap();
    let before = case.all();
    for name in ["keep_buffer", "reuse_buffer", former, now] {
        case.fix(&["show", OUT, name]).succeeds();
    }
    for (applied, undone) in [(former, now), (now, former)] {
        case.fix(&["apply", OUT, applied, "--wrapper", "run"]).succeeds();
        let listed = case.fix(&["list", OUT, "--json"]).json();
        let here = listed["fixes"].as_array().unwrap().iter().find(|fix| fix["name"] == former).unwrap();
        assert_eq!(
            (&here["decision"], &here["applied"][0]["state"]),
            (&"proved".into(), &"applied".into()),
            "{here:#}"
        );
        assert_eq!(listed["others"], json!([]));
        case.fix(&["undo", OUT, undone]).succeeds();
        assert_eq!(case.all(), before, "{applied}: undo left a difference");
    }
}

#[test]
fn a_wrapper_and_a_desktop_file_start_the_program_with_exactly_what_was_tried() {
    let case = Case::new();
    case.fix(&["apply", OUT, "variable", "--wrapper", "run"]).succeeds();
    let said = Command::new(case.at("files/run")).args(["one word", "*"]).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{VALUE}|one word *|"));
    case.fix(&["apply", OUT, "variable", "--wrapper", "other", "--", "/usr/bin/printenv", "KEPT"]).succeeds();
    let said = Command::new(case.at("files/other")).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{VALUE}\n"));
    case.fix(&["apply", OUT, "variable", "--environment-file", "env"]).succeeds();
    let read = format!("set -a; . {}; printenv KEPT OTHER", case.at("files/env").display());
    let said = Command::new("/bin/sh").args(["-c", &read]).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{VALUE}\n1\n"));
    case.fix(&["apply", OUT, "plan", "--wrapper", "replayed"]).succeeds();
    assert_eq!(fs::metadata(case.at("files/replayed")).unwrap().mode() & 0o111, 0o111);
    let checked = run(slowpath(["preload", "check", "--json"]).arg(case.at("files/replayed.plan")));
    assert_eq!(checked.json()["files"], 1, "{checked:?}");
    for is_there in [true, false] {
        let said = Command::new(case.at("files/replayed")).output().unwrap();
        assert_eq!(
            String::from_utf8(said.stdout).unwrap(),
            "||",
            "{is_there}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        let _ = fs::remove_file(case.at("files/replayed.plan"));
    }
    // A file that was there only for the fix and is gone is as it was before.
    case.fix(&["undo", OUT]).succeeds();
    assert!(!case.at("files/run").exists() && !case.at("files/replayed").exists());
}

#[test]
fn only_what_is_proved_is_applied_and_without_a_target_the_possibilities_are_shown() {
    let case = Case::new();
    let before = case.all();
    case.fix(&["apply", OUT, "weak", "--wrapper", "run"]).fails_with(1, &["is not proved but not shown", "--unproved"]);
    let refused = case.fix(&["apply", OUT, "variable", "--json"]);
    refused.fails_with(2, &["no option says where"]);
    assert_eq!(
        (&refused.json()["applied"], refused.json()["possibilities"].as_array().unwrap().len()),
        (&false.into(), 5)
    );
    let plan = case.fix(&["show", OUT, "plan", "--json"]).json();
    let gap = |option: usize| plan["possibilities"][option]["unavailable"].clone();
    assert!(
        gap(0).is_null() && gap(3).is_null() && gap(2)["remedy"].as_str().unwrap().contains("--wrapper"),
        "{plan:#}"
    );
    let source = case.fix(&["show", OUT, "source"]);
    assert!(source.stdout.contains("It cannot be applied") && source.stdout.contains("f (a.c:1)"), "{}", source.stdout);
    case.fix(&["apply", OUT, "source", "--unproved", "--wrapper", "run"]).fails_with(2, &["f (a.c:1)"]);
    case.fix(&["apply", OUT, "none", "--wrapper", "run"])
        .fails_with(2, &["no fix \"none\"", "variable, plan, weak, source"]);
    case.fix(&["apply", OUT, "variable", "--wrapper", "env"]).fails_with(2, &["is there already"]);
    case.fix(&["apply", OUT, "variable", "--wrapper", "no/run"]).fails_with(2, &["files/no cannot be used"]);
    case.fix(&["apply", OUT, "variable", "--desktop-file", "none.desktop"]).fails_with(2, &["is not there"]);
    case.fix(&["apply", OUT, "variable", "--systemd-unit", "../x", "--user"]).fails_with(2, &["no service"]);
    case.fix(&["list", "."]).fails_with(2, &["diagnosis.json cannot be read", "slowpath diagnose -o DIR"]);
    symlink("env", case.at("files/link")).unwrap();
    case.fix(&["apply", OUT, "variable", "--environment-file", "link"]).fails_with(2, &["is a symbolic link"]);
    fs::remove_file(case.at("files/link")).unwrap();
    assert_eq!(case.all(), before);
    case.fix(&["apply", OUT, "weak", "--unproved", "--wrapper", "run"]).succeeds();
    let listed = case.fix(&["list", OUT]);
    assert!(listed.stdout.contains("not shown") && listed.stdout.contains("applied: "), "{}", listed.stdout);
    case.fix(&["undo", OUT]).succeeds();
}

#[test]
fn a_file_that_somebody_changed_since_is_not_overwritten() {
    let case = Case::new();
    case.fix(&["apply", OUT, "variable", "--environment-file", "env"]).succeeds();
    case.fix(&["apply", OUT, "variable", "--desktop-file", "app.desktop"]).succeeds();
    let own = [fs::read(case.at("files/env")).unwrap(), b"\nMINE=1\n".to_vec()].concat();
    fs::write(case.at("files/env"), &own).unwrap();
    let refused = case.fix(&["undo", OUT, "variable"]);
    refused.fails_with(1, &["files/env was changed", "--keep-changed"]);
    assert_eq!(fs::read(case.at("files/env")).unwrap(), own);
    assert!(case.fix(&["list", OUT]).stdout.contains("changed by somebody"));
    let undone = case.fix(&["undo", OUT, "--keep-changed", "--json"]);
    undone.succeeds();
    assert!(undone.json()["undone"].to_string().contains("\"kept\":[\""), "{}", undone.stdout);
    assert_eq!(fs::read(case.at("files/env")).unwrap(), own);
}

/// A number between `least` and `most`, the same in every run (Knuth's linear congruential generator).
pub fn random(state: &mut u64, least: u128, most: u128) -> Duration {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let part = (u128::from(*state >> 33) * (most - least)) >> 31;
    Duration::from_micros(u64::try_from(least + part).unwrap())
}

/// What is changed by the fix that the tests below kill: a new file and one that is there.
const APPLY: [&str; 5] = ["apply", OUT, "plan", "--desktop-file", "app.desktop"];

/// What a killed slowpath may leave: both files whole, as before or as applied. Undo restores them, and leaves nothing beside them.
struct Killed {
    case: Case,
    before: Files,
    applied: Files,
}

impl Killed {
    fn new() -> Self {
        let case = Case::new();
        let before = case.all();
        case.fix(&APPLY).succeeds();
        let applied = case.all();
        case.fix(&["undo", OUT]).succeeds();
        assert_eq!(case.all(), before);
        Self { case, before, applied }
    }

    /// Whether it was between the two: some files as applied, or one that was being written.
    #[track_caller]
    fn is_whole_and_undone(&self, moment: &str) -> bool {
        let found = self.case.all();
        for path in [self.case.at("files/app.desktop"), self.case.at("files/app.desktop.plan")] {
            let content = |all: &Files| all.get(&path).map(|file| (file.0.clone(), file.1, file.2));
            let is_whole = [&self.before, &self.applied].iter().any(|side| content(&found) == content(side));
            assert!(is_whole, "{moment}: {} is between", path.display());
        }
        let undone = self.case.fix(&["undo", OUT]);
        assert!(undone.status.success() || undone.stderr.contains("was applied by this user"), "{moment}: {undone:?}");
        assert_eq!(self.case.all(), self.before, "{moment}: undo left a difference");
        let records = fs::read_dir(self.case.at("home/.local/state/slowpath/fixes")).unwrap();
        assert_eq!(records.count(), 0, "{moment}: a record is left");
        let timeless = |all: &Files| {
            all.iter().map(|(path, file)| (path.clone(), (file.0.clone(), file.1, file.2))).collect::<BTreeMap<_, _>>()
        };
        [&self.before, &self.applied].iter().all(|side| timeless(&found) != timeless(side))
    }
}

#[test]
fn killed_at_a_hundred_random_moments_files_are_as_before_or_as_applied_and_undo_restores_them() {
    let killed = Killed::new();
    let took = |arguments: &[&str]| {
        let began = Instant::now();
        killed.case.fix(arguments).succeeds();
        began.elapsed().as_micros()
    };
    let long = [took(&APPLY), took(&["undo", OUT])];
    let (mut state, mut middle) = (16, 0);
    for round in 0..100 {
        let is_undone = round % 2 == 1;
        if is_undone {
            killed.case.fix(&APPLY).succeeds();
        }
        let mut command = killed.case.command(if is_undone { &["undo", OUT] } else { &APPLY });
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Files are written in the second half of the time.
        let long = long[usize::from(is_undone)];
        std::thread::sleep(random(&mut state, long / 4, long));
        child.kill().unwrap();
        child.wait().unwrap();
        middle += usize::from(killed.is_whole_and_undone(&format!("round {round}")));
    }
    println!(
        "killed 100 times after a quarter to all of {long:?} us, {middle} times between the first change and the last"
    );
}

#[test]
fn root_applies_nothing_of_a_strangers_and_writes_nowhere_that_a_stranger_can_change() {
    if !root() {
        return;
    }
    let case = Case::new();
    let as_root = |arguments: &[&str]| {
        run(slowpath(["fix"]).args(arguments).env_remove("SUDO_UID").current_dir(case.at("files")))
    };
    let before = case.all();
    let out = case.at("out");
    let out = out.to_str().unwrap();
    // It is shown, read as the stranger, and not applied.
    as_root(&["show", out, "variable"]).succeeds();
    let own = place();
    let target = own.path().join("run");
    as_root(&["apply", out, "variable", "--wrapper", target.to_str().unwrap()])
        .fails_with(2, &["can be written by others than you"]);
    // A link of the stranger's leads to nothing that only root can read.
    let secret = own.path().join("secret");
    fs::copy(case.at("out/diagnosis.json"), &secret).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(case.at("out/diagnosis.json")).unwrap();
    symlink(&secret, case.at("out/diagnosis.json")).unwrap();
    as_root(&["list", out]).fails_with(2, &["cannot be read"]);
    // Root's own diagnosis is not written where the stranger can replace a part of the path.
    let mine = own.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::set_permissions(&mine, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["diagnosis.json", "p.plan"] {
        let from = if name == "p.plan" { case.at("out/p.plan") } else { secret.clone() };
        fs::copy(from, mine.join(name)).unwrap();
    }
    let mine = mine.to_str().unwrap();
    // Root did not make it: it is shown first, and named by its digest.
    as_root(&["apply", mine, "variable", "--wrapper", target.to_str().unwrap()])
        .fails_with(2, &["root has no record of the diagnosis"]);
    let shown = as_root(&["show", mine, "variable", "--wrapper", target.to_str().unwrap(), "--json"]).json();
    let trust = ["--trust-diagnosis", shown["trust"].as_str().unwrap()];
    as_root(&[&["apply", mine, "variable", "--wrapper", "run"], &trust[..]].concat())
        .fails_with(2, &["can be changed by other users", "nobody else"]);
    assert_eq!(case.all(), before);
    // What root may write is applied and taken back, also a drop-in of the system's.
    let unit = format!("slowpath-test-{}", std::process::id());
    let drop_in = PathBuf::from(format!("/etc/systemd/system/{unit}.service.d"));
    as_root(&[&["apply", mine, "variable", "--systemd-unit", &unit], &trust[..]].concat()).succeeds();
    let text = fs::read_to_string(drop_in.join("50-slowpath-variable.conf")).unwrap_or_default();
    as_root(&["undo", mine]).succeeds();
    assert!(text.contains("[Service]\nEnvironment=\"KEPT=a=1:b=50%% \\\"$HOME\\\""), "{text}");
    assert!(!Path::new(&drop_in).exists());
}

#[test]
fn a_cold_diagnosis_publishes_its_plan_and_a_wrapper_replays_it() {
    if !root() {
        return;
    }
    let place = place();
    let (data, out, wrapper) = (place.path().join("data"), place.path().join("out"), place.path().join("run"));
    fs::write(&data, vec![7u8; 2 << 20]).unwrap();
    let command = ["diagnose", "--cold", "--arms", "quick", "--blocks", "3", "--json", "-o"];
    let diagnosed = run(slowpath(command).arg(&out).arg("--").arg("/bin/cat").arg(&data));
    diagnosed.succeeds();
    let diagnosis = diagnosed.json();
    // A warm launch has what the one before it read; a cold one never has.
    for arm in diagnosis["launch"]["arms"].as_array().unwrap() {
        let read = arm["bytes_read"]["low"].as_f64().or(arm["bytes_read"]["value"].as_f64()).unwrap();
        assert_eq!(read < 262_145.0, arm["name"] == "warm", "{arm}");
        assert_eq!(arm["discarded"], 0, "{arm}");
    }
    let plan = &diagnosis["fixes"][0];
    assert_eq!((&plan["name"], &plan["treatment"]["kind"]), (&"preload_plan".into(), &"preload_plan".into()));
    assert!(out.join(plan["treatment"]["file"].as_str().unwrap()).is_file());
    let apply = |more: &[&str]| {
        run(slowpath(["fix", "apply"]).arg(&out).args(["preload_plan", "--wrapper"]).arg(&wrapper).args(more))
    };
    apply(&[]).fails_with(1, &["not proved"]);
    apply(&["--unproved"]).succeeds();
    let report = place.path().join("report");
    let script = fs::read_to_string(&wrapper).unwrap();
    // The same line with a report of what the prefetcher did.
    let plan = place.path().join("run.plan").display().to_string();
    fs::write(
        place.path().join("reporting"),
        script.replace(&format!("{plan} -- "), &format!("--report {} {plan} -- ", report.display())),
    )
    .unwrap();
    let said = Command::new("/bin/sh").arg(place.path().join("reporting")).output().unwrap();
    assert_eq!(said.stdout.len(), 2 << 20);
    assert!(report.exists() && Command::new(&wrapper).output().unwrap().stdout.len() == 2 << 20);
    run(slowpath(["fix", "undo"]).arg(&out)).succeeds();
    assert!(!wrapper.exists() && !place.path().join("run.plan").exists());
}
