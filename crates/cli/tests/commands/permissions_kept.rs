//! `slowpath fix apply --permissions`: what lets a user read is given to the files themselves and taken back, also after a kill, and never
//! to a file that is another one, by who may not, or by more than permission to read.
//!
//! The diagnoses here are written by hand; what is proved and then applied is in [`crate::permission_trials`].

use crate::artifact_case::mode;
use crate::fixes_kept::{diagnosis, fix, random, verdict};
use crate::privileged_operations::all_listed;
use crate::running::*;
use crate::strace::traced;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const NOBODY: u32 = 65534;
const NAME: &str = "grant_read";
/// Files below the directory that denies.
const FILES: usize = 30;

/// What chmod(1) can change, and what it must not: mode, owner, group, times of content and of use, content.
type State = BTreeMap<PathBuf, (u32, u32, u32, [i64; 4], Vec<u8>)>;

/// A tree of one user's that nobody else may read, and a diagnosis that lets everybody.
struct Tree {
    place: tempfile::TempDir,
    owner: u32,
}

impl Tree {
    fn new(owner: u32) -> Self {
        let tree = Self { place: place(), owner };
        for name in ["out", "home", "tree"] {
            fs::create_dir(tree.at(name)).unwrap();
        }
        for number in 0..FILES {
            fs::write(tree.at(&format!("tree/{number}")), number.to_string()).unwrap();
        }
        for path in tree.paths() {
            mode(&path, if path.is_dir() { 0o700 } else { 0o600 });
        }
        tree.write(&tree.treatment());
        ["", "out", "home", "out/diagnosis.json"].iter().for_each(|name| tree.give(&tree.at(name)));
        tree.paths().iter().for_each(|path| tree.give(path));
        ["out", "home"].iter().for_each(|name| mode(tree.at(name), 0o700));
        tree.write(&tree.treatment());
        tree
    }

    fn give(&self, path: &Path) {
        chown(path, Some(self.owner), Some(self.owner)).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The directory, and the files in it.
    fn paths(&self) -> Vec<PathBuf> {
        let files = (0..FILES).map(|number| self.at(&format!("tree/{number}")));
        std::iter::once(self.at("tree")).chain(files).collect()
    }

    /// One bit for everybody on each.
    fn treatment(&self) -> Value {
        let file = |path: PathBuf| {
            let found = fs::symlink_metadata(&path).unwrap();
            let bit = if found.is_dir() { 0o1 } else { 0o4 };
            json!({
                "path": path.to_str().unwrap(), "uid": found.uid(), "gid": found.gid(),
                "identity": [nix::sys::stat::major(found.dev()), nix::sys::stat::minor(found.dev()), found.ino()],
                "before": {"mode": found.mode(), "acl": null}, "after": {"mode": found.mode() | bit, "acl": null},
            })
        };
        json!({"kind": "files", "files": self.paths().into_iter().map(file).collect::<Vec<_>>()})
    }

    fn write(&self, treatment: &Value) {
        let diagnosis = diagnosis(&[fix(NAME, treatment)], &[verdict(NAME, "proved")]);
        fs::write(self.at("out/diagnosis.json"), diagnosis.to_string()).unwrap();
    }

    /// As the owner.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        let id = self.owner.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", SLOWPATH, "fix"]);
        command.args(arguments).current_dir(self.at("home")).env("HOME", self.at("home"));
        command.env_remove("XDG_STATE_HOME").env_remove("SUDO_UID");
        command
    }

    fn fix(&self, arguments: &[&str]) -> Done {
        run(self.command(arguments))
    }

    fn state(&self) -> State {
        let of = |path: PathBuf| {
            let found = fs::symlink_metadata(&path).unwrap();
            let times = [found.mtime(), found.mtime_nsec(), found.atime(), found.atime_nsec()];
            let mut content = Vec::new();
            if found.is_file() {
                // The time of use is not to be the test's own.
                let mut file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOATIME).open(&path).unwrap();
                file.read_to_end(&mut content).unwrap();
            }
            (path, (found.mode(), found.uid(), found.gid(), times, content))
        };
        self.paths().into_iter().map(of).collect()
    }

    fn modes(&self) -> Vec<u32> {
        self.paths().iter().map(|path| fs::symlink_metadata(path).unwrap().mode() & 0o7777).collect()
    }
}

impl Drop for Tree {
    /// A test that failed leaves no record of root's.
    fn drop(&mut self) {
        let _ = self.command(&["undo", "../out", "--keep-changed"]).output();
    }
}

const OUT: &str = "../out";
const APPLY: [&str; 4] = ["apply", OUT, NAME, "--permissions"];
const UNDO: [&str; 2] = ["undo", OUT];

/// Modes of the directory and of each file: of before, and with the fix.
fn sides() -> [Vec<u32>; 2] {
    [(0o700, 0o600), (0o701, 0o604)].map(|(directory, file)| [vec![directory], vec![file; FILES]].concat())
}

#[test]
fn permissions_are_shown_applied_listed_and_taken_back() {
    if !root() {
        return;
    }
    let tree = Tree::new(NOBODY);
    let [before, applied] = sides();
    let state = tree.state();
    let shown = tree.fix(&["show", OUT, NAME, "--permissions"]);
    shown.succeeds();
    for line in ["-mode 0700", "+mode 0701", "-mode 0600", "+mode 0604"] {
        assert!(shown.stdout.contains(line), "{}", shown.stdout);
    }
    assert_eq!(tree.modes(), before);
    tree.fix(&APPLY).succeeds();
    assert_eq!(tree.modes(), applied);
    let listed = tree.fix(&["list", OUT, "--json"]).json();
    let one = &listed["fixes"][0];
    assert_eq!((&one["targets"], &one["applied"][0]["state"]), (&json!(["permissions"]), &"applied".into()), "{one:#}");
    assert_eq!(one["applied"][0]["paths"].as_array().unwrap().len(), FILES + 1);
    tree.fix(&UNDO).succeeds();
    assert_eq!(tree.state(), state);
    // Without an option, or with one of a file, nothing is done.
    let without = tree.fix(&["apply", OUT, NAME]);
    assert!(without.stdout.contains("--permissions: the permissions"), "{}", without.stdout);
    assert!(tree.fix(&["apply", OUT, NAME, "--wrapper", "w"]).stderr.contains("--permissions"));
    assert_eq!(tree.modes(), before);
}

#[test]
fn a_file_that_changed_since_the_diagnosis_or_since_it_was_applied_stops_everything() {
    if !root() {
        return;
    }
    let tree = Tree::new(NOBODY);
    let [before, applied] = sides();
    let (one, secret) = (tree.at("tree/7"), tree.at("secret"));
    fs::write(&secret, "root's").unwrap();
    mode(&secret, 0o600);
    // Another mode, another file, a link, and none.
    let refused = |what: &str| {
        let done = tree.fix(&APPLY);
        assert!(done.stderr.contains("tree/7 is not as it was when it was diagnosed"), "{what}: {done:?}");
        assert_eq!(fs::metadata(tree.at("tree/3")).unwrap().mode() & 0o777, 0o600, "{what}");
        assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o600, "{what}");
    };
    mode(&one, 0o640);
    refused("a mode");
    mode(&one, 0o600);
    fs::rename(&one, tree.at("tree/away")).unwrap();
    refused("none");
    symlink(&secret, &one).unwrap();
    refused("a link");
    fs::remove_file(&one).unwrap();
    fs::hard_link(&secret, &one).unwrap();
    refused("another file");
    fs::remove_file(&one).unwrap();
    fs::rename(tree.at("tree/away"), &one).unwrap();
    tree.fix(&APPLY).succeeds();
    mode(&one, 0o666);
    let undone = tree.fix(&UNDO);
    assert!(undone.stderr.contains("tree/7 was changed after the fix"), "{undone:?}");
    mode(&one, 0o604);
    assert_eq!(tree.modes(), applied);
    mode(&one, 0o666);
    tree.fix(&[&UNDO[..], &["--keep-changed"]].concat()).succeeds();
    assert_eq!(fs::metadata(&one).unwrap().mode() & 0o777, 0o666);
    mode(&one, 0o600);
    assert_eq!(tree.modes(), before);
}

#[test]
fn what_is_not_the_invokers_or_is_more_than_reading_is_refused() {
    if !root() {
        return;
    }
    let tree = Tree::new(NOBODY);
    let [before, _] = sides();
    // Through sudo root is asked by the user, whose own files it may change, and no others.
    chown(tree.at("tree/5"), Some(0), Some(0)).unwrap();
    tree.write(&tree.treatment());
    let through_sudo = || run(tree.command(&APPLY).env("SUDO_UID", NOBODY.to_string()));
    let done = through_sudo();
    assert!(done.stderr.contains("belongs to user 0, and user 65534 asks for it"), "{done:?}");
    tree.give(&tree.at("tree/5"));
    mode(tree.at("tree/5"), 0o600);
    for bits in [0o20, 0o2, 0o4000] {
        let mut treatment = tree.treatment();
        let after = &mut treatment["files"][3]["after"]["mode"];
        *after = (after.as_u64().unwrap() | bits).into();
        tree.write(&treatment);
        let done = tree.fix(&APPLY);
        assert!(done.stderr.contains("would get more than permission to read"), "{bits:o}: {done:?}");
    }
    assert_eq!(tree.modes(), before);
}

#[test]
fn what_applying_and_undoing_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let tree = Tree::new(0);
    let [before, applied] = sides();
    let out = tree.at("out");
    let out = out.to_str().unwrap();
    let trace = tree.at("trace");
    // It was written by hand.
    let shown = tree.fix(&["show", OUT, NAME, "--permissions", "--json"]).json();
    let trust = shown["trust"].as_str().unwrap();
    let apply = vec!["fix", "apply", out, NAME, "--permissions", "--trust-diagnosis", trust];
    for (words, modes) in [(apply, applied), (vec!["fix", "undo", out], before)] {
        let mut operations = traced(&words, &trace);
        // The diagnosis is read as who called, which here is root.
        let of_diagnosis = [Some(out), tree.place.path().to_str()];
        operations.retain(|one| one.path.is_none() || !of_diagnosis.contains(&one.path.as_deref()));
        assert_eq!(tree.modes(), modes);
        assert!(operations.iter().any(|one| one.call.ends_with("chmodat")), "no permissions were changed");
        all_listed(words[1], &operations);
    }
}

#[test]
fn killed_at_a_hundred_random_moments_the_tree_is_as_before_or_as_applied_and_undo_restores_all() {
    if !root() {
        return;
    }
    let tree = Tree::new(NOBODY);
    let [before, applied] = sides();
    let state = tree.state();
    let took = |arguments: &[&str]| {
        let began = Instant::now();
        tree.fix(arguments).succeeds();
        began.elapsed().as_micros()
    };
    let long = [took(&APPLY), took(&UNDO)];
    let (mut seed, mut middle) = (17, [0; 2]);
    for round in 0..100 {
        let is_undone = round % 2 == 1;
        if is_undone {
            tree.fix(&APPLY).succeeds();
        }
        let mut command = tree.command(if is_undone { &UNDO } else { &APPLY });
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let long = long[usize::from(is_undone)];
        std::thread::sleep(random(&mut seed, long / 4, long));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = tree.modes();
        for (number, one) in found.iter().enumerate() {
            assert!([before[number], applied[number]].contains(one), "round {round}: {one:o}");
        }
        // Nobody gets in before everything is done: the directory is the last that is opened, and the first that is closed.
        // It goes on meanwhile: the directory is looked at before its files while it is applied, and after them while it is taken back.
        let is_open = if is_undone { tree.modes()[0] } else { found[0] } == applied[0];
        assert!(!is_open || found == applied, "round {round}: {found:?}");
        // What was begun is done, by whom the kill did not meet.
        assert!(soon(|| [&before, &applied].contains(&&tree.modes())), "round {round}: {:?}", tree.modes());
        middle[usize::from(is_undone)] += usize::from(found != before && found != applied);
        let undone = tree.fix(&UNDO);
        assert!(
            undone.status.success() || undone.stderr.contains("was applied by this user"),
            "round {round}: {undone:?}"
        );
        assert_eq!(tree.state(), state, "round {round}");
        assert_eq!(fs::read_dir(tree.at("home/.local/state/slowpath/fixes")).unwrap().count(), 0, "round {round}");
    }
    println!(
        "killed 100 times after a quarter to all of {long:?} us, {middle:?} times (apply, undo) between the first change and the last"
    );
}
