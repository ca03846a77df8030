//! A trace that is read once, from its begin to its end, with where one is in it. Of a file, places may be read before others
//! ([`Input::seek`]), for formats whose head says where things are.

use crate::problem::ImportError;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Bytes of a line at most: strace prints whole buffers with a large `-s`.
const LONGEST_LINE: u64 = 1 << 20;

/// Characters of a line that an error shows.
const SHOWN: usize = 120;

/// What any place can be read of.
pub trait Places: BufRead + Seek {}

impl<T: BufRead + Seek> Places for T {}

/// Where bytes come from.
enum Source<'a> {
    /// One after the other.
    Stream(&'a mut dyn BufRead),
    /// From any place.
    File(&'a mut dyn Places),
}

impl Source<'_> {
    fn reader(&mut self) -> &mut dyn BufRead {
        match self {
            Self::Stream(from) => &mut **from,
            Self::File(from) => &mut **from,
        }
    }
}

/// A trace under way.
pub struct Input<'a> {
    name: String,
    from: Source<'a>,
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
        Self {
            name: name.to_owned(),
            from: Source::Stream(from),
            offset: 0,
            line: (0, 0),
            buffer: Vec::new(),
            is_wanted,
        }
    }

    /// The same of a file, which [`Input::seek`] can move in.
    pub fn of_file(name: &str, from: &'a mut dyn Places, is_wanted: &'a dyn Fn() -> bool) -> Self {
        Self { name: name.to_owned(), from: Source::File(from), offset: 0, line: (0, 0), buffer: Vec::new(), is_wanted }
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
            self.wanted().and_then(|()| self.from.reader().take(LONGEST_LINE).read_until(b'\n', &mut self.buffer));
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
        let read = self.wanted().and_then(|()| self.from.reader().take(count).read_to_end(bytes));
        let read = read.map_err(|source| self.unread(source))? as u64;
        self.offset += read;
        if read < count && read > 0 {
            return Err(self.wrong_bytes(expected));
        }
        Ok(read == count)
    }

    /// Goes on at this byte. False where what was opened is no file: it stays where it is.
    ///
    /// # Errors
    /// There is no such place.
    pub fn seek(&mut self, offset: u64) -> Result<bool, ImportError> {
        let Source::File(file) = &mut self.from else { return Ok(false) };
        match file.seek(SeekFrom::Start(offset)) {
            Ok(_) => {
                self.offset = offset;
                Ok(true)
            }
            Err(source) => Err(self.unread(source)),
        }
    }

    /// Leaves out the next `count` bytes.
    ///
    /// # Errors
    /// It cannot be read, or ends before the last of them: `expected` says of what.
    pub fn skip(&mut self, count: u64, expected: &'static str) -> Result<(), ImportError> {
        let skipped = self.wanted().and_then(|()| io::copy(&mut self.from.reader().take(count), &mut io::sink()));
        let skipped = skipped.map_err(|source| self.unread(source))?;
        self.offset += skipped;
        if skipped < count { Err(self.wrong_bytes(expected)) } else { Ok(()) }
    }

    /// That somebody still waits for the end.
    ///
    /// # Errors
    /// Nobody does.
    pub fn still_wanted(&self) -> Result<(), ImportError> {
        self.wanted().map_err(|source| self.unread(source))
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
        self.wrong_bytes_at(self.offset, expected)
    }

    /// What was read at this byte is none of this format.
    pub fn wrong_bytes_at(&self, offset: u64, expected: &'static str) -> ImportError {
        ImportError::Bytes { file: self.name.clone(), offset, expected }
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
    fn any_place_of_a_file_can_be_read_and_of_a_stream_none_but_the_next() {
        let mut file = io::Cursor::new(b"abcdef");
        let mut input = Input::of_file("a", &mut file, &|| true);
        let mut read = Vec::new();
        assert!(input.seek(4).unwrap() && input.next_bytes(2, "two", &mut read).unwrap());
        assert_eq!((read.as_slice(), input.offset()), (&b"ef"[..], 6));
        assert!(input.seek(1).unwrap());
        input.skip(2, "two").unwrap();
        assert!(input.next_bytes(1, "one", &mut read).unwrap() && read == b"d");
        assert_eq!(input.skip(9, "nine").unwrap_err().to_string(), "a, byte 6: expected nine");
        let mut stream: &[u8] = b"abc";
        assert!(!Input::new("a", &mut stream, &|| true).seek(1).unwrap());
    }

    #[test]
    fn what_nobody_wants_any_more_is_not_read() {
        let mut bytes: &[u8] = b"one\n";
        let error = Input::new("a", &mut bytes, &|| false).next_line(&mut String::new()).unwrap_err();
        assert!(matches!(error, ImportError::Read { offset: 0, .. }), "{error}");
    }
}
