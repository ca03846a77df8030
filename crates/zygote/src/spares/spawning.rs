//! What the server does with spares: makes them ahead, and gives one to a request or forks where none waits.
//!
//! Owns when the server forks; which children wait is [`Spares`]' own, what a child does after its fork [`crate::child`]'s.

use super::{AFTER_FAILURE, Spare};
use crate::child::{ForkError, Order, forked, wait_for_order};
use crate::connection::{Process, Progress, Running};
use crate::message::{AskedIdentity, Refusal, RefusalKind, SpawnRequest, Step, ToClient, encoded};
use crate::namespaces::Namespace;
use crate::server::{ServeError, Server};
use nix::fcntl::OFlag;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::pipe2;
use slowpath_process::{Credentials, send_packet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

impl Server<'_> {
    pub(crate) fn wanted_spares(&self, now: Instant) -> u32 {
        self.demand.spares(now, self.policy.spares, self.policy.most_spares)
    }

    /// Whether a client waits for a child that is being made: a fork of the next spare would keep it waiting.
    pub(crate) fn is_making(&self) -> bool {
        let mut children = self.connections.iter().filter_map(|one| one.child.as_ref());
        children.any(|child| !matches!(child.progress, Progress::Running))
    }

    /// Makes one spare where one is missing, when nobody waits for a child: a turn of its own each.
    pub(crate) fn refill(&mut self) -> Result<(), ServeError> {
        if self.is_making() {
            return Ok(());
        }
        let now = Instant::now();
        let wanted = self.wanted_spares(now) as usize;
        if self.spares.count() > wanted {
            self.spares.end_down_to(wanted);
        }
        let is_late = self.spares.not_before.is_some_and(|not_before| now < not_before);
        if self.spares.count() >= wanted || is_late {
            return Ok(());
        }
        match self.make_spare() {
            Ok(()) => Ok(()),
            Err(ForkError::Fatal(errno)) => Err(ServeError::PidNamespace(errno)),
            Err(ForkError::NoChild(_)) => {
                self.spares.not_before = Some(now + AFTER_FAILURE);
                Ok(())
            }
        }
    }

    fn make_spare(&mut self) -> Result<(), ForkError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (channel, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map_err(|errno| ForkError::NoChild(errno.into()))?;
        let began = Instant::now();
        match forked(self.program, false)? {
            None => wait_for_order(other, self.origin, self.program),
            Some(pid) => {
                let process = Self::process_of(pid).map_err(ForkError::NoChild)?;
                // The zygote's own part of a start; the rest is done by the child, whose steps a request waits for anyway.
                self.demand.took(began.elapsed());
                self.spares.waiting.push(Spare { process, channel });
                Ok(())
            }
        }
    }

    /// Makes the child of a connection, if the policy has it: of a spare where one waits.
    pub(crate) fn spawn(&mut self, index: usize, spawn: &SpawnRequest) -> Result<(), ServeError> {
        self.demand.arrived(Instant::now());
        let (order, pipe) = match self.order(index, spawn) {
            Ok(made) => made,
            Err(refusal) => {
                self.refuse(index, refusal);
                return Ok(());
            }
        };
        let is_filtered = spawn.filter.is_some();
        let began = Instant::now();
        let running = |process, from_spare, pipe| Running {
            process,
            progress: Progress::Preparing(pipe),
            began,
            from_spare,
            is_filtered,
        };
        let in_pid_namespace = spawn.namespaces.contains(&Namespace::Pid);
        if !in_pid_namespace && let Some(process) = self.given_to_spare(&order) {
            self.connections[index].child = Some(running(process, true, pipe));
            return Ok(());
        }
        let failed = |server: &mut Self, error: &io::Error| match error.raw_os_error() {
            Some(errno) => {
                server.status.failed += 1;
                server.connections[index].say(&ToClient::Failed { step: Step::Fork, errno }, None);
                server.connections[index].leave();
            }
            None => server.refuse(index, Refusal::new(RefusalKind::Cannot, error.to_string())),
        };
        let origin = crate::child::Origin { in_new_pid_namespace: in_pid_namespace, ..self.origin };
        match forked(self.program, in_pid_namespace) {
            Ok(None) => crate::child::live(order, origin, self.program),
            Ok(Some(pid)) => match Self::process_of(pid) {
                Ok(process) => self.connections[index].child = Some(running(process, false, pipe)),
                Err(error) => failed(self, &error),
            },
            Err(ForkError::NoChild(error)) => failed(self, &error),
            Err(ForkError::Fatal(errno)) => return Err(ServeError::PidNamespace(errno)),
        }
        Ok(())
    }

    /// What a child is to be, and the pipe of its report.
    fn order(&self, index: usize, spawn: &SpawnRequest) -> Result<(Order, OwnedFd), Refusal> {
        let peer = &self.connections[index].peer;
        let credentials = self.policy.credentials(peer, &self.own, spawn.identity.as_ref())?;
        self.policy.namespaces(&self.own, spawn)?;
        let (alive, most) = (self.alive(), self.policy.children as usize);
        if alive >= most {
            let text = format!("{alive} children are alive, the most that the policy has (`children`)");
            return Err(Refusal::new(RefusalKind::Busy, text));
        }
        let busy = |what: &str, error: io::Error| Refusal::new(RefusalKind::Busy, format!("{what}: {error}"));
        let (pipe, report) =
            pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(|errno| busy("no pipe can be made", errno.into()))?;
        let socket = self.connections[index].socket.as_ref().map(OwnedFd::try_clone).transpose();
        let connection = socket
            .and_then(|socket| socket.ok_or_else(|| io::ErrorKind::NotConnected.into()))
            .map_err(|error| busy("the connection cannot be handed on", error))?;
        Ok((Order { credentials, connection, report }, pipe))
    }

    /// Gives an order to a spare that takes it.
    fn given_to_spare(&mut self, order: &Order) -> Option<Process> {
        let Credentials { uid, gid, groups } = order.credentials.clone();
        let bytes = encoded(&AskedIdentity { uid, gid, groups }).ok()?;
        let given = [order.report.as_fd(), order.connection.as_fd()];
        while let Some(spare) = self.spares.waiting.pop() {
            match send_packet(&spare.channel, &bytes, &given) {
                Ok(()) => return Some(spare.process),
                Err(_) => {
                    spare.process.signal(libc::SIGKILL);
                    self.spares.ending.push(spare.process);
                }
            }
        }
        None
    }
}
