//! Numbers of the errors that calls on files and memory end with (include/uapi/asm-generic/errno-base.h, errno.h).

const NUMBERS: &[(&str, i32)] = &[
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("ENODEV", 19),
    ("ENOTDIR", 20),
    ("EISDIR", 21),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("ETXTBSY", 26),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ESPIPE", 29),
    ("EROFS", 30),
    ("ENAMETOOLONG", 36),
    ("ENOSYS", 38),
    ("ELOOP", 40),
    ("EOVERFLOW", 75),
    ("EOPNOTSUPP", 95),
    ("ESTALE", 116),
];

/// The number of an error; that of EIO for one that is not listed, as it is none of permission or absence.
pub fn number(name: &str) -> i32 {
    NUMBERS.iter().find(|(known, _)| *known == name).map_or(5, |(_, number)| *number)
}
