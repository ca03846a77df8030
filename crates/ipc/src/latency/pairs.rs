//! The processes of a latency benchmark: a server and a client for each pair, held back until all are ready.
//!
//! Init, start and done go through a pipe each way between the parent and every process, as in the original. A process that
//! dies ends its pair, not the others.

use super::message::Reply;
use crate::children::{Child, Ending};
use crate::scheduling::pin;
use crate::transport::{Client, IpcError, Pair, Server, Transport};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

/// How often a waiting parent looks at what else happens, in ms.
const LOOK: u8 = 20;

/// Where the two processes of a pair run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// CPU of the client; `None` leaves it to the scheduler.
    pub client: Option<usize>,
    /// CPU of the server.
    pub server: Option<usize>,
}

/// A child and the pipes to it.
pub(super) struct Party {
    pub(super) child: Child,
    to: File,
    from: File,
}

/// The child's side of the pipes.
pub(super) struct Wire {
    to: File,
    from: File,
}

impl Wire {
    /// Says that this step is done, and waits for the parent's word to go on.
    pub(super) fn step(&mut self) -> io::Result<()> {
        self.to.write_all(&[1])?;
        self.from.read_exact(&mut [0])
    }
}

impl Party {
    /// Forks a child that has a wire.
    pub(super) fn start(work: impl FnOnce(Wire) -> i32) -> Result<Self, IpcError> {
        let pipe = || -> Result<(File, File), IpcError> {
            let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)
                .map_err(|errno| IpcError::system("pipe", errno.into()))?;
            Ok((read.into(), write.into()))
        };
        let ((their_from, to), (from, their_to)) = (pipe()?, pipe()?);
        let mut wire = Some(Wire { to: their_to, from: their_from });
        let child = Child::start(|| wire.take().map_or(1, work))?;
        drop(wire);
        Ok(Self { child, to, from })
    }

    /// Lets the child go on; one that is gone is noticed elsewhere.
    pub(super) fn go(&mut self) {
        let _ = self.to.write_all(&[1]);
    }

    /// Waits until the child finished its step. `Err` when it ended instead, or `abandon` says to stop waiting.
    pub(super) fn finished(&mut self, abandon: &mut dyn FnMut() -> bool) -> Result<(), Option<Ending>> {
        loop {
            let mut waiting = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            let answered = poll(&mut waiting, PollTimeout::from(LOOK)).is_ok_and(|number| number > 0);
            if answered && self.from.read_exact(&mut [0]).is_ok() {
                return Ok(());
            }
            if let Some(ending) = self.child.ended() {
                return Err(Some(ending));
            }
            if abandon() {
                return Err(None);
            }
        }
    }
}

/// What a client does between start and done. Its result is the exit code after "done".
pub(super) type Calling<'a> = dyn Fn(usize, &mut Caller) -> io::Result<()> + 'a;

/// How a client calls, whatever the transport.
pub(super) enum Caller {
    /// Through a transport, to a process.
    Remote(Box<dyn Client>, u32),
    /// In the same process.
    Direct(Option<fn()>),
}

impl Caller {
    /// The process that serves.
    pub(super) fn server(&self) -> u32 {
        match self {
            Self::Remote(_, server) => *server,
            Self::Direct(_) => std::process::id(),
        }
    }

    /// One round trip.
    pub(super) fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<Reply> {
        match self {
            Self::Remote(client, _) => client.call(request, reply)?,
            Self::Direct(work) => {
                reply.clear();
                reply.extend_from_slice(&Reply::to(request, *work).to_bytes());
            }
        }
        Reply::from_bytes(reply).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a reply that is too short"))
    }
}

/// Processes of one pair.
pub(super) struct Running {
    pub(super) client: Party,
    pub(super) server: Option<Party>,
}

/// Starts all pairs, and waits until every process is ready.
///
/// # Errors
/// A transport or a process cannot be had, one ended before it was ready, or `stop` says so.
pub(super) fn start(
    transport: &'static Transport,
    places: &[Placement],
    largest: usize,
    work: Option<fn()>,
    calling: &Calling,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Running>, IpcError> {
    let mut clients: Vec<Option<Box<dyn Client>>> = Vec::new();
    let mut servers: Vec<Option<Box<dyn Server>>> = Vec::new();
    for _ in places {
        match (transport.connect)(largest) {
            Ok(Pair::Processes { client, server }) => {
                clients.push(Some(client));
                servers.push(Some(server));
            }
            Ok(Pair::Direct) => {
                clients.push(None);
                servers.push(None);
            }
            Err(source) => return Err(IpcError::Connect { transport: transport.name, source }),
        }
    }
    let died = |role, ending: Option<Ending>| match ending {
        Some(ending) => IpcError::Died { role, transport: transport.name, ending: ending.to_string() },
        None => IpcError::Interrupted,
    };
    let mut parties = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let party = match servers[index].is_some() {
            false => None,
            true => Some(Party::start(|wire| {
                let own = servers[index].take();
                // A process holds its own end only, so that the death of the other is seen.
                servers.clear();
                clients.clear();
                own.map_or(1, |server| i32::from(serve(server, wire, place.server, work).is_err()))
            })?),
        };
        parties.push(party);
    }
    drop(servers);
    for server in parties.iter_mut().flatten() {
        server.finished(&mut || stop()).map_err(|ending| died("server", ending))?;
        server.go();
    }
    let mut running = Vec::new();
    for (index, (place, server)) in places.iter().zip(parties).enumerate() {
        let serving = server.as_ref().map_or(0, |server| server.child.pid());
        let client = Party::start(|mut wire| {
            let own = clients.get_mut(index).and_then(Option::take);
            clients.clear();
            let lived = own.map_or_else(
                || Ok(Caller::Direct(work)),
                |mut client| {
                    client.prepare()?;
                    Ok(Caller::Remote(client, serving))
                },
            );
            let lived = lived.and_then(|mut caller: Caller| {
                place.client.map_or(Ok(()), pin)?;
                wire.step()?;
                calling(index, &mut caller)?;
                wire.step()
            });
            i32::from(lived.is_err())
        })?;
        running.push(Running { client, server });
    }
    drop(clients);
    for pair in &mut running {
        pair.client.finished(&mut || stop()).map_err(|ending| died("client", ending))?;
    }
    Ok(running)
}

fn serve(mut server: Box<dyn Server>, mut wire: Wire, on: Option<usize>, work: Option<fn()>) -> io::Result<()> {
    on.map_or(Ok(()), pin)?;
    server.prepare()?;
    wire.step()?;
    loop {
        server.serve(&mut |request, reply| reply.extend_from_slice(&Reply::to(request, work).to_bytes()))?;
    }
}

/// Lets all go, waits until all clients are done, and ends everybody. Why each pair ended early, if so.
pub(super) fn run(mut pairs: Vec<Running>, stop: &dyn Fn() -> bool) -> Result<Vec<Option<String>>, IpcError> {
    for pair in &mut pairs {
        pair.client.go();
    }
    let mut reasons = Vec::new();
    let mut interrupted = false;
    for pair in &mut pairs {
        let server = &mut pair.server;
        let mut server_ended = None;
        let finished = pair.client.finished(&mut || {
            interrupted |= stop();
            server_ended = server.as_mut().and_then(|server| server.child.ended());
            interrupted || server_ended.is_some()
        });
        let server_ended = server_ended.or_else(|| server.as_mut().and_then(|server| server.child.ended()));
        reasons.push(match (finished, server_ended) {
            (Ok(()), _) => None,
            (Err(_), Some(ending)) => Some(format!("the server {ending}")),
            (Err(Some(ending)), None) => Some(format!("the client {ending}")),
            (Err(None), None) => Some("interrupted".to_owned()),
        });
    }
    Ok(reasons)
}
