//! The observer: init of the pid namespace or subreaper, parent of the target, keeper of the clock. One `poll(2)`
//! loop, no polling of anything that can tell by itself.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::{getpgrp, pipe2};

use super::output::Stream;
use super::post::{Post, next_order, process, receive_order, take_post};
use super::ready::Watch;
use super::stdio::{OutputPipe, dev_null, plumb};
use super::target::{self, Ends, FailedExec, Image, Report};
use super::work::Work;
use super::{another_user, devtools, group_counts, process_group, tracer, tree};
use crate::wire::{self, EndCause, Ended, FromLauncher, ToLauncher};
use crate::{
    ATTEMPT_INTERVAL, ContextStep, EndPolicy, Exit, GroupCounts, LaunchSpec, ProcessMemory, ReadyWhen, SetupStage,
    StdioPolicy, StopReason, ThreadTimes, TreeUsage, sys,
};

/// How long the reader of forwarded output may take for the rest of it once the tree is gone.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The message on the link to the guardian: it need not wait for the observer.
const DETACHED: &str = "detached";

/// Whether the observer said on its link that it stays behind for a target left running.
pub(super) fn has_detached(link: &OwnedFd) -> bool {
    matches!(wire::receive::<String>(link), Ok(Some(received)) if received.message == DETACHED)
}

struct Observer<'a> {
    post: &'a Post<'a>,
    work: &'a Work,
    spec: &'a LaunchSpec,
    follows: bool,
    attempts: Option<TimerFd>,
    watch: Watch,
    streams: Vec<Stream>,
    /// The target's ends of its output, held so that it does not hang up: nobody waits for that.
    held: [Option<OwnedFd>; 2],
    /// Of a forked target.
    exec_failure: Option<File>,
    /// Of one that shared this memory.
    failed_exec: Option<FailedExec>,
    release: Option<OwnedFd>,
    target: i32,
    deadline: Option<u64>,
    released: bool,
    url: Option<String>,
    ready_at: Option<u64>,
    exit: Option<Exit>,
    usage: TreeUsage,
    first_thread: Option<ThreadTimes>,
    /// What the groups' counters showed before.
    counted: GroupCounts,
    /// No part of the tree.
    tracer: Option<i32>,
    memory: Vec<ProcessMemory>,
    childless: bool,
}

/// The life of the observer; its exit status is 0 unless something kept it from its work.
pub(super) fn run(main: &OwnedFd, link: &OwnedFd, mut work: Work) -> i32 {
    sys::set_name(c"slowpath-watch");
    let failed = |(stage, error): (SetupStage, io::Error)| {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = wire::send(main, &FromLauncher::SetupFailed { stage, errno });
        // Only the target-to-be can be there, and it goes when its release pipe closes.
        0
    };
    let post = match take_post(main, link, &work.order.spec) {
        Ok(Some(post)) => post,
        Ok(None) => return 0,
        Err(problem) => return failed(problem),
    };
    loop {
        let goes_on = match begin(&post, &work) {
            Ok(mut observer) => {
                let cause = observer.observe();
                observer.finish(cause) && work.order.stays
            }
            Err(problem) => return failed(problem),
        };
        match goes_on.then(|| next_order(&post, &work)).flatten() {
            Some(order) => work.order = order,
            None => return 0,
        }
    }
}

/// Prepares the observation and forks the target.
fn begin<'a>(post: &'a Post<'a>, work: &'a Work) -> Result<Observer<'a>, (SetupStage, io::Error)> {
    let (spec, follows) = (&work.order.spec, work.order.follows);
    let ready = |error: io::Error| (SetupStage::Ready { condition: spec.ready.to_string() }, error);
    let watch = Watch::start(spec, work.order.page.as_deref()).map_err(ready)?;
    let attempts = match watch.needs_attempts() {
        true => Some(TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC))
            .transpose()
            .map_err(|error| ready(error.into()))?,
        false => None,
    };
    let url = watch.url();
    let at_devtools = |error: io::Error| (SetupStage::Devtools, error);
    let (mains, targets) = spec.devtools.then(devtools::pair).transpose().map_err(at_devtools)?.unzip();
    // Sent also where main does not follow, unless the launcher stays: main waits for the end of whoever sent this.
    if follows || !work.order.stays || mains.is_some() {
        let observing = FromLauncher::Observing { url: url.clone() };
        wire::send_with(post.main, &observing, mains.as_ref()).map_err(process("channel"))?;
    }
    drop(mains);
    let variable: Option<(OsString, OsString)> = watch.variable();
    let image = Image::new(spec, url.as_deref(), variable).map_err(process("arguments"))?;

    let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from);
    let (release_end, release) = if follows { Some(pipe().map_err(process("pipe"))?).unzip() } else { (None, None) };
    let forks = follows || !another_user::may_share_memory(spec);
    if another_user::is_another(spec) {
        sys::shield().map_err(process("shield"))?;
    }
    let (failure, failure_end) = if forks { Some(pipe().map_err(process("pipe"))?).unzip() } else { (None, None) };
    let failure_end = failure_end.map(devtools::out_of_the_way).transpose().map_err(process("pipe"))?;
    let failure_end = failure_end.map_or_else(|| Report::Shared(RefCell::new(None)), Report::Pipe);
    let (streams, [stdin, stdout, stderr]) =
        plumb(spec, &post.null, post.pipes.take()).map_err(|error| (SetupStage::Stdio, error))?;
    let released_at = post.released_at;
    let ignored = post.ignored.clone();
    // A group outside of the pid namespace has no number here; there is but one launch then, and the target is born in it.
    let group = Some(post.group).filter(|group| group.as_raw() > 0);
    let tied = spec.end == EndPolicy::KillTree || spec.pid_namespace;
    let traced = spec.context.contains(&ContextStep::Traced);
    let traced = traced.then(|| tracer::start(&post.null, tied)).transpose().map_err(process("tracer"))?;
    let tracer = traced.as_ref().map(|tracer| tracer.pid);
    let counted = group_counts::read(&work.counters);
    let mut ends = Ends {
        stdin,
        stdout,
        stderr,
        group,
        release: release_end,
        ignored,
        released_at,
        devtools: targets,
        tracer: traced,
        failure: failure_end,
    };
    let own = std::process::id() as i32;
    released_at.store(0, Ordering::Relaxed);
    let target = if forks {
        // SAFETY: the observer has one thread.
        match unsafe { sys::fork() }.map_err(process("target"))? {
            None => {
                // With its last writer the release pipe ends: nobody but the observer may hold that.
                drop(release);
                target::run(work, post.main, own, &image, &ends)
            }
            Some(target) => target,
        }
    } else {
        let mut run = || target::run(work, post.main, own, &image, &ends);
        // SAFETY: the observer has one thread; what the target-to-be allocates to say why it failed is lost, no more.
        unsafe { sys::spawn_sharing_memory(&mut post.stack.borrow_mut(), &mut run) }.map_err(process("target"))?
    };
    // The end of the output shows something only when it can complete a line, or when the target outlives this launch.
    let holds = spec.end == EndPolicy::KillTree && !matches!(spec.ready, ReadyWhen::Line(_));
    let held = if holds { [ends.stdout.take(), ends.stderr.take()] } else { [None, None] };
    let failed_exec = match &ends.failure {
        Report::Shared(place) => place.take(),
        Report::Pipe(_) => None,
    };
    drop(ends);
    if getpgrp() == post.group {
        process_group::leave();
    }
    let mut observer = Observer {
        post,
        work,
        spec,
        follows,
        attempts,
        watch,
        streams,
        held,
        exec_failure: failure.map(File::from),
        failed_exec,
        release,
        target,
        deadline: None,
        released: false,
        url,
        ready_at: None,
        exit: None,
        usage: TreeUsage::default(),
        first_thread: None,
        counted,
        tracer,
        memory: Vec::new(),
        childless: false,
    };
    if !follows {
        observer.released(sys::monotonic());
    }
    Ok(observer)
}

impl Observer<'_> {
    /// The loop; returns why it ended.
    fn observe(&mut self) -> EndCause {
        loop {
            let child_ended_by = self.wait();
            // Readiness first: what was ready before the target exited, or before main asked to stop, is ready.
            let mut ready = self.look();
            self.take_children();
            if self.exit == Some(Exit::Code(0)) && self.spec.ready == ReadyWhen::Exit {
                ready = child_ended_by.or_else(|| Some(sys::monotonic()));
            }
            if let Some(failed) = self.failed_exec() {
                let _ = wire::send(self.post.main, &failed);
                return EndCause::NeverReleased;
            }
            // Looked at once more after an exit was seen: what the target did before it is visible by now, also the output
            // that whoever reads the forwarded part has kept back.
            if self.exit.is_some() && ready.is_none() {
                if self.stop_at_exit().is_some() {
                    self.streams.iter_mut().for_each(Stream::take_rest);
                }
                ready = self.look();
            }
            if let Some(at) = ready.filter(|_| self.is_awaited()) {
                self.ready_at = Some(at);
                if self.follows {
                    let _ = wire::send(self.post.main, &FromLauncher::Ready { at });
                }
                self.first_thread = self.first_thread.or_else(|| tree::first_thread(self.target));
                // Without a child it has no descendant either: orphans come to it.
                if !self.childless {
                    let look = self.work.looking(|| tree::look(self.spec.memory));
                    self.usage.lacks_children |= look.any_ignores_ends;
                    self.memory = look.memory.into_iter().filter(|one| Some(one.pid) != self.tracer).collect();
                }
            }
            if let Some(cause) = self.decide(sys::monotonic()) {
                return cause;
            }
            if let Some(cause) = self.take_orders() {
                return cause;
            }
        }
    }

    /// When the target called `execve`.
    fn released_at(&self) -> Option<u64> {
        Some(self.post.released_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Whether the clock runs, or is about to.
    fn is_awaited(&self) -> bool {
        self.released && self.ready_at.is_none()
    }

    /// Waits for something to happen. Where it is the end of a child: the time.
    fn wait(&self) -> Option<u64> {
        let mut list = vec![
            (self.post.signals.as_fd(), PollFlags::POLLIN),
            (self.post.main.as_fd(), PollFlags::POLLIN),
            (self.post.link.as_fd(), PollFlags::POLLIN),
        ];
        list.extend(self.exec_failure.iter().map(|pipe| (pipe.as_fd(), PollFlags::POLLIN)));
        list.extend(self.streams.iter().flat_map(Stream::descriptors));
        if self.is_awaited() {
            list.extend(self.attempts.iter().map(|timer| (timer.as_fd(), PollFlags::POLLIN)));
            list.extend(self.watch.descriptors());
        }
        let mut list: Vec<PollFd> = list.into_iter().map(|(fd, flags)| PollFd::new(fd, flags)).collect();
        let timeout = match self.deadline.filter(|_| self.ready_at.is_none()) {
            Some(deadline) => {
                let left = Duration::from_nanos(deadline.saturating_sub(sys::monotonic()));
                // Rounded up: a poll that ends too early would spin until the deadline.
                PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let _ = poll(&mut list, timeout);
        list.first().is_some_and(|signals| signals.any() == Some(true)).then(sys::monotonic)
    }

    /// Takes the streams' output and, while the clock runs, asks the watch; the time when the target was ready.
    fn look(&mut self) -> Option<u64> {
        let found = self.look_at_streams();
        if found || !self.is_awaited() {
            return found.then(sys::monotonic);
        }
        let tick = self.attempts.as_ref().is_some_and(|timer| {
            let mut count = [0; 8];
            matches!(nix::unistd::read(timer, &mut count), Ok(8))
        });
        // Whoever serves the file system of a path can hold back a look at it. One that fails will not become true; the time-out or
        // the exit will end the launch.
        self.work.looking(|| self.watch.look(tick)).unwrap_or(false).then(sys::monotonic)
    }

    fn look_at_streams(&mut self) -> bool {
        self.streams.iter_mut().fold(false, |found, stream| stream.look() | found)
    }

    fn take_children(&mut self) {
        while let Ok(Some(_)) = self.post.signals.read_signal() {}
        // What the kernel knows of it goes with its last trace.
        if self.exit.is_none() && sys::has_ended(self.target) {
            self.first_thread = self.first_thread.or_else(|| tree::first_thread(self.target));
            self.usage.lacks_children |= tree::ignores_ends(self.target);
        }
        loop {
            match sys::reap() {
                Ok(Some(child)) => self.count(&child),
                Ok(None) => return,
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn count(&mut self, child: &sys::Reaped) {
        if Some(child.pid) == self.tracer {
            return;
        }
        if child.pid == self.target {
            self.exit = Some(child.exit);
        }
        self.usage.add(&child.usage);
    }

    /// The report of a failed exec, or `None` while there is none; a pipe closed without one is a successful exec.
    fn failed_exec(&mut self) -> Option<FromLauncher> {
        if let Some(pipe) = self.exec_failure.as_mut() {
            let mut readable = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
            if !matches!(poll(&mut readable, PollTimeout::ZERO), Ok(1)) {
                return None;
            }
            let mut report = Vec::new();
            let _ = pipe.read_to_end(&mut report);
            self.exec_failure = None;
            self.failed_exec = target::failure_report(&report);
        }
        let failed = self.failed_exec.take()?;
        Some(FromLauncher::ExecFailed { failure: failed.failure, errno: failed.errno, program: failed.program })
    }

    fn decide(&self, now: u64) -> Option<EndCause> {
        if self.released_at().is_none() {
            return self.exit.map(|_| EndCause::NeverReleased);
        }
        if self.ready_at.is_some() {
            let is_over = self.spec.end != EndPolicy::WaitExit || self.exit.is_some();
            return is_over.then_some(EndCause::Stop(StopReason::Ready));
        }
        let timed_out = || self.deadline.is_some_and(|deadline| now >= deadline).then_some(StopReason::TimedOut);
        self.stop_at_exit().or_else(timed_out).map(EndCause::Stop)
    }

    /// How the target's end, if it has ended, stops a launch that is not ready.
    fn stop_at_exit(&self) -> Option<StopReason> {
        let cannot_become_ready = self.childless || self.spec.ready == ReadyWhen::Exit;
        match self.exit? {
            Exit::Signal(signal) => Some(StopReason::Killed { signal }),
            Exit::Code(code) => (code != 0 || cannot_become_ready).then_some(StopReason::Exited { code }),
        }
    }

    /// Messages of main, and the ends of main and guardian.
    fn take_orders(&mut self) -> Option<EndCause> {
        loop {
            match receive_order(self.post, self.work) {
                Ok(Some((ToLauncher::Release, _))) => self.release(),
                Ok(Some((ToLauncher::Interrupt, _))) => another_user::interrupt(self.spec, self.target),
                // Of the next launch main speaks when this one has ended.
                Ok(Some((ToLauncher::Stop | ToLauncher::Again(_), _)) | None) => {
                    return Some(EndCause::Stop(StopReason::Requested));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Some(EndCause::Stop(StopReason::Requested)),
            }
        }
        let mut guardian = [PollFd::new(self.post.link.as_fd(), PollFlags::POLLIN)];
        (!matches!(poll(&mut guardian, PollTimeout::ZERO), Ok(0))).then_some(EndCause::GuardianDied)
    }

    /// Starts the clock and lets the target exec.
    fn release(&mut self) {
        let Some(release) = self.release.take() else { return };
        let at = sys::monotonic();
        let _ = nix::unistd::write(&release, &[1]);
        self.released(at);
        let _ = wire::send(self.post.main, &FromLauncher::Released { at });
    }

    /// From here on readiness is watched for.
    fn released(&mut self, at: u64) {
        self.released = true;
        if let Some(timer) = &self.attempts {
            let every = Expiration::Interval(TimeSpec::from_duration(ATTEMPT_INTERVAL));
            let _ = timer.set(every, TimerSetTimeFlags::empty());
        }
        self.deadline =
            self.spec.timeout.map(|limit| at.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)));
    }

    /// Carries out the end policy and reports. True when nothing is left of the launch, and another may follow.
    fn finish(&mut self, cause: EndCause) -> bool {
        // A target that was not released waits for its exec: it goes with the observer in any case.
        self.release = None;
        let kills = self.spec.end == EndPolicy::KillTree || self.spec.pid_namespace || !self.released;
        let mut survivors = Vec::new();
        if kills {
            if self.spec.pid_namespace {
                // As init: every other process of the namespace, at once.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), Signal::SIGKILL);
            }
            let mut reaped = Vec::new();
            survivors = tree::end(self.spec.kill_timeout, |child| reaped.push(child));
            reaped.iter().for_each(|child| self.count(child));
        }
        if kills || self.exit.is_some() {
            self.streams.iter_mut().for_each(|stream| stream.flush(FLUSH_LIMIT));
        } else {
            self.look_at_streams();
        }
        let is_clean = kills && survivors.is_empty() && cause != EndCause::GuardianDied;
        let ended = Ended {
            stop: cause,
            pid: self.target,
            url: self.url.take(),
            released_at: self.released_at(),
            ready_at: self.ready_at,
            exit: self.exit,
            usage: (kills || self.exit.is_some()).then_some(self.usage),
            first_thread: self.first_thread,
            groups: group_counts::since(&self.work.counters, &self.counted),
            memory: std::mem::take(&mut self.memory),
            stdout_tail: self.streams.first().and_then(Stream::tail),
            stderr_tail: self.streams.get(1).and_then(Stream::tail),
            survivors,
        };
        let _ = wire::send(self.post.main, &FromLauncher::Ended(Box::new(ended)));
        if !kills && self.streams.iter().any(Stream::goes_on) {
            self.pump();
        }
        if is_clean {
            self.keep_pipes();
        }
        is_clean
    }

    /// Leaves the output pipes to the next launch, where both ends are here.
    fn keep_pipes(&mut self) {
        let mut ends = self.held.iter_mut().map(Option::take);
        let sources = std::mem::take(&mut self.streams).into_iter().map(Stream::into_source);
        let mut pipes = sources.map(|source| OutputPipe::after(source?, ends.next()??, self.spec));
        if let (Some(Some(stdout)), Some(Some(stderr))) = (pipes.next(), pipes.next()) {
            *self.post.pipes.borrow_mut() = Some([stdout, stderr]);
        }
    }

    /// Stays behind for the output of a target left running, and for who reads it slowly, holding nothing else.
    fn pump(&mut self) {
        let _ = wire::send(self.post.link, &DETACHED);
        if let Ok(null) = dev_null() {
            // The channel to main, and what the pump does not write to, would keep others waiting for their end.
            // SAFETY: that stays an open descriptor of its owner, of another file.
            unsafe { libc::dup2(null.as_raw_fd(), self.post.main.as_raw_fd()) };
            let _ = nix::unistd::dup2_stdin(&null);
            if self.spec.stdio != StdioPolicy::Inherit {
                let _ = nix::unistd::dup2_stdout(&null);
                let _ = nix::unistd::dup2_stderr(&null);
            }
        }
        self.watch = Watch::Nothing;
        self.streams.iter_mut().for_each(Stream::only_forward);
        while self.streams.iter().any(Stream::goes_on) {
            let list = self.streams.iter().flat_map(Stream::descriptors);
            let mut list: Vec<PollFd> = list.map(|(fd, flags)| PollFd::new(fd, flags)).collect();
            let _ = poll(&mut list, PollTimeout::NONE);
            self.look_at_streams();
            self.take_children();
        }
    }
}
