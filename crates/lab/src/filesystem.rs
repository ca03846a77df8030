//! Which file systems hold files whose reads can be cold.

use rustix::fd::AsFd;
use rustix::fs::fstatfs;
use std::io;

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

/// The class of the file system that holds an open file.
pub(crate) fn class_of(file: impl AsFd) -> io::Result<FilesystemClass> {
    let magic = fstatfs(file)?.f_type;
    // The type is 32 bits wide in the kernel's tables but sign-extended or not by architecture.
    let magic = magic as u64 & 0xffff_ffff;
    Ok(CLASSES.iter().find(|(known, _)| *known == magic).map_or(FilesystemClass::Device, |(_, class)| *class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_a_pseudo_file_system_and_the_directory_of_images_is_not() {
        let of = |path: &str| class_of(std::fs::File::open(path).unwrap());
        assert_eq!(of("/proc").unwrap(), FilesystemClass::Pseudo("proc"));
        assert_eq!(of("/sys").unwrap(), FilesystemClass::Pseudo("sysfs"));
        assert_eq!(of("/usr").unwrap(), FilesystemClass::Device);
    }
}
