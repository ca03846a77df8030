//! What a command did as root, from the output of strace(1): which system call, on which path, how it was resolved.

use crate::running::{SLOWPATH, run};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Calls that take a path, and those by which root does something to others without one.
const CALLS: &str = "%file,bpf,perf_event_open,ioctl,fchown,fchmod,setns,unshare,ptrace,process_vm_readv,\
                     process_madvise,setresuid,clone,clone3,fork,vfork,open_tree,move_mount,mount_setattr,fsopen,fsmount,fsconfig,\
                     init_module,finit_module,kexec_load,reboot,sethostname,keyctl,add_key,fsetxattr,openat2";

/// One call of a process that was root then.
#[derive(Debug)]
pub struct Operation {
    /// Name of the system call.
    pub call: String,
    /// The path, absolute where strace could say so; `None` for calls without one.
    pub path: Option<String>,
    /// Whether the kernel was asked to follow no link on the way (openat2(2)), or nothing is looked up at all but one component
    /// in a directory that is held open.
    pub is_checked: bool,
    /// The line, for messages.
    pub line: String,
}

/// Runs slowpath with `words` under strace, which writes to `file`, and gives what it did as root.
pub fn traced(words: &[&str], file: &Path) -> Vec<Operation> {
    traced_with(words, &[], file)
}

/// The same with variables in its environment.
pub fn traced_with(words: &[&str], variables: &[(&str, &str)], file: &Path) -> Vec<Operation> {
    let mut command = Command::new("strace");
    command.envs(variables.iter().copied());
    command.args([
        "-f",
        "-y",
        "-qq",
        "-s",
        "4096",
        "-e",
        &format!("trace={CALLS}"),
        "-e",
        "signal=none",
        "--pidns-translation",
        "-o",
    ]);
    // Cargo's own search path for tests is not a part of the command.
    command.env_remove("LD_LIBRARY_PATH");
    let done = run(command.arg(file).arg(SLOWPATH).args(words).current_dir("/"));
    assert!(matches!(done.code(), 0 | 1), "{done:?}");
    let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    let mut operations = of_root(&text);
    // The path of the program under test, and of what stands beside it, is chosen by whoever started it.
    let beside = Path::new(SLOWPATH).with_file_name("slowpath-preload");
    operations.retain(|one| one.path.as_deref().is_none_or(|path| path != SLOWPATH && Path::new(path) != beside));
    operations
}

/// When which process was root, by the numbers of lines.
#[derive(Default)]
struct Privilege<'a> {
    /// Child to parent, and the line in which the parent says so.
    parents: HashMap<&'a str, (&'a str, usize)>,
    /// Changes of user: the line, and whether it is root then.
    changes: HashMap<&'a str, Vec<(usize, bool)>>,
}

impl<'a> Privilege<'a> {
    fn of(lines: &[(&'a str, &'a str)]) -> Self {
        let mut seen = Self::default();
        for (number, (pid, rest)) in lines.iter().enumerate() {
            let (call, arguments) = call_of(rest);
            let result = rest.rsplit_once(" = ").map_or("", |(_, result)| result);
            if matches!(call, "clone" | "clone3" | "fork" | "vfork") {
                // In a pid namespace: `2 /* 4711 in strace's PID NS */`.
                let own = result.split_once("/* ").map_or(result, |(_, translated)| translated);
                if let Some(child) = own.split(' ').next().filter(|child| child.parse::<u32>().is_ok()) {
                    seen.parents.insert(child, (pid, number));
                }
            } else if call == "setresuid" && result.starts_with('0') {
                seen.changes.entry(pid).or_default().push((number, arguments.starts_with("0,")));
            }
        }
        seen
    }

    fn is_root(&self, pid: &str, line: usize) -> bool {
        let changes = self.changes.get(pid).into_iter().flatten();
        match changes.take_while(|(at, _)| *at < line).last() {
            Some((_, is_root)) => *is_root,
            // A child's first lines may stand before the one in which its parent tells of it.
            None => self.parents.get(pid).is_none_or(|(parent, at)| self.is_root(parent, *at)),
        }
    }
}

/// What strace writes in place of a call when a process was killed while strace was still asking what it calls.
const UNKNOWN_CALL: &str = "???";

/// How strace ends the line of a call during which it writes of another process.
const INTERRUPTED: &str = " <unfinished ...>";

/// Name and arguments; no arguments where a line only ends a call that an earlier one began, or names none.
fn call_of(rest: &str) -> (&str, &str) {
    let rest = rest.strip_suffix(INTERRUPTED).unwrap_or(rest);
    if rest.starts_with(UNKNOWN_CALL) {
        return (UNKNOWN_CALL, "");
    }
    match rest.strip_prefix("<... ") {
        Some(resumed) => (resumed.split(' ').next().unwrap_or(""), ""),
        None => rest.split_once('(').unwrap_or((rest, "")),
    }
}

/// The operations of processes that were root when they called.
fn of_root(text: &str) -> Vec<Operation> {
    let split = |line| str::split_once(line, ' ').map(|(pid, rest): (&str, &str)| (pid, rest.trim_start()));
    let lines: Vec<(&str, &str)> = text.lines().filter_map(split).collect();
    let privilege = Privilege::of(&lines);
    let mut operations = Vec::new();
    for (number, (pid, rest)) in lines.iter().enumerate() {
        let (call, arguments) = call_of(rest);
        let is_looked_at =
            !matches!(call, "clone" | "clone3" | "fork" | "vfork" | "setresuid") && !arguments.is_empty();
        if is_looked_at && privilege.is_root(pid, number) {
            operations.push(operation(call, arguments, rest));
        }
    }
    operations
}

/// Without doubled slashes and components that are a dot.
fn normal(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let whole = parts.fold(String::new(), |whole, part| whole + "/" + part);
    if whole.is_empty() { "/".to_owned() } else { whole }
}

/// The first text in quotes of the arguments, and the directory that it is relative to.
fn operation(call: &str, arguments: &str, line: &str) -> Operation {
    let quoted = arguments.split_once('"').and_then(|(_, rest)| rest.split_once('"')).map(|(path, _)| path);
    let directory = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| path);
    const WITHOUT_PATH: &[&str] =
        &["bpf", "ioctl", "fsopen", "fsconfig", "keyctl", "add_key", "fsetxattr", "getcwd", "process_vm_readv"];
    let takes_path = !WITHOUT_PATH.contains(&call);
    let path = quoted.filter(|path| takes_path && !path.is_empty());
    let is_relative = path.is_some_and(|path| !path.starts_with('/'));
    let absolute = path.map(|path| match directory {
        Some(directory) if is_relative => normal(&format!("{directory}/{path}")),
        _ => normal(path),
    });
    let follows_no_link = arguments.contains("RESOLVE_NO_SYMLINKS") || arguments.contains("RESOLVE_BENEATH");
    let is_one_component = is_relative && path.is_some_and(|path| !path.contains('/') && path != "..");
    let stays = ["O_NOFOLLOW", "AT_SYMLINK_NOFOLLOW"].iter().any(|flag| arguments.contains(flag));
    let never_follows = matches!(call, "unlinkat" | "mkdirat" | "renameat" | "renameat2" | "readlinkat");
    let by_descriptor = absolute.as_deref().is_some_and(|path| path.starts_with("/proc/self/fd/"));
    Operation {
        call: call.to_owned(),
        path: absolute,
        is_checked: follows_no_link || by_descriptor || (is_one_component && (stays || never_follows)),
        line: line.to_owned(),
    }
}

#[test]
fn calls_after_the_drop_and_of_children_of_dropped_processes_are_nobodys() {
    let text = "1 openat(AT_FDCWD</>, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3</etc/passwd>\n\
                1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
                2 setresuid(65534, 65534, 65534) = 0\n\
                2 openat(AT_FDCWD</>, \"/home/a/b\", O_RDONLY) = 3\n\
                3 openat(AT_FDCWD</>, \"/home/a/c\", O_RDONLY) = 3\n\
                2 clone(child_stack=NULL, flags=SIGCHLD) = 7 /* 3 in strace's PID NS */\n\
                1 unlinkat(5</run/slowpath/x>, \"size\", 0) = 0\n\
                1 openat2(5</home/a>, \"d/f\", {flags=O_PATH, resolve=RESOLVE_NO_SYMLINKS}, 24) = 6\n\
                1 bpf(BPF_MAP_CREATE, {map_name=\"x\"}, 80) = 4\n\
                1 mount(\"proc\", \"/proc\", \"proc\", MS_NOSUID, NULL <unfinished ...>\n\
                1 <... mount resumed>) = 0\n\
                1 ???( <detached ...>\n";
    let found = of_root(text);
    let calls: Vec<_> =
        found.iter().map(|one| (one.call.as_str(), one.path.as_deref().unwrap_or("-"), one.is_checked)).collect();
    let expected = [
        ("openat", "/etc/passwd", false),
        ("unlinkat", "/run/slowpath/x/size", true),
        ("openat2", "/home/a/d/f", true),
        ("bpf", "-", false),
        ("mount", "/proc", false),
    ];
    assert_eq!(calls, expected);
}
