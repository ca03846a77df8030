//! `slowpath zygote`: real preloads, real children, kills, and what is left.

use crate::running::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int preloaded;
void slowpath_zygote_preload(void) { ++preloaded; }
int slowpath_zygote_main(int count, char **words) {
    if (count > 2 && strcmp(words[1], "exit") == 0) return atoi(words[2]);
    if (count > 1 && strcmp(words[1], "sleep") == 0) for (;;) pause();
    printf("%d %d %d", preloaded, (int)getuid(), count);
    for (int at = 1; at < count; ++at) printf(" %s", words[at]);
    const char *colour = getenv("COLOUR");
    printf(" %s\n", colour ? colour : "none");
    return 0;
}
int other(int count, char **words) { (void)words; return 40 + count; }
"#;

/// A place that belongs to who runs the tests alone, with a library that was compiled.
pub struct Place {
    place: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = place();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = Self { place };
        place.compile();
        place
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn compile(&self) {
        fs::write(self.at("job.c"), LIBRARY).unwrap();
        // Beside it and renamed over it, as a package manager does.
        let done =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(self.at("new.so")).arg(self.at("job.c")).status();
        assert!(done.unwrap().success());
        fs::rename(self.at("new.so"), self.at("job.so")).unwrap();
    }

    /// Starts one, and waits until it answers.
    fn serve(&self, words: &[&str]) -> Zygote {
        let zygote = self.begin(words);
        zygote.wait_until_ready();
        zygote
    }

    fn begin(&self, words: &[&str]) -> Zygote {
        let socket = self.at("s");
        let words = ["zygote", "serve", "--socket", socket.to_str().unwrap()].into_iter().chain(words.iter().copied());
        let running = start(slowpath(words).env("SLOWPATH_ZYGOTE_LIBRARY", self.at("python.so")));
        Zygote { running, socket }
    }
}

/// A zygote that runs.
struct Zygote {
    running: Running,
    socket: PathBuf,
}

impl Zygote {
    fn socket(&self) -> &str {
        self.socket.to_str().unwrap()
    }

    fn wait_until_ready(&self) {
        eventually(|| self.asked(&["status"]).code() == 0);
    }

    fn asked(&self, words: &[&str]) -> Done {
        let (verb, rest) = words.split_first().unwrap();
        // The zygote is the user's in whose directory it listens.
        let owner = fs::metadata(Path::new(self.socket()).parent().unwrap()).unwrap().uid().to_string();
        let mut words = vec!["zygote", *verb, "--socket", self.socket()];
        if *verb == "spawn" {
            words.extend(["--zygote-uid", &owner]);
        }
        run(slowpath(words.into_iter().chain(rest.iter().copied())))
    }

    fn status(&self) -> Value {
        let done = self.asked(&["status", "--json"]);
        if done.code() == 0 { done.json() } else { Value::Null }
    }

    fn ended(mut self, signal: i32) -> Done {
        self.running.signal(signal);
        self.running.wait()
    }
}

#[track_caller]
fn eventually(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn exists(pid: i64) -> bool {
    // A zombie has no program.
    fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

#[test]
fn a_library_is_preloaded_once_and_its_children_have_the_code_output_and_variables_asked_for() {
    let place = Place::new();
    let zygote = place.serve(&["--preload", &place.text("job.so"), "--user", &own(), "--json"]);
    for _ in 0..2 {
        let done = zygote.asked(&["spawn", "--env", "COLOUR=blue", "--", "say", "a b"]);
        done.succeeds();
        assert!(done.stdout.starts_with("1 ") && done.stdout.ends_with(" 3 say a b blue\n"), "{done:?}");
    }
    assert_eq!(zygote.asked(&["spawn", "--", "exit", "7"]).code(), 7);
    let printed = zygote.asked(&["spawn", "--json", "--", "say"]);
    let json = printed.json();
    assert_eq!((&json["exit_code"], &json["signal"]), (&Value::from(0), &Value::Null), "{json}");
    assert!(json["started_ms"].as_f64().unwrap() > 0.0 && printed.stderr.contains("say none"), "{printed:?}");
    zygote.asked(&["spawn", "--env", "NAME", "--", "x"]).fails_with(2, &["no NAME=VALUE"]);
    zygote.asked(&["spawn", "--fd", "9", "--", "x"]).fails_with(2, &["descriptor 9 is not open", "7<FILE"]);
    let status = zygote.status();
    assert_eq!((&status["started"], &status["alive"]), (&Value::from(4), &Value::from(0)), "{status}");
    let socket = zygote.socket.clone();
    let done = zygote.ended(libc::SIGTERM);
    done.succeeds();
    let json = done.json();
    assert_eq!((&json["ended"], &json["crashes"]), (&Value::from("stopped"), &Value::from(0)), "{json}");
    assert_eq!(json["starts_ms"].as_array().unwrap().len(), 1);
    assert!(done.stderr.contains("preloaded in") && !socket.exists(), "{done:?}");
    run(slowpath(["zygote", "spawn", "--socket", socket.to_str().unwrap(), "--", "x"]))
        .fails_with(3, &["no zygote answers"]);
}

/// The user of this test by its number, as the zygote's.
fn own() -> String {
    nix::unistd::geteuid().to_string()
}

#[test]
fn root_gives_children_another_user_and_a_filter_and_preloads_nothing_of_strangers() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can give another user");
        return;
    }
    let place = Place::new();
    let zygote =
        place.serve(&["--preload", &place.text("job.so"), "--entry", "slowpath_zygote_main", "--user", "root"]);
    let isolated = ["spawn", "--uid", "99001", "--gid", "99001", "--namespaces", "network,ipc", "--", "say"];
    let done = zygote.asked(&isolated);
    assert_eq!(done.stdout, "1 99001 2 say none\n", "{done:?}");
    fs::write(
        place.at("filter.json"),
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["write"], "action": "SCMP_ACT_KILL_PROCESS"}]}"#,
    )
    .unwrap();
    let filter = place.text("filter.json");
    assert_eq!(zygote.asked(&["spawn", "--seccomp", &filter, "--", "say"]).code(), 128 + libc::SIGSYS);
    assert_eq!(zygote.asked(&["spawn", "--seccomp", &filter, "--", "exit", "3"]).code(), 3);
    let warned = zygote.asked(&["spawn", "--seccomp", &filter, "--allow-speculation", "--", "exit", "0"]);
    assert!(warned.stderr.contains("speculative execution"), "{warned:?}");
    zygote.ended(libc::SIGINT).succeeds();
    fs::set_permissions(place.at("job.so"), fs::Permissions::from_mode(0o777)).unwrap();
    let words = ["zygote", "serve", "--user", "root", "--socket", &place.text("s"), "--preload", &place.text("job.so")];
    run(slowpath(words)).fails_with(2, &["root preloads only files that no one else can write", "--user"]);
}

#[test]
fn the_context_of_a_child_is_that_of_an_isolated_exec() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can give another user");
        return;
    }
    let place = Place::new();
    let zygote = place.serve(&["--preload", &place.text("job.so"), "--user", "root"]);
    let words = ["zygote", "spawn", "--socket", zygote.socket(), "--uid", "99001", "--gid", "99001", "--", "sleep"];
    let mut child = start(slowpath(words));
    let mut executed = Command::new("setpriv")
        .args(["--reuid=99001", "--regid=99001", "--clear-groups", "--no-new-privs", "--", "/bin/sleep", "60"])
        .current_dir("/")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let name = |pid: u64| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut pid = 0;
    eventually(|| {
        let zygote = zygote.status()["pid"].as_u64().unwrap_or(0);
        let children = fs::read_to_string(format!("/proc/{zygote}/task/{zygote}/children")).unwrap_or_default();
        pid = children.trim().parse().unwrap_or(0);
        pid != 0 && name(pid) == "sleep\n" && name(executed.id().into()) == "sleep\n"
    });
    let done = run(slowpath(["context", "diff", "--json", &executed.id().to_string(), &pid.to_string()]));
    child.signal(libc::SIGTERM);
    let ended = child.wait();
    executed.kill().unwrap();
    executed.wait().unwrap();
    done.succeeds();
    let comparison = done.json();
    let names = comparison["differences"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["of_the_moment"] == false)
        .map(|one| one["factor"].as_str().unwrap().to_owned());
    // Another program, in a session of its own, with the variables of the zygote: that is what differs, and nothing that a process may.
    let expected = ["loaded_libraries", "environment", "autogroup"];
    let more: Vec<String> = names.filter(|name| !expected.contains(&name.as_str())).collect();
    assert_eq!(more, Vec::<String>::new(), "{comparison}");
    assert_eq!(ended.code(), 128 + libc::SIGTERM, "{ended:?}");
}

#[test]
fn a_crashed_zygote_comes_back_a_replaced_library_is_loaded_anew_and_nothing_outlives_a_kill() {
    let place = Place::new();
    let zygote = place.serve(&["--preload", &place.text("job.so"), "--user", &own(), "--quiet"]);
    let pid = |zygote: &Zygote| zygote.status()["pid"].as_i64();
    let first = pid(&zygote).unwrap();
    // SAFETY: takes integers; the zygote runs.
    unsafe { libc::kill(i32::try_from(first).unwrap(), libc::SIGKILL) };
    eventually(|| pid(&zygote).is_some_and(|now| now != first));
    zygote.asked(&["spawn", "--", "say"]).succeeds();
    let second = pid(&zygote).unwrap();
    // A child of the old one goes on meanwhile.
    let child = start(slowpath(["zygote", "spawn", "--socket", zygote.socket(), "--", "sleep"]));
    eventually(|| zygote.status()["alive"] == 1);
    place.compile();
    eventually(|| pid(&zygote).is_some_and(|now| now != second));
    assert!(exists(second), "it has a child");
    zygote.asked(&["spawn", "--", "say"]).succeeds();
    let third = pid(&zygote).unwrap();
    let socket = zygote.socket.clone();
    let killed = zygote.ended(libc::SIGKILL);
    assert_eq!(killed.status.code(), None);
    eventually(|| !exists(second) && !exists(third));
    eventually(|| {
        !socket.exists() || run(slowpath(["zygote", "status", "--socket", socket.to_str().unwrap()])).code() == 3
    });
    let done = child.wait();
    assert_ne!(done.code(), 0, "{done:?}");
    // The next one takes the place of the socket. Nobody asks it: between two questions it may be idle for long enough.
    let words = ["--preload", &place.text("job.so"), "--user", &own(), "--idle", "200ms", "--json"];
    let done = place.begin(&words).running.wait();
    done.succeeds();
    assert_eq!(done.json()["ended"], "idle", "{done:?}");
}

#[test]
fn what_cannot_be_preloaded_is_said_at_once() {
    let place = Place::new();
    let serve = |words: &[&str]| {
        let socket = place.text("s");
        let user = own();
        let words = ["zygote", "serve", "--user", &user, "--socket", &socket, "--preload"]
            .into_iter()
            .chain(words.iter().copied());
        run(slowpath(words))
    };
    serve(&["/none.so"]).fails_with(2, &["/none.so cannot be preloaded"]);
    serve(&[&place.text("job.so"), "--entry", "none"])
        .fails_with(4, &["undefined symbol: none", "before it was ready"]);
    serve(&[&place.text("job.c")]).fails_with(4, &["before it was ready"]);
    serve(&["python:a/b"]).fails_with(2, &["no modules"]);
    fs::write(place.at("policy"), "colour = 1").unwrap();
    serve(&[&place.text("job.so"), "--policy", &place.text("policy")]).fails_with(2, &["unknown field `colour`"]);
    fs::write(place.at("s"), "mine").unwrap();
    serve(&[&place.text("job.so")]).fails_with(3, &["is not a socket, and is left as it is"]);
    assert_eq!(fs::read(place.at("s")).unwrap(), b"mine");
}

/// The library that Python loads, where a build of the whole workspace has made it.
fn python_library() -> Option<PathBuf> {
    let beside = ["libslowpath_zygote_c.so", "deps/libslowpath_zygote_c.so"]
        .map(|name| Path::new(SLOWPATH).with_file_name(name));
    let built = beside.into_iter().filter(|path| path.exists());
    let newest = built.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    newest.filter(|_| Path::new("/usr/bin/python3").exists())
}

#[test]
fn children_of_python_are_whole_interpreters_with_the_modules_there() {
    let Some(library) = python_library() else {
        println!("skipped: no /usr/bin/python3, or no libslowpath_zygote_c.so beside slowpath");
        return;
    };
    let place = Place::new();
    fs::copy(library, place.at("python.so")).unwrap();
    // Root loads no library that others could have written, and the tree of a build is not root's alone everywhere.
    let user = if nix::unistd::geteuid().is_root() { "65534".to_owned() } else { own() };
    if user == "65534" {
        std::os::unix::fs::chown(place.place.path(), Some(65534), Some(65534)).unwrap();
        if !Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", SLOWPATH])
            .status()
            .unwrap()
            .success()
        {
            println!("skipped: user 65534 cannot execute {SLOWPATH}");
            return;
        }
    }
    let zygote = place.serve(&["--preload", "python:json,decimal", "--python", "/usr/bin/python3", "--user", &user]);
    let code = "import sys; print('decimal' in sys.modules, sys.argv[1:], __name__); sys.exit(5)";
    let done = zygote.asked(&["spawn", "--", "-c", code, "x"]);
    assert_eq!((done.stdout.as_str(), done.code()), ("True ['x'] __main__\n", 5), "{done:?}");
    fs::write(place.at("job.py"), "import os, sys\nprint(os.path.basename(__file__), sys.argv[1])\n").unwrap();
    let done = zygote.asked(&["spawn", "--", &place.text("job.py"), "17"]);
    assert_eq!(done.stdout, "job.py 17\n", "{done:?}");
    assert_eq!(zygote.asked(&["spawn", "--", "-m", "json.tool", "--help"]).code(), 0);
    zygote.ended(libc::SIGTERM).succeeds();
}

#[test]
fn a_socket_that_a_service_manager_hands_over_is_served() {
    let Ok(activate) = Command::new("systemd-socket-activate").arg("--version").stdout(Stdio::null()).status() else {
        println!("skipped: no systemd-socket-activate");
        return;
    };
    assert!(activate.success());
    let place = Place::new();
    let (socket, library, user) = (place.at("s"), place.text("job.so"), own());
    let mut command = Command::new("systemd-socket-activate");
    command.args(["--seqpacket", "-l"]).arg(&socket).arg(SLOWPATH);
    command.args(["zygote", "serve", "--activated", "--user", &user, "--preload", &library, "--idle", "500ms"]);
    let running = start(command);
    eventually(|| socket.exists());
    let zygote = Zygote { running, socket };
    let done = zygote.asked(&["spawn", "--", "say"]);
    assert!(done.stdout.ends_with(" 2 say none\n"), "{done:?}");
    zygote.running.wait().succeeds();
}

#[test]
fn a_benchmark_has_every_way_in_every_block_and_leaves_nothing() {
    let place = Place::new();
    let words = [
        "zygote",
        "bench",
        "--preload",
        &place.text("job.so"),
        "--blocks",
        "6",
        "--children",
        "2",
        "--json",
        "--quiet",
    ];
    let done = run(slowpath(words));
    done.succeeds();
    let json = done.json();
    assert_eq!((&json["schema"], &json["blocks"]), (&Value::from("slowpath-launch/1"), &Value::from(6)));
    let arms = json["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["posix_spawn", "spare_pool", "zygote", "zygote_spares"]);
    for arm in arms {
        assert_eq!(arm["launches"].as_array().unwrap().iter().filter(|one| !one.is_null()).count(), 6, "{arm}");
        assert!(arm["medians"]["wall"]["value"].as_f64().unwrap() > 0.0, "{arm}");
        let asked: Vec<_> =
            arm["quantiles"].as_array().unwrap().iter().map(|one| one["quantile"].as_f64().unwrap()).collect();
        assert_eq!(asked, [0.5, 0.99, 0.5, 0.99]);
    }
    assert_eq!(json["comparisons"].as_array().unwrap().len(), 6);
    let notes = json["notes"].to_string();
    assert!(notes.contains("2 children of zygote at once: PSS "), "{notes}");
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&place.text("job.so"))
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_recording_of_children_that_start_alike_is_answered_with_yes_and_one_without_children_with_no() {
    let place = place();
    if !nix::unistd::geteuid().is_root() || !Path::new("/usr/bin/python3").exists() {
        println!("skipped: recording needs root, and the children /usr/bin/python3");
        return;
    }
    // The program is recorded by the command; what it kept is read again, and gives the same answer.
    let advised = |name: &str, command: &str| {
        let recording = place.path().join(name);
        let recording = recording.to_str().unwrap();
        let words = ["zygote", "advise", "--json", "--user", "root", "-o", recording, "--", "sh", "-c", command];
        let done = run(slowpath(words));
        done.succeeds();
        let again = run(slowpath(["zygote", "advise", "--json", recording]));
        assert_eq!(again.json(), done.json());
        (done.json(), run(slowpath(["zygote", "advise", recording])).stdout)
    };
    let same = "for n in 1 2 3 4 5; do /usr/bin/python3 -c 'import json, decimal, email.message, sqlite3, unittest.mock'; done";
    let (yes, words) = advised("same", same);
    assert_eq!(yes["answer"], "yes", "{yes}");
    assert!(
        yes["predicted_saving"]["value"].as_f64().unwrap() > 0.0
            && yes["process"].as_str().unwrap().starts_with("python3"),
        "{yes}"
    );
    assert!(
        yes["share_of_start"]["value"].as_f64().unwrap() >= 20.0 && words.starts_with("yes: a zygote pays\n"),
        "{words}"
    );
    let (no, words) = advised("alone", "/usr/bin/python3 -c 'import json'");
    assert_eq!((&no["answer"], &no["predicted_saving"]), (&Value::from("no"), &Value::Null), "{no}");
    assert!(words.starts_with("no: "), "{words}");
    // A program that fails is not judged.
    let fails = run(slowpath(["zygote", "advise", "--quiet", "--user", "root", "--", "sh", "-c", "exit 3"]));
    fails.fails_with(4, &["exit"]);
}
