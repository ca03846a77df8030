//! `sudo slowpath fix apply`: root applies a diagnosis that root made and nobody changed, and another only by its digest.

use crate::running::*;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: u32 = 65534;
pub const FIX: &str = "preload_plan";

/// A cold diagnosis that nobody made through sudo, in a directory of nobody's.
pub struct Diagnosed {
    place: tempfile::TempDir,
}

impl Diagnosed {
    pub fn new() -> Self {
        let case = Self { place: place() };
        fs::write(case.at("data"), vec![7u8; 2 << 20]).unwrap();
        fs::create_dir(case.at("home")).unwrap();
        fs::create_dir(case.at("roots")).unwrap();
        chown(case.at("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        let command = ["diagnose", "--cold", "--arms", "quick", "--blocks", "1", "--quiet", "-o"];
        let mut diagnose = case.through_sudo(&command);
        run(diagnose.arg(case.out()).arg("--").arg("/bin/cat").arg(case.at("data"))).succeeds();
        case
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn out(&self) -> PathBuf {
        self.at("home/out")
    }

    pub fn wrapper(&self) -> PathBuf {
        self.at("roots/run")
    }

    fn through_sudo(&self, words: &[&str]) -> Command {
        let mut command = slowpath(words);
        command.env("SUDO_UID", NOBODY.to_string()).env("SUDO_GID", NOBODY.to_string()).env("SUDO_USER", "nobody");
        command
    }

    fn fix(&self, verb: &str, directory: &Path, more: &[&str]) -> Done {
        let mut command = self.through_sudo(&["fix", verb]);
        run(command.arg(directory).args([FIX, "--wrapper"]).arg(self.wrapper()).args(more))
    }

    fn apply(&self, directory: &Path, more: &[&str]) -> Done {
        self.fix("apply", directory, &[&["--unproved"], more].concat())
    }

    #[track_caller]
    fn is_refused(&self, done: &Done, code: i32, says: &str) {
        done.fails_with(code, &[says]);
        assert!(!self.wrapper().exists(), "{says}: written all the same");
    }

    #[track_caller]
    fn is_applied_and_taken_back(&self, directory: &Path, more: &[&str]) {
        self.apply(directory, more).succeeds();
        assert!(self.wrapper().exists());
        run(self.through_sudo(&["fix", "undo"]).arg(directory)).succeeds();
        assert!(!self.wrapper().exists());
    }

    /// What a program of nobody's makes of the diagnosis.
    fn rewrite(&self, change: impl FnOnce(&mut Value)) {
        let path = self.out().join("diagnosis.json");
        let mut diagnosis: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut diagnosis);
        fs::write(&path, diagnosis.to_string()).unwrap();
    }
}

#[test]
fn root_applies_what_it_diagnosed_and_nothing_that_the_target_made_of_it_since() {
    if !root() {
        return;
    }
    let case = Diagnosed::new();
    let out = case.out();
    case.is_applied_and_taken_back(&out, &[]);
    // Its plan is another one now.
    let plan = out.join("preload_plan.plan");
    let own = fs::read(&plan).unwrap();
    fs::write(&plan, [&own[..], b"[0,0,1]\n"].concat()).unwrap();
    case.is_refused(&case.apply(&out, &[]), 2, "not the plan that was tried");
    fs::write(&plan, own).unwrap();
    // It starts another program.
    let original = fs::read(out.join("diagnosis.json")).unwrap();
    case.rewrite(|diagnosis| diagnosis["command"] = json!(["/home/alice/evil"]));
    case.is_refused(&case.apply(&out, &[]), 2, "root has no record of the diagnosis");
    // The same text elsewhere is not what root was asked for there.
    let copy = case.at("home/copy");
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("diagnosis.json"), &original).unwrap();
    fs::copy(&plan, copy.join("preload_plan.plan")).unwrap();
    for path in [copy.clone(), copy.join("diagnosis.json"), copy.join("preload_plan.plan")] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    case.is_refused(&case.apply(&copy, &[]), 2, "copied or moved");
    fs::write(out.join("diagnosis.json"), &original).unwrap();
    case.is_applied_and_taken_back(&out, &[]);
    // Another caller's is not this one's.
    let mut roots = slowpath(["fix", "apply"]);
    roots.arg(&out).args([FIX, "--unproved", "--wrapper"]).arg(case.wrapper()).env_remove("SUDO_UID");
    case.is_refused(&run(&mut roots), 2, "can be written by others than you");
}

#[test]
fn what_root_did_not_make_is_applied_by_the_digest_that_was_shown_with_the_change() {
    if !root() {
        return;
    }
    let case = Diagnosed::new();
    let out = case.out();
    assert_eq!(case.fix("show", &out, &["--json"]).json()["trust"], Value::Null);
    case.rewrite(|diagnosis| diagnosis["command"] = json!(["/bin/echo", "shown"]));
    let shown = case.fix("show", &out, &[]);
    let digest = case.fix("show", &out, &["--json"]).json()["trust"].as_str().unwrap().to_owned();
    let option = format!("--trust-diagnosis {digest}");
    assert!(shown.stdout.contains("/bin/echo shown") && shown.stdout.contains(&option), "{}", shown.stdout);
    // Changed between the look and the answer.
    let seen = fs::read(out.join("diagnosis.json")).unwrap();
    case.rewrite(|diagnosis| diagnosis["command"] = json!(["/home/alice/evil"]));
    case.is_refused(&case.apply(&out, &["--trust-diagnosis", &digest]), 1, "it was changed since");
    fs::write(out.join("diagnosis.json"), seen).unwrap();
    case.is_applied_and_taken_back(&out, &["--trust-diagnosis", &digest]);
    // Without root nothing new is needed.
    let own = case.at("home/run");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", SLOWPATH, "fix", "apply"]);
    command.arg(&out).args([FIX, "--unproved", "--wrapper"]).arg(&own).env("HOME", case.at("home"));
    run(command.env_remove("XDG_STATE_HOME").env_remove("SUDO_UID")).succeeds();
    assert!(own.exists());
}

#[test]
fn where_roots_records_are_gone_nothing_is_applied_and_it_is_said_what_to_do() {
    if !root() {
        return;
    }
    let case = Diagnosed::new();
    let script = format!(
        "mount -t tmpfs -o mode=700 none /var/lib/slowpath; exec \"$SLOWPATH\" fix apply {} {FIX} --unproved --wrapper {}",
        case.out().display(),
        case.wrapper().display()
    );
    let done = run(in_private_mounts(&script).env("SUDO_UID", NOBODY.to_string()));
    done.fails_with(2, &["/var/lib/slowpath was emptied", "diagnose again with sudo", "--trust-diagnosis"]);
    case.is_applied_and_taken_back(&case.out(), &[]);
}
