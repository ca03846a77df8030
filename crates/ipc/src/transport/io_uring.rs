//! Payloads in shared memory, wake-ups as messages between two io_urings.

use super::{Client, Pair, RequestHandler, Server, Transport, tried};
use crate::mailbox::Mailbox;
use crate::ring::{Mapped, Ring};
use slowpath_tables::OffCpuReason;
use std::io;
use std::sync::Arc;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "io-uring",
    title: "io_uring messages",
    documentation: "Payloads in memory that both processes map, each wake-up a message to the other's ring (IORING_OP_MSG_RING, \
                    io_uring(7)): one io_uring_enter(2) sends it and waits for the answer.",
    waits: OffCpuReason::Poll,
    check: || {
        let remedy = "a kernel from Linux 5.18 on with CONFIG_IO_URING, and kernel.io_uring_disabled of 0 (1: as root)";
        tried("io-uring", remedy, || {
            // A message to itself: whether there are messages.
            let ring = Ring::new()?;
            let mut mapped = ring.map()?;
            mapped.message(ring.descriptor(), SENT, FAILED)?;
            arrived(&mut mapped, 1).map(|()| Pair::Direct)
        })
    },
    connect: |largest| {
        let memory = Mailbox::new(largest)?;
        let (client, server) = (Arc::new(Ring::new()?), Arc::new(Ring::new()?));
        Ok(Pair::Processes {
            client: Box::new(End::new(&client, &server, &memory)),
            server: Box::new(End::new(&server, &client, &memory)),
        })
    },
};

/// What a message says, and what one that could not be sent does.
const SENT: u64 = 1;
const FAILED: u64 = 2;

struct End {
    own: Arc<Ring>,
    other: Arc<Ring>,
    memory: Mailbox,
    mapped: Option<Mapped>,
    /// Messages that were written and not submitted.
    unsent: u32,
}

/// Submits what was written, and waits for the other's message.
fn arrived(mapped: &mut Mapped, unsent: u32) -> io::Result<()> {
    let completion = mapped.wait(unsent)?;
    match completion.data {
        SENT => Ok(()),
        _ => Err(io::Error::from_raw_os_error(-completion.result)),
    }
}

impl End {
    fn new(own: &Arc<Ring>, other: &Arc<Ring>, memory: &Mailbox) -> Self {
        let (own, other, memory) = (Arc::clone(own), Arc::clone(other), memory.clone());
        Self { own, other, memory, mapped: None, unsent: 0 }
    }

    fn map(&mut self) -> io::Result<()> {
        self.mapped = Some(self.own.map()?);
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let mapped = self.mapped.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        mapped.message(self.other.descriptor(), SENT, FAILED)?;
        self.unsent = 1;
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        let mapped = self.mapped.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        arrived(mapped, std::mem::take(&mut self.unsent))
    }
}

impl Client for End {
    fn prepare(&mut self) -> io::Result<()> {
        self.map()
    }

    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.memory.put_request(request)?;
        self.send()?;
        self.wait()?;
        self.memory.take_reply(reply)
    }
}

impl Server for End {
    fn prepare(&mut self) -> io::Result<()> {
        self.map()
    }

    /// The reply is submitted with the wait for the next request: one call of the kernel each way.
    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        self.wait()?;
        self.memory.answer(answer)?;
        self.send()
    }
}
