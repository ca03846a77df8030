//! Which file systems hold files whose reads can be cold, and the mounts below a directory.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What a file system means for a cold start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilesystemClass {
    /// Files come from a device of this machine.
    Device,
    /// Files live in memory or are made up by the kernel.
    Pseudo(&'static str),
    /// Files come over a network or from a user-space server; copying them could hang or have effects elsewhere.
    Network(&'static str),
}

/// Magic numbers from `include/uapi/linux/magic.h` and, for those it lacks, the file systems' own headers.
const CLASSES: &[(u64, FilesystemClass)] = &[
    (0x9fa0, FilesystemClass::Pseudo("proc")),
    (0x6265_6572, FilesystemClass::Pseudo("sysfs")),
    (0x6462_6720, FilesystemClass::Pseudo("debugfs")),
    (0x7472_6163, FilesystemClass::Pseudo("tracefs")),
    (0x1cd1, FilesystemClass::Pseudo("devpts")),
    (0x0102_1994, FilesystemClass::Pseudo("tmpfs")),
    (0x8584_58f6, FilesystemClass::Pseudo("ramfs")),
    (0x9584_58f6, FilesystemClass::Pseudo("hugetlbfs")),
    (0x0027_e0eb, FilesystemClass::Pseudo("cgroup")),
    (0x6367_7270, FilesystemClass::Pseudo("cgroup2")),
    (0xcafe_4a11, FilesystemClass::Pseudo("bpf")),
    (0x7363_6673, FilesystemClass::Pseudo("securityfs")),
    (0xf97c_ff8c, FilesystemClass::Pseudo("selinuxfs")),
    (0x6165_676c, FilesystemClass::Pseudo("pstore")),
    (0xde5e_81e4, FilesystemClass::Pseudo("efivarfs")),
    (0x0904_1934, FilesystemClass::Pseudo("anon_inodefs")),
    (0x5346_414f, FilesystemClass::Network("afs")),
    (0x6b41_4653, FilesystemClass::Network("kafs")),
    (0x0102_1997, FilesystemClass::Network("9p")),
    (0x6969, FilesystemClass::Network("nfs")),
    (0x517b, FilesystemClass::Network("smb")),
    (0xff53_4d42, FilesystemClass::Network("cifs")),
    (0xfe53_4d42, FilesystemClass::Network("smb2")),
    (0x564c, FilesystemClass::Network("ncp")),
    (0x00c3_6400, FilesystemClass::Network("ceph")),
    (0x7375_7245, FilesystemClass::Network("coda")),
    (0x6573_5546, FilesystemClass::Network("fuse")),
    (0x0bd0_0bd0, FilesystemClass::Network("lustre")),
    (0x0116_1970, FilesystemClass::Network("gfs2")),
];

/// The class of the file system that holds `path`.
pub(crate) fn class_of(path: &Path) -> io::Result<FilesystemClass> {
    let magic = nix::sys::statfs::statfs(path)?.filesystem_type().0;
    // The type is 32 bits wide in the kernel's tables but sign-extended or not by architecture.
    let magic = magic as u64 & 0xffff_ffff;
    Ok(CLASSES.iter().find(|(known, _)| *known == magic).map_or(FilesystemClass::Device, |(_, class)| *class))
}

/// One line of `/proc/self/mountinfo`, as far as the lab needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPoint {
    /// Where it is mounted.
    pub at: PathBuf,
    /// Per-mount options, such as `rw,nosuid,relatime`.
    pub options: String,
    /// File-system type.
    pub kind: String,
    /// Options of the superblock, for cgroup hierarchies the controllers.
    pub super_options: String,
}

/// All mounts of this process's namespace in the order in which they were made.
pub(crate) fn mount_points() -> io::Result<Vec<MountPoint>> {
    Ok(parse_mountinfo(&fs::read("/proc/thread-self/mountinfo")?))
}

/// Lines that do not have the documented form (proc(5)) are left out: the lab then sees one mount less.
pub(crate) fn parse_mountinfo(text: &[u8]) -> Vec<MountPoint> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|byte| *byte == b' ');
    let at = PathBuf::from(std::ffi::OsString::from_vec(unescape(fields.nth(4)?)));
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    // Optional fields (propagation) end with a lone '-'.
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let super_options = String::from_utf8_lossy(fields.nth(1)?).into_owned();
    Some(MountPoint { at, options, kind, super_options })
}

/// Undoes `\ooo`, by which the kernel writes space, tab, newline and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'\\'
            && tail.len() >= 3
            && let Some(byte) = tail[..3].iter().try_fold(0u32, |value, digit| match digit {
                b'0'..=b'7' => Some(value * 8 + u32::from(digit - b'0')),
                _ => None,
            })
        {
            bytes.push(byte as u8);
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_spaces_newlines_and_backslashes_are_read() {
        let text =
            b"36 35 98:0 /mnt1 /a\\040b\\012c\\134d rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n";
        assert_eq!(
            parse_mountinfo(text),
            [MountPoint {
                at: "/a b\nc\\d".into(),
                options: "rw,noatime".into(),
                kind: "ext3".into(),
                super_options: "rw,errors=continue".into()
            }]
        );
    }

    #[test]
    fn a_truncated_line_is_left_out_and_the_others_stay() {
        assert_eq!(parse_mountinfo(b"36 35 98:0 /\n1 2 3:4 / /x rw - tmpfs t rw").len(), 1);
    }

    #[test]
    fn proc_is_a_pseudo_file_system_and_the_directory_of_images_is_not() {
        assert_eq!(class_of(Path::new("/proc")).unwrap(), FilesystemClass::Pseudo("proc"));
        assert_eq!(class_of(Path::new("/sys")).unwrap(), FilesystemClass::Pseudo("sysfs"));
        assert_eq!(class_of(Path::new("/usr")).unwrap(), FilesystemClass::Device);
    }
}
