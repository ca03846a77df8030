//! The end of a trace: whatever still runs is stopped, gets its bytes back, and goes on without a tracer.

use super::collected::Collected;
use super::error::TraceError;
use super::machine::BREAKPOINT_CODE;
use super::program::Programs;
use super::ptrace::{self, Change, EVENT_STOP};
use super::watch::Watch;
use crate::trace_file::{Ended, Trace};
use slowpath_process::StatLine;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::rc::Rc;

/// What is left of a trace once nothing is followed any more.
pub(super) struct Released {
    /// Processes that still ran.
    pub processes: usize,
    collected: Collected,
    programs: Programs,
}

impl Released {
    /// The trace.
    pub fn trace(self, ended: Ended) -> Result<Trace, TraceError> {
        self.collected.finish(self.programs, ended)
    }
}

/// Lets everything go, and gives what a trace is made of: none is made of a program that still has breakpoints. After an error the target
/// dies with the tracer (`PTRACE_O_EXITKILL`).
pub(super) fn all(mut watch: Watch) -> Result<Released, TraceError> {
    // Thread, and the signal that it is to get.
    let mut held: BTreeMap<i32, i32> = BTreeMap::new();
    for tid in watch.tasks.keys() {
        let _ = ptrace::interrupt(*tid);
    }
    loop {
        // The first thread of a process may have ended before the others: it never stops, and its end is reported with theirs.
        watch.tasks.retain(|tid, _| held.contains_key(tid) || !has_ended(*tid));
        if watch.tasks.keys().all(|tid| held.contains_key(tid) || waits_for_child(&watch, &held, *tid)) {
            break;
        }
        match ptrace::wait() {
            Ok((tid, change)) => hold(&mut watch, &mut held, tid, change)?,
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
        watch.tasks.remove(&tid);
    }
    makers(&mut watch)?;
    Ok(Released { processes: processes.len(), collected: watch.collected, programs: watch.programs })
}

/// Lets those go that waited for a child which is free now: they stop when it has executed a program or ended.
fn makers(watch: &mut Watch) -> Result<(), TraceError> {
    while !watch.tasks.is_empty() {
        match ptrace::wait() {
            Ok((tid, Change::Stopped { signal, event })) => {
                let is_delivered = event == 0 && signal != ptrace::SYSTEM_CALL;
                let passed_on = if is_delivered { watch.signalled(tid, signal)? } else { 0 };
                let _ = ptrace::detach(tid, passed_on);
                watch.tasks.remove(&tid);
            }
            Ok((tid, Change::Ended)) => _ = watch.tasks.remove(&tid),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
            Err(source) => return Err(TraceError::Call { call: "waitpid", source }),
        }
    }
    watch.tasks.clear();
    Ok(())
}

/// Whether a thread waits in vfork(2) for a child that is held. Nothing but that child or a signal that kills ends this wait
/// (wait_for_vfork_done in kernel/fork.c), so the thread does not stop before the child is let go; and until then it runs none of the code
/// that both have.
fn waits_for_child(watch: &Watch, held: &BTreeMap<i32, i32>, tid: i32) -> bool {
    let Some(maker) = watch.tasks.get(&tid) else { return false };
    let has_child = held.keys().filter_map(|tid| Some((*tid, watch.tasks.get(tid)?))).any(|(child, task)| {
        let shares = match (&maker.memory, &task.memory) {
            (Some(one), Some(other)) => Rc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        shares && task.process != maker.process && parent_of(child) == Some(maker.process)
    });
    has_child && status_of(tid).and_then(|status| status.state()) == Some('D')
}

/// Whether a thread has ended, though it was not reported to anybody yet.
fn has_ended(tid: i32) -> bool {
    status_of(tid).is_none_or(|status| status.has_ended())
}

/// The status of a thread; `None` for one that is gone.
fn status_of(tid: i32) -> Option<StatLine> {
    StatLine::of(u32::try_from(tid).ok()?)
}

/// Parent of a thread's process.
fn parent_of(tid: i32) -> Option<i32> {
    i32::try_from(status_of(tid)?.parent()?).ok()
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
