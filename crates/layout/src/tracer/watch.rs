//! The loop of the tracer: one stop after another until the command has ended.

use super::collected::Collected;
use super::disposition::Dispositions;
use super::error::TraceError;
use super::machine;
use super::memory::{Memory, Stop};
use super::program::Programs;
use super::ptrace::{self, Change, Changes, EVENT_STOP, SYSTEM_CALL};
use super::reader::Reader;
use super::rights::Rights;
use crate::trace_file::Ended;
use slowpath_process::{ProcessFiles, status_field, status_of};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A traced thread.
#[derive(Debug)]
pub(super) struct Task {
    /// Its process.
    pub process: i32,
    /// The memory that it shares with others; none before its exec, and in a process that may not be looked into.
    pub memory: Option<Rc<RefCell<Memory>>>,
    /// Whether its run-time linker is at work before the program's first instruction: each system call is looked at.
    pub starting: bool,
}

/// A trace under way.
pub(super) struct Watch {
    target: i32,
    pub tasks: HashMap<i32, Task>,
    /// Threads that stopped before their maker's stop reported them.
    early: HashSet<i32>,
    pub programs: Programs,
    pub collected: Collected,
    dispositions: Dispositions,
}

/// Who traces a process, by its status.
fn tracer_of(pid: i32) -> Option<i32> {
    let tracer = status_field(&status_of(pid).ok()?, "TracerPid")?.parse().ok();
    tracer.filter(|tracer| *tracer != 0)
}

/// The process of a thread.
fn process_of(tid: i32) -> Option<i32> {
    status_field(&status_of(tid).ok()?, "Tgid")?.parse().ok()
}

impl Watch {
    /// Begins to trace a process, which has taken on its identity and waits for its exec.
    pub fn seize(target: i32, all_objects: bool, reader: Reader, files: ProcessFiles) -> Result<Self, TraceError> {
        ptrace::seize(target).map_err(|source| match tracer_of(target) {
            Some(by) => TraceError::AlreadyTraced { pid: target, by },
            None => TraceError::Refused { pid: target, source },
        })?;
        let first = Task { process: target, memory: None, starting: false };
        let mut dispositions = Dispositions::default();
        dispositions.begun(target);
        Ok(Self {
            target,
            tasks: HashMap::from([(target, first)]),
            early: HashSet::new(),
            programs: Programs::new(all_objects, reader, files, Rights::of(target)),
            collected: Collected::new(all_objects),
            dispositions,
        })
    }

    /// Follows the command to its end, or until `stop`.
    pub fn follow(&mut self, stop: &AtomicBool) -> Result<Ended, TraceError> {
        let mut changes = Changes::default();
        while self.tasks.contains_key(&self.target) {
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            match changes.next() {
                Ok((tid, change)) => self.changed(tid, change)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
                Err(source) => return Err(TraceError::Call { call: "waitpid", source }),
            }
        }
        Ok(Ended::CommandEnded)
    }

    /// A thread stopped or ended.
    fn changed(&mut self, tid: i32, change: Change) -> Result<(), TraceError> {
        let Change::Stopped { signal, event } = change else {
            self.tasks.remove(&tid);
            self.early.remove(&tid);
            self.dispositions.ended(tid);
            return Ok(());
        };
        if !self.tasks.contains_key(&tid) && event != libc::PTRACE_EVENT_EXEC {
            // Its maker's stop comes with a moment's delay and has it go on.
            self.early.insert(tid);
            return Ok(());
        }
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.made(tid, event);
                self.go_on(tid, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.executed(tid)?;
                self.go_on(tid, 0);
            }
            EVENT_STOP if matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
                let _ = ptrace::listen(tid);
            }
            0 if signal == SYSTEM_CALL => {
                self.at_call(tid)?;
                self.go_on(tid, 0);
            }
            0 => {
                let passed_on = self.signalled(tid, signal)?;
                self.go_on(tid, passed_on);
            }
            _ => self.go_on(tid, 0),
        }
        Ok(())
    }

    /// Lets a thread go on. One that was killed meanwhile is reported by the next wait.
    fn go_on(&self, tid: i32, signal: i32) {
        let starting = self.tasks.get(&tid).is_some_and(|task| task.starting);
        let _ = if starting { ptrace::go_on_to_call(tid, signal) } else { ptrace::go_on(tid, signal) };
    }

    /// A thread that was made by one which is gone: nothing is known of its memory but that it is its process's.
    pub fn adopt(&mut self, tid: i32) {
        let process = process_of(tid).unwrap_or(tid);
        let of_process = self.tasks.values().find(|task| task.process == process);
        let memory = of_process.and_then(|task| task.memory.clone());
        self.tasks.insert(tid, Task { process, memory, starting: false });
    }

    /// A thread has made another, or a process.
    pub fn made(&mut self, tid: i32, event: i32) {
        let Ok(child) = ptrace::event_message(tid) else { return };
        let Some(maker) = self.tasks.get(&tid) else { return };
        let process = process_of(child).unwrap_or(child);
        // A thread, vfork(2) and posix_spawn(3) share the memory.
        let by_event = process == maker.process || event == libc::PTRACE_EVENT_VFORK;
        let shares = ptrace::share_memory(tid, child).unwrap_or(by_event);
        let memory = maker.memory.as_ref().and_then(|memory| {
            if shares {
                return Some(Rc::clone(memory));
            }
            memory.borrow().forked(child).ok().map(|forked| Rc::new(RefCell::new(forked)))
        });
        let starting = maker.starting;
        self.dispositions.forked(maker.process, process);
        self.tasks.insert(child, Task { process, memory, starting });
        if self.early.remove(&child) {
            self.go_on(child, 0);
        }
    }

    /// A process has executed a program.
    pub fn executed(&mut self, tid: i32) -> Result<(), TraceError> {
        // The thread that executed has its process's id now; all others are gone.
        if let Ok(former) = ptrace::event_message(tid)
            && former != tid
        {
            self.tasks.remove(&former);
        }
        self.early.remove(&tid);
        self.dispositions.begun(tid);
        let time = self.collected.now();
        let begun = self.programs.begin(tid)?;
        self.collected.executed(tid, begun.object, time);
        let memory = begun.memory.map(|memory| Rc::new(RefCell::new(memory)));
        self.tasks.insert(tid, Task { process: tid, memory, starting: begun.starting });
        Ok(())
    }

    /// A thread is at the beginning or end of a system call, while its run-time linker works.
    fn at_call(&mut self, tid: i32) -> Result<(), TraceError> {
        let Ok(registers) = ptrace::registers(tid) else { return Ok(()) };
        if machine::mapped_code(&registers).is_some() {
            self.look_again(tid)?;
        }
        Ok(())
    }

    /// Looks for code that was mapped since, and for code that is gone.
    fn look_again(&mut self, tid: i32) -> Result<(), TraceError> {
        match self.tasks.get(&tid).and_then(|task| task.memory.as_ref()) {
            Some(memory) => self.programs.look(tid, &mut memory.borrow_mut()),
            None => Ok(()),
        }
    }

    /// A signal is about to be delivered to a thread; gives the one that it is to get.
    pub fn signalled(&mut self, tid: i32, signal: i32) -> Result<i32, TraceError> {
        if signal != libc::SIGTRAP {
            return Ok(signal);
        }
        if ptrace::signal_code(tid).ok() != Some(machine::BREAKPOINT_CODE) {
            self.delivered(tid);
            return Ok(signal);
        }
        let Ok(address) = machine::stopped_at(tid) else { return Ok(0) };
        let Some(task) = self.tasks.get_mut(&tid) else { return Ok(signal) };
        let Some(memory) = task.memory.clone() else { return Ok(signal) };
        let (stop, has_started) = {
            let mut memory = memory.borrow_mut();
            (memory.look_up(address), memory.has_started(address))
        };
        task.starting &= !has_started;
        let process = task.process;
        let resume = match stop {
            Stop::Setting => {
                self.dispositions.keep(tid, process, &memory.borrow());
                self.dispositions.sets(tid, process, &memory.borrow());
                let _ = machine::go_on_to_set(tid, address);
                return Ok(0);
            }
            Stop::Foreign => {
                self.delivered(tid);
                return Ok(signal);
            }
            Stop::Linker(resume) => {
                self.look_again(tid)?;
                resume
            }
            Stop::Start(original) => {
                let _ = memory.borrow().restore(address, original);
                address
            }
            Stop::Function { object, function, original } => {
                self.collected.used(object.number, object.at_reader, function, process);
                let _ = memory.borrow().restore(address, original);
                address
            }
        };
        let _ = machine::go_on_at(tid, resume);
        self.dispositions.keep(tid, process, &memory.borrow());
        Ok(0)
    }

    /// SIGTRAP, not of a breakpoint of ours, goes to a thread.
    fn delivered(&mut self, tid: i32) {
        if let Some(task) = self.tasks.get(&tid) {
            self.dispositions.delivered(task.process);
        }
    }
}
