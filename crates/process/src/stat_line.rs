//! A line of `/proc/PID/stat` (proc_pid_stat(5)), of a process or of a thread.
//!
//! Owns finding the fields. The second is a name that the process chooses: any bytes, parentheses and blanks among them, so that fields
//! count from the last parenthesis on. Leaves what they mean to who asks.

use std::fs;
use std::str::FromStr;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatLine {
    name: Vec<u8>,
    /// From the third field on.
    fields: String,
}

impl StatLine {
    /// That of a process, or of any thread, that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// That of a thread of a process.
    pub fn of_thread(process: u32, thread: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{process}/task/{thread}/stat")).ok()?)
    }

    /// A line as it was read; `None` where it is none.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let name = line.get(open + 1..close)?.to_vec();
        Some(Self { name, fields: std::str::from_utf8(line.get(close + 1..)?).ok()?.to_owned() })
    }

    /// Its name, of any bytes.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// A field by its number in the manual, from 3 on, where it has the form of a `T`.
    pub fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.fields.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// The state, a letter.
    pub fn state(&self) -> Option<char> {
        self.field(3)
    }

    /// The parent's pid.
    pub fn parent(&self) -> Option<u32> {
        self.field(4)
    }

    /// When it began, in ticks since the machine's start: with its number this is one process and no later one.
    pub fn start(&self) -> Option<u64> {
        self.field(22)
    }

    /// Whether it ignores this signal, one below 32; of a zombie, whether it did.
    pub fn ignores(&self, signal: u32) -> bool {
        let shifted = |mask: u32| mask.checked_shr(signal.checked_sub(1)?);
        self.field(33).and_then(shifted).is_some_and(|mask| mask & 1 == 1)
    }

    /// Whether it has ended; a zombie is still shown.
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), Some('Z' | 'X' | 'x'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_from_the_last_parenthesis_whatever_the_name_holds() {
        let line = b"77 (a) R 1 (b\xff) S 42 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3\n";
        let line = StatLine::parse(line).unwrap();
        assert_eq!(line.name(), b"a) R 1 (b\xff");
        assert_eq!((line.state(), line.parent(), line.start()), (Some('S'), Some(42), Some(987_654)));
        assert_eq!((line.field::<i32>(8), line.field::<u32>(8), line.field::<u64>(26)), (Some(-1), None, None));
        assert_eq!((line.field::<u64>(2), line.field::<u64>(0)), (None, None));
        assert!(!line.has_ended());
    }

    #[test]
    fn ignored_signals_are_bits_of_one_field() {
        // SIGCHLD is 17, SIGPIPE 13.
        let line = StatLine::parse(b"7 (a) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2 3 4 5 6 7 8 0 0 65536 4096\n")
            .unwrap();
        assert_eq!([17, 13, 1, 0, 33].map(|signal| line.ignores(signal)), [true, false, false, false, false]);
        assert!(!StatLine::parse(b"7 (a) Z 1").unwrap().ignores(17));
    }

    #[test]
    fn what_is_no_line_is_none_and_a_cut_one_has_fewer_fields() {
        for text in [&b"77 (x"[..], b"", b")(", b"7 a) S", b"7 (a) \xff 1"] {
            assert_eq!(StatLine::parse(text), None, "{text:?}");
        }
        let cut = StatLine::parse(b"7 (a) Z 1").unwrap();
        assert_eq!((cut.parent(), cut.start(), cut.has_ended()), (Some(1), None, true));
    }

    #[test]
    fn a_thread_is_found_by_its_number() {
        let own = std::process::id();
        let thread = u32::try_from(nix::unistd::gettid().as_raw()).unwrap();
        assert_eq!(StatLine::of_thread(own, thread).unwrap().field::<u32>(5), StatLine::of(own).unwrap().field(5));
        assert_eq!(StatLine::of(u32::MAX), None);
    }
}
