//! Replays a plan beside a command that takes the place of this process.
//!
//! Owns the process acrobatics of `preload run PLAN -- CMD`. The command keeps this process's pid and its place in the
//! tree, and finds nothing of the prefetcher: no child (it is a grandchild whose parent is gone), no descriptor, no
//! pending signal. The prefetcher has a session of its own (a terminal's ^C does not reach it), holds none of the
//! command's pipes open, and ends when it is done or when the command ends.
//!
//! `PR_SET_PDEATHSIG` cannot tie it to the command: the signal follows the parent, and the parent is gone by design. A
//! pidfd of this process, which survives exec, does it without a race on reused pids.
//!
//! Plan and report are opened by who replays the plan (`reader`), in the child that starts the prefetcher: through sudo that is not root.
//!
//! To be called while the process has one thread: after `fork` only that thread exists in the child.

use crate::preload_plan::file;
use crate::preload_plan::printed::PlanReplayed;
use crate::preload_plan::reader::{Reader, ReaderError, refused};
use crate::preload_plan::replay::{ReplayLimits, replay};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, dup2_stdin, dup2_stdout, fork, getpid, setsid};
use slowpath_process::foreign_file;
use slowpath_tables::is_dangerous;
use std::convert::Infallible;
use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why the command did not start.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// No command was given.
    #[error("there is no command to run")]
    NoCommand,
    /// The plan or the report cannot be opened.
    #[error("{} cannot be opened", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The prefetcher could not be started.
    #[error("the prefetcher could not be started")]
    Fork(#[source] io::Error),
    /// The command could not be executed.
    #[error("{} could not be executed", .command.display())]
    Exec {
        /// The command.
        command: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Starts a prefetcher for the plan in `plan` and becomes `command`; returns only when that fails.
///
/// The plan is parsed by the prefetcher, so the command does not wait for it; a plan that is there and cannot be used costs one line on
/// standard error and nothing else. `report`, where given, gets [`PlanReplayed`] as JSON when the prefetcher is
/// done; an empty file then means that it was ended before.
///
/// # Errors
/// No command, no plan, no process, or a command that cannot be executed.
pub fn run_beside(
    plan: &Path,
    limits: &ReplayLimits,
    report: Option<&Path>,
    command: &[OsString],
) -> Result<Infallible, BesideError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(BesideError::NoCommand);
    };
    start_prefetcher(plan, limits, report)?;
    // `exec` gives the command the default disposition of SIGPIPE, which Rust's start-up code had changed.
    let source = Command::new(program).args(arguments).exec();
    Err(BesideError::Exec { command: program.into(), source })
}

/// A failure and what is behind it in one line, with nothing that a terminal obeys: it names files, and words of plans.
pub fn line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    let shown = |c: char| if is_dangerous(c) { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Says in one line why the command runs without a prefetcher.
fn not_used(why: &dyn Error) {
    let said = format!("slowpath: the preload plan is not used: {}\n", line(why));
    let _ = io::stderr().write_all(said.as_bytes());
}

/// How long the command waits until plan and report are opened, in ms: a file system, or with sudo the user database or the user's
/// directory in `/run/user`, may not answer.
const PATIENCE: u16 = 2_000;
/// And for the end of who was killed because it opened them for longer.
const PARTING: u16 = 100;

/// Exit code of the child that starts the prefetcher where there is no plan. Other codes are errors of the report; errno(3) has none as large.
const NO_PLAN: i32 = 255;

fn start_prefetcher(plan: &Path, limits: &ReplayLimits, report: Option<&Path>) -> Result<(), BesideError> {
    let command = pidfd_of(getpid()).map_err(BesideError::Fork)?;
    // Where the caller ignores SIGCHLD, the kernel reaps the child, and nobody learns what it says.
    // SAFETY: no handler is set, so none can run.
    let before = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) };
    // SAFETY: the child uses only this thread's memory; it allocates, which glibc permits after fork, and takes no lock
    // that another thread could have held, because callers have one thread (see the module's documentation).
    match unsafe { fork() }.map_err(|errno| BesideError::Fork(errno.into()))? {
        ForkResult::Parent { child } => {
            let started = has_started(child, plan, report);
            if let Ok(before) = before {
                // SAFETY: what it was before: the command gets it as the caller has it.
                let _ = unsafe { signal(Signal::SIGCHLD, before) };
            }
            started
        }
        ForkResult::Child => {
            let _ = setsid();
            let code = match open_as_reader(plan, report) {
                Ok(Some(opened)) => {
                    // SAFETY: as above; this process has one thread by construction.
                    if let Ok(ForkResult::Child) = unsafe { fork() } {
                        prefetch(opened, limits, command);
                    }
                    0
                }
                Ok(None) => 0,
                Err(code) => code,
            };
            exit_now(code)
        }
    }
}

/// Waits for the child that starts the prefetcher: it ends at once, and waiting leaves the command without a zombie.
fn has_started(child: Pid, plan: &Path, report: Option<&Path>) -> Result<(), BesideError> {
    let pidfd = pidfd_of(child);
    let ends_within = |limit: u16| pidfd.as_ref().map_or(true, |pidfd| ends_within(pidfd, limit.into()));
    let is_late = !ends_within(PATIENCE);
    if is_late {
        let _ = kill(child, Signal::SIGKILL);
        ends_within(PARTING);
        let late = io::Error::new(ErrorKind::TimedOut, "opening it took too long");
        not_used(&BesideError::Open { path: plan.to_owned(), source: late });
    }
    // What waits for such a file system may not even be killed.
    let flags = is_late.then_some(WaitPidFlag::WNOHANG);
    loop {
        let (path, error) = match waitpid(child, flags) {
            Err(Errno::EINTR) => continue,
            Ok(WaitStatus::Exited(_, NO_PLAN)) => (plan, libc::ENOENT),
            Ok(WaitStatus::Exited(_, error @ 1..)) => (report.unwrap_or(plan), error),
            // ECHILD: SIGCHLD is ignored, so the kernel reaps.
            _ => return Ok(()),
        };
        return Err(BesideError::Open { path: path.to_owned(), source: io::Error::from_raw_os_error(error) });
    }
}

/// What the prefetcher works with.
struct Opened {
    reader: Reader,
    plan: File,
    report: Option<File>,
}

/// Opens plan and report as who replays the plan; `None` where a line says why nobody does.
///
/// # Errors
/// There is no plan, or no report can be made: the exit code that says so.
fn open_as_reader(plan: &Path, report: Option<&Path>) -> Result<Option<Opened>, i32> {
    let reader = Reader::of_this_process().and_then(|reader| reader.take_on().map(|()| reader));
    let reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            not_used(&error);
            return Ok(None);
        }
    };
    let report = report.map(create_report).transpose().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
    match foreign_file::open(plan) {
        Ok(plan) => Ok(Some(Opened { reader, plan, report })),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(NO_PLAN),
        Err(source) => {
            not_used(&BesideError::Open { path: plan.to_owned(), source });
            Ok(None)
        }
    }
}

fn create_report(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().write(true).create(true).truncate(true).mode(0o600).custom_flags(flags).open(path)
}

/// The prefetcher's whole life.
fn prefetch(opened: Opened, limits: &ReplayLimits, command: OwnedFd) {
    for ignored in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGPIPE, Signal::SIGTSTP] {
        // SAFETY: SIG_IGN runs no code in this process.
        let _ = unsafe { signal(ignored, SigHandler::SigIgn) };
    }
    let null = match leave_the_command(&opened, &command) {
        Ok(null) => null,
        Err(error) => return not_used(&error),
    };
    // Started before the plan is parsed: a plan can be long, a command short.
    let watcher = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        let _ = ends_within(&command, PollTimeout::NONE);
        exit_now(0);
    });
    let read = file::read(BufReader::new(opened.plan));
    if let Err(error) = &read {
        not_used(error);
    }
    // SAFETY: takes integers; nothing here owns standard error. Not dup2(2), which no seccomp filter of ours knows.
    unsafe { libc::dup3(null.as_raw_fd(), libc::STDERR_FILENO, 0) };
    let (Ok(plan), Ok(_)) = (read, watcher) else { return };
    // Refused where it is confined: the sandbox says how many files there can be.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let result = replay(&plan, limits);
    if let Some(mut report) = opened.report {
        let text = serde_json::to_vec(&PlanReplayed::from(result)).unwrap_or_default();
        let _ = report.write_all(&text);
    }
}

/// Lets the command's directory go, and its files but standard error, for what is wrong with the plan; and every privilege. Gives
/// `/dev/null`, which stands in the place of the standard streams: a planned file there would be taken for a terminal.
fn leave_the_command(opened: &Opened, command: &OwnedFd) -> Result<File, ReaderError> {
    let null = File::options().read(true).write(true).open("/dev/null").map_err(refused("opening /dev/null"))?;
    dup2_stdin(&null).and_then(|()| dup2_stdout(&null)).map_err(refused("replacing standard streams"))?;
    chdir("/").map_err(refused("chdir"))?;
    let mut kept: Vec<RawFd> = vec![opened.plan.as_raw_fd(), command.as_raw_fd(), null.as_raw_fd()];
    kept.extend(opened.report.iter().map(AsRawFd::as_raw_fd));
    opened.reader.confine(&kept)?;
    Ok(null)
}

fn pidfd_of(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and returns a descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the descriptor is fresh and owned by nobody else. The kernel set its close-on-exec flag.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits for the end of the process behind a pidfd. False where that does not come in time.
fn ends_within(pidfd: &OwnedFd, limit: PollTimeout) -> bool {
    loop {
        match poll(&mut [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)], limit) {
            Err(Errno::EINTR) => {}
            ended => return ended != Ok(0),
        }
    }
}

/// Ends the process without running destructors and exit handlers that belong to the process it was forked from.
fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` may be called at any time.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preload_plan::PreloadPlan;
    use std::time::Instant;

    #[test]
    fn the_time_that_starting_a_prefetcher_adds_is_printed_and_leaves_no_child() {
        let mut plan = tempfile::NamedTempFile::new().unwrap();
        file::write(&PreloadPlan::default(), &mut plan).unwrap();
        let mut times: Vec<u128> = (0..41)
            .map(|_| {
                let begun = Instant::now();
                start_prefetcher(plan.path(), &ReplayLimits::default(), None).unwrap();
                begun.elapsed().as_micros()
            })
            .collect();
        times.sort_unstable();
        println!("starting a prefetcher: fastest {} us, median {} us, slowest {} us", times[0], times[20], times[40]);
        let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", nix::unistd::gettid())).unwrap();
        assert_eq!(children.trim(), "", "a prefetcher or its parent is left as a child");
    }
}
