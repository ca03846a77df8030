//! Perf maps: what a process that generates code writes about it (`tools/perf/Documentation/jit-interface.txt` in Linux).
//!
//! A line is `START SIZE name`, numbers in hexadecimal. Nothing keeps a process from writing anything else, so lines that are
//! not of this form are passed over. An own parser: `blazesym` gives up a map at its first odd line, asks a process that must
//! still live, and does not know that what is written later holds.

use super::names::{Function, Names, refuse};
use super::{Reason, opened};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// Bytes of a map that are read. A browser writes some 10 MiB in an hour.
const MAX_MAP: u64 = 256 << 20;

/// Bytes of a name that are kept.
const MAX_NAME: usize = 4096;

/// Which name holds at which address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfMap {
    /// By first address: the address after the last one, and where the name stands in `names`.
    ranges: BTreeMap<u64, (u64, usize)>,
    names: Vec<String>,
}

impl PerfMap {
    /// Where the map of a process may be: in the `/tmp` that the process sees, by the pid that it knows itself by, and in ours,
    /// where it is when the process is gone. The caller must leave out what is older than the process: pids come again.
    pub fn paths(pid: u32, pid_in_namespace: u32) -> Vec<PathBuf> {
        let mut paths = vec![PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{pid_in_namespace}.map"))];
        paths.push(PathBuf::from(format!("/tmp/perf-{pid}.map")));
        paths
    }

    /// Reads a map of any bytes. Where entries overlap, the later one holds: generated code is thrown away, and its memory
    /// used again.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Some((start, size, name)) = entry(line) {
                let name = String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name)).into_owned();
                map.put(start, start.saturating_add(size), map.names.len());
                map.names.push(name);
            }
        }
        map
    }

    /// The name of the code at an address.
    pub fn name_of(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.ranges.range(..=address).next_back()?;
        if address < *end { self.names.get(*name).map(String::as_str) } else { None }
    }

    fn put(&mut self, start: u64, end: u64, name: usize) {
        if let Some((_, (before, other))) = self.ranges.range_mut(..start).next_back()
            && *before > start
        {
            let (rest, other) = (*before, *other);
            *before = start;
            if rest > end {
                self.ranges.insert(end, (rest, other));
            }
        }
        let covered: Vec<u64> = self.ranges.range(start..end).map(|(at, _)| *at).collect();
        for at in covered {
            if let Some((rest, other)) = self.ranges.remove(&at)
                && rest > end
            {
                self.ranges.insert(end, (rest, other));
            }
        }
        self.ranges.insert(start, (end, name));
    }
}

/// Start, size and name of a line. A size of 0 is one that the process did not know; it holds for the first byte.
fn entry(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let start = number(words.next()?)?;
    let size = number(words.next()?)?.max(1);
    let name = words.next().map(|name| name.strip_suffix(b"\r").unwrap_or(name)).filter(|name| !name.is_empty())?;
    // Nothing begins at the last address.
    (start < u64::MAX).then_some((start, size, name))
}

fn number(word: &[u8]) -> Option<u64> {
    let word = std::str::from_utf8(word).ok()?;
    let digits = word.strip_prefix("0x").unwrap_or(word);
    // `from_str_radix` takes a sign.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Names addresses of one process from the first map there is.
pub(super) fn name(paths: &[PathBuf], places: &mut BTreeMap<u64, Names>) {
    let mut reason = Reason::NoPerfMap;
    for path in paths {
        match read(path) {
            Ok(bytes) => {
                let map = PerfMap::parse(&bytes);
                for (address, names) in places.iter_mut() {
                    let function =
                        |name: &str| Function { name: name.to_owned(), source_file: None, source_line: None };
                    *names = map.name_of(*address).map(|name| vec![function(name)]).ok_or(Reason::NotInPerfMap);
                }
                return;
            }
            Err(Reason::FileMissing) => {}
            Err(_) => reason = Reason::PerfMapUnreadable,
        }
    }
    refuse(places, reason);
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, Reason> {
    let file = opened::open(path)?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_MAP + 1).read_to_end(&mut bytes).map_err(|error| opened::reason_of(&error))?;
    if read as u64 > MAX_MAP { Err(Reason::Damaged) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_holds_from_its_start_for_its_size_and_later_entries_win() {
        let map =
            PerfMap::parse(b"1000 100 old\n2000 10 a b\tc\x1b[31m\n1080 20 new\n1080 0x8 newest\r\n3000 0 point\n");
        let names = [0xfff, 0x1000, 0x107f, 0x1080, 0x1087, 0x1088, 0x109f, 0x10a0, 0x10ff, 0x1100]
            .map(|address| map.name_of(address));
        let expected = [
            None,
            Some("old"),
            Some("old"),
            Some("newest"),
            Some("newest"),
            Some("new"),
            Some("new"),
            Some("old"),
            Some("old"),
            None,
        ];
        assert_eq!(names, expected);
        assert_eq!(map.name_of(0x200f), Some("a b\tc\x1b[31m"));
        assert_eq!((map.name_of(0x3000), map.name_of(0x3001)), (Some("point"), None));
    }

    #[test]
    fn lines_of_another_form_are_passed_over() {
        let map =
            PerfMap::parse(b"+10 10 x\n10\n10 10\n10 10 \nzz 1 x\n 10 10 x\n11111111111111111 1 x\n\xff\xff 1 x\n");
        assert_eq!(map, PerfMap::default());
        assert_eq!(
            PerfMap::parse(b"ffffffffffffffff 10 x\nfffffffffffffff0 ffff y\n").name_of(u64::MAX - 1),
            Some("y")
        );
    }

    proptest! {
        #[test]
        fn any_entries_name_as_a_search_from_the_last_one_does(
            entries in prop::collection::vec((0u64..64, 0u64..24), 0..40)
        ) {
            let text: String = entries.iter().enumerate().map(|(at, (start, size))| format!("{start:x} {size:x} f{at}\n")).collect();
            let map = PerfMap::parse(text.as_bytes());
            for address in 0..100u64 {
                let expected = entries.iter().enumerate().rev()
                    .find(|(_, (start, size))| *start <= address && address < start + (*size).max(1))
                    .map(|(at, _)| format!("f{at}"));
                prop_assert_eq!(map.name_of(address), expected.as_deref());
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in any::<u64>()) {
            let _ = PerfMap::parse(&bytes).name_of(at);
        }

        #[test]
        fn any_lines_like_entries_are_read_without_a_panic(text in "([0-9a-f]{0,17} [0-9a-fx]{0,17} .{0,9}\n){0,9}") {
            let map = PerfMap::parse(text.as_bytes());
            let _ = (map.name_of(0), map.name_of(u64::MAX));
        }
    }
}
