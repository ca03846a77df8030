//! Payloads in shared memory, wake-ups by eventfd.

use super::{Client, Pair, RequestHandler, Server, Transport, always};
use crate::mailbox::Mailbox;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use slowpath_tables::OffCpuReason;
use std::io;
use std::os::fd::OwnedFd;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "eventfd-shm",
    title: "eventfd and shared memory",
    documentation: "Payloads in memory that both processes map, each wake-up a write to and a read from an eventfd(2): the cheapest \
                    wake-up that poll and epoll can wait for (vhost, VFIO, wl_shm with fences).",
    waits: OffCpuReason::PipeOrSocket,
    check: always,
    connect: |largest| {
        let memory = Mailbox::new(largest)?;
        let eventfd = || eventfd(0, EventfdFlags::CLOEXEC);
        let (request, reply) = (eventfd()?, eventfd()?);
        let client = End { memory: memory.clone(), incoming: reply.try_clone()?, outgoing: request.try_clone()? };
        let server = End { memory, incoming: request, outgoing: reply };
        Ok(Pair::Processes { client: Box::new(client), server: Box::new(server) })
    },
};

struct End {
    memory: Mailbox,
    incoming: OwnedFd,
    outgoing: OwnedFd,
}

impl End {
    fn signal(&self) -> io::Result<()> {
        Ok(rustix::io::write(&self.outgoing, &1u64.to_ne_bytes()).map(drop)?)
    }

    fn wait(&self) -> io::Result<()> {
        loop {
            match rustix::io::read(&self.incoming, &mut [0; 8]) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
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
    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        self.wait()?;
        self.memory.answer(answer)?;
        self.signal()
    }
}
