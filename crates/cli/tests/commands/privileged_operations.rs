//! What slowpath does as root, seen by strace(1): every operation stands in the table of docs/security.md, and no path goes
//! through a directory in which somebody else can put something in its place.

use crate::running::*;
use crate::strace::{Operation, traced, traced_with};
use crate::trusted_diagnosis::{Diagnosed, FIX};
use crate::zygote;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Repository file with the table, and the heading that it follows.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
const HEADING: &str = "## What runs with privilege";

/// A row: calls, paths, source files.
struct Row {
    calls: Vec<String>,
    paths: Vec<String>,
    files: Vec<String>,
}

fn cell_words(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let (_, after) = text.split_once(HEADING).expect("the heading of the table");
    let section = after.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
            assert!(cells.len() == 4, "calls, paths, files, why it is safe: {line}");
            Row { calls: cell_words(cells[0]), paths: cell_words(cells[1]), files: cell_words(cells[2]) }
        })
        .collect()
}

/// Whether `path` is what `pattern` says: `*` stands for anything within a component, a last `**` for anything below.
fn matches(pattern: &str, path: &str) -> bool {
    if let Some(below) = pattern.strip_suffix("/**") {
        let parts = below.split('/').count();
        let above: Vec<&str> = path.split('/').take(parts).collect();
        return matches(below, &above.join("/"));
    }
    let (mut wanted, mut there) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), there.next()) {
            (None, None) => return true,
            (Some(wanted), Some(there)) if component_matches(wanted, there) => {}
            _ => return false,
        }
    }
}

fn component_matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.is_char_boundary(at) && component_matches(rest, &tail[at..]))
        }),
    }
}

/// Kernel file systems: nobody can put anything in the place of their entries. What leads out of them again (`/proc/PID/root`) is
/// somebody's path all the same.
fn is_the_kernels(path: &str) -> bool {
    (path.starts_with("/proc/") || path.starts_with("/sys/"))
        && !["/root/", "/cwd/", "/exe/"].iter().any(|link| path.contains(link))
}

/// The first directory on the way to `path` in which somebody who is not root can replace the next component.
fn replaceable(path: &str) -> Option<PathBuf> {
    if is_the_kernels(path) {
        return None;
    }
    Path::new(path).ancestors().skip(1).find_map(|directory| {
        // A link of root's in a directory of root's leads where root wants; that place is looked at like any other.
        let real = fs::canonicalize(directory).ok()?;
        let is_safe = |part: &Path| fs::symlink_metadata(part).is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0);
        let is_all_roots = real.ancestors().all(is_safe)
            && directory.ancestors().all(|part| fs::symlink_metadata(part).is_ok_and(|it| it.uid() == 0));
        (!is_all_roots).then(|| directory.to_path_buf())
    })
}

fn complaints(rows: &[Row], operations: &[Operation]) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    for operation in operations {
        let is_listed = rows.iter().any(|row| {
            row.calls.contains(&operation.call)
                && match &operation.path {
                    None => true,
                    Some(path) => row.paths.iter().any(|pattern| matches(pattern, path)),
                }
        });
        if !is_listed {
            let path = operation.path.as_deref().unwrap_or("");
            wrong.insert(format!("no row of {HEADING:?}: {} {path}\n    {}", operation.call, operation.line));
        }
        if operation.is_checked {
            continue;
        }
        if let Some(directory) = operation.path.as_deref().and_then(replaceable) {
            let what = format!("{} can be changed by others on the way to", directory.display());
            wrong.insert(format!("{what} {}\n    {}", operation.path.as_deref().unwrap_or(""), operation.line));
        }
    }
    wrong
}

/// A command of a user's in a place of theirs, so that nothing about it is root's.
fn place_of_nobody() -> tempfile::TempDir {
    let place = place();
    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).unwrap();
    fs::write(place.path().join("data"), vec![7; 40_000]).unwrap();
    std::os::unix::fs::chown(place.path().join("data"), Some(65534), Some(65534)).unwrap();
    place
}

fn examined(name: &str, arguments: &[&str]) {
    if !root() {
        return;
    }
    let place = place_of_nobody();
    let script = format!("/bin/cat {} > /dev/null; /bin/true", place.path().join("data").display());
    let output = place.path().join("out");
    let mut words: Vec<&str> = arguments.to_vec();
    let output_words = ["-o", output.to_str().unwrap()];
    if arguments[0] != "lab" {
        words.extend(output_words);
    }
    words.extend(["--user", "nobody", "--", "/bin/sh", "-c", &script]);
    let trace = place.path().join("trace");
    all_listed(name, &traced(&words, &trace));
}

/// Every operation stands in the table.
#[track_caller]
pub fn all_listed(name: &str, operations: &[Operation]) {
    are_listed(name, operations, 100);
}

/// The same of a command that does at least so many.
#[track_caller]
fn are_listed(name: &str, operations: &[Operation], least: usize) {
    assert!(operations.len() > least, "{name}: only {} operations of root were seen", operations.len());
    let wrong = complaints(&rows(), operations);
    let list: Vec<String> = wrong.iter().cloned().collect();
    assert!(wrong.is_empty(), "{name}: {} of {}:\n{}", wrong.len(), operations.len(), list.join("\n"));
}

#[test]
fn what_record_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    examined("record", &["record", "--stacks", "fault,cpu,wait", "--memory-calls", "--off-cpu", "--quiet"]);
}

#[test]
fn what_lab_run_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    examined("lab run", &["lab", "run", "--runs", "1", "--iops", "20000"]);
}

#[test]
fn what_a_cold_diagnosis_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    examined("diagnose --cold", &["diagnose", "--cold", "--blocks", "1", "--quiet"]);
}

#[test]
fn what_a_warm_diagnosis_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    examined("diagnose --warm", &["diagnose", "--warm", "--blocks", "1", "--quiet"]);
}

#[test]
fn what_a_trial_of_permissions_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    // A directory of nobody's, whose bytecode is nobody's too and closed even to its owner.
    let case = crate::recorded_case::built_with("artifacts", &[]);
    let chown = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    let bytecode = case.path().join("shop/__pycache__");
    for entry in fs::read_dir(&bytecode).unwrap() {
        let path = entry.unwrap().path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        chown(&path);
    }
    fs::set_permissions(&bytecode, fs::Permissions::from_mode(0o000)).unwrap();
    ["shop/__pycache__", "shop", ""].iter().for_each(|name| chown(&case.path().join(name)));
    let (out, program) = (case.path().join("out"), case.path().join("children.py"));
    let [out, program] = [&out, &program].map(|path| path.to_str().unwrap());
    let target = ["--user", "nobody", "--", "/usr/bin/python3", program, "2"];
    let words = [&["diagnose", "--warm", "--blocks", "1", "--quiet", "-o", out][..], &target].concat();
    let operations = traced(&words, &case.path().join("trace"));
    assert!(operations.iter().any(|one| one.call == "fsmount"), "no launch had mounts");
    all_listed("diagnose --warm with a trial", &operations);
}

#[test]
fn what_an_aged_command_takes_from_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let place = place_of_nobody();
    let state = place.path().join("state.toml");
    let data = place.path().join("data");
    let entry = |path: &Path, state: &str| format!("[[artifact]]\npath = {path:?}\nstate = \"{state}\"\n");
    fs::write(&state, entry(&data, "unreadable") + &entry(&place.path().join("trace"), "missing")).unwrap();
    let words = ["artifacts", "age", "--state", state.to_str().unwrap(), "--user", "nobody", "--", "/bin/true"];
    let mut operations = traced(&words, &place.path().join("trace"));
    // It is read as who called, which here is root.
    operations.retain(|one| one.path.as_deref() != state.to_str());
    all_listed("artifacts age", &operations);
}

#[test]
fn what_a_traced_latency_benchmark_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let place = place();
    let words = ["ipc", "latency", "-i", "3", "-trace", "-deadline_us", "60000000", "--transport", "posix-mq"];
    all_listed("ipc latency", &traced(&words, &place.path().join("trace")));
}

#[test]
fn what_a_launch_with_a_page_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let place = place_of_nobody();
    let page = place.path().join("data");
    fs::write(&page, "<html><body>text</body></html>").unwrap();
    let visit = "import sys, urllib.request as u; u.urlopen(sys.argv[1]).read(); u.urlopen(sys.argv[1] + 'ready')";
    let ready = format!("browser:{}", page.display());
    let target = ["--user", "nobody", "--", "/usr/bin/python3", "-c", visit];
    let words = [&["launch", "--runs", "1", "--quiet", "--ready", &ready][..], &target].concat();
    all_listed("launch --ready browser", &traced(&words, &place.path().join("trace")));
}

#[test]
fn what_a_context_takes_from_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let place = place_of_nobody();
    // It ends when its input does, which is with this test, however that ends.
    let mut cat = std::process::Command::new("/bin/cat");
    let mut process = cat.current_dir(place.path()).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let (pid, trace) = (process.id().to_string(), place.path().join("trace"));
    all_listed("context show", &traced(&["context", "show", &pid], &trace));
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// Whether a directory on the way to the program under test is looked at without following a link. Whoever installed it chose their
/// names, so no table can have them.
fn is_on_the_way_to_the_program(one: &Operation) -> bool {
    let is_above = |path: &str| Path::new(SLOWPATH).starts_with(path);
    one.call == "openat2" && one.is_checked && one.path.as_deref().is_some_and(is_above)
}

#[test]
fn what_applying_and_undoing_a_fix_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let case = Diagnosed::new();
    let [out, wrapper] = [case.out(), case.wrapper()].map(|path| path.to_str().unwrap().to_owned());
    let sudo = [("SUDO_UID", "65534"), ("SUDO_GID", "65534"), ("SUDO_USER", "nobody")];
    let apply = ["fix", "apply", &out, FIX, "--wrapper", &wrapper, "--unproved"];
    let mut operations = traced_with(&apply, &sudo, &case.at("trace"));
    operations.retain(|one| !is_on_the_way_to_the_program(one));
    all_listed("fix apply", &operations);
    assert!(case.wrapper().exists());
    all_listed("fix undo", &traced_with(&["fix", "undo", &out], &sudo, &case.at("trace")));
    assert!(!case.wrapper().exists());
}

#[test]
fn what_a_zygote_does_as_root_is_listed_and_goes_through_nobody_elses_directory() {
    if !root() {
        return;
    }
    let place = zygote::Place::new();
    // The zygote listens in its user's own directory.
    std::os::unix::fs::chown(place.at(""), Some(65534), Some(65534)).unwrap();
    let socket = place.text("s");
    let library = place.text("job.so");
    let serve = ["zygote", "serve", "--socket", &socket, "--preload", &library, "--user", "nobody", "--idle", "2s"];
    let operations = std::thread::scope(|scope| {
        let server = scope.spawn(|| traced(&serve, &place.at("served")));
        let began = std::time::Instant::now();
        let spawn = ["zygote", "spawn", "--socket", &socket, "--zygote-uid", "65534", "--", "say"];
        while run(slowpath(spawn)).code() != 0 {
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "no child within a minute");
        }
        are_listed("zygote spawn", &traced(&spawn, &place.at("spawned")), 10);
        server.join().unwrap()
    });
    are_listed("zygote serve", &operations, 30);
}

#[test]
fn every_file_that_the_table_names_is_there() {
    for row in rows() {
        assert!(!row.calls.is_empty() && !row.files.is_empty(), "a row names calls and files");
        for file in &row.files {
            let path = Path::new(DOCUMENT).parent().unwrap().join("..").join(file);
            assert!(path.exists(), "{file} is named in docs/security.md and is not there");
        }
    }
}

#[test]
fn patterns_and_replaceable_directories_are_distinguished_from_their_likes() {
    assert!(matches("/proc/*/stat", "/proc/12/stat"));
    assert!(!matches("/proc/*/stat", "/proc/12/task/3/stat"));
    assert!(matches("/sys/fs/cgroup/**", "/sys/fs/cgroup/cpu/cpu.stat"));
    assert!(matches("/run/slowpath/lab-*-*/size", "/run/slowpath/lab-1-2/size"));
    assert_eq!(replaceable("/etc/passwd"), None);
    assert_eq!(replaceable("/proc/self/stat"), None);
    assert_eq!(replaceable("/bin/cat"), None);
    assert_eq!(replaceable("/tmp/x/y"), Some(PathBuf::from("/tmp")));
}
