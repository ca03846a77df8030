//! A server process and a client process that stay, and run bursts of echoes when the parent asks.
//!
//! Owns the processes and the wire between parent and client. How many iterations a burst has, and what its times mean, is
//! for the caller.

use crate::children::{Child, Ending};
use crate::memory::append;
use crate::scheduling::{now_ns, process_cpu_ns};
use crate::transport::{Client, IpcError, Pair, Transport};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How often a waiting parent looks whether it was interrupted, in ms.
const LOOK: u8 = 50;
/// How long a process may take from closing its ends to its end.
const END: Duration = Duration::from_millis(200);

/// Times of a burst.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    /// Round trips.
    pub iterations: u64,
    /// Wall time of all of them.
    pub real_ns: u64,
    /// CPU time of the client's process for all of them.
    pub cpu_ns: u64,
    /// Wall time of a round trip in each of its parts, in their order, in ns: what the interval of a run rests on.
    pub parts: Vec<f64>,
}

impl Burst {
    /// Wall time of one round trip, in ns.
    pub fn real_each(&self) -> f64 {
        self.real_ns as f64 / self.iterations.max(1) as f64
    }

    /// CPU time of one round trip, in ns.
    pub fn cpu_each(&self) -> f64 {
        self.cpu_ns as f64 / self.iterations.max(1) as f64
    }
}

/// A connected pair of processes.
#[derive(Debug)]
pub struct Session {
    transport: &'static Transport,
    commands: File,
    results: File,
    client: Child,
    server: Option<Child>,
}

/// Parts of a burst: enough for an interval of the median, and few enough that reading the clock between them costs nothing.
const PARTS: u64 = 20;
/// What crosses the wire: two numbers to the client, three and the end of each part back.
const COMMAND: usize = 16;
const RESULT: usize = 24 + 8 * PARTS as usize;
/// First number of a result: the burst ran, the call failed, the reply was something else.
const RAN: u64 = 0;
const FAILED: u64 = 1;
const WRONG: u64 = 2;

impl Session {
    /// Starts both processes for payloads up to `largest` bytes.
    ///
    /// # Errors
    /// The transport does not work here, or the kernel makes no process.
    pub fn start(transport: &'static Transport, largest: usize) -> Result<Self, IpcError> {
        let pair =
            (transport.connect)(largest).map_err(|source| IpcError::Connect { transport: transport.name, source })?;
        let wire = || pipe().map_err(|source| IpcError::system("pipe", source));
        let ((their_commands, commands), (results, their_results)) = (wire()?, wire()?);
        let (client, server) = match pair {
            Pair::Direct => (None, None),
            Pair::Processes { client, server } => (Some(client), Some(server)),
        };
        let (mut server_ready, their_ready) = wire()?;
        let (server, client) = match (server, client) {
            (Some(mut server), Some(client)) => {
                // Each process holds its own end only, so that the death of the other is seen as the end of the connection.
                let mut ends = Some((client, their_ready));
                let child = Child::start(|| {
                    let Some((client, mut ready)) = ends.take() else { return 1 };
                    drop(client);
                    let prepared = server.prepare().and_then(|()| ready.write_all(&[1]));
                    drop(ready);
                    match prepared {
                        Ok(()) => loop {
                            if server.serve(&mut append).is_err() {
                                return 0;
                            }
                        },
                        Err(_) => 1,
                    }
                })?;
                drop(server);
                let client = ends.take().map(|(client, _)| client);
                let mut ready = [0];
                server_ready
                    .read_exact(&mut ready)
                    .map_err(|source| IpcError::Connect { transport: transport.name, source })?;
                (Some(child), client)
            }
            _ => (None, None),
        };
        let mut parts = Some((client, their_commands, their_results));
        let child = Child::start(|| {
            let Some((client, commands, results)) = parts.take() else { return 1 };
            i32::from(obey(client, commands, results).is_err())
        })?;
        drop(parts);
        Ok(Self { transport, commands, results, client: child, server })
    }

    /// Runs `iterations` echoes of `size` bytes, after one that is checked byte by byte.
    ///
    /// # Errors
    /// A process died, the reply is not what was sent, or `stop` says so.
    pub fn burst(&mut self, size: usize, iterations: u64, stop: &dyn Fn() -> bool) -> Result<Burst, IpcError> {
        let mut command = [0; COMMAND];
        command[..8].copy_from_slice(&(size as u64).to_ne_bytes());
        command[8..].copy_from_slice(&iterations.to_ne_bytes());
        if self.commands.write_all(&command).is_err() {
            return Err(self.died("client"));
        }
        loop {
            if stop() {
                return Err(IpcError::Interrupted);
            }
            let mut waiting = [PollFd::new(self.results.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::from(LOOK)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {
                    if self.server.as_mut().is_some_and(|server| server.ended().is_some()) {
                        return Err(self.died("server"));
                    }
                }
                Ok(_) => break,
                Err(errno) => return Err(IpcError::system("poll", errno.into())),
            }
        }
        let mut result = [0; RESULT];
        if self.results.read_exact(&mut result).is_err() {
            return Err(self.died("client"));
        }
        let number = |at: usize| result[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        match number(0) {
            RAN => {
                let ends = (0..PARTS).map(|part| number(24 + 8 * part as usize));
                Ok(Burst { iterations, real_ns: number(8), cpu_ns: number(16), parts: parts(iterations, ends) })
            }
            WRONG => Err(IpcError::Corrupted { transport: self.transport.name, size }),
            _ => Err(self.died("server")),
        }
    }

    fn died(&mut self, role: &'static str) -> IpcError {
        // A process that is killed closes what it has a moment before it can be seen to have ended.
        let until = Instant::now() + END;
        while self.server.as_mut().is_some_and(|server| server.ended().is_none()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A client that cannot reach its server ends, too; a server whose client is gone ends in order.
        let has_failed = |server: &mut Child| server.ended().is_some_and(|ending| ending != Ending::Exited(0));
        let role = if self.server.as_mut().is_some_and(has_failed) { "server" } else { role };
        let child = match (role, &mut self.server) {
            ("server", Some(server)) => server,
            _ => &mut self.client,
        };
        let ending = child.ended().map_or_else(|| "closed its connection".to_owned(), |ending| ending.to_string());
        IpcError::Died { role, transport: self.transport.name, ending }
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    Ok((read.into(), write.into()))
}

/// The client's life: one command after the other until the parent closes the wire.
fn obey(mut client: Option<Box<dyn Client>>, mut commands: File, mut results: File) -> io::Result<()> {
    if let Some(client) = &mut client {
        client.prepare()?;
    }
    loop {
        let mut command = [0; COMMAND];
        commands.read_exact(&mut command)?;
        let number = |at: usize| command[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let size = usize::try_from(number(0)).map_err(io::Error::other)?;
        let outcome = match &mut client {
            Some(client) => echo(size, number(8), |request, reply| client.call(request, reply)),
            None => echo(size, number(8), in_process),
        };
        let (state, times) = match outcome {
            Ok(Some(times)) => (RAN, times),
            Ok(None) => (WRONG, Times::default()),
            Err(_) => (FAILED, Times::default()),
        };
        let numbers = [state, times.real, times.cpu].into_iter().chain(times.ends);
        results.write_all(&numbers.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())?;
    }
}

/// The answer as a function: never inlined, so that there is a call.
#[inline(never)]
fn in_process(request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
    reply.clear();
    reply.extend_from_slice(std::hint::black_box(request));
    Ok(())
}

/// What a client measured, in ns: wall and CPU time, and when each part ended, from the start.
#[derive(Default)]
struct Times {
    real: u64,
    cpu: u64,
    ends: [u64; PARTS as usize],
}

/// Which round trip ends a part: parts of equal length, but for one.
fn end_of(part: u64, iterations: u64) -> u64 {
    // At most 10^9 iterations: no overflow.
    iterations * (part + 1) / PARTS
}

/// Time of a round trip in each part that has one.
fn parts(iterations: u64, ends: impl Iterator<Item = u64>) -> Vec<f64> {
    let (mut done, mut before) = (0, 0);
    let mut parts = Vec::new();
    for (part, end) in (0..).zip(ends) {
        let last = end_of(part, iterations);
        if last > done {
            parts.push(end.saturating_sub(before) as f64 / (last - done) as f64);
        }
        (done, before) = (last, end);
    }
    parts
}

/// Times of `iterations` round trips; `None` when a reply is not the request.
fn echo(
    size: usize,
    iterations: u64,
    mut call: impl FnMut(&[u8], &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<Option<Times>> {
    let request: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
    let mut reply = Vec::new();
    call(&request, &mut reply)?;
    if reply != request {
        return Ok(None);
    }
    let (cpu, real) = (process_cpu_ns(), now_ns());
    let mut ends = [0; PARTS as usize];
    let mut done = 0;
    for (part, end) in (0..).zip(&mut ends) {
        let last = end_of(part, iterations);
        while done < last {
            call(&request, &mut reply)?;
            std::hint::black_box(&reply);
            done += 1;
        }
        *end = now_ns() - real;
    }
    let (real_after, cpu_after) = (now_ns(), process_cpu_ns());
    if reply != request {
        return Ok(None);
    }
    Ok(Some(Times { real: real_after - real, cpu: cpu_after - cpu, ends }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{ALL, named};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    #[test]
    fn every_transport_echoes_between_two_processes_in_every_size() {
        for transport in ALL.iter().filter(|transport| (transport.check)().is_ok()) {
            let mut session = Session::start(transport, 65536).unwrap();
            for size in [0, 4, 4096, 65536] {
                let burst = session.burst(size, 3, &|| false).unwrap();
                assert_eq!(burst.iterations, 3, "{}", transport.name);
                assert!(burst.real_ns > 0);
            }
        }
    }

    #[test]
    fn a_server_that_is_killed_is_named_and_nobody_waits_for_it() {
        for transport in ALL.iter().filter(|transport| (transport.check)().is_ok()) {
            let mut session = Session::start(transport, 64).unwrap();
            let Some(server) = &session.server else { continue };
            kill(Pid::from_raw(server.pid().cast_signed()), Signal::SIGKILL).unwrap();
            let error = loop {
                // A burst that was under way may still be answered.
                if let Err(error) = session.burst(4, 1, &|| false) {
                    break error;
                }
            };
            assert!(matches!(error, IpcError::Died { role: "server", .. }), "{}: {error}", transport.name);
        }
    }

    #[test]
    fn a_client_that_is_killed_is_named() {
        let mut session = Session::start(named("pipe").unwrap(), 64).unwrap();
        kill(Pid::from_raw(session.client.pid().cast_signed()), Signal::SIGKILL).unwrap();
        let error = session.burst(4, 1, &|| false).unwrap_err();
        assert!(matches!(error, IpcError::Died { role: "client", .. }), "{error}");
    }

    #[test]
    fn the_parts_of_a_burst_add_up_to_it() {
        let mut session = Session::start(named("pipe").unwrap(), 64).unwrap();
        for (iterations, number) in [(1, 1), (7, 7), (20, 20), (1003, 20)] {
            let burst = session.burst(4, iterations, &|| false).unwrap();
            assert_eq!(burst.parts.len(), number, "{iterations}");
            let mut done = 0;
            let lengths = (0..PARTS).map(|part| end_of(part, iterations)).filter_map(|end| {
                let length = end - done;
                done = end;
                (length > 0).then_some(length as f64)
            });
            let sum: f64 = burst.parts.iter().zip(lengths).map(|(each, length)| each * length).sum();
            // The clock is read once more at the end.
            let real = burst.real_ns as f64;
            assert!(sum <= real * 1.000_001 && real - sum < 1e6, "{sum} of {real}");
        }
    }

    #[test]
    fn a_session_that_is_dropped_leaves_no_process() {
        let session = Session::start(named("futex-shm").unwrap(), 64).unwrap();
        let pids = [session.client.pid(), session.server.as_ref().unwrap().pid()];
        drop(session);
        assert!(pids.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    }
}
