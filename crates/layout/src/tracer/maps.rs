//! Which files a process has mapped as code: `/proc/PID/maps` (proc_pid_maps(5)), whose paths the target chose.

use std::ops::Range;

/// Mappings that are looked at; the kernel's own limit (`vm.max_map_count`) is 65,530 by default.
const MOST: usize = 1 << 18;

/// A private, executable mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// Addresses.
    pub range: Range<u64>,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file.
    pub inode: u64,
    /// Its path; what a file of a deleted name is called ends in " (deleted)".
    pub path: String,
}

/// The mappings of code in the text of such a file. Lines that are none are passed over.
pub fn code_mappings(text: &[u8]) -> Vec<CodeMapping> {
    text.split(|byte| *byte == b'\n').take(MOST).filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<CodeMapping> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let range = u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?;
    let rights = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let _device = fields.next()?;
    let inode = fields.next()?.parse().ok()?;
    // The path stands at a column of its own.
    let path = fields.next()?.trim_start_matches(' ');
    // A newline in a path is the one character that the kernel writes otherwise.
    let path = path.replace("\\012", "\n");
    let is_code = rights.get(2) == Some(&b'x') && rights.get(3) == Some(&b'p');
    (is_code && inode != 0 && range.start < range.end && path.starts_with('/')).then_some(CodeMapping {
        range,
        offset,
        inode,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_code_of_files_is_kept() {
        let text = b"55d0-55d1 r--p 00000000 08:01 42      /usr/bin/a b\n\
            1000-3000 r-xp 00001000 08:01 42                         /usr/bin/a b\n\
            4000-5000 r-xs 00000000 08:01 42 /usr/bin/shared\n\
            5000-6000 r-xp 00000000 00:00 0\n\
            7000-8000 r-xp 00000000 00:00 0                          [vdso]\n\
            9000-9000 r-xp 00000000 08:01 1 /empty\n\
            a000-b000 r-xp 00002000 08:01 7 /new\\012line (deleted)\n\
            nonsense\n\xff\xff";
        let found = code_mappings(text);
        let kept: Vec<_> = found.iter().map(|one| (one.range.clone(), one.offset, one.path.as_str())).collect();
        assert_eq!(kept, [(0x1000..0x3000, 0x1000, "/usr/bin/a b"), (0xa000..0xb000, 0x2000, "/new\nline (deleted)")]);
    }

    #[test]
    fn this_process_has_its_own_program_among_them() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let own = std::fs::read_link("/proc/self/exe").unwrap();
        assert!(code_mappings(&text).iter().any(|one| one.path == own.to_str().unwrap()));
    }
}
