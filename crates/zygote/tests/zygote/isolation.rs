//! A child is what an isolated exec would be: the same ids, capabilities, namespaces, filters and descriptors, by the kernel's word.

use crate::served::{Served, is_root, job};
use slowpath_seccomp::{Instruction, Program};
use slowpath_zygote::{AskedFilter, AskedIdentity, Ending, Namespace, SpawnError, SpawnRequest};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

const ISOLATED: u32 = 99_001;

fn identity(uid: u32) -> Option<AskedIdentity> {
    Some(AskedIdentity { uid, gid: uid, groups: Vec::new() })
}

/// The lines of the kernel's status that say what a process may do.
fn may(text: &str) -> BTreeMap<String, String> {
    let keys = [
        "Uid",
        "Gid",
        "Groups",
        "CapInh",
        "CapPrm",
        "CapEff",
        "CapBnd",
        "CapAmb",
        "NoNewPrivs",
        "Seccomp",
        "Seccomp_filters",
        "Speculation_Store_Bypass",
        "SpeculationIndirectBranch",
        "SigBlk",
        "SigIgn",
        "Umask",
        "Threads",
        "Cpus_allowed",
    ];
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(key, _)| keys.contains(key)).map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect()
}

fn namespaces(text: &str) -> BTreeMap<String, String> {
    let words =
        |line: &str| line.strip_prefix("ns ").and_then(|rest| rest.split_once(' ')).map(|(a, b)| (a.into(), b.into()));
    text.lines().filter_map(words).collect()
}

fn descriptors(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("fd ")).filter_map(|rest| rest.split(' ').next()).collect()
}

fn own_namespace(name: &str) -> String {
    fs::read_link(format!("/proc/self/ns/{name}")).unwrap().display().to_string()
}

/// The same by util-linux: a program that is executed, by nobody of ours.
fn executed(user: u32, with: &[&str]) -> String {
    let script = "cat /proc/self/status; for n in mnt net ipc uts cgroup pid user; do echo ns $n $(readlink /proc/self/ns/$n); done";
    let ids = [format!("--reuid={user}"), format!("--regid={user}")];
    let output = Command::new("unshare")
        .args(with)
        .args(["--", "setpriv", "--clear-groups", "--no-new-privs"])
        .args(ids)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_child_may_exactly_what_an_isolated_exec_may() {
    if !is_root() {
        println!("skipped: only root can give another identity");
        return;
    }
    for policy in ["", "spares = 1"] {
        let served = Served::new(None, policy);
        let wanted = [Namespace::Mount, Namespace::Network, Namespace::Ipc, Namespace::Uts, Namespace::Cgroup];
        let child = served.said(&["show"], |one| {
            one.identity = identity(ISOLATED);
            one.namespaces = wanted.to_vec();
        });
        let child = child.unwrap();
        let exec = executed(ISOLATED, &["--mount", "--net", "--ipc", "--uts", "--cgroup"]);
        assert_eq!(may(&child), may(&exec), "{policy}");
        assert!(may(&child).len() >= 12, "{child}");
        for (name, link) in namespaces(&child) {
            let is_own = link == own_namespace(&name);
            let is_own_of_exec = namespaces(&exec)[&name] == own_namespace(&name);
            assert_eq!(is_own, is_own_of_exec, "{name} {policy}");
        }
        assert_eq!(descriptors(&child), ["0", "1", "2"], "{child}");
    }
}

#[test]
fn a_child_in_a_pid_namespace_is_its_first_process_and_the_next_child_is_not_in_it() {
    if !is_root() {
        println!("skipped: only root can make one");
        return;
    }
    let served = Served::new(None, "");
    let inside = served.spawn(SpawnRequest { namespaces: vec![Namespace::Pid], ..job(&["getppid"]) }).unwrap();
    assert_eq!(inside.wait().unwrap(), Ending::Exited(0), "its parent is in no namespace that it sees");
    let outside = served.said(&["show"], |_| {}).unwrap();
    assert_eq!(namespaces(&outside)["pid"], own_namespace("pid"));
}

#[test]
fn without_root_a_user_namespace_isolates_and_no_capability_is_left() {
    if !is_root() {
        println!("skipped: a test that becomes another user");
        return;
    }
    let served = Served::new(Some(ISOLATED), "");
    let asked = served.said(&["show"], |one| one.namespaces = vec![Namespace::User, Namespace::Network]);
    let child = match asked {
        Err(SpawnError::Failed { .. })
            if fs::read_to_string("/proc/sys/user/max_user_namespaces").is_ok_and(|text| text.trim() == "0") =>
        {
            println!("skipped: this machine has no user namespaces");
            return;
        }
        asked => asked.unwrap(),
    };
    let may = may(&child);
    assert_eq!(
        (&may["Uid"][..], &may["CapEff"][..], &may["CapPrm"][..]),
        ("99001\t99001\t99001\t99001", "0000000000000000", "0000000000000000")
    );
    assert_ne!(namespaces(&child)["net"], own_namespace("net"));
    assert_ne!(namespaces(&child)["user"], own_namespace("user"));
}

/// Allows everything but `getppid`, which fails with `errno`.
fn filter(errno: u32) -> AskedFilter {
    let one = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let number = libc::SYS_getppid as u32;
    let program = Program::new(vec![
        one(0x20, 0, 0, 0),
        one(0x15, 0, 1, number),
        one(0x06, 0, 0, 0x0005_0000 | errno),
        one(0x06, 0, 0, 0x7fff_0000),
    ]);
    AskedFilter { program: program.unwrap().bytes().into(), allow_speculation: true }
}

#[test]
fn a_filter_is_in_force_when_the_work_begins_and_one_that_the_kernel_refuses_is_told() {
    for policy in ["", "spares = 1"] {
        let served = Served::new(None, policy);
        let shown = served.said(&["show"], |one| one.filter = Some(filter(1))).unwrap();
        assert_eq!((&may(&shown)["Seccomp"][..], &may(&shown)["NoNewPrivs"][..]), ("2", "1"));
        let child = served.spawn(SpawnRequest { filter: Some(filter(1)), ..job(&["getppid"]) }).unwrap();
        assert_eq!(child.wait().unwrap(), Ending::Exited(255), "getppid fails");
        // A jump beyond the end is no program.
        let wrong = Program::new(vec![Instruction { code: 0x05, jt: 0, jf: 0, k: 9 }]).unwrap();
        let wrong = AskedFilter { program: wrong.bytes().into(), allow_speculation: false };
        let error = served.spawn(SpawnRequest { filter: Some(wrong), ..job(&["exit", "0"]) }).unwrap_err().to_string();
        assert!(error.contains("installing the seccomp filter failed"), "{error}");
        // What kills the child at once is a filter all the same.
        let kills = Program::new(vec![Instruction { code: 0x06, jt: 0, jf: 0, k: 0x8000_0000 }]).unwrap();
        let kills = AskedFilter { program: kills.bytes().into(), allow_speculation: false };
        let child = served.spawn(SpawnRequest { filter: Some(kills), ..job(&["exit", "0"]) }).unwrap();
        assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGSYS));
    }
}

#[test]
fn descriptors_have_the_numbers_that_were_asked_for_and_all_others_are_closed() {
    use std::os::fd::AsFd;
    let served = Served::new(None, "spares = 1");
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let (other, _kept) = nix::unistd::pipe().unwrap();
    let request = SpawnRequest { descriptors: vec![200, 1, 0], ..job(&["show"]) };
    let given = [other.as_fd(), writer.as_fd(), other.as_fd()];
    let child = served.client().unwrap().spawn(request, &given).unwrap();
    drop(writer);
    let text = crate::served::read_all(reader);
    assert_eq!(child.wait().unwrap(), Ending::Exited(0));
    let mut numbers = descriptors(&text);
    numbers.sort_unstable();
    assert_eq!(numbers, ["0", "1", "2", "200"], "{text}");
    assert!(text.contains("fd 2 /dev/null"), "{text}");
}

#[test]
fn each_child_has_a_seed_its_variables_and_its_name_of_its_own() {
    let served = Served::new(None, "");
    let seed = || served.said(&["seed"], |_| {}).unwrap();
    assert_ne!(seed(), seed());
    let said = served.said(&["env", "COLOUR"], |one| one.environment = vec!["COLOUR=blue=green".into()]).unwrap();
    assert_eq!(said, "blue=green\n");
    assert_eq!(served.said(&["env", "COLOUR"], |_| {}).unwrap(), "\n");
    assert_eq!(served.said(&["env", "SLOWPATH_ZYGOTE_POLICY"], |_| {}).unwrap(), "\n");
    let shown = served.said(&["show"], |one| one.arguments[0] = "/opt/renderer".into()).unwrap();
    assert!(shown.starts_with("Name:\trenderer\n"), "{shown}");
}
