//! Which files a process has mapped as code, by its `/proc/PID/maps`, whose paths the target chose.
//!
//! Owns which mappings count. Leaves the form of the text to `slowpath_process`.

use slowpath_process::{Mapping, mappings};
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

/// The mappings of code in the text of such a file. Those of files whose path is no UTF-8 are passed over.
pub fn code_mappings(text: &[u8]) -> Vec<CodeMapping> {
    let is_code = |one: &Mapping<'_>| one.is_executable() && !one.is_shared() && one.inode != 0;
    let code = |one: Mapping<'_>| {
        let path = one.path()?.into_os_string().into_string().ok()?;
        Some(CodeMapping { range: one.range, offset: one.offset, inode: one.inode, path })
    };
    mappings(text).take(MOST).filter(is_code).filter_map(code).collect()
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
