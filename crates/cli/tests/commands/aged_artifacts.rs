//! `slowpath artifacts age`: a command finds artifacts unreadable, stale or missing, and nobody else does.

use crate::running::*;
use crate::traces::assert_nothing_left;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: &str = "65534";

struct Tree {
    place: tempfile::TempDir,
}

impl Tree {
    /// A module with bytecode, and two files more.
    fn new() -> Self {
        let place = place();
        let tree = Self { place };
        fs::create_dir_all(tree.path("shop/__pycache__")).unwrap();
        for name in ["shop/m.py", "shop/__pycache__/m.cpython-311.pyc", "shop/__pycache__/n.cpython-311.pyc", "cache"] {
            fs::write(tree.path(name), name).unwrap();
        }
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn state(&self, entries: &[(&str, &str)]) -> PathBuf {
        let entry = |(name, rest): &(&str, &str)| format!("[[artifact]]\npath = {:?}\n{rest}\n", self.path(name));
        let file = self.path("state.toml");
        fs::write(&file, entries.iter().map(entry).collect::<String>()).unwrap();
        file
    }

    fn age(&self, state: &Path, script: &str) -> Command {
        let mut command = slowpath(["artifacts", "age", "--user", NOBODY, "--state"]);
        command.arg(state).args(["--", "/bin/sh", "-c", script]).current_dir(self.place.path());
        command
    }

    fn facts(&self) -> Vec<[i64; 7]> {
        let names = ["", "shop", "shop/m.py", "shop/__pycache__", "shop/__pycache__/m.cpython-311.pyc", "cache"];
        let facts = |name: &&str| {
            let it = fs::metadata(self.path(name)).unwrap();
            let numbers = [i64::from(it.mode()), i64::from(it.uid()), it.ino() as i64];
            [numbers[0], numbers[1], numbers[2], it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()]
        };
        names.iter().map(facts).collect()
    }
}

#[test]
fn a_command_finds_what_the_file_says_and_nothing_outside_is_changed() {
    if !root() {
        return;
    }
    let tree = Tree::new();
    let state = tree.state(&[
        ("shop/__pycache__", "state = \"unreadable\""),
        ("shop/__pycache__/m.cpython-311.pyc", "state = \"stale\""),
        ("cache", "state = \"missing\""),
        ("nowhere", "state = \"missing\""),
    ]);
    let before = tree.facts();
    let script = "cat shop/__pycache__/n* 2>/dev/null || echo denied; cat cache 2>/dev/null || echo gone; stat -c %Y shop/m.py; \
                  cat shop/m.py; grep NoNewPrivs /proc/self/status; exit 7";
    let done = run(tree.age(&state, script));
    assert_eq!(done.code(), 7, "{done:?}");
    let newer = fs::metadata(tree.path("shop/m.py")).unwrap().mtime() + 1;
    assert_eq!(done.stdout, format!("denied\ngone\n{newer}\nshop/m.pyNoNewPrivs:\t1\n"));
    assert!(done.stderr.contains("nowhere is not here"), "{}", done.stderr);
    assert_eq!(tree.facts(), before);
    assert_nothing_left(&done);
    // What the command makes there goes with it.
    let state = tree.state(&[("shop/gone", "state = \"missing\""), ("cache", "state = \"missing\"")]);
    fs::set_permissions(tree.place.path(), Permissions::from_mode(0o777)).unwrap();
    let done = run(tree.age(&state, "echo new > cache && cat cache"));
    assert_eq!((done.code(), done.stdout.as_str()), (0, "new\n"), "{done:?}");
    assert_eq!(fs::read_to_string(tree.path("cache")).unwrap(), "cache");
    let killed = run(tree.age(&state, "kill -TERM $$"));
    assert_eq!(killed.code(), 143);
}

#[test]
fn a_file_of_the_users_own_is_unreadable_too_and_no_file_allows_more_than_it_did() {
    if !root() {
        return;
    }
    let tree = Tree::new();
    chown(tree.path("cache"), Some(65534), Some(65534)).unwrap();
    let own = tree.state(&[("cache", "state = \"unreadable\"")]);
    let done = run(tree.age(&own, "cat cache || stat -c '%a %u' cache"));
    assert_eq!(done.stdout, "600 65533\n", "{}", done.stderr);
    chown(tree.path("cache"), Some(0), Some(0)).unwrap();
    fs::set_permissions(tree.path("cache"), Permissions::from_mode(0o600)).unwrap();
    let more = tree.state(&[("cache", "state = \"unreadable\"\nmode = \"0604\"")]);
    run(tree.age(&more, "cat cache")).fails_with(2, &["allows no more than it does"]);
    // A link leads to what is seen otherwise; one that took its place in the meantime is no way out.
    symlink("cache", tree.path("link")).unwrap();
    fs::set_permissions(tree.path("cache"), Permissions::from_mode(0o644)).unwrap();
    let linked = tree.state(&[("link", "state = \"unreadable\"")]);
    assert_eq!(run(tree.age(&linked, "cat link cache || stat -c %a cache")).stdout, "600\n");
}

#[test]
fn what_an_audit_printed_elsewhere_is_reproduced() {
    if !root() {
        return;
    }
    let tree = Tree::new();
    let bytecode = tree.path("shop/__pycache__");
    fs::set_permissions(&bytecode, Permissions::from_mode(0o700)).unwrap();
    let audit = run(slowpath(["artifacts", "audit", "--json", "--as", NOBODY]).arg(tree.path("shop")));
    audit.succeeds();
    fs::set_permissions(&bytecode, Permissions::from_mode(0o755)).unwrap();
    let file = tree.path("field.json");
    fs::write(&file, &audit.stdout).unwrap();
    let done = run(tree.age(&file, "ls shop/__pycache__ >/dev/null 2>&1 || stat -c %a shop/__pycache__"));
    assert_eq!((done.code(), done.stdout.as_str()), (0, "700\n"), "{done:?}");
}

#[test]
fn a_file_that_is_wrong_and_a_user_who_may_not_mount_get_the_reason() {
    let tree = Tree::new();
    let wrong = tree.state(&[("cache", "state = \"old\"")]);
    if !root() {
        run(tree.age(&wrong, "true")).fails_with(3, &["need root", "sudo"]);
        return;
    }
    run(tree.age(&wrong, "true")).fails_with(2, &["line 3", "old"]);
    run(tree.age(&tree.state(&[("none", "state = \"missing\"")]), "true"))
        .fails_with(2, &["nothing that the file names is here"]);
    run(tree.age(&tree.path("none"), "true")).fails_with(2, &["cannot be read"]);
    let mut user = Command::new("setpriv");
    user.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", SLOWPATH, "artifacts", "age", "--state"]);
    run(user.arg(&wrong).args(["--", "true"]).current_dir("/")).fails_with(3, &["need root", "sudo"]);
}
