//! A line of a call stack, `\t 7f1234 function+0x12 (/usr/lib/libc.so.6)`, and where files are mapped.

use crate::code_file::CodeFile;
use slowpath_tables::FileKey;

/// A frame of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLine {
    /// Address of the instruction.
    pub address: u64,
    /// The function, where perf knows it. Foreign text.
    pub function: Option<String>,
    /// What it is in.
    pub file: CodeFile,
}

impl FrameLine {
    /// The frame of a line; null where it is none.
    pub fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
        let address = u64::from_str_radix(address, 16).ok()?;
        // A file that is gone: `(/tmp/a (deleted))`.
        let rest = rest.trim();
        let kept = rest.strip_suffix(" (deleted))").map(|rest| format!("{rest})"));
        let rest = kept.as_deref().unwrap_or(rest);
        // Functions of C++ hold parentheses, paths may.
        let (function, file) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((function, file)) => (function.trim(), CodeFile::of(file)),
            None => match rest.strip_suffix(')').and_then(|rest| rest.strip_prefix('(')) {
                Some(file) => ("", CodeFile::of(file)),
                None => (rest, CodeFile::Generated),
            },
        };
        let function = match function.rsplit_once("+0x") {
            Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
            _ => function,
        };
        let function = Some(function).filter(|name| !name.is_empty() && *name != "[unknown]");
        // Above half of the address space there is no user code.
        let file = if address >> 63 == 1 { CodeFile::Kernel } else { file };
        Some(Self { address, function: function.map(str::to_owned), file })
    }
}

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Of this process.
    pub pid: u32,
    /// First address.
    pub from: u64,
    /// Bytes.
    pub length: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Device and inode.
    pub key: Option<FileKey>,
    /// Its path. Foreign text.
    pub path: String,
}

/// `1234/1234: [0x7f00(0x1000) @ 0x2000 fe:01 77 0]: r-xp /usr/lib/libc.so.6`; with a build-id, `<...>` instead of device and inode.
pub fn mapping(text: &str) -> Option<Mapping> {
    let (ids, rest) = text.split_once(": [")?;
    let pid = ids.split_once('/')?.0.trim().trim_start_matches('-').parse().ok()?;
    let (from, rest) = rest.split_once('(')?;
    let (length, rest) = rest.split_once(") @ ")?;
    let (inside, rest) = rest.split_once("]: ")?;
    let mut words = inside.split_whitespace();
    let hexadecimal = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let offset = hexadecimal(words.next()?)?;
    let key = words.next().zip(words.next()).and_then(|(device, inode)| {
        let (major, minor) = device.split_once(':')?;
        let dev = hexadecimal(major)?.checked_mul(1 << 20)?.checked_add(hexadecimal(minor)?)?;
        Some(FileKey { dev, ino: inode.parse().ok()? })
    });
    let path = rest.split_once(' ')?.1.to_owned();
    Some(Mapping { pid, from: hexadecimal(from)?, length: hexadecimal(length)?, offset, key, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_may_hold_parentheses() {
        let frame = FrameLine::of("\t    55d0 fold(int, (x))+0x1f (/opt/prog)").unwrap();
        assert_eq!(frame.function.as_deref(), Some("fold(int, (x))"));
        assert_eq!(FrameLine::of("\t 55d0 main (/opt/prog)").unwrap().file, CodeFile::At("/opt/prog".to_owned()));
        let gone = FrameLine::of("\t 10 [unknown] (/memfd:x (deleted))").unwrap();
        assert_eq!((gone.function, gone.file), (None, CodeFile::At("/memfd:x".to_owned())));
        let unknown = FrameLine::of("\tffffffff81000000 [unknown] ([unknown])").unwrap();
        assert_eq!((unknown.function, unknown.file), (None, CodeFile::Kernel));
        assert_eq!(FrameLine::of("\t 10 f (inlined)").unwrap().file, CodeFile::Inlined);
        assert_eq!(FrameLine::of("\tno address"), None);
    }

    #[test]
    fn a_mapping_has_device_and_inode_unless_a_build_id_stands_there() {
        let text = "7/8: [0x7f00(0x1000) @ 0x2000 fe:01 77 0]: r-xp /usr/lib/a b.so";
        let found = mapping(text).unwrap();
        assert_eq!((found.pid, found.from, found.length, found.offset), (7, 0x7f00, 0x1000, 0x2000));
        assert_eq!(found.key, Some(FileKey { dev: 0xfe << 20 | 1, ino: 77 }));
        assert_eq!(found.path, "/usr/lib/a b.so");
        assert_eq!(mapping("7/8: [0x7f00(0x1000) @ 0 <00ff>]: r-xp /a").unwrap().key, None);
        assert_eq!(mapping("-1/0: [0xffffffff81000000(0x1000) @ 0xffffffff81000000]: x [kernel]_text").unwrap().pid, 1);
        assert_eq!(mapping("nonsense"), None);
    }
}
