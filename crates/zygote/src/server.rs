//! The zygote itself: one thread that waits for requests, forks, and reaps.
//!
//! Everything is an event of one poll(2): connections, children (pidfds), their reports, signals, memory pressure. Nothing that a client
//! does or leaves undone holds up another: no call here waits for one.

use crate::child::{Origin, Preloaded};
use crate::connection::{Connection, Process, Progress, Report, filters_of, report};
use crate::demand::Demand;
use crate::message::{FromClient, MOST_BYTES, Refusal, Status, Step, ToClient, request};
use crate::policy::{Own, Policy};
use crate::pressure::MemoryPressure;
use crate::spares::Spares;
use crate::waiting::waited;
use crate::{readiness, single_thread};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::unistd::getpid;
use slowpath_process::{Credentials, peek_packet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a client may take to say what it wants.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked whether a filter is there: about what installing one takes.
const LOOK: Duration = Duration::from_micros(200);

/// How long ended children may take to be gone: one that hangs in a file system cannot be waited for.
const END: Duration = Duration::from_secs(2);

/// Why a zygote ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody was connected for as long as the policy says.
    Idle,
    /// It was asked to end (`SIGTERM`, `SIGINT`).
    Stopped,
    /// It is to be started anew (`SIGHUP`, or the policy's `renew`), and its last child has ended.
    Renew,
}

/// Why it cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It has several threads, or `/proc` cannot be read.
    #[error(transparent)]
    Threads(io::Error),
    /// A system call failed.
    #[error("{call} failed")]
    System {
        /// Which.
        call: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It could not leave the pid namespace that it made for a child.
    #[error("setns(2) back to the zygote's pid namespace failed")]
    PidNamespace(#[source] Errno),
}

fn system<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> ServeError {
    move |source| ServeError::System { call, source: source.into() }
}

/// Serves until it is asked to end, or by the policy. Returns in the zygote alone: a child does its work and exits.
///
/// Requirements: the process has one thread, and nobody else in it waits for any child (`waitpid(-1)`). `SIGTERM`, `SIGINT` and `SIGHUP`
/// are blocked meanwhile. Children end with the zygote.
///
/// # Errors
/// [`ServeError`]; all children are ended then.
pub fn serve(listener: OwnedFd, policy: &Policy, program: &mut dyn Preloaded) -> Result<(End, Status), ServeError> {
    single_thread::require().map_err(ServeError::Threads)?;
    let mut asked = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(|signal| asked.add(signal));
    let before = asked.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK).map_err(system("sigprocmask"))?;
    let served = Server::new(listener, policy, program, before, &asked).and_then(Server::run);
    before.thread_set_mask().map_err(system("sigprocmask"))?;
    served
}

/// The state.
pub(crate) struct Server<'a> {
    pub(crate) listener: OwnedFd,
    pub(crate) policy: &'a Policy,
    pub(crate) program: &'a mut dyn Preloaded,
    pub(crate) own: Own,
    pub(crate) origin: Origin,
    signals: SignalFd,
    pressure: Option<MemoryPressure>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) spares: Spares,
    pub(crate) demand: Demand,
    pub(crate) status: Status,
    /// A descriptor that is given up to refuse a client when there is no other.
    pub(crate) reserve: Option<File>,
    pub(crate) accepts_from: Instant,
    filters: u32,
    last_used: Instant,
    began: Instant,
    is_draining: bool,
}

/// What an event is about.
#[derive(Clone, Copy)]
enum About {
    Listener,
    Signals,
    Pressure,
    Connection(usize),
}

impl<'a> Server<'a> {
    fn new(
        listener: OwnedFd,
        policy: &'a Policy,
        program: &'a mut dyn Preloaded,
        before: SigSet,
        asked: &SigSet,
    ) -> Result<Self, ServeError> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(asked, flags).map_err(system("signalfd"))?;
        let Credentials { uid, gid, groups } = Credentials::of_this_process().map_err(system("getgroups"))?;
        // Where the kernel reports nothing of pressure, spares are dropped by nobody but the OOM killer.
        let pressure = (policy.most_spares > 0).then(MemoryPressure::armed).and_then(Result::ok);
        let (pid, now) = (getpid(), Instant::now());
        Ok(Self {
            listener,
            policy,
            program,
            own: Own { uid, gid, groups },
            origin: Origin { zygote: pid, signals: before, in_new_pid_namespace: false },
            signals,
            pressure,
            connections: Vec::new(),
            spares: Spares::default(),
            demand: Demand::default(),
            status: Status { pid: pid.as_raw(), ..Status::default() },
            reserve: File::open("/dev/null").ok(),
            accepts_from: now,
            filters: filters_of("self").unwrap_or(0),
            last_used: now,
            began: now,
            is_draining: false,
        })
    }

    fn run(mut self) -> Result<(End, Status), ServeError> {
        readiness::say();
        let ended = self.turns();
        self.end_all();
        ended.map(|end| (end, self.status_now()))
    }

    fn turns(&mut self) -> Result<End, ServeError> {
        loop {
            self.refill()?;
            // Who says something later is heard in the next turn: until then nobody is silent, however long a fork takes in this one.
            let looked = Instant::now();
            for (about, flags) in self.wait(looked)? {
                match about {
                    About::Signals => {
                        if let Some(end) = self.signalled() {
                            return Ok(end);
                        }
                    }
                    About::Pressure if flags.contains(PollFlags::POLLERR) => self.pressure = None,
                    About::Pressure => self.spares.drop_all(Instant::now()),
                    About::Listener => self.accept(),
                    About::Connection(index) => self.attend(index)?,
                }
            }
            self.spares.reap();
            self.connections.retain(|one| !one.is_over());
            let now = Instant::now();
            if !self.connections.is_empty() {
                self.last_used = now;
            }
            self.send_away_the_silent(looked);
            if let Some(end) = self.is_over(now) {
                return Ok(end);
            }
        }
    }

    fn is_over(&self, now: Instant) -> Option<End> {
        if !self.connections.is_empty() {
            return None;
        }
        let is_past =
            |since: Instant, limit: Option<Duration>| limit.is_some_and(|limit| now.duration_since(since) >= limit);
        if self.is_draining || is_past(self.began, self.policy.renew) {
            return Some(End::Renew);
        }
        is_past(self.last_used, self.policy.idle).then_some(End::Idle)
    }

    /// Waits for events, and says what they are about.
    fn wait(&self, now: Instant) -> Result<Vec<(About, PollFlags)>, ServeError> {
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let mut abouts = vec![About::Signals];
        let mut watch = |fd, flags, about| {
            fds.push(PollFd::new(fd, flags));
            abouts.push(about);
        };
        if !self.is_draining && now >= self.accepts_from {
            watch(self.listener.as_fd(), PollFlags::POLLIN, About::Listener);
        }
        if let Some(pressure) = &self.pressure {
            watch(pressure.as_fd(), PollFlags::POLLPRI, About::Pressure);
        }
        for (index, connection) in self.connections.iter().enumerate() {
            if let Some(socket) = connection.socket.as_ref().filter(|_| connection.is_listened_to()) {
                watch(socket.as_fd(), PollFlags::POLLIN, About::Connection(index));
            }
            if let Some(child) = &connection.child {
                watch(child.process.as_fd(), PollFlags::POLLIN, About::Connection(index));
                if let Progress::Preparing(pipe) = &child.progress {
                    watch(pipe.as_fd(), PollFlags::POLLIN, About::Connection(index));
                }
            }
        }
        for spare in self.spares.processes() {
            // Looked at after each turn.
            watch(spare.as_fd(), PollFlags::POLLIN, About::Connection(usize::MAX));
        }
        let timeout = self.next(now).map(|at| TimeSpec::from(at.saturating_duration_since(now)));
        match waited(&mut fds, timeout) {
            Ok(()) => {}
            Err(Errno::EINTR) => return Ok(Vec::new()),
            Err(errno) => return Err(system("ppoll")(errno)),
        }
        let happened = fds.iter().zip(abouts).filter_map(|(fd, about)| {
            let flags = fd.revents().filter(|flags| !flags.is_empty())?;
            Some((about, flags))
        });
        let mut happened: Vec<_> = happened.collect();
        // Once for each connection, whatever of it has something.
        happened
            .dedup_by(|one, other| matches!((one.0, other.0), (About::Connection(a), About::Connection(b)) if a == b));
        let filtering =
            |one: &Connection| one.child.as_ref().is_some_and(|child| matches!(child.progress, Progress::Filtering));
        let filtered = self.connections.iter().enumerate().filter(|(_, one)| filtering(one));
        happened.extend(filtered.map(|(index, _)| (About::Connection(index), PollFlags::empty())));
        Ok(happened)
    }

    /// When something is to be done without an event.
    fn next(&self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut at = |time: Instant| next = Some(next.map_or(time, |next| next.min(time)));
        for connection in &self.connections {
            connection.until.into_iter().for_each(&mut at);
            if connection.child.as_ref().is_some_and(|child| matches!(child.progress, Progress::Filtering)) {
                at(now + LOOK);
            }
        }
        if self.connections.is_empty() {
            self.policy.idle.map(|idle| self.last_used + idle).into_iter().for_each(&mut at);
            self.policy.renew.map(|renew| self.began + renew).into_iter().for_each(&mut at);
        }
        if now < self.accepts_from {
            at(self.accepts_from);
        }
        // While a child is made, its report is what is waited for.
        if !self.is_making() {
            self.spares.next(now, self.wanted_spares(now)).into_iter().for_each(&mut at);
        }
        next
    }

    fn signalled(&mut self) -> Option<End> {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo == libc::SIGHUP as u32 {
                self.is_draining = true;
            } else {
                return Some(End::Stopped);
            }
        }
        None
    }

    /// Does what there is to do for a connection.
    fn attend(&mut self, index: usize) -> Result<(), ServeError> {
        if self.connections.get(index).is_none() {
            return Ok(());
        }
        self.advance(index);
        self.reap(index);
        let connection = &self.connections[index];
        let Some(socket) = connection.socket.as_ref().filter(|_| connection.is_listened_to()) else { return Ok(()) };
        // Its descriptors are a client's: whoever closes one may have to wait for the client (FUSE), so only a child receives them.
        match peek_packet(socket, MOST_BYTES + 1) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) | Ok(None) => self.connections[index].leave(),
            Ok(Some(packet)) if packet.is_cut => {
                self.refuse(index, Refusal::malformed(format!("the message has more than {MOST_BYTES} bytes")));
            }
            Ok(Some(packet)) => match request(&packet.bytes) {
                Err(refusal) => self.refuse(index, refusal),
                Ok(asked) => return self.answer(index, asked),
            },
        }
        Ok(())
    }

    fn answer(&mut self, index: usize, asked: FromClient) -> Result<(), ServeError> {
        let connection = &mut self.connections[index];
        connection.until = None;
        // An order is for the child to take.
        if !matches!(asked, FromClient::Spawn(_)) {
            connection.discard();
        }
        match asked {
            FromClient::Signal(number) => {
                if let Some(child) = connection.child.as_ref().filter(|_| (1..=64).contains(&number)) {
                    child.process.signal(number);
                }
            }
            FromClient::Hold => {
                let status = self.status_now();
                self.connections[index].say(&ToClient::Status(status), None);
            }
            FromClient::Status => {
                let status = self.status_now();
                self.connections[index].say(&ToClient::Status(status), None);
                self.connections[index].until = Some(Instant::now() + PATIENCE);
            }
            FromClient::Spawn(_) if connection.child.is_some() => {
                self.refuse(index, Refusal::malformed("this connection already has its one child"));
            }
            FromClient::Spawn(spawn) => return self.spawn(index, &spawn),
        }
        Ok(())
    }

    pub(crate) fn refuse(&mut self, index: usize, refusal: Refusal) {
        self.status.refused += 1;
        self.connections[index].say(&ToClient::Refused(refusal), None);
        self.connections[index].leave();
    }

    /// Takes note of how far a child has come.
    fn advance(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(child) = &mut connection.child else { return };
        if let Progress::Preparing(pipe) = &child.progress {
            match report(pipe) {
                Report::Nothing | Report::Silent => return,
                Report::Prepared => {
                    if !child.from_spare {
                        self.demand.took(child.began.elapsed());
                    }
                    child.progress = Progress::Filtering;
                }
                Report::Failed(step, errno) => {
                    self.status.failed += 1;
                    connection.say(&ToClient::Failed { step, errno }, None);
                    connection.leave();
                    return;
                }
            }
        }
        let Some(child) = &mut connection.child else { return };
        if matches!(child.progress, Progress::Filtering) {
            // Kernels that do not count filters tell of no failure either: the child would end by itself.
            let is_there = || child.process.filters().is_none_or(|count| count > self.filters);
            if !child.is_filtered || is_there() {
                child.progress = Progress::Running;
                self.status.started += 1;
                self.status.from_spares += u64::from(child.from_spare);
                let started = ToClient::Started { pid: child.process.pid.as_raw(), from_spare: child.from_spare };
                let copy = child.process.as_fd().try_clone_to_owned();
                connection.say(&started, copy.as_ref().ok().map(AsFd::as_fd));
            }
        }
    }

    /// Takes leave of a child that has ended.
    fn reap(&mut self, index: usize) {
        let has_ended = |one: &Connection| one.child.as_ref().is_some_and(|child| child.process.has_ended());
        if !has_ended(&self.connections[index]) {
            return;
        }
        // Between the last look and its end it may have come further. What it has said and its filter are there until it is reaped.
        self.advance(index);
        let connection = &mut self.connections[index];
        let Some(child) = &connection.child else { return };
        let Some(ending) = child.process.ended() else { return };
        let last = match (&child.progress, ending) {
            (Progress::Running, ending) => ToClient::Ended(ending),
            (Progress::Filtering, crate::Ending::Exited(errno)) => ToClient::Failed { step: Step::Filter, errno },
            _ => ToClient::Failed { step: Step::Fork, errno: 0 },
        };
        if !matches!(last, ToClient::Ended(_)) && connection.socket.is_some() {
            self.status.failed += 1;
        }
        connection.child = None;
        connection.say(&last, None);
        connection.leave();
    }

    /// Refuses those who had nothing to say until the last look.
    fn send_away_the_silent(&mut self, looked: Instant) {
        for index in 0..self.connections.len() {
            if self.connections[index].until.is_some_and(|until| until <= looked) {
                let why = format!("no request came within {} s", PATIENCE.as_secs());
                self.refuse(index, Refusal::malformed(why));
            }
        }
        self.connections.retain(|one| !one.is_over());
    }

    pub(crate) fn alive(&self) -> usize {
        self.connections.iter().filter(|one| one.child.is_some()).count()
    }

    fn status_now(&self) -> Status {
        let now = Instant::now();
        Status {
            alive: self.alive() as u64,
            connections: self.connections.len() as u64,
            spares: self.spares.count() as u64,
            spares_wanted: u64::from(self.wanted_spares(now)),
            spares_dropped: self.spares.dropped,
            arrivals_per_second: self.demand.rate(now),
            start_ms: self.demand.start() * 1e3,
            ..self.status
        }
    }

    /// Ends all children, and notifies their clients.
    fn end_all(&mut self) {
        self.spares.drop_all(Instant::now());
        for child in self.connections.iter().filter_map(|one| one.child.as_ref()) {
            child.process.signal(libc::SIGKILL);
        }
        let until = Instant::now() + END;
        while Instant::now() < until {
            for index in 0..self.connections.len() {
                self.advance(index);
                self.reap(index);
            }
            self.spares.reap();
            if self.alive() == 0 && self.spares.is_gone() {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        self.connections.clear();
    }

    /// Borrowed for a look at a process.
    pub(crate) fn process_of(pid: nix::unistd::Pid) -> io::Result<Process> {
        Process::of_child(pid).inspect_err(|_| {
            // Not reaped yet, so the number is still this child's.
            let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
            let _ = nix::sys::wait::waitpid(pid, None);
        })
    }
}
