//! What an observer has from its first launch to its last: its channels, the place of its signals, the group of its targets;
//! and its waiting for orders between two launches.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgrp};

use super::order::Order;
use super::stdio::{OutputPipe, dev_null};
use super::work::Work;
use crate::sys::ChildStack;
use crate::wire::{self, ToLauncher};
use crate::{LaunchSpec, SetupStage, sys};

/// What lasts from one launch to the next.
pub(super) struct Post<'a> {
    pub main: &'a OwnedFd,
    pub link: &'a OwnedFd,
    pub signals: SignalFd,
    /// Signals that this process ignores.
    pub ignored: Vec<i32>,
    /// When the target called `execve`, by its own report; 0 before.
    pub released_at: &'static AtomicU64,
    /// The process group of main, which a target joins.
    pub group: Pid,
    /// `/dev/null`, for the input of targets.
    pub null: OwnedFd,
    /// The output pipes of the last launch, where nobody is left that could hold them.
    pub pipes: RefCell<Option<[OutputPipe; 2]>>,
    /// For targets that nobody holds before their exec.
    pub stack: RefCell<ChildStack>,
}

/// A failed step as `(stage, error)`.
pub(super) fn process(what: &str) -> impl FnOnce(io::Error) -> (SetupStage, io::Error) {
    let stage = SetupStage::Process { what: what.into() };
    move |error| (stage, error)
}

/// What is done once. `Ok(None)`: the guardian is gone already.
pub(super) fn take_post<'a>(
    main: &'a OwnedFd,
    link: &'a OwnedFd,
    spec: &LaunchSpec,
) -> Result<Option<Post<'a>>, (SetupStage, io::Error)> {
    if spec.pid_namespace {
        sys::die_with_parent().map_err(process("parent"))?;
        let mut guardian = [PollFd::new(link.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut guardian, PollTimeout::ZERO), Ok(0)) {
            return Ok(None);
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let none: Option<&str> = None;
        mount(Some("proc"), "/proc", Some("proc"), flags, none).map_err(|error| (SetupStage::Proc, error.into()))?;
    } else {
        sys::become_subreaper().map_err(process("subreaper"))?;
    }
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block().map_err(|error| process("signals")(error.into()))?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(|error| process("signals")(error.into()))?;
    let released_at = sys::shared_number().map_err(process("shared memory"))?;
    let null = dev_null().map_err(|error| (SetupStage::Stdio, error))?;
    let (ignored, group, stack) = (sys::ignored_signals(), getpgrp(), RefCell::new(ChildStack::new()));
    Ok(Some(Post { main, link, signals, ignored, released_at, group, stack, null, pipes: RefCell::new(None) }))
}

/// What main says to an observer.
type Message = ToLauncher<Box<Order>>;

/// The next message of main's, with the file that came along, as [`wire::receive`]. What others send is not read.
pub(super) fn receive_order(post: &Post<'_>, work: &Work) -> io::Result<Option<(Message, Option<File>)>> {
    loop {
        let Some(received) = wire::receive::<Message>(post.main)? else { return Ok(None) };
        if received.sender.is_main(work.order.main, work.order.spec.pid_namespace) {
            return Ok(Some((received.message, received.file)));
        }
    }
}

/// Waits for main's next order; `None` when there will be none.
pub(super) fn next_order(post: &Post<'_>, work: &Work) -> Option<Order> {
    loop {
        let mut waits = [post.main, post.link].map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = poll(&mut waits, PollTimeout::NONE);
        // The guardian never speaks: what stirs on its link is its end.
        if waits[1].any() == Some(true) {
            return None;
        }
        match receive_order(post, work) {
            // An order that cannot be read ends the launcher, which main sees.
            Ok(Some((ToLauncher::Again(Some(order)), _))) => return Some(*order),
            Ok(Some((ToLauncher::Again(None), file))) => return wire::unsealed(&file?).ok(),
            // Meant for the launch that has just ended.
            Ok(Some((ToLauncher::Release | ToLauncher::Stop | ToLauncher::Interrupt, _))) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => return None,
        }
    }
}
