//! Payloads in shared memory, wake-ups by futex.

use super::{Client, Pair, RequestHandler, Server, Transport, always};
use crate::futex;
use crate::mailbox::Mailbox;
use slowpath_tables::OffCpuReason;
use std::io;
use std::sync::atomic::Ordering;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "futex-shm",
    title: "Futex and shared memory",
    documentation: "Payloads in memory that both processes map, each wake-up a futex(2) wake and wait on a word beside them. The \
                    kernel does not know who works for whom, so no priority is inherited.",
    waits: OffCpuReason::Futex,
    check: always,
    connect: |largest| {
        let memory = Mailbox::new(largest)?;
        Ok(Pair::Processes {
            client: Box::new(End { memory: memory.clone(), turn: 0 }),
            server: Box::new(End { memory, turn: 0 }),
        })
    },
};

/// Word that counts requests, and word that counts replies.
const REQUESTS: usize = 0;
const REPLIES: usize = 1;

struct End {
    memory: Mailbox,
    turn: u32,
}

impl End {
    fn signal(&self, word: usize) -> io::Result<()> {
        let word = self.memory.word(word);
        word.store(self.turn, Ordering::Release);
        futex::wake(word, 1)
    }
}

impl Client for End {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.memory.put_request(request)?;
        let before = self.turn;
        self.turn = self.turn.wrapping_add(1);
        self.signal(REQUESTS)?;
        futex::wait(self.memory.word(REPLIES), before, None)?;
        self.memory.take_reply(reply)
    }
}

impl Server for End {
    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        futex::wait(self.memory.word(REQUESTS), self.turn, None)?;
        self.memory.answer(answer)?;
        self.turn = self.turn.wrapping_add(1);
        self.signal(REPLIES)
    }
}
