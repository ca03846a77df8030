//! Messages over descriptors that carry bytes or short messages: four bytes of length in front, one call a message where
//! the kernel takes it whole.

use super::{Answer, Client, Pair, Server};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Length of the header: the payload's length, native byte order (both ends are on one machine).
pub(super) const HEADER: usize = 4;
/// What is read at once beyond a message: no receiving end of a message queue may be smaller than the queue's messages.
const SLACK: usize = 64 * 1024;

/// How bytes go through a descriptor.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    /// Sends some bytes, and says how many.
    pub send: fn(i32, &[u8]) -> isize,
    /// Receives up to as many bytes as there is room for; 0 is the end.
    pub receive: fn(i32, &mut [u8]) -> isize,
    /// Bytes that one call may send.
    pub at_once: usize,
}

/// write(2) and read(2).
pub(super) const PLAIN: Calls = Calls {
    // SAFETY: the buffer is alive and as long as is said.
    send: |fd, bytes| unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) },
    // SAFETY: as above.
    receive: |fd, bytes| unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) },
    at_once: usize::MAX,
};

/// send(2) without a signal when the other end is gone, and recv(2).
pub(super) const SOCKET: Calls = Calls {
    // SAFETY: the buffer is alive and as long as is said.
    send: |fd, bytes| unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) },
    // SAFETY: as above.
    receive: |fd, bytes| unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0) },
    at_once: usize::MAX,
};

/// One end.
struct End {
    incoming: OwnedFd,
    outgoing: OwnedFd,
    calls: Calls,
    largest: usize,
    sent: Vec<u8>,
    received: Vec<u8>,
    answered: Vec<u8>,
}

impl End {
    fn new(incoming: OwnedFd, outgoing: OwnedFd, calls: Calls, largest: usize) -> Self {
        let received = vec![0; HEADER + largest + SLACK];
        Self {
            incoming,
            outgoing,
            calls,
            largest,
            sent: Vec::with_capacity(HEADER + largest),
            received,
            answered: Vec::new(),
        }
    }

    /// Sends what stands in `sent` behind the header.
    fn flush(&mut self) -> io::Result<()> {
        let length = self.sent.len() - HEADER;
        if length > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload beyond what was agreed"));
        }
        self.sent[..HEADER].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
        let mut rest = &self.sent[..];
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(self.calls.at_once)];
            match (self.calls.send)(self.outgoing.as_raw_fd(), piece) {
                sent if sent > 0 => rest = &rest[sent.unsigned_abs()..],
                _ => retry()?,
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> &mut Vec<u8> {
        self.sent.clear();
        self.sent.extend([0; HEADER]);
        &mut self.sent
    }

    /// Receives a whole message; the payload's place in `received`. Strict turns: nothing follows it.
    fn receive(&mut self) -> io::Result<std::ops::Range<usize>> {
        let mut have = 0;
        loop {
            match (self.calls.receive)(self.incoming.as_raw_fd(), &mut self.received[have..]) {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more if more > 0 => have += more.unsigned_abs(),
                _ => retry()?,
            }
            let Some(header) = self.received[..have].first_chunk::<HEADER>() else { continue };
            let end = HEADER + u32::from_ne_bytes(*header) as usize;
            if end > HEADER + self.largest || have > end {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a message of the other end"));
            }
            if have == end {
                return Ok(HEADER..end);
            }
        }
    }
}

/// After a call that failed: goes on when a signal interrupted it.
fn retry() -> io::Result<()> {
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

impl Client for End {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.begin().extend_from_slice(request);
        self.flush()?;
        let place = self.receive()?;
        reply.clear();
        reply.extend_from_slice(&self.received[place]);
        Ok(())
    }
}

impl Server for End {
    fn serve(&mut self, answer: &mut Answer) -> io::Result<()> {
        let place = self.receive()?;
        let mut answered = std::mem::take(&mut self.answered);
        answered.clear();
        answer(&self.received[place], &mut answered);
        self.begin().extend_from_slice(&answered);
        self.answered = answered;
        self.flush()
    }
}

/// A pair from descriptors: the request's way (reading, writing), and the reply's.
pub(super) fn pair(request: (OwnedFd, OwnedFd), reply: (OwnedFd, OwnedFd), calls: Calls, largest: usize) -> Pair {
    Pair::Processes {
        client: Box::new(End::new(reply.0, request.1, calls, largest)),
        server: Box::new(End::new(request.0, reply.1, calls, largest)),
    }
}

/// A pair from the two ends of one two-way connection.
pub(super) fn duplex(client: OwnedFd, server: OwnedFd, calls: Calls, largest: usize) -> io::Result<Pair> {
    let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
    Ok(pair((server, client), (client_too, server_too), calls, largest))
}
