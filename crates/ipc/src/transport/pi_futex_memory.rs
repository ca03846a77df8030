//! Payloads in shared memory, wake-up of the server by futex, of the caller by a futex with priority inheritance.
//!
//! The server holds one of two locks at any time. A caller waits for the one that is held: while it does, the kernel gives
//! the server the caller's priority. Before the server gives that one back it takes the other, for the next request.

use super::{Client, Pair, RequestHandler, Server, Transport, tried};
use crate::futex;
use crate::mailbox::Mailbox;
use slowpath_tables::OffCpuReason;
use std::io;
use std::sync::atomic::Ordering;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "pi-futex-shm",
    title: "PI futex and shared memory",
    documentation: "As futex-shm, but the caller waits for its reply at a FUTEX_LOCK_PI lock that the server holds (futex(2)): the \
                    kernel lends the server the caller's priority.",
    waits: OffCpuReason::Futex,
    check: || {
        let remedy = "a kernel with CONFIG_FUTEX_PI";
        tried("pi-futex-shm", remedy, || {
            let memory = Mailbox::new(0)?;
            // Another thread's id in the word would make the kernel look for it; unlocking what is ours does not lie.
            memory.word(LOCKS).store(crate::scheduling::thread() | libc::FUTEX_WAITERS, Ordering::Relaxed);
            match futex::unlock_pi(memory.word(LOCKS)) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err(error),
                _ => Ok(Pair::Direct),
            }
        })
    },
    connect: |largest| {
        let memory = Mailbox::new(largest)?;
        Ok(Pair::Processes {
            client: Box::new(Caller { memory: memory.clone(), turn: 0 }),
            server: Box::new(Holder { memory, turn: 0 }),
        })
    },
};

/// Word that counts requests; then the two locks; then the word that counts replies.
const REQUESTS: usize = 0;
const LOCKS: usize = 1;
const REPLIES: usize = 3;

fn lock_of(turn: u32) -> usize {
    LOCKS + (turn % 2) as usize
}

struct Caller {
    memory: Mailbox,
    turn: u32,
}

impl Client for Caller {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.memory.put_request(request)?;
        let lock = self.memory.word(lock_of(self.turn));
        self.turn = self.turn.wrapping_add(1);
        let word = self.memory.word(REQUESTS);
        word.store(self.turn, Ordering::Release);
        futex::wake(word, 1)?;
        futex::lock_pi(lock)?;
        let replies = self.memory.word(REPLIES).load(Ordering::Acquire);
        futex::unlock_pi(lock)?;
        if replies != self.turn {
            // A server that died gives its lock to the waiter, without a reply.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.memory.take_reply(reply)
    }
}

struct Holder {
    memory: Mailbox,
    turn: u32,
}

impl Server for Holder {
    fn prepare(&mut self) -> io::Result<()> {
        futex::lock_pi(self.memory.word(lock_of(self.turn)))
    }

    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        futex::wait(self.memory.word(REQUESTS), self.turn, None)?;
        self.memory.answer(answer)?;
        let held = self.memory.word(lock_of(self.turn));
        self.turn = self.turn.wrapping_add(1);
        futex::lock_pi(self.memory.word(lock_of(self.turn)))?;
        self.memory.word(REPLIES).store(self.turn, Ordering::Release);
        futex::unlock_pi(held)
    }
}
