//! The guardian: prepares the namespaces, forks the observer and outlives it, so that a killed observer leaves nothing behind.
//!
//! Owns the first and the last steps of a launcher process: taking over its descriptors, becoming what adopts orphans, opening cgroups,
//! entering namespaces; killing an observer that takes too long or outlives the caller, and ending what a dead one left. Leaves the
//! target, its clock and everything in between to [`super::observer`], what both are handed to `work`, and how a tree is ended to `tree`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use super::order::Order;
use super::work::Work;
use super::{another_user, devtools, group_counts, observer, process_group, tree};
use crate::wire::{self, FromLauncher};
use crate::{EndPolicy, Exit, LaunchSpec, Mounting, SetupStage, mount_namespace, sys};

/// After the caller's death the observer gets this much longer than the time allowed for ending the tree.
const GRACE: Duration = Duration::from_secs(2);

/// How often the guardian compares how long the observer has looked with how long it may.
const LOOKS_EVERY_MS: u16 = 2_000;
const HELD_BACK: &str = "a process of the command does not show its memory (it holds the lock of its memory map, as with a page of \
                         a FUSE or network file that does not come), or the file system of what `--ready` names does not answer";

/// The whole life of a launcher process. A program that offers itself as launcher
/// ([`crate::LauncherProgram::this_program`]) must call this before anything else (threads, open files, argument
/// parsing) when its first argument is [`crate::LAUNCHER_ARGUMENT`].
pub fn launcher_main() -> ! {
    std::process::exit(match start() {
        Some((main, order)) => guard(&main, &order),
        None => {
            eprintln!("the launcher starts itself with this argument; it has no use by hand");
            2
        }
    })
}

/// Takes over the two descriptors named by the last two arguments, and closes all others.
fn start() -> Option<(OwnedFd, File)> {
    let numbers: Vec<RawFd> = std::env::args_os().skip(1).filter_map(|word| word.to_str()?.parse().ok()).collect();
    let [.., main, order] = numbers[..] else { return None };
    let is_open = |fd: RawFd| std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok();
    if main == order || main < 3 || order < 3 || !is_open(main) || !is_open(order) {
        return None;
    }
    sys::close_all_but(&mut [main, order]);
    // SAFETY: both are open, above standard error, and owned by nothing else in this process, which has just begun.
    let (main, order) = unsafe { (OwnedFd::from_raw_fd(main), File::from_raw_fd(order)) };
    nix::fcntl::fcntl(&order, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC)).ok()?;
    // Also close-on-exec, and needed until the exec of a target that gets a socket for DevTools.
    Some((devtools::out_of_the_way(main).ok()?, order))
}

fn guard(main: &OwnedFd, order: &File) -> i32 {
    let order = wire::unsealed::<Order>(order);
    let prepared = order.map_err(|error| (SetupStage::Specification, error)).and_then(|order| prepare(main, order));
    let (work, observer, pidfd, link) = match prepared {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return 1,
        Err((stage, error)) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = wire::send(main, &FromLauncher::SetupFailed { stage, errno });
            return 1;
        }
    };
    let spec = &work.order.spec;
    let mut main_is_gone: Option<Instant> = None;
    let mut link_is_open = true;
    let mut how = None;
    loop {
        // Of main no event is asked for: only a hang-up is reported; messages are the observer's.
        let all = [
            (pidfd.as_fd(), PollFlags::POLLIN, true),
            (link.as_fd(), PollFlags::POLLIN, link_is_open),
            (main.as_fd(), PollFlags::empty(), main_is_gone.is_none()),
        ];
        let mut waits = Vec::from_iter(all.iter().filter(|wait| wait.2).map(|wait| PollFd::new(wait.0, wait.1)));
        let timeout = if main_is_gone.is_some() { PollTimeout::from(100u8) } else { PollTimeout::from(LOOKS_EVERY_MS) };
        let _ = poll(&mut waits, timeout);
        let happened = |fd: &OwnedFd| {
            waits.iter().any(|wait| wait.as_fd().as_raw_fd() == fd.as_raw_fd() && wait.any() == Some(true))
        };
        if happened(&link) {
            if observer::has_detached(&link) {
                return 0;
            }
            link_is_open = false;
        }
        if happened(&pidfd) {
            break;
        }
        if happened(main) {
            main_is_gone = Some(Instant::now());
        }
        if work.looks_too_long() {
            how = Some(HELD_BACK);
            let _ = sys::pidfd_kill(&pidfd);
        }
        if main_is_gone.is_some_and(|since| since.elapsed() > spec.kill_timeout + GRACE) {
            let _ = sys::pidfd_kill(&pidfd);
        }
    }
    after_observer(main, spec, observer, how)
}

/// Reaps the observer; when it did not end by itself, ends what it left.
fn after_observer(main: &OwnedFd, spec: &LaunchSpec, observer: i32, killed_because: Option<&str>) -> i32 {
    let mut how = String::from("the observer disappeared");
    loop {
        match sys::reap() {
            Ok(Some(child)) if child.pid == observer => match child.exit {
                Exit::Code(0) => return 0,
                Exit::Code(code) => how = format!("the observer exited with status {code}"),
                Exit::Signal(signal) => how = format!("the observer was killed by signal {signal}"),
            },
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    if let Some(why) = killed_because {
        how = why.into();
    }
    let survivors = match spec.end == EndPolicy::KillTree || spec.pid_namespace {
        true => tree::end(spec.kill_timeout, |_| {}),
        false => Vec::new(),
    };
    let _ = wire::send(main, &FromLauncher::ObserverDied { how, survivors });
    1
}

type Prepared = (Work, i32, OwnedFd, OwnedFd);

/// Everything up to the fork of the observer. `Ok(None)`: main is gone already.
fn prepare(main: &OwnedFd, order: Order) -> Result<Option<Prepared>, (SetupStage, io::Error)> {
    sys::set_name(c"slowpath-guard");
    let process = |what: &str| SetupStage::Process { what: what.into() };
    // Signals to the caller's group are the caller's to handle; the launcher hears of it through the channel.
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        sys::ignore(signal);
    }
    sys::become_subreaper().map_err(|error| (process("subreaper"), error))?;
    let spec = &order.spec;
    if another_user::is_another(spec) {
        sys::shield().map_err(|error| (process("shield"), error))?;
    }
    if spec.pid_namespace {
        // Then the kernel ends the rest, however main dies. Without a namespace guardian and observer must live on.
        sys::die_with_parent().map_err(|error| (process("parent"), error))?;
        if nix::unistd::getppid().as_raw() != order.main {
            return Ok(None);
        }
    }
    let mut cgroups = Vec::new();
    for path in &spec.cgroups {
        let opened = File::options().write(true).open(path);
        cgroups.push((path.clone(), opened.map_err(|error| (SetupStage::Cgroup { path: path.clone() }, error))?));
    }
    let counters = group_counts::open(&spec.cgroups);
    enter_namespaces(main, &order)?;

    let flags = SockFlag::SOCK_CLOEXEC;
    let (link, observers_link) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
        .map_err(|error| (process("link"), error.into()))?;
    let looks_since = sys::shared_number().map_err(|error| (process("shared memory"), error))?;
    let work = Work { order, cgroups, counters, looks_since };
    // SAFETY: the launcher has one thread.
    match unsafe { sys::fork() }.map_err(|error| (process("observer"), error))? {
        None => {
            drop(link);
            std::process::exit(observer::run(main, &observers_link, work))
        }
        Some(observer) => {
            process_group::leave();
            let pidfd = sys::pidfd_open(observer).map_err(|error| (process("pidfd"), error))?;
            Ok(Some((work, observer, pidfd, link)))
        }
    }
}

fn enter_namespaces(main: &OwnedFd, order: &Order) -> Result<(), (SetupStage, io::Error)> {
    let spec = &order.spec;
    let namespace = |what: &str| SetupStage::Namespace { what: what.into() };
    if let Some(descriptor) = spec.within {
        mount_namespace::enter(order.main, descriptor)
            .map_err(|error| (namespace("mount namespace of another launch"), error))?;
    }
    if spec.within.is_some() || !spec.mounts.is_empty() || spec.pid_namespace {
        let none: Option<&str> = None;
        let private = unshare(CloneFlags::CLONE_NEWNS)
            .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none));
        private.map_err(|error| (namespace("mount namespace"), error.into()))?;
    }
    let (mut mounting, mut left_out) = (Mounting::default(), Vec::new());
    for (index, step) in spec.mounts.iter().enumerate() {
        let done = mounting.step(step).map_err(|error| (SetupStage::Mount { index, step: step.clone() }, error))?;
        left_out.extend(done.map(|left_out| (index, left_out.reason)));
    }
    for steps in left_out.chunks(wire::MOST_STEPS) {
        wire::send(main, &FromLauncher::LeftOut { steps: steps.to_vec() })
            .map_err(|error| (SetupStage::Process { what: "channel".into() }, error))?;
    }
    if spec.pid_namespace {
        unshare(CloneFlags::CLONE_NEWPID).map_err(|error| (namespace("pid namespace"), error.into()))?;
    }
    Ok(())
}
