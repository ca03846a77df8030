//! The target's standard output and error where they pass through the observer: forwarded byte for byte, searched for
//! a line, their ends kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;
use regex::bytes::Regex;

/// How much of each stream's end is kept.
const TAIL: usize = 4096;
/// A line is searched no further than this.
const LINE_LIMIT: usize = 64 << 10;
/// Above this the target has to wait for whoever reads its output, as it would without an observer.
const BACKLOG_LIMIT: usize = 64 << 10;
/// A pipe with room takes this much without blocking (`PIPE_BUF`, pipe(7)).
const WRITE_UNIT: usize = 4096;
/// What is read at once: it is cleared before, and mostly nothing is there.
const READ_UNIT: usize = 4 << 10;
/// Twice a full pipe: more would let a target that never stops writing keep the observer from everything else.
const READS_A_LOOK: usize = (128 << 10) / READ_UNIT;

/// One stream.
pub(super) struct Stream {
    source: Option<File>,
    /// The observer's own descriptor to write to.
    sink: Option<BorrowedFd<'static>>,
    backlog: VecDeque<u8>,
    /// Bytes read so far.
    taken: u64,
    tail: Option<VecDeque<u8>>,
    search: Option<Search>,
}

struct Search {
    pattern: Regex,
    line: Vec<u8>,
    found: bool,
}

impl Stream {
    /// `source` must be non-blocking.
    pub(super) fn new(
        source: File,
        sink: Option<BorrowedFd<'static>>,
        keep_tail: bool,
        pattern: Option<Regex>,
    ) -> Stream {
        let search = pattern.map(|pattern| Search { pattern, line: Vec::new(), found: false });
        Stream {
            source: Some(source),
            sink,
            backlog: VecDeque::new(),
            taken: 0,
            tail: keep_tail.then(VecDeque::new),
            search,
        }
    }

    /// Where it was read from, unless that has ended.
    pub(super) fn into_source(self) -> Option<File> {
        self.source
    }

    /// Whether output may come still, or some waits for whoever reads it.
    pub(super) fn goes_on(&self) -> bool {
        self.source.is_some() || !self.backlog.is_empty()
    }

    /// What to poll: the source unless too much waits for the sink, the sink when something does.
    pub(super) fn descriptors(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let mut list = Vec::new();
        if let (Some(source), true) = (&self.source, self.backlog.len() < BACKLOG_LIMIT) {
            list.push((source.as_fd(), PollFlags::POLLIN));
        }
        if let (Some(sink), false) = (self.sink, self.backlog.is_empty()) {
            list.push((sink, PollFlags::POLLOUT));
        }
        list
    }

    /// Reads what is there and forwards what is taken. True when a line matched now or before.
    pub(super) fn look(&mut self) -> bool {
        self.read(BACKLOG_LIMIT);
        self.forward();
        self.search.as_ref().is_some_and(|search| search.found)
    }

    /// Reads what is left in the pipe, no more than one look does, however much waits for the sink: for a target whose end decides.
    pub(super) fn take_rest(&mut self) {
        self.read(usize::MAX);
    }

    /// Reads until nothing is there, or as much waits for the sink as `backlog` says.
    fn read(&mut self, backlog: usize) {
        let mut buffer = [0; READ_UNIT];
        for _ in 0..READS_A_LOOK {
            let (Some(source), true) = (&mut self.source, self.backlog.len() < backlog) else { break };
            match source.read(&mut buffer) {
                Ok(0) => {
                    self.source = None;
                    self.search_rest();
                }
                Ok(length) => self.take(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.source = None,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        if self.sink.is_some() {
            self.backlog.extend(bytes);
        }
        if let Some(tail) = &mut self.tail {
            tail.extend(bytes);
            tail.drain(..tail.len().saturating_sub(TAIL));
        }
        if let Some(search) = self.search.as_mut().filter(|search| !search.found) {
            search.take(bytes);
        }
    }

    /// At the end of a stream an unfinished line counts as a line.
    fn search_rest(&mut self) {
        if let Some(search) = self.search.as_mut().filter(|search| !search.found && !search.line.is_empty()) {
            search.take(b"\n");
        }
    }

    fn forward(&mut self) {
        while let (Some(sink), false) = (self.sink, self.backlog.is_empty()) {
            let mut writable = [PollFd::new(sink, PollFlags::POLLOUT)];
            if !matches!(poll(&mut writable, PollTimeout::ZERO), Ok(1)) {
                return;
            }
            let (front, _) = self.backlog.as_slices();
            match write(sink, &front[..front.len().min(WRITE_UNIT)]) {
                Ok(length) => drop(self.backlog.drain(..length)),
                Err(nix::Error::EAGAIN | nix::Error::EINTR) => return,
                Err(_) => {
                    // Nobody reads any more. The target learns of it as it would without an observer, unless a line is
                    // still to be found.
                    self.sink = None;
                    self.backlog.clear();
                    if self.search.as_ref().is_none_or(|search| search.found) {
                        self.source = None;
                    }
                }
            }
        }
    }

    /// Takes all that is there, and gives the reader of forwarded output a last chance to take the rest.
    pub(super) fn flush(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        loop {
            let before = self.taken;
            self.look();
            let left = deadline.saturating_duration_since(Instant::now());
            if (self.taken == before && self.backlog.is_empty()) || left.is_zero() {
                return;
            }
            if let (Some(sink), false) = (self.sink, self.backlog.is_empty()) {
                let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
                let _ = poll(&mut [PollFd::new(sink, PollFlags::POLLOUT)], timeout);
            }
        }
    }

    /// From now on output is only forwarded, no longer kept or searched.
    pub(super) fn only_forward(&mut self) {
        self.tail = None;
        self.search = None;
    }

    /// The kept end.
    pub(super) fn tail(&self) -> Option<String> {
        let bytes: Vec<u8> = self.tail.as_ref()?.iter().copied().collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Search {
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, ended) = match piece.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (piece, false),
            };
            let room = LINE_LIMIT.saturating_sub(self.line.len());
            self.line.extend_from_slice(&content[..content.len().min(room)]);
            if ended {
                let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
                if self.pattern.is_match(line) {
                    self.found = true;
                    return;
                }
                self.line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, pieces: &[&str]) -> bool {
        let mut search = Search { pattern: Regex::new(pattern).unwrap(), line: Vec::new(), found: false };
        for piece in pieces {
            search.take(piece.as_bytes());
            if search.found {
                return true;
            }
        }
        false
    }

    #[test]
    fn a_line_is_searched_whole_however_it_was_cut() {
        assert!(found("^port [0-9]+$", &["noise\npo", "rt 80", "80\r\n"]));
        assert!(!found("^port [0-9]+$", &["port 80", "80 is taken\n"]));
        assert!(!found("ready", &["rea", "dy"]));
        assert!(!found("ready", &[&"x".repeat(LINE_LIMIT), "ready\n"]));
    }
}
