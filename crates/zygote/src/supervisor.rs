//! Keeps a zygote there: starts the template with the socket, again after a crash, and anew when what it has mapped was replaced.
//!
//! The socket stays open meanwhile: requests wait in it. A template that is replaced ends after its last child; the new one takes the
//! requests at once.

use crate::connection::Process;
use crate::message::Ending;
use crate::policy::Policy;
use crate::preload::{Handed, Preload, Started, start};
use crate::readiness::notify;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use slowpath_process::{Mapping, mappings};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Pauses before a start after a crash: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One that lived so long has not crashed for the reason that the one before did.
const STABLE: Duration = Duration::from_secs(60);

/// How often it is looked whether mapped files were replaced.
const LOOK: Duration = Duration::from_secs(2);

/// How long a template may take to end its children when it is asked to end.
const END: Duration = Duration::from_secs(5);

/// What a supervisor has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The template serves.
    Ready {
        /// Its process id.
        pid: i32,
        /// What its start took.
        after: Duration,
    },
    /// It ended without being told to.
    Crashed {
        /// How.
        ending: Ending,
        /// When the next one is started.
        again_in: Duration,
    },
    /// A new one is started, and this one ends after its last child.
    Renewed {
        /// Why.
        why: String,
    },
}

/// Why nothing is served any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Nobody was connected for as long as the policy says.
    Idle,
    /// It was asked to end.
    Stopped,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// A system call failed.
    #[error("{call} failed")]
    System {
        /// Which.
        call: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The template never served.
    #[error("the preloaded program {0} before it was ready; its output is above")]
    NeverReady(Ending),
}

fn system<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> SuperviseError {
    move |source| SuperviseError::System { call, source: source.into() }
}

/// A file as it was mapped: one that was replaced, or written anew, is another.
type Mapped = (PathBuf, u64, u64, i64, i64, u64);

/// A template that runs.
struct Template {
    process: Process,
    ready: Option<OwnedFd>,
    began: Instant,
    was_ready: bool,
    mapped: BTreeSet<Mapped>,
}

impl Template {
    fn start(preload: &Preload, listener: &OwnedFd, policy: &str) -> Result<Self, SuperviseError> {
        let handed = Handed { listener: Some(listener), policy };
        let Started { pid, ready } = start(preload, &handed).map_err(system("starting the template"))?;
        let process = Process::of_child(pid).map_err(system("pidfd_open"))?;
        Ok(Self { process, ready: Some(ready), began: Instant::now(), was_ready: false, mapped: BTreeSet::new() })
    }

    fn stale(&self) -> Option<String> {
        let replaced = self.mapped.iter().find(|mapped| state(&mapped.0).as_ref() != Some(mapped))?;
        Some(format!("{} was replaced", replaced.0.display()))
    }
}

/// A file as it is now.
fn state(path: &std::path::Path) -> Option<Mapped> {
    let found = fs::metadata(path).ok()?;
    Some((path.to_owned(), found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
}

/// The files that a process has mapped to execute, as they are now.
fn mapped(pid: i32) -> BTreeSet<Mapped> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    mappings(&maps).filter(Mapping::is_executable).filter_map(|one| state(&one.path()?)).collect()
}

/// Serves until it is asked to end (`SIGTERM`, `SIGINT`), or by the policy's `idle`. `SIGHUP` starts the template anew. The process should
/// have one thread, because these signals are blocked in the calling one.
///
/// # Errors
/// [`SuperviseError`].
pub fn supervise(
    listener: &OwnedFd,
    preload: &Preload,
    policy: &Policy,
    say: &mut dyn FnMut(&Event),
) -> Result<Finish, SuperviseError> {
    let mut asked = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(|signal| asked.add(signal));
    let before = asked.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(system("sigprocmask"))?;
    let done = supervised(listener, preload, policy, say, &asked);
    before.thread_set_mask().map_err(system("sigprocmask"))?;
    done
}

fn supervised(
    listener: &OwnedFd,
    preload: &Preload,
    policy: &Policy,
    say: &mut dyn FnMut(&Event),
    asked: &SigSet,
) -> Result<Finish, SuperviseError> {
    let signals =
        SignalFd::with_flags(asked, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(system("signalfd"))?;
    // Renewing is done here: a template that ends by itself was idle.
    let text = Policy { renew: None, ..policy.clone() }.text();
    let mut current = Some(Template::start(preload, listener, &text)?);
    let mut draining: Vec<Process> = Vec::new();
    let (mut pause, mut again_at, mut was_ready) = (FIRST_PAUSE, None::<Instant>, false);
    let mut looked = Instant::now();
    loop {
        let mut renew = None;
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo == libc::SIGHUP as u32 {
                renew = Some("it was asked for (SIGHUP)".to_owned());
                continue;
            }
            notify("STOPPING=1");
            end(current.as_ref().map(|one| &one.process), &draining);
            return Ok(Finish::Stopped);
        }
        draining.retain(|one| one.ended().is_none());
        if let Some(template) = &mut current {
            take_readiness(template, &mut was_ready, say);
            if let Some(ending) = template.process.ended() {
                if ending == Ending::Exited(0) && template.was_ready {
                    end(None, &draining);
                    return Ok(Finish::Idle);
                }
                if !was_ready {
                    return Err(SuperviseError::NeverReady(ending));
                }
                pause = if template.began.elapsed() >= STABLE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
                again_at = Some(Instant::now() + pause);
                say(&Event::Crashed { ending, again_in: pause });
                current = None;
            } else if template.was_ready {
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    renew = renew.or_else(|| template.stale());
                }
                let is_old = policy.renew.is_some_and(|limit| template.began.elapsed() >= limit);
                renew = renew.or_else(|| is_old.then(|| "the policy's time has passed (renew)".to_owned()));
                if let Some(why) = renew {
                    say(&Event::Renewed { why });
                    template.process.signal(libc::SIGHUP);
                    if let Some(old) = current.replace(Template::start(preload, listener, &text)?) {
                        draining.push(old.process);
                    }
                }
            }
        }
        if current.is_none() && again_at.is_some_and(|at| at <= Instant::now()) {
            again_at = None;
            current = Some(Template::start(preload, listener, &text)?);
        }
        wait(&signals, current.as_ref(), &draining, again_at)?;
    }
}

/// Whether it says that it serves.
fn take_readiness(template: &mut Template, was_ready: &mut bool, say: &mut dyn FnMut(&Event)) {
    let Some(ready) = &template.ready else { return };
    let is_said =
        poll(&mut [PollFd::new(ready.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|count| count > 0);
    if !is_said {
        return;
    }
    let mut byte = [0u8; 1];
    if nix::unistd::read(ready, &mut byte) == Ok(1) {
        template.was_ready = true;
        template.mapped = mapped(template.process.pid.as_raw());
        if !*was_ready {
            notify("READY=1");
        }
        *was_ready = true;
        say(&Event::Ready { pid: template.process.pid.as_raw(), after: template.began.elapsed() });
    }
    template.ready = None;
}

fn wait(
    signals: &SignalFd,
    current: Option<&Template>,
    draining: &[Process],
    again_at: Option<Instant>,
) -> Result<(), SuperviseError> {
    let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    if let Some(template) = current {
        fds.push(PollFd::new(template.process.as_fd(), PollFlags::POLLIN));
        fds.extend(template.ready.as_ref().map(|ready| PollFd::new(ready.as_fd(), PollFlags::POLLIN)));
    }
    fds.extend(draining.iter().map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN)));
    let limit = again_at.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()).min(LOOK));
    // At least a millisecond: shorter ones are none to poll(2).
    let timeout = PollTimeout::try_from(limit + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(system("poll")(errno)),
    }
}

/// Ends templates in order, and by force where that takes too long.
fn end(current: Option<&Process>, draining: &[Process]) {
    let all: Vec<&Process> = current.into_iter().chain(draining).collect();
    all.iter().for_each(|one| one.signal(libc::SIGTERM));
    let until = Instant::now() + END;
    let mut left = all;
    while !left.is_empty() {
        left.retain(|one| one.ended().is_none());
        if Instant::now() >= until {
            left.iter().for_each(|one| one.signal(libc::SIGKILL));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
