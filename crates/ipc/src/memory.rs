//! Memory that a process shares with the children it forks: anonymous, so it has no name that could be left behind.
//!
//! Owns the mapping and plain copies in and out, and how few bytes are copied. Who may write when is for the users to order with atomics or with calls
//! of the kernel.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// Copies up to this many bytes are done in place: after each switch of processes a call of memcpy(3) takes longer than they do.
const FEW: usize = 32;

/// # Safety
/// Both places have `length` bytes, and do not overlap.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    if length > FEW {
        // SAFETY: as promised by the caller.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
    }
    for at in 0..length {
        // SAFETY: as promised by the caller. Volatile, or the compiler makes it a call of memcpy(3).
        unsafe { to.add(at).write_volatile(from.add(at).read()) };
    }
}

/// Appends `bytes` to `into`: what `extend_from_slice` does, without a call of memcpy(3) for a few bytes.
#[inline]
pub(crate) fn append(bytes: &[u8], into: &mut Vec<u8>) {
    // SAFETY: a slice has as many bytes as it says, and nothing of it can be in a vector that is borrowed mutably.
    unsafe { append_from(bytes.as_ptr(), bytes.len(), into) };
}

/// # Safety
/// There are `length` bytes at `from`, and none of them are in `into`.
#[inline]
unsafe fn append_from(from: *const u8, length: usize, into: &mut Vec<u8>) {
    into.reserve(length);
    // SAFETY: the source as promised by the caller; the target has room (reserved), and all its bytes are set before the length says so.
    unsafe {
        copy(from, into.as_mut_ptr().add(into.len()), length);
        into.set_len(into.len() + length);
    }
}

/// A shared anonymous mapping; zero at first, populated, so that no page fault is measured.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value, and all access goes through raw copies or atomics.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps `length` bytes.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address 0"))?;
        Ok(Self { start, length })
    }

    /// The word at `offset`, which both sides use atomically.
    ///
    /// # Panics
    /// The offset is not inside or not aligned: a defect of the caller, whose offsets are constants.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length, "word {offset} of {}", self.length);
        // SAFETY: inside the mapping (checked), aligned (checked; mappings begin at a page), and lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// They do not fit.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.inside(offset, bytes.len())?;
        // SAFETY: inside the mapping (checked); the source is ours and cannot overlap what only this type gives access to.
        unsafe { copy(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len()) };
        Ok(())
    }

    /// Appends `length` bytes from `offset` to `into`.
    ///
    /// # Errors
    /// They are not inside.
    #[inline]
    pub(crate) fn read(&self, offset: usize, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        self.inside(offset, length)?;
        // SAFETY: inside the mapping (checked), which no vector is in.
        unsafe { append_from(self.start.as_ptr().add(offset), length, into) };
        Ok(())
    }

    #[inline]
    fn inside(&self, offset: usize, length: usize) -> io::Result<()> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "beyond the shared memory")),
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length.max(1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_beyond_the_mapping() {
        let memory = SharedMemory::new(64).unwrap();
        memory.write(60, b"four").unwrap();
        let mut read = b"x".to_vec();
        memory.read(60, 4, &mut read).unwrap();
        assert_eq!(read, b"xfour");
        let long: Vec<u8> = (0..60).collect();
        memory.write(2, &long).unwrap();
        memory.read(1, 62, &mut read).unwrap();
        assert_eq!((read[5], &read[6..66], read[66]), (0, &long[..], b'u'));
        assert!(memory.write(61, b"four").is_err());
        assert!(memory.read(usize::MAX, 2, &mut read).is_err());
    }

    #[test]
    fn few_bytes_and_many_are_appended_alike() {
        let bytes: Vec<u8> = (0..100).collect();
        for length in [0, 1, FEW, FEW + 1, 100] {
            let mut into = b"x".to_vec();
            append(&bytes[..length], &mut into);
            assert_eq!((into[0], &into[1..]), (b'x', &bytes[..length]));
        }
    }
}
