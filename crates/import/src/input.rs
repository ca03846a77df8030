//! A trace that is read once, from its begin to its end, with where one is in it.

use crate::problem::ImportError;
use std::io::{self, BufRead, Read};

/// Bytes of a line at most: strace prints whole buffers with a large `-s`.
const LONGEST_LINE: u64 = 1 << 20;

/// Characters of a line that an error shows.
const SHOWN: usize = 120;

/// A trace under way.
pub struct Input<'a> {
    name: String,
    from: &'a mut dyn BufRead,
    /// Bytes read so far.
    offset: u64,
    /// Number and begin of the line that was read last.
    line: (u64, u64),
    buffer: Vec<u8>,
    is_wanted: &'a dyn Fn() -> bool,
}

impl<'a> Input<'a> {
    /// Reads `from`, which errors call `name`, as long as `is_wanted`.
    pub fn new(name: &str, from: &'a mut dyn BufRead, is_wanted: &'a dyn Fn() -> bool) -> Self {
        Self { name: name.to_owned(), from, offset: 0, line: (0, 0), buffer: Vec::new(), is_wanted }
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line without its end; what is no UTF-8 in it is replaced. None at the end.
    ///
    /// # Errors
    /// It cannot be read, or is longer than any tool writes.
    pub fn next_line(&mut self, line: &mut String) -> Result<bool, ImportError> {
        self.buffer.clear();
        let begin = self.offset;
        let read =
            self.wanted().and_then(|()| (&mut *self.from).take(LONGEST_LINE).read_until(b'\n', &mut self.buffer));
        let bytes = read.map_err(|source| self.unread(source))?;
        self.offset += bytes as u64;
        if bytes == 0 {
            return Ok(false);
        }
        self.line = (self.line.0 + 1, begin);
        line.clear();
        let text = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        line.push_str(&String::from_utf8_lossy(text));
        if bytes as u64 == LONGEST_LINE && !self.buffer.ends_with(b"\n") {
            return Err(self.wrong("a line of less than 1 MiB", line));
        }
        Ok(true)
    }

    /// The next `count` bytes, in place of those that are in `bytes`. False at the end, before the first of them.
    ///
    /// # Errors
    /// It cannot be read, or ends before the last of them: `expected` says of what.
    pub fn next_bytes(&mut self, count: u64, expected: &'static str, bytes: &mut Vec<u8>) -> Result<bool, ImportError> {
        bytes.clear();
        let read = self.wanted().and_then(|()| (&mut *self.from).take(count).read_to_end(bytes));
        let read = read.map_err(|source| self.unread(source))? as u64;
        self.offset += read;
        if read < count && read > 0 {
            return Err(self.wrong_bytes(expected));
        }
        Ok(read == count)
    }

    /// The line that was read last is none of this format.
    pub fn wrong(&self, expected: &'static str, found: &str) -> ImportError {
        let mut shown: String = found.chars().take(SHOWN).collect();
        if shown.len() < found.len() {
            shown.push_str("...");
        }
        let (line, offset) = self.line;
        ImportError::Line { file: self.name.clone(), line, offset, expected, found: format!("{shown:?}") }
    }

    /// What was read last is none of this format.
    pub fn wrong_bytes(&self, expected: &'static str) -> ImportError {
        ImportError::Bytes { file: self.name.clone(), offset: self.offset, expected }
    }

    fn wanted(&self) -> io::Result<()> {
        if (self.is_wanted)() { Ok(()) } else { Err(io::Error::other("interrupted")) }
    }

    fn unread(&self, source: io::Error) -> ImportError {
        ImportError::Read { file: self.name.clone(), offset: self.offset, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file_the_line_its_offset_and_what_was_expected() {
        let mut bytes: &[u8] = b"one\r\ntw\xffo\nthree";
        let mut input = Input::new("a.txt", &mut bytes, &|| true);
        let mut line = String::new();
        let mut lines = Vec::new();
        while input.next_line(&mut line).unwrap() {
            lines.push(line.clone());
        }
        assert_eq!(lines, ["one", "tw\u{fffd}o", "three"]);
        let error = input.wrong("a number", &line).to_string();
        assert_eq!(error, "a.txt, line 3 (byte 10): expected a number, found \"three\"");
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory_without_an_end() {
        let mut bytes = io::BufReader::new(io::repeat(b'x'));
        let mut input = Input::new("a", &mut bytes, &|| true);
        let error = input.next_line(&mut String::new()).unwrap_err().to_string();
        assert!(error.starts_with("a, line 1 (byte 0): expected a line of less than 1 MiB"), "{error}");
    }

    #[test]
    fn bytes_that_end_too_early_are_an_error_and_none_are_the_end() {
        let mut bytes: &[u8] = b"abcde";
        let mut input = Input::new("a", &mut bytes, &|| true);
        let mut read = Vec::new();
        assert!(input.next_bytes(3, "three", &mut read).unwrap());
        let error = input.next_bytes(3, "three more", &mut read).unwrap_err().to_string();
        assert_eq!(error, "a, byte 5: expected three more");
        assert!(!input.next_bytes(3, "three", &mut read).unwrap());
    }

    #[test]
    fn what_nobody_wants_any_more_is_not_read() {
        let mut bytes: &[u8] = b"one\n";
        let error = Input::new("a", &mut bytes, &|| false).next_line(&mut String::new()).unwrap_err();
        assert!(matches!(error, ImportError::Read { offset: 0, .. }), "{error}");
    }
}
