//! The end of a trace: whatever still runs is stopped, gets its bytes back, and goes on without a tracer.

use super::TraceError;
use super::machine::BREAKPOINT_CODE;
use super::ptrace::{self, Change, EVENT_STOP};
use super::watch::Watch;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::rc::Rc;

/// Lets everything go; gives the number of processes that there were.
pub(super) fn all(watch: &mut Watch) -> Result<usize, TraceError> {
    // Thread, and the signal that it is to get.
    let mut held: BTreeMap<i32, i32> = BTreeMap::new();
    for tid in watch.tasks.keys() {
        let _ = ptrace::interrupt(*tid);
    }
    loop {
        // The first thread of a process may have ended before the others: it never stops, and its end is reported with theirs.
        watch.tasks.retain(|tid, _| held.contains_key(tid) || !has_ended(*tid));
        if watch.tasks.keys().all(|tid| held.contains_key(tid)) {
            break;
        }
        match ptrace::wait() {
            Ok((tid, change)) => hold(watch, &mut held, tid, change)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
            Err(source) => return Err(TraceError::Call { call: "waitpid", source }),
        }
    }
    let memories = watch.tasks.values().filter_map(|task| task.memory.as_ref());
    let mut restored = BTreeSet::new();
    for memory in memories {
        if restored.insert(Rc::as_ptr(memory).addr()) {
            // One that was killed meanwhile has no memory any more.
            let _ = memory.borrow_mut().restore_all();
        }
    }
    let processes: BTreeSet<i32> = watch.tasks.values().map(|task| task.process).collect();
    for (tid, signal) in held {
        let _ = ptrace::detach(tid, signal);
    }
    watch.tasks.clear();
    Ok(processes.len())
}

/// Whether a thread has ended, though it was not reported to anybody yet (proc_pid_stat(5); its name, in parentheses, may hold anything).
fn has_ended(tid: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
    let name_ends = stat.iter().rposition(|byte| *byte == b')');
    name_ends.is_none_or(|at| matches!(stat.get(at + 2), Some(b'Z' | b'X')))
}

/// Keeps a thread that stopped, or has it stop once more where a breakpoint that it has hit is still to be reported.
fn hold(watch: &mut Watch, held: &mut BTreeMap<i32, i32>, tid: i32, change: Change) -> Result<(), TraceError> {
    let Change::Stopped { signal, event } = change else {
        watch.tasks.remove(&tid);
        held.remove(&tid);
        return Ok(());
    };
    if !watch.tasks.contains_key(&tid) {
        watch.adopt(tid);
    }
    match event {
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            watch.made(tid, event);
            // Where it had stopped before this was reported, it goes on now.
            let _ = ptrace::event_message(tid).and_then(ptrace::interrupt);
        }
        libc::PTRACE_EVENT_EXEC => watch.executed(tid)?,
        _ => {}
    }
    let passed_on = if event == 0 && signal != ptrace::SYSTEM_CALL { watch.signalled(tid, signal)? } else { 0 };
    if event == EVENT_STOP || event == 0 {
        if ptrace::has_trap_pending(tid, BREAKPOINT_CODE) {
            // The breakpoint is behind it already: its stop comes before anything else is done.
            let _ = ptrace::go_on(tid, passed_on);
            let _ = ptrace::interrupt(tid);
            held.remove(&tid);
            return Ok(());
        }
        let is_stop = matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
        let signal = if event == EVENT_STOP && is_stop { signal } else { passed_on };
        held.insert(tid, signal);
        return Ok(());
    }
    held.insert(tid, 0);
    Ok(())
}
