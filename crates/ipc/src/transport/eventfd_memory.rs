//! Payloads in shared memory, wake-ups by eventfd.

use super::{Answer, Client, Pair, Server, Transport, always};
use crate::mailbox::Mailbox;
use slowpath_tables::OffCpuReason;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "eventfd-shm",
    title: "eventfd and shared memory",
    documentation: "Payloads in memory that both processes map, each wake-up a write to and a read from an eventfd(2): the cheapest \
                    wake-up that poll and epoll can wait for (vhost, VFIO, wl_shm with fences).",
    waits: OffCpuReason::PipeOrSocket,
    check: always,
    connect: |largest| {
        let memory = Arc::new(Mailbox::new(largest)?);
        let (request, reply) = (eventfd()?, eventfd()?);
        let client = End { memory: Arc::clone(&memory), incoming: reply.try_clone()?, outgoing: request.try_clone()? };
        let server = End { memory, incoming: request, outgoing: reply };
        Ok(Pair::Processes { client: Box::new(client), server: Box::new(server) })
    },
};

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

struct End {
    memory: Arc<Mailbox>,
    incoming: OwnedFd,
    outgoing: OwnedFd,
}

impl End {
    fn signal(&self) -> io::Result<()> {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes of ours.
        match unsafe { libc::write(self.outgoing.as_raw_fd(), one.as_ptr().cast(), one.len()) } {
            8 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn wait(&self) -> io::Result<()> {
        let mut count = [0u8; 8];
        loop {
            // SAFETY: eight bytes of ours.
            if unsafe { libc::read(self.incoming.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) } == 8 {
                return Ok(());
            }
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            }
        }
    }
}

impl Client for End {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.memory.put_request(request)?;
        self.signal()?;
        self.wait()?;
        self.memory.take_reply(reply)
    }
}

impl Server for End {
    fn serve(&mut self, answer: &mut Answer) -> io::Result<()> {
        self.wait()?;
        self.memory.answer(answer)?;
        self.signal()
    }
}
