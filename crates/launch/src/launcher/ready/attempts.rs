//! `tcp` and `http`: connection attempts at a fixed interval, at most one a time for each address.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket};

/// A connection that is neither accepted nor refused (full backlog) is given up after this, before TCP's own first
/// repetition (1 s) would decide.
const CONNECT_LIMIT: Duration = Duration::from_millis(200);
/// An HTTP server that accepted may take this long for its answer before it is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Attempts {
    addresses: Vec<SocketAddr>,
    request: Option<String>,
    flights: Vec<Flight>,
}

struct Flight {
    stream: TcpStream,
    address: SocketAddr,
    started: Instant,
    connected: bool,
    sent: usize,
    answer: Vec<u8>,
}

enum Progress {
    Waiting,
    Failed,
    Ready,
}

impl Attempts {
    pub(super) fn tcp(host: &str, port: u16) -> io::Result<Attempts> {
        let addresses = (host, port).to_socket_addrs()?.collect();
        Ok(Attempts { addresses, request: None, flights: Vec::new() })
    }

    pub(super) fn http(host: &str, port: u16, path: &str) -> io::Result<Attempts> {
        let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: slowpath\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        Ok(Attempts { request: Some(request), ..Self::tcp(host, port)? })
    }

    pub(super) fn descriptors(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let interest = |flight: &Flight| match &self.request {
            Some(request) if flight.connected && flight.sent == request.len() => PollFlags::POLLIN,
            _ => PollFlags::POLLOUT,
        };
        self.flights.iter().map(|flight| (flight.stream.as_fd(), interest(flight))).collect()
    }

    pub(super) fn look(&mut self, tick: bool) -> bool {
        if tick {
            for address in &self.addresses {
                if !self.flights.iter().any(|flight| flight.address == *address)
                    && let Ok(flight) = depart(*address)
                {
                    self.flights.push(flight);
                }
            }
        }
        let request = self.request.as_deref();
        let mut ready = false;
        self.flights.retain_mut(|flight| match flight.progress(request) {
            Progress::Ready => {
                ready = true;
                false
            }
            Progress::Failed => false,
            Progress::Waiting => flight.started.elapsed() < if flight.connected { ANSWER_LIMIT } else { CONNECT_LIMIT },
        });
        ready
    }
}

/// A socket that has begun to connect. Its own port is chosen first and is never the one it connects to: on loopback
/// the kernel would connect such a socket to itself, and the target would find its port taken.
fn depart(address: SocketAddr) -> io::Result<Flight> {
    let (family, own) = match address {
        SocketAddr::V4(v4) if v4.ip().is_loopback() => (AddressFamily::Inet, IpAddr::from(*v4.ip())),
        SocketAddr::V4(_) => (AddressFamily::Inet, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::Inet6, Ipv6Addr::UNSPECIFIED.into()),
    };
    for _ in 0..3 {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let stream = TcpStream::from(socket(family, SockType::Stream, flags, None)?);
        bind(stream.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(own, 0)))?;
        if stream.local_addr()?.port() == address.port() {
            continue;
        }
        let started = Instant::now();
        return Ok(Flight { stream, address, started, connected: false, sent: 0, answer: Vec::new() });
    }
    Err(io::ErrorKind::AddrInUse.into())
}

impl Flight {
    fn progress(&mut self, request: Option<&str>) -> Progress {
        if !self.connected {
            // A repeated connect(2) reports the state of the first.
            match connect(self.stream.as_raw_fd(), &SockaddrStorage::from(self.address)) {
                Ok(()) | Err(Errno::EISCONN) => self.connected = true,
                Err(Errno::EINPROGRESS | Errno::EALREADY | Errno::EINTR) => return Progress::Waiting,
                Err(_) => return Progress::Failed,
            }
        }
        let Some(request) = request else { return Progress::Ready };
        while self.sent < request.len() {
            match self.stream.write(&request.as_bytes()[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) => return waiting(&error),
            }
        }
        let mut buffer = [0; 512];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Progress::Failed,
                Ok(length) => self.answer.extend_from_slice(&buffer[..length]),
                Err(error) => return waiting(&error),
            }
            if let Some(status) = status(&self.answer) {
                return if status.is_some_and(|status| status < 500) { Progress::Ready } else { Progress::Failed };
            }
        }
    }
}

fn waiting(error: &io::Error) -> Progress {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Progress::Waiting,
        _ => Progress::Failed,
    }
}

/// The status of an answer: `None` while its first 12 bytes are not there, `Some(None)` when it is not HTTP.
pub(super) fn status(answer: &[u8]) -> Option<Option<u16>> {
    let head = answer.get(..12)?;
    let is_http = head.starts_with(b"HTTP/1.") && head[8] == b' ';
    Some(is_http.then(|| std::str::from_utf8(&head[9..]).ok()?.parse().ok()).flatten())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_is_read_only_when_its_status_is_complete() {
        assert_eq!(status(b"HTTP/1.1 20"), None);
        assert_eq!(status(b"HTTP/1.1 204 No"), Some(Some(204)));
        assert_eq!(status(b"SSH-2.0-OpenSSH_9"), Some(None));
    }

    #[test]
    fn a_closed_port_is_not_ready_and_an_open_one_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut attempts = Attempts::tcp("127.0.0.1", port).unwrap();
        assert!(!(0..20).any(|_| attempts.look(true)));
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!((0..20).any(|_| attempts.look(true)));
        drop(listener);
    }
}
