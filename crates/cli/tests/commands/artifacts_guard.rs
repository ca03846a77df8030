//! `slowpath artifacts guard` on products whose truth is known: for user 65534, checked and repaired by root and by that user itself.

use crate::running::*;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const NOBODY: u32 = 65534;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A product: its place, and the lines of its policy.
struct Product {
    place: TempDir,
}

impl Product {
    /// One that has the file `cache`, which user 65534 cannot read.
    fn new() -> Self {
        let product = Self { place: place() };
        fs::write(product.at("cache"), "x").unwrap();
        mode(&product.at("cache"), 0o600);
        product
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Writes the policy of this version with these artifacts.
    fn policy(&self, version: &str, artifacts: &str) {
        let text = format!("name = \"shop\"\nversion = {version:?}\nstate = {:?}\n{artifacts}", self.path("state"));
        fs::write(self.at("policy.toml"), text).unwrap();
        mode(&self.at("policy.toml"), 0o644);
    }

    /// The artifact `cache`, repaired by root with a script of the shell, which notes each time that it runs.
    fn repaired_by(&self, script: &str) -> String {
        self.repaired_as("root", script)
    }

    fn repaired_as(&self, user: &str, script: &str) -> String {
        let script = format!("echo ran >> {}; {script}", self.path("ran"));
        format!(
            "[[artifact]]\nname = \"cache\"\npaths = [{:?}]\nfresh = \"readable\"\nfor = [65534]\n\
             repair = {{ command = [\"/bin/sh\", \"-c\", {script:?}], as = {user:?}, timeout = \"30s\" }}\n",
            self.path("cache")
        )
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = slowpath(["artifacts", "guard", "--json"]);
        command.args(options).arg(self.at("policy.toml"));
        command
    }

    /// The exit code of a start and its lines.
    fn start(&self, options: &[&str]) -> (i32, Vec<Value>) {
        lines(&run(self.command(options)))
    }

    /// How often the script of the repair ran.
    fn runs(&self) -> usize {
        fs::read_to_string(self.at("ran")).map_or(0, |text| text.lines().count())
    }
}

fn lines(done: &Done) -> (i32, Vec<Value>) {
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    (done.code(), done.stdout.lines().map(read).collect())
}

fn outcomes(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect()
}

#[test]
fn each_state_of_an_artifact_is_counted_and_without_repair_nothing_changes() {
    if !root() {
        return;
    }
    let product = Product::new();
    fs::write(product.at("open"), "x").unwrap();
    mode(&product.at("open"), 0o644);
    let artifact = |name: &str, file: &str, more: &str| {
        format!("[[artifact]]\nname = {name:?}\npaths = [{:?}]\nfresh = \"readable\"\n{more}\n", product.path(file))
    };
    let policy = [
        artifact("open", "open", "for = [65534, \"nobody\", \"no-such-user\"]"),
        artifact("closed", "cache", "for = [0, 65534, { uid = 7, gid = 7, groups = [0] }]"),
        artifact("gone", "gone", "for = [65534]"),
        artifact("of-nobody", "cache", "for = []"),
        artifact("conditional", "cache", "for = [65534]\nonly_if_exists = \"/no/such/file\""),
    ];
    product.policy("1", &policy.concat());
    let (code, found) = product.start(&[]);
    let expected =
        ["usable", "usable", "unknown", "usable", "unreadable", "unreadable", "missing", "not_needed", "not_needed"];
    assert_eq!((code, outcomes(&found)), (1, expected.to_vec()), "{found:#?}");
    assert!(found[2]["reason"].as_str().unwrap().contains("no user `no-such-user`"), "{}", found[2]);
    let closed = &found[4];
    assert_eq!((&closed["denied_by"]["rule"], &closed["uid"]), (&"other_bits".into(), &NOBODY.into()));
    assert_eq!(closed["change"], format!("chmod o+r {}", product.path("cache")));
    assert_eq!(found[5]["denied_by"]["rule"], "group_bits");
    assert!(!product.at("state").exists());
    // On the screen stands what is wrong, and how to end it.
    let shown = run(slowpath(["artifacts", "guard"]).arg(product.at("policy.toml")));
    assert!(shown.stdout.contains("9 files and users: 2 not_needed, 3 usable, 1 missing, 2 unreadable, 1 unknown"));
    assert!(
        shown.stdout.contains("denied by: ") && shown.stdout.contains("nothing was changed: --repair"),
        "{shown:?}"
    );
}

#[test]
fn stale_bytecode_is_made_again_as_its_owner() {
    if !root() {
        return;
    }
    let product = Product::new();
    let source = product.at("m.py");
    fs::write(&source, "x = 1\n").unwrap();
    let compiled = Command::new("/usr/bin/python3").args(["-m", "compileall", "-q"]).arg(&source).status().unwrap();
    assert!(compiled.success());
    let cached = fs::read_dir(product.at("__pycache__")).unwrap().next().unwrap().unwrap().path();
    fs::write(&source, "x = 1234\n").unwrap();
    let artifact = format!(
        "[[artifact]]\nname = \"bytecode\"\npaths = [{cached:?}]\nfor = [65534]\n\
         repair = {{ command = [\"/usr/bin/python3\", \"-m\", \"compileall\", \"-qf\", {source:?}], as = \"root\" }}\n"
    );
    product.policy("1", &artifact);
    let (code, found) = product.start(&[]);
    assert_eq!((code, outcomes(&found)), (1, vec!["stale"]));
    assert!(found[0]["reason"].as_str().unwrap().contains("m.py") && found[0]["family"] == "python_bytecode");
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), &found[0]["found"]), (0, vec!["repaired"], &"stale".into()), "{found:#?}");
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), &found[0]["repair"]), (0, vec!["usable"], &Value::Null));
}

#[test]
fn a_repair_makes_the_artifact_usable_and_the_next_start_has_nothing_to_do() {
    if !root() {
        return;
    }
    let product = Product::new();
    product.policy("1", &product.repaired_by(&format!("chmod o+r {}", product.path("cache"))));
    let (code, found) = product.start(&["--repair", "--pseudonym", "ann"]);
    assert_eq!((code, outcomes(&found)), (0, vec!["repaired"]), "{found:#?}");
    let line = &found[0];
    assert_eq!(
        (&line["found"], &line["repair"], &line["repair_status"]),
        (&"unreadable".into(), &"done".into(), &0.into())
    );
    assert_eq!((&line["user"], &line["denied_by"], &line["change"]), (&"ann".into(), &Value::Null, &Value::Null));
    let mode = |name: &str| fs::symlink_metadata(product.at(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("state"), mode("state/shop.json"), mode("state/shop.lock")), (0o700, 0o600, 0o600));
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), product.runs()), (0, vec!["usable"], 1));
}

#[test]
fn a_repair_that_fails_is_tried_once_a_version_and_never_without_being_asked_for() {
    if !root() {
        return;
    }
    let product = Product::new();
    product.policy("1", &product.repaired_by("exit 3"));
    assert_eq!((outcomes(&product.start(&[]).1), product.runs()), (vec!["unreadable"], 0));
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), product.runs()), (1, vec!["repair_failed"], 1));
    let line = &found[0];
    assert_eq!((&line["repair"], &line["repair_status"]), (&"failed".into(), &3.into()));
    assert_eq!(line["denied_by"]["rule"], "other_bits", "the rule that denies after the repair: {line}");
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), product.runs()), (1, vec!["repair_failed"], 1), "a second start");
    assert_eq!((&found[0]["repair"], &found[0]["repair_status"]), (&"tried_before".into(), &3.into()));
    product.policy("2", &product.repaired_by(&format!("chmod o+r {}", product.path("cache"))));
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), product.runs()), (0, vec!["repaired"], 2), "a new version");
    // Back at the version that was tried.
    mode(&product.at("cache"), 0o600);
    product.policy("1", &product.repaired_by("exit 0"));
    assert_eq!((outcomes(&product.start(&["--repair"]).1), product.runs()), (vec!["repair_failed"], 2));
}

#[test]
fn of_eight_starts_at_once_one_repairs_and_nobody_waits_for_it() {
    if !root() {
        return;
    }
    let product = Product::new();
    product.policy("1", &product.repaired_by(&format!("sleep 1; chmod o+r {}", product.path("cache"))));
    let starts: Vec<Running> = (0..8).map(|_| start(product.command(&["--repair"]))).collect();
    let done: Vec<(i32, Vec<Value>)> = starts.into_iter().map(|start| lines(&start.wait())).collect();
    assert_eq!(product.runs(), 1, "{done:#?}");
    let repaired = done.iter().filter(|(_, found)| outcomes(found) == ["repaired"]).count();
    assert_eq!(repaired, 1, "{done:#?}");
    for (_, found) in &done {
        let (outcome, repair) = (&found[0]["outcome"], &found[0]["repair"]);
        // A start that a busy machine delayed comes behind the repair.
        assert!(outcome != "unreadable" || repair == "running", "{found:#?}");
        assert!(["repaired", "unreadable", "usable"].contains(&outcome.as_str().unwrap()), "{found:#?}");
    }
    assert_eq!(outcomes(&product.start(&["--repair"]).1), ["usable"]);
}

#[test]
fn a_start_that_is_killed_in_its_repair_leaves_a_try_and_no_process() {
    if !root() {
        return;
    }
    let product = Product::new();
    product.policy("1", &product.repaired_by(&format!("echo $$ > {}; exec sleep 25", product.path("pid"))));
    let mut killed = start(product.command(&["--repair"]));
    assert!(soon(|| fs::read_to_string(product.at("pid")).is_ok_and(|pid| pid.ends_with('\n'))));
    killed.signal(libc::SIGKILL);
    killed.wait();
    let pid = fs::read_to_string(product.at("pid")).unwrap();
    let is_gone = || !Path::new("/proc").join(pid.trim()).exists();
    assert!(soon(is_gone), "the repair outlives its start");
    let (code, found) = product.start(&["--repair"]);
    assert_eq!((code, outcomes(&found), product.runs()), (1, vec!["repair_failed"], 1), "{found:#?}");
    assert_eq!((&found[0]["repair"], &found[0]["found"]), (&"interrupted".into(), &"unreadable".into()));
}

#[test]
fn root_takes_no_policy_that_somebody_else_could_have_written() {
    if !root() {
        return;
    }
    let product = Product::new();
    let policy = product.at("policy.toml");
    product.policy("1", &product.repaired_by("true"));
    mode(&policy, 0o666);
    run(product.command(&["--repair"])).fails_with(2, &["policy.toml is refused: others can write it"]);
    mode(&policy, 0o644);
    chown(&policy, Some(NOBODY), None).unwrap();
    run(product.command(&[])).fails_with(2, &["it belongs to uid 65534"]);
    chown(&policy, Some(0), None).unwrap();
    mode(product.place.path(), 0o777);
    run(product.command(&["--repair"])).fails_with(2, &["can be changed by other users"]);
    mode(product.place.path(), 0o755);
    fs::rename(&policy, product.at("real")).unwrap();
    symlink("real", &policy).unwrap();
    run(product.command(&["--repair"])).fails_with(2, &["policy.toml cannot be used"]);
    assert_eq!(product.runs(), 0);
}

#[test]
fn nothing_is_run_where_what_was_tried_cannot_be_relied_on() {
    if !root() {
        return;
    }
    let product = Product::new();
    product.policy("1", &product.repaired_by("true"));
    let refused = |words: &str| {
        let done = run(product.command(&["--repair"]));
        let (code, found) = lines(&done);
        assert_eq!((code, outcomes(&found), product.runs()), (3, vec!["unreadable"], 0), "{words}: {found:#?}");
        assert_eq!(found[0]["repair"], "refused");
        assert!(
            done.stderr.contains("cache may not be repaired: ") && done.stderr.contains(words),
            "{words}: {done:?}"
        );
    };
    fs::create_dir(product.at("elsewhere")).unwrap();
    mode(&product.at("elsewhere"), 0o700);
    symlink("elsewhere", product.at("state")).unwrap();
    refused("is not a directory that belongs to this user alone");
    fs::remove_file(product.at("state")).unwrap();
    fs::create_dir(product.at("state")).unwrap();
    mode(&product.at("state"), 0o777);
    refused("is not a directory that belongs to this user alone");
    mode(&product.at("state"), 0o700);
    chown(product.at("state"), Some(NOBODY), None).unwrap();
    refused("is not a directory that belongs to this user alone");
    chown(product.at("state"), Some(0), None).unwrap();
    fs::write(product.at("state/shop.json"), "{}").unwrap();
    refused("shop.json is damaged");
    fs::remove_file(product.at("state/shop.json")).unwrap();
    symlink("/etc/passwd", product.at("state/shop.json")).unwrap();
    refused("the record in ");
}

#[test]
fn a_repair_has_the_rights_of_its_user_and_no_more() {
    if !root() {
        return;
    }
    let product = Product::new();
    let out = product.at("out");
    fs::create_dir(&out).unwrap();
    mode(&out, 0o777);
    let script = format!("(id -u; id -g; grep -E 'CapEff|NoNewPrivs' /proc/self/status; env) > {}/who", out.display());
    // What notes that it ran is a file of root's, which this user cannot write: the script goes on.
    product.policy("1", &product.repaired_as("nobody", &script));
    let mut command = product.command(&["--repair"]);
    let (code, found) = lines(&run(command.env("SECRET", "of root")));
    assert_eq!((code, outcomes(&found)), (1, vec!["repair_failed"]), "{found:#?}");
    let who = fs::read_to_string(out.join("who")).unwrap();
    assert!(who.starts_with("65534\n65534\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n"), "{who}");
    assert!(!who.contains("SECRET") && who.contains("USER=nobody"), "{who}");
}

#[test]
fn a_product_without_privilege_checks_and_repairs_as_itself_and_as_nobody_else() {
    if !root() {
        return;
    }
    let product = Product::new();
    chown(product.at("cache"), Some(NOBODY), Some(NOBODY)).unwrap();
    mode(&product.at("cache"), 0o200);
    chown(product.place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |user: &str, version: &str| {
        product.policy(version, &product.repaired_as(user, &format!("chmod u+r {}", product.path("cache"))));
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", SLOWPATH, "artifacts", "guard"]);
        command.args(["--json", "--repair"]).arg(product.at("policy.toml")).current_dir("/");
        run(command)
    };
    let done = as_nobody("root", "1");
    let (code, found) = lines(&done);
    assert_eq!((code, outcomes(&found)), (3, vec!["unreadable"]), "{found:#?}");
    assert!(done.stderr.contains("only root can become another user"), "{done:?}");
    // What may not be run was not tried.
    let (code, found) = lines(&as_nobody("nobody", "1"));
    assert_eq!((code, outcomes(&found)), (0, vec!["repaired"]), "{found:#?}");
}

#[test]
fn a_wrong_policy_is_an_error_with_its_line() {
    let product = Product::new();
    product.policy("1", "[[artifact]]\nname = \"a\"\npath = \"/a\"\n");
    let done = run(product.command(&[]));
    done.fails_with(2, &["line 6: unknown field `path`"]);
    assert_eq!(done.json()["schema"], "slowpath-error/1");
}

#[test]
fn ten_artifacts_for_two_users_cost_a_start_some_milliseconds() {
    if !root() {
        return;
    }
    let product = Product::new();
    let artifacts = (0..10).map(|number| {
        fs::write(product.at(&format!("cache-{number}")), "x").unwrap();
        format!(
            "[[artifact]]\nname = \"cache-{number}\"\npaths = [{:?}]\nfresh = \"readable\"\nfor = [65534, 33]\n",
            product.path(&format!("cache-{number}"))
        )
    });
    product.policy("1", &artifacts.collect::<String>());
    let (code, found) = product.start(&[]);
    assert_eq!((code, found.len()), (0, 20));
    let ms = found[0]["value"].as_f64().unwrap();
    println!("10 artifacts for 2 users: {ms} ms");
    // 100 times what was measured on an idle machine: what is above it waits for something.
    assert!(ms > 0.0 && ms < 1000.0, "{ms} ms");
}
