//! Extended attributes of open files: security labels, capabilities, access control lists, user attributes.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Names of all attributes that a copy should have. Those of an overlay's own bookkeeping must not be copied: they
/// would make the image's directory mean something else to the overlay that is mounted over it.
pub(crate) fn names(file: &File) -> io::Result<Vec<CString>> {
    let list = match sized(|buffer, length| {
        // SAFETY: `buffer` is null with length 0, or valid for `length` bytes.
        unsafe { libc::flistxattr(file.as_raw_fd(), buffer.cast(), length) }
    }) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
        list => list?,
    };
    let overlay =
        |name: &CStr| name.to_bytes().starts_with(b"trusted.overlay.") || name.to_bytes().starts_with(b"user.overlay.");
    Ok(list
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
        .filter(|name| !overlay(name))
        .map(CString::from)
        .collect())
}

/// The value of one attribute.
pub(crate) fn value(file: &File, name: &CStr) -> io::Result<Vec<u8>> {
    sized(|buffer, length| {
        // SAFETY: `name` ends with a zero byte; `buffer` is null with length 0, or valid for `length` bytes.
        unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), buffer.cast(), length) }
    })
}

/// Copies one attribute.
pub(crate) fn copy(from: &File, to: &File, name: &CStr) -> io::Result<()> {
    let value = value(from, name)?;
    // SAFETY: `name` ends with a zero byte; `value` is valid for its length.
    match unsafe { libc::fsetxattr(to.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks for the size, then for the bytes; again when the size grew in between.
fn sized(read: impl Fn(*mut u8, usize) -> isize) -> io::Result<Vec<u8>> {
    loop {
        let length = usize::try_from(read(std::ptr::null_mut(), 0)).map_err(|_| io::Error::last_os_error())?;
        let mut buffer = vec![0; length];
        if length == 0 {
            return Ok(buffer);
        }
        match usize::try_from(read(buffer.as_mut_ptr(), length)) {
            Ok(read) => {
                buffer.truncate(read);
                return Ok(buffer);
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ERANGE) {
                    return Err(error);
                }
            }
        }
    }
}
