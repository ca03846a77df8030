//! Many processes: none is missed and nothing is lost.

use crate::running::*;
use std::collections::BTreeSet;

/// 5,000 children, each of which executes a program, 20 at a time.
const FORKS: &str = "
import os
for batch in range(250):
    pids = [os.posix_spawn('/bin/true', ['/bin/true', str(batch * 20 + i)], {}) for i in range(20)]
    for pid in pids: os.waitpid(pid, 0)
";

#[test]
fn of_5000_children_every_fork_exec_and_exit_is_recorded_and_nothing_is_lost() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &[], &["/usr/bin/python3", "-c", FORKS]).succeeds();
    let tables = tables(&out);
    assert_eq!(tables.manifest.losses.total(), 0, "{:?}", tables.manifest.losses);
    let parent = tables.execs[0].pid;
    let forked: BTreeSet<_> =
        tables.forks.iter().filter(|fork| !fork.thread && fork.parent_pid == parent).map(|fork| fork.pid).collect();
    let lines: BTreeSet<_> =
        tables.execs.iter().filter(|exec| exec.pid != parent).map(|exec| exec.command_line.clone()).collect();
    let wanted: BTreeSet<_> = (0..5000).map(|number| format!("/bin/true {number}")).collect();
    assert_eq!(tables.forks.iter().filter(|fork| !fork.thread).count(), 5000);
    assert_eq!(forked.len(), 5000);
    assert_eq!(lines, wanted);
    let ends = tables.exits.iter().filter(|exit| exit.last && exit.status == Some(0)).count();
    assert_eq!(ends, 5001);
}

#[test]
fn a_tree_that_outgrows_the_target_is_left_running_and_counted_as_running() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &[], &["/bin/sh", "-c", "(sleep 600 &) >/dev/null 2>&1; exit 0"]).succeeds();
    let tables = tables(&out);
    let running: Vec<_> = tables.exits.iter().filter(|exit| exit.running).collect();
    // Still there, and ended by this test.
    let ended = running.iter().map(|exit| nix::unistd::Pid::from_raw(exit.pid.cast_signed()));
    let ended: Vec<_> = ended.map(|pid| nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL)).collect();
    assert_eq!(ended, [Ok(())], "{:?}", tables.exits);
}
