//! How long a child takes until it is ready, made in one way or another; what a benchmark's arms are.
//!
//! Ready means: everything is preloaded, and the child's work could begin. All children report it alike, through a socket that is theirs
//! alone, and the clock of the one who asked stops when the report can be read. Leaves to others which is started when, and statistics.

use crate::client::Client;
use crate::connection::Process;
use crate::listener::Bound;
use crate::message::SpawnRequest;
use crate::policy::Policy;
use crate::preload::{Handed, Preload, Started, single_threaded, start, start_once};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use slowpath_process::size_field;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a child may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// A child that is ready, and ends when this is dropped.
#[derive(Debug)]
pub struct Ready {
    /// Until it was.
    pub after: Duration,
    /// Its process id.
    pub pid: u32,
    channel: UnixStream,
    /// What of it is to be waited for by us.
    own: Option<Process>,
    /// What its connection hangs on.
    asked: Option<crate::client::Spawned>,
}

impl Ready {
    /// Its proportional share of memory in bytes (`Pss` of `smaps_rollup`, proc_pid_smaps(5)).
    pub fn pss(&self) -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)).ok()?;
        size_field(&text, "Pss").map(|bytes| bytes as f64)
    }

    /// Ends it, and waits until it is gone, so that the next does not share the CPUs with it.
    pub fn end(self) {
        let Self { pid, channel, own, asked, .. } = self;
        drop(channel);
        if let Some(asked) = asked {
            let _ = asked.wait_for(PATIENCE);
        }
        let until = Instant::now() + PATIENCE;
        let is_there =
            || own.as_ref().map_or_else(|| Path::new(&format!("/proc/{pid}")).exists(), |own| own.ended().is_none());
        while is_there() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// A socket pair: ours, the child's.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (own, other) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    Ok((UnixStream::from(own), other))
}

/// Waits for a report.
fn reported(channel: &mut UnixStream) -> io::Result<u32> {
    channel.set_read_timeout(Some(PATIENCE))?;
    let mut pid = [0u8; 4];
    channel.read_exact(&mut pid).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("the child ended before it was ready"),
        io::ErrorKind::WouldBlock => io::Error::other("the child was not ready in time"),
        _ => error,
    })?;
    Ok(u32::from_ne_bytes(pid))
}

/// One way to have a child.
pub trait StartMethod {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it does, in words.
    fn words(&self) -> &'static str;
    /// Has one.
    ///
    /// # Errors
    /// There is none.
    fn start(&mut self) -> io::Result<Ready>;
}

/// A program that is executed (posix_spawn(3)) and preloads for itself.
#[derive(Debug)]
pub struct Executed<'a>(pub &'a Preload);

impl StartMethod for Executed<'_> {
    fn name(&self) -> &'static str {
        "posix_spawn"
    }

    fn words(&self) -> &'static str {
        "a program that is executed and preloads for itself"
    }

    fn start(&mut self) -> io::Result<Ready> {
        let (mut channel, other) = pair()?;
        let began = Instant::now();
        let pid = start_once(self.0, &other)?;
        drop(other);
        let own = Process::of_child(pid)?;
        let pid = reported(&mut channel)?;
        Ok(Ready { after: began.elapsed(), pid, channel, own: Some(own), asked: None })
    }
}

/// Such a program, started ahead: one always waits, and is replaced while nobody asks.
#[derive(Debug)]
pub struct SparePool<'a> {
    preload: &'a Preload,
    waiting: Option<Ready>,
}

impl<'a> SparePool<'a> {
    /// With one that waits.
    ///
    /// # Errors
    /// It does not start.
    pub fn new(preload: &'a Preload) -> io::Result<Self> {
        Ok(Self { preload, waiting: Some(Executed(preload).start()?) })
    }
}

impl StartMethod for SparePool<'_> {
    fn name(&self) -> &'static str {
        "spare_pool"
    }

    fn words(&self) -> &'static str {
        "such a program, started ahead of the request, of which one always waits; the next is started outside of the measured time"
    }

    fn start(&mut self) -> io::Result<Ready> {
        let mut taken = self.waiting.take().map_or_else(|| Executed(self.preload).start(), Ok)?;
        let began = Instant::now();
        taken.channel.write_all(b"?")?;
        reported(&mut taken.channel)?;
        taken.after = began.elapsed();
        self.waiting = Some(Executed(self.preload).start()?);
        Ok(taken)
    }
}

/// A child of a zygote.
#[derive(Debug)]
pub struct Zygote {
    name: &'static str,
    words: &'static str,
    spares: u32,
    bound: Bound,
    process: Process,
    /// What its start took.
    pub start: Duration,
}

impl Zygote {
    /// One without spares, or with some, at this socket.
    ///
    /// # Errors
    /// It does not start.
    pub fn new(preload: &Preload, socket: &Path, spares: u32) -> io::Result<Self> {
        let bound = Bound::at(socket).map_err(io::Error::other)?;
        let policy = Policy { spares, most_spares: spares, ..Policy::default() };
        let began = Instant::now();
        let Started { pid, ready } =
            start(preload, &Handed { listener: Some(bound.socket()), policy: &policy.text() })?;
        let process = Process::of_child(pid)?;
        let timeout = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
        poll(&mut [PollFd::new(ready.as_fd(), PollFlags::POLLIN)], timeout)?;
        if nix::unistd::read(&ready, &mut [0u8; 1]) != Ok(1) {
            return Err(io::Error::other("the preloaded program ended before it was ready; its output is above"));
        }
        let (name, words) = match spares {
            0 => ("zygote", "a fork of a process that has preloaded"),
            _ => ("zygote_spares", "such a fork, made ahead of the request; the next is made when nobody asks"),
        };
        Ok(Self { name, words, spares, bound, process, start: began.elapsed() })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.pid.as_raw()
    }
}

impl StartMethod for Zygote {
    fn name(&self) -> &'static str {
        self.name
    }

    fn words(&self) -> &'static str {
        self.words
    }

    fn start(&mut self) -> io::Result<Ready> {
        // A measurement of spares that waits for none would be one of forks.
        let until = Instant::now() + PATIENCE;
        while self.spares > 0 && Instant::now() < until {
            let status =
                Client::connect(self.bound.path()).and_then(|client| client.status()).map_err(io::Error::other)?;
            if status.spares > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let (mut channel, other) = pair()?;
        let request = SpawnRequest {
            arguments: vec!["probe".into()],
            descriptors: vec![3],
            probe: true,
            ..SpawnRequest::default()
        };
        let began = Instant::now();
        let client = Client::connect(self.bound.path()).map_err(io::Error::other)?;
        let asked = client.spawn(request, &[other.as_fd()]).map_err(io::Error::other)?;
        drop(other);
        let pid = reported(&mut channel)?;
        Ok(Ready { after: began.elapsed(), pid, channel, own: None, asked: Some(asked) })
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.process.signal(libc::SIGTERM);
        let until = Instant::now() + Duration::from_secs(5);
        while self.process.ended().is_none() {
            if Instant::now() >= until {
                self.process.signal(libc::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Python's own fork server (multiprocessing), with the same modules preloaded.
#[derive(Debug)]
pub struct ForkServer {
    driver: Child,
    control: UnixStream,
}

/// Starts a child for each descriptor that comes.
const DRIVER: &str = "
import multiprocessing, os, socket, sys
from multiprocessing.connection import Connection
PROBE = '''
import os, sys
ready = os.getpid().to_bytes(4, sys.byteorder)
while os.write(channel.fileno(), ready) and os.read(channel.fileno(), 1):
    pass
'''
context = multiprocessing.get_context('forkserver')
context.set_forkserver_preload(sys.argv[1].split(','))
control = socket.socket(fileno=0)
started = []
while True:
    message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
    if not message:
        break
    channel = Connection(descriptors[0])
    process = context.Process(target=exec, args=(PROBE, {'channel': channel}))
    process.start()
    channel.close()
    started = [one for one in started if one.is_alive()] + [process]
for one in started:
    one.kill()
    one.join()
";

impl ForkServer {
    /// One with these modules; its server is started by the first child.
    ///
    /// # Errors
    /// The interpreter cannot be executed.
    pub fn new(interpreter: &Path, modules: &[String]) -> io::Result<Self> {
        let (control, other) = pair()?;
        let mut command = Command::new(interpreter);
        command.envs(single_threaded(|name| std::env::var_os(name).is_some()));
        let driver = command.args(["-P", "-c", DRIVER]).arg(modules.join(",")).stdin(Stdio::from(other)).spawn()?;
        Ok(Self { driver, control })
    }
}

impl StartMethod for ForkServer {
    fn name(&self) -> &'static str {
        "forkserver"
    }

    fn words(&self) -> &'static str {
        "a process of Python's multiprocessing with the start method forkserver and the same modules preloaded"
    }

    fn start(&mut self) -> io::Result<Ready> {
        let (mut channel, other) = pair()?;
        let began = Instant::now();
        slowpath_process::send_packet(&self.control, b"?", &[other.as_fd()])?;
        drop(other);
        let pid = reported(&mut channel)?;
        Ok(Ready { after: began.elapsed(), pid, channel, own: None, asked: None })
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let _ = self.driver.wait();
    }
}
