//! The mappings of a process: lines of `/proc/PID/maps` (proc_pid_maps(5)), with names that other programs choose.
//!
//! Owns the form of a line. It is total on any bytes: a name may be no UTF-8, hold spaces and end in some, and a line that the kernel does
//! not write is none. Leaves reading the file, for which others can make a reader wait ([`crate::ProcessFiles`]), and which mappings matter
//! to who asks.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What follows the path of a file that has been unlinked (d_path() of fs/d_path.c). A file can have such a name, too: the kernel does not
/// tell the two apart.
const DELETED: &[u8] = b" (deleted)";

/// How the kernel writes a newline in a path (`seq_file_path`, fs/seq_file.c). It escapes nothing else: a path with these four characters
/// reads the same.
const NEWLINE: &[u8] = b"\\012";

/// A mapping, as its line shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'text> {
    /// Its addresses, at least one.
    pub range: Range<u64>,
    /// `r`, `w`, `x` or dashes in their place, and `p` or `s`.
    mode: [u8; 4],
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Major and minor number of the device; 0 without a file.
    pub device: (u32, u32),
    /// Inode of the file; 0 without one.
    pub inode: u64,
    /// The name as the kernel writes it: a path, a word in brackets (`[heap]`, `[anon:NAME]`), another one (`anon_inode:[perf_event]`) or
    /// nothing.
    pub name: &'text [u8],
}

/// The mappings in the text of such a file, in their order. Lines that the kernel does not write are left out.
pub fn mappings(text: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(Mapping::parse)
}

impl<'text> Mapping<'text> {
    /// That of one line, without its newline; `None` where it is none.
    pub fn parse(line: &'text [u8]) -> Option<Self> {
        let mut rest = line;
        let range = word(&mut rest);
        let mode = word(&mut rest);
        let (offset, device, inode) = (word(&mut rest), word(&mut rest), word(&mut rest));
        let (start, end) = halves(range, b'-')?;
        let range = hexadecimal(start)?..hexadecimal(end)?;
        let (major, minor) = halves(device, b':')?;
        let device = (u32::try_from(hexadecimal(major)?).ok()?, u32::try_from(hexadecimal(minor)?).ok()?);
        let mode: [u8; 4] = mode.try_into().ok()?;
        let is_mode = mode.iter().zip([b"r-", b"w-", b"x-", b"ps"]).all(|(letter, letters)| letters.contains(letter));
        (is_mode && !range.is_empty()).then_some(())?;
        Some(Self { range, mode, offset: hexadecimal(offset)?, device, inode: decimal(inode)?, name: rest })
    }

    /// Whether the process may read it.
    pub fn is_readable(&self) -> bool {
        self.mode[0] == b'r'
    }

    /// Whether the process may write it.
    pub fn is_writable(&self) -> bool {
        self.mode[1] == b'w'
    }

    /// Whether the process may execute it.
    pub fn is_executable(&self) -> bool {
        self.mode[2] == b'x'
    }

    /// Whether others see what is written into it (`MAP_SHARED`).
    pub fn is_shared(&self) -> bool {
        self.mode[3] == b's'
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether its file has been unlinked, by the name.
    pub fn is_deleted(&self) -> bool {
        self.name.ends_with(DELETED)
    }

    /// The path of its file in the mounts of the process, with the newlines that it has and, where it has been unlinked, the word that says
    /// so. Memory that is shared without a file has such a name as well (`/memfd:NAME (deleted)`, `/dev/zero (deleted)`).
    pub fn path(&self) -> Option<PathBuf> {
        self.name.starts_with(b"/").then(|| PathBuf::from(OsString::from_vec(with_newlines(self.name))))
    }
}

/// The bytes before the next space, which go with the spaces after them. A name stands at a column of its own, and begins with no space.
fn word<'text>(rest: &mut &'text [u8]) -> &'text [u8] {
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    let spaces = behind.iter().take_while(|byte| **byte == b' ').count();
    *rest = &behind[spaces..];
    word
}

fn halves(word: &[u8], between: u8) -> Option<(&[u8], &[u8])> {
    let at = word.iter().position(|byte| *byte == between)?;
    Some((&word[..at], &word[at + 1..]))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    // A sign would be read, too.
    let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

fn with_newlines(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, behind)) = rest.split_first() {
        match rest.strip_prefix(NEWLINE) {
            Some(behind) => {
                bytes.push(b'\n');
                rest = behind;
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn one(line: &[u8]) -> Mapping<'_> {
        Mapping::parse(line).unwrap_or_else(|| panic!("{}", line.escape_ascii()))
    }

    #[test]
    fn a_line_has_addresses_rights_a_place_in_a_file_and_its_path() {
        let mapping =
            one(b"7f3a5c028000-7f3a5c1bd000 r-xp 00028000 fe:01 1835015                    /usr/lib/libc.so.6");
        assert_eq!((mapping.range.clone(), mapping.length()), (0x7f3a_5c02_8000..0x7f3a_5c1b_d000, 0x19_5000));
        assert_eq!((mapping.offset, mapping.device, mapping.inode), (0x28000, (0xfe, 1), 1_835_015));
        assert!(mapping.is_readable() && !mapping.is_writable() && mapping.is_executable() && !mapping.is_shared());
        assert_eq!(mapping.path().unwrap(), PathBuf::from("/usr/lib/libc.so.6"));
        assert!(!mapping.is_deleted());
        // Device numbers of 12 and 20 bits; the highest addresses.
        let mapping = one(b"ffffffffff600000-ffffffffff601000 -w-s 00000000 fff:fffff 18446744073709551615 x");
        assert_eq!(
            (mapping.range.start, mapping.device, mapping.inode),
            (0xffff_ffff_ff60_0000, (0xfff, 0xf_ffff), u64::MAX)
        );
        assert!(!mapping.is_readable() && mapping.is_writable() && !mapping.is_executable() && mapping.is_shared());
    }

    #[test]
    fn memory_without_a_file_has_a_word_or_nothing_and_no_path() {
        let rest = b"7f01-7f02 rw-p 00000000 00:00 0";
        let named: [(&[u8], &[u8]); 6] = [
            (b"", b""),
            (b" ", b""),
            (b"                          [heap]", b"[heap]"),
            (b"   [anon:/a name]", b"[anon:/a name]"),
            (b"   [anon_shmem:buffer]", b"[anon_shmem:buffer]"),
            (b"   anon_inode:[perf_event]", b"anon_inode:[perf_event]"),
        ];
        for (behind, name) in named {
            let line = [&rest[..], behind].concat();
            let mapping = one(&line);
            assert_eq!((mapping.name, mapping.path(), mapping.inode), (name, None, 0));
        }
    }

    #[test]
    fn a_path_may_be_any_bytes_and_keeps_its_spaces() {
        for path in [&b"/a b"[..], b"/ ", b"/a  ", b"/\xff\xfe", b"/x [vdso]", b"/a\\b\\n", b"/SYSV", b"/[stack:\xc3"] {
            let line = [&b"1000-2000 r--p 00000000 08:01 7      "[..], path].concat();
            assert_eq!(one(&line).path().unwrap().as_os_str().as_bytes(), path);
        }
    }

    #[test]
    fn a_newline_in_a_path_makes_no_second_mapping() {
        let text = b"1000-2000 r--p 00000000 08:01 7 /a\\0125000-6000 rwxs 00000000 00:00 0\\012\n3000-4000 r--p 00000000 08:01 7 /b\n";
        let found: Vec<_> = mappings(text).map(|one| (one.range.start, one.path().unwrap())).collect();
        let first = "/a\n5000-6000 rwxs 00000000 00:00 0\n";
        assert_eq!(found, [(0x1000, PathBuf::from(first)), (0x3000, PathBuf::from("/b"))]);
        assert_eq!(with_newlines(b"\\01\\0120\\0\\012"), b"\\01\n0\\0\n", "only the whole word");
    }

    #[test]
    fn a_file_without_a_name_is_known_by_the_word_behind_its_path() {
        let gone = one(b"1000-2000 r-xp 00000000 08:01 7 /new\\012line (deleted)");
        assert_eq!((gone.is_deleted(), gone.path()), (true, Some(PathBuf::from("/new\nline (deleted)"))));
        assert!(one(b"1000-2000 rw-s 00000000 00:01 7 /memfd:x (deleted)").is_deleted());
        assert!(!one(b"1000-2000 r-xp 00000000 08:01 7 /x (deleted) ").is_deleted());
    }

    #[test]
    fn what_the_kernel_does_not_write_is_no_mapping() {
        let line = |range: &str, mode: &str, place: &str| format!("{range} {mode} {place} /x").into_bytes();
        assert!(Mapping::parse(&line("1-2", "r--p", "0 0:0 0")).is_some());
        for range in ["2-2", "3-2", "1", "-", "1-", "-2", "+1-2", "1-+2", "0x1-2", "1-10000000000000000", "\u{661}-2"] {
            assert_eq!(Mapping::parse(&line(range, "r--p", "0 0:0 0")), None, "{range}");
        }
        for mode in ["r--", "r--p+", "----", "R--p", "-r-p", "r--x", ""] {
            assert_eq!(Mapping::parse(&line("1-2", mode, "0 0:0 0")), None, "{mode}");
        }
        for place in
            ["g 0:0 0", "0 0 0", "0 :0 0", "0 100000000:0 0", "0 0:0 x", "0 0:0 -1", "0 0:0 18446744073709551616"]
        {
            assert_eq!(Mapping::parse(&line("1-2", "r--p", place)), None, "{place}");
        }
        let text = b"\nSize:   4 kB\n1-2 r--p 0 0:0\n1-2 r--p 0 0:0 0\n\xff\xff\n7f-\n";
        assert_eq!(mappings(text).count(), 1);
    }

    #[test]
    fn of_every_line_of_this_process_there_is_a_mapping_and_one_is_its_program() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert_eq!(mappings(&text).count(), lines.count());
        let own = std::fs::read_link("/proc/self/exe").unwrap();
        assert!(mappings(&text).any(|one| one.is_executable() && one.path().as_ref() == Some(&own)));
        assert!(mappings(&text).any(|one| one.name == b"[stack]" && one.is_writable() && one.inode == 0));
    }
}
