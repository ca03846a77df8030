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
//! To be called while the process has one thread: after `fork` only that thread exists in the child.

use crate::preload_plan::file;
use crate::preload_plan::replay::{ReplayLimits, replay};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, getpid, setsid};
use slowpath_tables::is_dangerous;
use std::convert::Infallible;
use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
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
/// The plan is opened here and parsed by the prefetcher, so the command does not wait for it; a plan that cannot be
/// parsed costs one line on standard error and nothing else. `report`, where given, gets the
/// [`crate::preload_plan::replay::ReplayReport`] as JSON when the prefetcher is done; an empty file then means that it
/// was ended before.
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
    let open_error = |path: &Path| {
        let path = path.to_owned();
        |source| BesideError::Open { path, source }
    };
    // The standard library opens with O_CLOEXEC: the command inherits neither.
    let plan = File::open(plan).map_err(open_error(plan))?;
    let report = report.map(|path| create_report(path).map_err(open_error(path))).transpose()?;
    start_prefetcher(plan, limits, report).map_err(BesideError::Fork)?;
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

fn create_report(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW;
    File::options().write(true).create(true).truncate(true).mode(0o600).custom_flags(flags).open(path)
}

fn start_prefetcher(plan: File, limits: &ReplayLimits, report: Option<File>) -> io::Result<()> {
    let command = pidfd_of_self()?;
    // SAFETY: the child uses only this thread's memory; it allocates, which glibc permits after fork, and takes no lock
    // that another thread could have held, because callers have one thread (see the module's documentation).
    match unsafe { fork() }? {
        ForkResult::Parent { child } => loop {
            // The child ends at once; waiting leaves the command without a zombie.
            match waitpid(child, None) {
                Err(nix::errno::Errno::EINTR) => {}
                // ECHILD: SIGCHLD is ignored, so the kernel reaps.
                _ => return Ok(()),
            }
        },
        ForkResult::Child => {
            let _ = setsid();
            // SAFETY: as above; this process has one thread by construction.
            if let Ok(ForkResult::Child) = unsafe { fork() } {
                prefetch(plan, limits, report, command);
            }
            exit_now()
        }
    }
}

/// The prefetcher's whole life.
fn prefetch(plan: File, limits: &ReplayLimits, report: Option<File>, command: OwnedFd) {
    for ignored in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGPIPE, Signal::SIGTSTP] {
        // SAFETY: SIG_IGN runs no code in this process.
        let _ = unsafe { signal(ignored, SigHandler::SigIgn) };
    }
    let mut kept = vec![2, plan.as_raw_fd(), command.as_raw_fd()];
    kept.extend(report.iter().map(AsRawFd::as_raw_fd));
    close_all_but(kept);
    // Descriptors 0 and 1 are closed now; they must not be given to a planned file and then be taken for a terminal.
    let null = File::options().read(true).write(true).open("/dev/null");
    if let Ok(null) = &null {
        let _ = (dup2_stdin(null), dup2_stdout(null));
    }
    // Started before the plan is parsed: a plan can be long, a command short.
    let watcher = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        wait_for_end(&command);
        exit_now()
    });
    let read = file::read(BufReader::new(plan));
    if let Err(error) = &read {
        let _ = writeln!(io::stderr(), "slowpath: the preload plan is not used: {}", line(error));
    }
    if let Ok(null) = &null {
        let _ = dup2_stderr(null);
    }
    let _ = chdir("/");
    let (Ok(plan), Ok(_)) = (read, watcher) else { return };
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let result = replay(&plan, limits);
    if let Some(mut report) = report {
        let _ = serde_json::to_writer(&mut report, &result).map(|()| report.flush());
    }
}

fn pidfd_of_self() -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and returns a descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, getpid().as_raw(), 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the descriptor is fresh and owned by nobody else. The kernel set its close-on-exec flag.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns when the process behind a pidfd has ended.
fn wait_for_end(pidfd: &OwnedFd) {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    loop {
        let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => {}
            _ => return,
        }
    }
}

/// Closes every descriptor but these.
fn close_all_but(mut kept: Vec<i32>) {
    kept.sort_unstable();
    let mut from = 0u32;
    for fd in kept.into_iter().filter_map(|fd| u32::try_from(fd).ok()).chain([u32::MAX]) {
        if from < fd {
            // SAFETY: closes numbers of this freshly forked process; every Rust owner of one of them lived in code that
            // the fork left behind and never runs here. An old kernel without the call leaves them open, no harm done.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - u32::from(fd != u32::MAX), 0) };
        }
        from = fd.saturating_add(1);
    }
}

/// Ends the process without running destructors and exit handlers that belong to the process it was forked from.
fn exit_now() -> ! {
    // SAFETY: `_exit` may be called at any time.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preload_plan::PreloadPlan;
    use std::io::Seek;
    use std::time::Instant;

    #[test]
    fn the_time_that_starting_a_prefetcher_adds_is_printed_and_leaves_no_child() {
        let mut times: Vec<u128> = (0..41)
            .map(|_| {
                let mut plan = tempfile::tempfile().unwrap();
                file::write(&PreloadPlan::default(), &mut plan).unwrap();
                plan.rewind().unwrap();
                let begun = Instant::now();
                start_prefetcher(plan, &ReplayLimits::default(), None).unwrap();
                begun.elapsed().as_micros()
            })
            .collect();
        times.sort_unstable();
        println!("starting a prefetcher: fastest {} us, median {} us, slowest {} us", times[0], times[20], times[40]);
        let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", nix::unistd::gettid())).unwrap();
        assert_eq!(children.trim(), "", "a prefetcher or its parent is left as a child");
    }
}
