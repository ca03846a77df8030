//! Who is let in: connections are accepted, or refused with a reason, also when no descriptor is free.

use crate::connection::Connection;
use crate::listener::accepted;
use crate::message::{Refusal, RefusalKind, ToClient};
use crate::server::{PATIENCE, Server};
use slowpath_process::Peer;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Connections that one turn accepts: everybody can make some, and those that are let in wait meanwhile.
const MOST_A_TURN: usize = 64;

/// How long nothing is accepted when no descriptor is free even for a refusal.
const PAUSE: Duration = Duration::from_millis(20);

impl Server<'_> {
    pub(crate) fn accept(&mut self) {
        for _ in 0..MOST_A_TURN {
            let socket = match accepted(&self.listener) {
                Ok(socket) => socket,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    let Some(socket) = self.accepted_with_reserve() else {
                        self.accepts_from = Instant::now() + PAUSE;
                        return;
                    };
                    // One may have become free in the meantime.
                    if self.reserve.is_none() {
                        self.refuse_without_descriptor(socket);
                        continue;
                    }
                    socket
                }
                Err(_) => return,
            };
            let now = Instant::now();
            let Ok(peer) = Peer::of(&socket) else { continue };
            let mut connection = Connection::new(socket, peer, now + PATIENCE);
            let most = self.policy.children as usize * 2 + 64;
            let allowed = self.policy.may_ask(&connection.peer, &self.own).and_then(|()| {
                let why = format!("{most} connections are open, the most that this zygote takes");
                if self.connections.len() < most { Ok(()) } else { Err(Refusal::new(RefusalKind::Busy, why)) }
            });
            match allowed {
                Ok(()) => self.connections.push(connection),
                Err(refusal) => {
                    self.status.refused += 1;
                    connection.say(&ToClient::Refused(refusal), None);
                }
            }
        }
    }

    /// A connection where no descriptor is free: takes the one that is kept for that, and keeps another one if it can. `None`: nobody
    /// waits, or it is not enough.
    fn accepted_with_reserve(&mut self) -> Option<OwnedFd> {
        let had_reserve = self.reserve.take().is_some();
        let socket = if had_reserve { accepted(&self.listener).ok() } else { None };
        self.keep_reserve();
        socket
    }

    fn keep_reserve(&mut self) {
        self.reserve = File::open("/dev/null").ok();
    }

    /// Tells a client that no descriptor is free.
    fn refuse_without_descriptor(&mut self, socket: OwnedFd) {
        let nobody = Peer { pid: 0, uid: 0, gid: 0, groups: Vec::new() };
        let why = "the zygote has no descriptor left (RLIMIT_NOFILE): ask again when children have ended";
        let refusal = Refusal::new(RefusalKind::Busy, why);
        self.status.refused += 1;
        Connection::new(socket, nobody, Instant::now()).say(&ToClient::Refused(refusal), None);
        self.keep_reserve();
    }
}
