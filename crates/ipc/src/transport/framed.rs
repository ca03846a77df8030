//! Messages over descriptors that carry bytes or short messages: four bytes of length in front, one call a message where
//! the kernel takes it whole.

use super::{Client, Pair, RequestHandler, Server};
use crate::memory::append;
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Length of the header: the payload's length, native byte order (both ends are on one machine).
pub(super) const HEADER: usize = 4;

/// How bytes go through a descriptor. A type each, not a table of functions: between the caller and the kernel stands no call that
/// a CPU has to predict again after each switch.
pub(super) trait Calls: Copy + Send + 'static {
    /// What is read at once beyond a message: a byte, to see that more came than is right.
    const SLACK: usize = 1;

    /// Sends some bytes, and says how many.
    fn send(self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize>;

    /// Receives up to as many bytes as there is room for; 0 is the end.
    fn receive(self, fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize>;

    /// Bytes that one call may send.
    fn at_once(self) -> usize {
        usize::MAX
    }
}

/// write(2) and read(2).
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Calls for Plain {
    #[inline]
    fn send(self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        rustix::io::write(fd, bytes)
    }

    #[inline]
    fn receive(self, fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize> {
        rustix::io::read(fd, bytes)
    }
}

/// send(2) without a signal when the other end is gone, and recv(2).
#[derive(Clone, Copy)]
pub(super) struct Socket;

impl Calls for Socket {
    #[inline]
    fn send(self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        send(fd, bytes, SendFlags::NOSIGNAL)
    }

    #[inline]
    fn receive(self, fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize> {
        recv(fd, bytes, RecvFlags::empty()).map(|(received, _)| received)
    }
}

/// One end.
struct End<C> {
    incoming: OwnedFd,
    outgoing: OwnedFd,
    calls: C,
    largest: usize,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl<C: Calls> End<C> {
    fn new(incoming: OwnedFd, outgoing: OwnedFd, calls: C, largest: usize) -> Self {
        let (sent, received) = (Vec::with_capacity(HEADER + largest), vec![0; HEADER + largest + C::SLACK]);
        Self { incoming, outgoing, calls, largest, sent, received }
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
            let piece = &rest[..rest.len().min(self.calls.at_once())];
            match self.calls.send(self.outgoing.as_fd(), piece) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives a whole message; the payload's place in `received`. Strict turns: nothing follows it.
    fn receive(&mut self) -> io::Result<std::ops::Range<usize>> {
        let mut have = 0;
        loop {
            match self.calls.receive(self.incoming.as_fd(), &mut self.received[have..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => have += more,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
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

/// Makes room for the header of a message.
fn begin(message: &mut Vec<u8>) {
    message.clear();
    message.extend([0; HEADER]);
}

impl<C: Calls> Client for End<C> {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        begin(&mut self.sent);
        append(request, &mut self.sent);
        self.flush()?;
        let place = self.receive()?;
        reply.clear();
        append(&self.received[place], reply);
        Ok(())
    }
}

impl<C: Calls> Server for End<C> {
    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        let place = self.receive()?;
        begin(&mut self.sent);
        answer(&self.received[place], &mut self.sent);
        self.flush()
    }
}

/// A pair from descriptors: the request's way (reading, writing), and the reply's.
pub(super) fn pair<C: Calls>(request: (OwnedFd, OwnedFd), reply: (OwnedFd, OwnedFd), calls: C, largest: usize) -> Pair {
    Pair::Processes {
        client: Box::new(End::new(reply.0, request.1, calls, largest)),
        server: Box::new(End::new(request.0, reply.1, calls, largest)),
    }
}

/// A pair from the two ends of one two-way connection.
pub(super) fn duplex<C: Calls>(client: OwnedFd, server: OwnedFd, calls: C, largest: usize) -> io::Result<Pair> {
    let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
    Ok(pair((server, client), (client_too, server_too), calls, largest))
}
