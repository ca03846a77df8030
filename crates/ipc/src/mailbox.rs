//! A place for one request and one reply in shared memory, and a few words beside them for whoever wakes whom.
//!
//! Owns where things stand. The order of accesses comes from the transport's wake-ups: strictly in turns.

use crate::memory::SharedMemory;
use crate::transport::Answer;
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Words before the payloads, each in a cache line of its own.
const LINE: usize = 64;
const REQUEST_LENGTH: usize = 0;
const REPLY_LENGTH: usize = LINE;
const FIRST_WORD: usize = 2 * LINE;
const WORDS: usize = 4;
const PAYLOADS: usize = FIRST_WORD + WORDS * LINE;

thread_local! {
    static BUFFERS: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// The memory of one pair.
#[derive(Debug)]
pub(crate) struct Mailbox {
    memory: SharedMemory,
    largest: usize,
}

impl Mailbox {
    /// For payloads up to `largest`.
    pub(crate) fn new(largest: usize) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::new(PAYLOADS + 2 * largest)?, largest })
    }

    /// One of four words for the transport's own use, zero at first.
    pub(crate) fn word(&self, index: usize) -> &AtomicU32 {
        self.memory.word(FIRST_WORD + index.min(WORDS - 1) * LINE)
    }

    fn put(&self, length_at: usize, at: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload beyond what was agreed"));
        }
        self.memory.write(at, bytes)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.memory.word(length_at).store(length, Ordering::Release);
        Ok(())
    }

    fn take(&self, length_at: usize, at: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let length = self.memory.word(length_at).load(Ordering::Acquire) as usize;
        into.clear();
        // The other process wrote the length; what is no length of a payload reads nothing.
        if length > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a message of the other end"));
        }
        self.memory.read(at, length, into)
    }

    /// Places a request.
    pub(crate) fn put_request(&self, request: &[u8]) -> io::Result<()> {
        self.put(REQUEST_LENGTH, PAYLOADS, request)
    }

    /// Takes the reply.
    pub(crate) fn take_reply(&self, reply: &mut Vec<u8>) -> io::Result<()> {
        self.take(REPLY_LENGTH, PAYLOADS + self.largest, reply)
    }

    /// Takes the request, has it answered, and places the reply.
    pub(crate) fn answer(&self, answer: &mut Answer) -> io::Result<()> {
        BUFFERS.with_borrow_mut(|(request, reply)| {
            self.take(REQUEST_LENGTH, PAYLOADS, request)?;
            reply.clear();
            answer(request, reply);
            self.put(REPLY_LENGTH, PAYLOADS + self.largest, reply)
        })
    }
}
