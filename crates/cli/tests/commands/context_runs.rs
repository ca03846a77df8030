//! `context run`: a command in a saved context reads as that context, has the command's exit status, and leaves nothing behind.

use crate::running::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Saves the context of a wrapped command.
fn saved(place: &Path, wrapper: &[&str]) -> PathBuf {
    let file = place.join("context.json");
    run(slowpath(["context", "save", "-o"]).arg(&file).arg("--").args(wrapper).args(["/bin/sleep", "60"])).succeeds();
    file
}

/// The first `sleep` among the descendants of a process.
fn sleeping_below(pid: u32) -> Option<u32> {
    if sleeps(pid) {
        return Some(pid);
    }
    // Of all its threads: the launcher is started by any.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .find_map(sleeping_below)
}

fn groups_of(pid: u32) -> Vec<PathBuf> {
    let name = format!("slowpath-{pid}-");
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let mut open: Vec<PathBuf> = hierarchies.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    let mut found = Vec::new();
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(&name) {
                    found.push(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}

fn togglable(comparison: &Value) -> Vec<String> {
    let toggles = comparison["toggles"].as_array().unwrap().iter();
    toggles.filter(|one| one["here"] == true).map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_command_in_a_saved_context_differs_from_it_in_nothing_that_can_be_applied() {
    let place = place();
    let wrapper =
        ["/usr/bin/nice", "-n", "4", "/usr/bin/prlimit", "--stack=4194304", "/usr/bin/env", "MALLOC_ARENA_MAX=2"];
    let file = saved(place.path(), &wrapper);
    let dry = run(slowpath(["context", "run", "--dry-run"]).arg(&file).args(["--", "/bin/false"]));
    dry.succeeds();
    for line in ["scheduling: ", "limits stack_size: \"4194304", "environment MALLOC_ARENA_MAX: \"2\" (here \"none\")"]
    {
        assert!(dry.stdout.contains(line), "{line}: {}", dry.stdout);
    }
    let mut running = start(slowpath(["context", "run"]).arg(&file).args(["--", "/bin/sleep", "60"]));
    let pid = running.child.id();
    assert!(soon(|| sleeping_below(pid).is_some()));
    let sleeper = sleeping_below(pid).unwrap().to_string();
    let compared = run(slowpath(["context", "diff", "--json"]).arg(&file).arg(&sleeper));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().code(), 130);
    compared.succeeds();
    assert_eq!(togglable(&compared.json()), [] as [&str; 0], "{}", compared.stdout);
    assert!(!Path::new(&format!("/proc/{sleeper}")).exists(), "ctrl-C ends the command");
    // And what differs from the plain command can be tried.
    let mut plain = Command::new("/bin/sleep").arg("60").stdin(Stdio::null()).current_dir("/").spawn().unwrap();
    assert!(soon(|| sleeping_below(plain.id()).is_some()));
    let compared = run(slowpath(["context", "diff", "--json"]).arg(plain.id().to_string()).arg(&file));
    let shown = run(slowpath(["context", "diff"]).arg(plain.id().to_string()).arg(&file));
    plain.kill().unwrap();
    plain.wait().unwrap();
    let names = togglable(&compared.json());
    for name in ["scheduling", "environment MALLOC_ARENA_MAX", "limits stack_size"] {
        assert!(names.iter().any(|one| one == name), "{name}: {names:?}");
    }
    assert!(shown.stdout.contains("each can be tried alone here: scheduling"), "{}", shown.stdout);
}

#[test]
fn the_exit_status_and_the_output_are_the_commands() {
    let place = place();
    let file = saved(place.path(), &[]);
    let ran = |script: &str| run(slowpath(["context", "run"]).arg(&file).args(["--", "/bin/sh", "-c", script]));
    let done = ran("echo out; echo err >&2; exit 7");
    assert_eq!((done.code(), done.stdout.as_str()), (7, "out\n"));
    assert!(done.stderr.ends_with("err\n"), "{}", done.stderr);
    assert_eq!(ran("kill -TERM $$").code(), 143);
    run(slowpath(["context", "run"]).arg(&file).args(["--", "/no/such/program"])).fails_with(4, &["/no/such/program"]);
    run(slowpath(["context", "run"]).arg(&file)).fails_with(2, &["CMD"]);
}

#[test]
fn what_cannot_be_applied_is_reported_with_its_reason() {
    let copies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../context/tests/saved");
    let side = copies.join("linux-5.15").join("app");
    let done = run(slowpath(["context", "run", "--dry-run"]).arg(side).args(["--", "/bin/true"]));
    done.succeeds();
    for words in ["environment is not known", "security_label stays", "credentials stays"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    // It is applied where this machine's CPUs and kernel let a program choose.
    let is_applied = done.stdout.contains("speculative_store_bypass: ");
    assert!(is_applied || done.stderr.contains("speculative_store_bypass stays"), "{} {}", done.stdout, done.stderr);
}

#[test]
fn groups_that_were_made_go_with_the_command_and_after_a_kill_with_the_next_cleaning() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root makes cgroups");
        return;
    }
    let place = place();
    let file = saved(place.path(), &[]);
    let mut context: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    context["process"]["control_groups"]["value"]["cpu.max"] = "50.0 % of a CPU".into();
    std::fs::write(&file, context.to_string()).unwrap();
    let dry = run(slowpath(["context", "run", "--dry-run"]).arg(&file).args(["--", "/bin/true"]));
    if !dry.stdout.contains("control_groups cpu.max") {
        println!("skipped: {}", dry.stderr);
        return;
    }
    let begin = || {
        let running = start(slowpath(["context", "run"]).arg(&file).args(["--", "/bin/sleep", "60"]));
        let pid = running.child.id();
        assert!(soon(|| sleeping_below(pid).is_some()));
        assert_eq!(groups_of(pid).len(), 1);
        running
    };
    let mut running = begin();
    let shown = run(slowpath(["context", "show", "--json", &sleeping_below(running.child.id()).unwrap().to_string()]));
    assert_eq!(shown.json()["process"]["control_groups"]["value"]["cpu.max"], "50.0 % of a CPU");
    running.signal(libc::SIGTERM);
    let done = running.wait();
    assert_eq!((done.code(), groups_of(done.pid)), (130, Vec::new()));
    let mut running = begin();
    running.signal(libc::SIGKILL);
    let done = running.wait();
    assert!(soon(|| {
        run(slowpath(["doctor", "--clean"]));
        groups_of(done.pid).is_empty()
    }));
}
