//! A place for one request and one reply in shared memory, and a few words beside them for whoever wakes whom.
//!
//! Owns where things stand. The order of accesses comes from the transport's wake-ups: strictly in turns.

use crate::memory::SharedMemory;
use crate::transport::RequestHandler;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Words before the payloads, each in a cache line of its own.
const LINE: usize = 64;
const REQUEST_LENGTH: usize = 0;
const REPLY_LENGTH: usize = LINE;
const FIRST_WORD: usize = 2 * LINE;
const WORDS: usize = 4;
const PAYLOADS: usize = FIRST_WORD + WORDS * LINE;

/// The memory of one pair.
#[derive(Clone, Debug)]
struct PairMemory {
    memory: Arc<SharedMemory>,
    largest: usize,
}

/// One end's view of it: a clone is for the other end.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    pair: PairMemory,
    /// Copies of a request and of its reply, of who answers: nothing may read the shared memory itself while the other process could
    /// write there.
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl PairMemory {
    #[inline]
    fn put(&self, length_at: usize, at: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload beyond what was agreed"));
        }
        self.memory.write(at, bytes)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.memory.word(length_at).store(length, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn take(&self, length_at: usize, at: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let length = self.memory.word(length_at).load(Ordering::Acquire) as usize;
        into.clear();
        // The other process wrote the length; what is no length of a payload reads nothing.
        if length > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a message of the other end"));
        }
        self.memory.read(at, length, into)
    }
}

impl Mailbox {
    /// For payloads up to `largest`.
    pub(crate) fn new(largest: usize) -> io::Result<Self> {
        let memory = Arc::new(SharedMemory::new(PAYLOADS + 2 * largest)?);
        Ok(Self { pair: PairMemory { memory, largest }, request: Vec::new(), reply: Vec::new() })
    }

    /// One of four words for the transport's own use, zero at first.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> &AtomicU32 {
        self.pair.memory.word(FIRST_WORD + index.min(WORDS - 1) * LINE)
    }

    /// Places a request.
    #[inline]
    pub(crate) fn put_request(&self, request: &[u8]) -> io::Result<()> {
        self.pair.put(REQUEST_LENGTH, PAYLOADS, request)
    }

    /// Takes the reply.
    #[inline]
    pub(crate) fn take_reply(&self, reply: &mut Vec<u8>) -> io::Result<()> {
        self.pair.take(REPLY_LENGTH, PAYLOADS + self.pair.largest, reply)
    }

    /// Takes the request, has it answered, and places the reply.
    #[inline(always)]
    pub(crate) fn answer(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        self.pair.take(REQUEST_LENGTH, PAYLOADS, &mut self.request)?;
        self.reply.clear();
        answer(&self.request, &mut self.reply);
        self.pair.put(REPLY_LENGTH, PAYLOADS + self.pair.largest, &self.reply)
    }
}
