//! An io_uring (io_uring(7)) as far as messages between rings need it: one entry submitted at a time, completions taken as they come.
//!
//! Owns the layout of a ring, from include/uapi/linux/io_uring.h. What a message means is the transport's.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries of the submission queue; the completion queue has twice as many.
const ENTRIES: u32 = 8;
/// `IORING_OFF_SQES`, and bytes of a submission and of a completion.
const SUBMISSIONS_AT: libc::off_t = 0x1000_0000;
const SUBMISSION: usize = 64;
const COMPLETION: usize = 16;
/// `IORING_FEAT_SINGLE_MMAP`: both queues lie in one mapping, since Linux 5.4.
const SINGLE_MAPPING: u32 = 1;
/// `IORING_OP_MSG_RING`, since Linux 5.18; `IOSQE_CQE_SKIP_SUCCESS`; `IORING_ENTER_GETEVENTS`.
const MESSAGE: u8 = 40;
const SILENT: u8 = 1 << 6;
const GET_EVENTS: libc::c_uint = 1;

/// `struct io_uring_params`: ten words, then the offsets of both queues, ten words each.
#[repr(C)]
#[derive(Clone, Debug, Default)]
struct Parameters {
    submissions: u32,
    completions: u32,
    flags: u32,
    unused: [u32; 2],
    features: u32,
    more: [u32; 4],
    /// head, tail, ring_mask, ring_entries, flags, dropped, array.
    submission_offsets: [u32; 10],
    /// head, tail, ring_mask, ring_entries, overflow, cqes.
    completion_offsets: [u32; 10],
}

/// A ring that no process has mapped yet.
#[derive(Debug)]
pub(crate) struct Ring {
    descriptor: OwnedFd,
    parameters: Parameters,
}

impl Ring {
    /// Makes one.
    ///
    /// # Errors
    /// The kernel has none, or kernel.io_uring_disabled forbids it.
    pub(crate) fn new() -> io::Result<Self> {
        let mut parameters = Parameters::default();
        // SAFETY: the kernel reads and fills the structure, which has its size.
        let raw = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut parameters) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        let raw = i32::try_from(raw).map_err(io::Error::other)?;
        // SAFETY: the kernel just returned this descriptor to us alone.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        if parameters.features & SINGLE_MAPPING == 0 {
            return Err(io::Error::other("a kernel before Linux 5.4"));
        }
        Ok(Self { descriptor, parameters })
    }

    /// Its descriptor, to which others send.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Maps it into this process.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn map(&self) -> io::Result<Mapped> {
        let (ours, theirs) = (&self.parameters.submission_offsets, &self.parameters.completion_offsets);
        let of_submissions = ours[6] as usize + 4 * self.parameters.submissions as usize;
        let of_completions = theirs[5] as usize + COMPLETION * self.parameters.completions as usize;
        Ok(Mapped {
            queues: Area::of(&self.descriptor, of_submissions.max(of_completions), 0)?,
            entries: Area::of(&self.descriptor, SUBMISSION * self.parameters.submissions as usize, SUBMISSIONS_AT)?,
            parameters: self.parameters.clone(),
            descriptor: self.descriptor.as_raw_fd(),
        })
    }
}

/// What came: who it is from, by what the sender chose, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub data: u64,
    pub result: i32,
}

/// A ring in this process. The ring itself has to outlive it.
#[derive(Debug)]
pub(crate) struct Mapped {
    queues: Area,
    entries: Area,
    parameters: Parameters,
    descriptor: i32,
}

impl Mapped {
    /// Sends a message to another ring; only a failure completes here, as `failure`.
    pub(crate) fn message(&mut self, to: &OwnedFd, data: u64, failure: u64) -> io::Result<()> {
        let offsets = self.parameters.submission_offsets;
        let tail = self.queues.word(offsets[1])?.load(Ordering::Relaxed);
        let index = tail & self.queues.word(offsets[2])?.load(Ordering::Relaxed);
        let mut entry = [0u8; SUBMISSION];
        entry[0] = MESSAGE;
        entry[1] = SILENT;
        entry[4..8].copy_from_slice(&to.as_raw_fd().to_ne_bytes());
        entry[8..16].copy_from_slice(&data.to_ne_bytes());
        entry[32..40].copy_from_slice(&failure.to_ne_bytes());
        self.entries.write(SUBMISSION * index as usize, &entry)?;
        self.queues.word(offsets[6] + 4 * index)?.store(index, Ordering::Relaxed);
        self.queues.word(offsets[1])?.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Submits what was written, and waits for a completion.
    pub(crate) fn wait(&mut self, mut submitted: u32) -> io::Result<Completion> {
        loop {
            if submitted == 0
                && let Some(completion) = self.completion()?
            {
                return Ok(completion);
            }
            // SAFETY: no pointers: no signal mask.
            let done = unsafe {
                let none = std::ptr::null::<u8>();
                libc::syscall(libc::SYS_io_uring_enter, self.descriptor, submitted, 1, GET_EVENTS, none, 0)
            };
            match done {
                0.. => submitted = submitted.saturating_sub(u32::try_from(done).unwrap_or(0)),
                _ => match io::Error::last_os_error() {
                    // Nothing was submitted then.
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }

    /// The next completion, if there is one.
    fn completion(&mut self) -> io::Result<Option<Completion>> {
        let offsets = self.parameters.completion_offsets;
        let head = self.queues.word(offsets[0])?.load(Ordering::Relaxed);
        if head == self.queues.word(offsets[1])?.load(Ordering::Acquire) {
            return Ok(None);
        }
        let index = head & self.queues.word(offsets[2])?.load(Ordering::Relaxed);
        let bytes: [u8; COMPLETION] = self.queues.read(offsets[5] as usize + COMPLETION * index as usize)?;
        self.queues.word(offsets[0])?.store(head.wrapping_add(1), Ordering::Release);
        let (data, rest) = bytes.split_first_chunk::<8>().ok_or(io::ErrorKind::InvalidData)?;
        let result = rest.first_chunk::<4>().ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Completion { data: u64::from_ne_bytes(*data), result: i32::from_ne_bytes(*result) }))
    }
}

/// A part of a ring in memory.
#[derive(Debug)]
struct Area {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value, and all access goes through raw copies or atomics.
unsafe impl Send for Area {}

impl Area {
    fn of(descriptor: &OwnedFd, length: usize, at: libc::off_t) -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, descriptor.as_raw_fd(), at) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address 0"))?;
        Ok(Self { start, length })
    }

    fn inside(&self, offset: usize, length: usize, aligned: usize) -> io::Result<*mut u8> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length && offset.is_multiple_of(aligned) => {
                // SAFETY: inside the mapping (checked).
                Ok(unsafe { self.start.as_ptr().add(offset) })
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "beyond the ring")),
        }
    }

    fn word(&self, offset: u32) -> io::Result<&AtomicU32> {
        let place = self.inside(offset as usize, 4, 4)?;
        // SAFETY: inside, aligned (both checked), and alive as long as `self`; the kernel uses it atomically, too.
        Ok(unsafe { AtomicU32::from_ptr(place.cast()) })
    }

    fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let place = self.inside(offset, bytes.len(), 1)?;
        // SAFETY: inside (checked); the kernel reads an entry only after the tail says so.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(())
    }

    fn read<const LENGTH: usize>(&self, offset: usize) -> io::Result<[u8; LENGTH]> {
        let place = self.inside(offset, LENGTH, 1)?;
        // SAFETY: inside (checked); the kernel wrote it before the tail said so, and not again before the head does.
        Ok(unsafe { std::ptr::read_unaligned(place.cast()) })
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_the_kernels() {
        assert_eq!(size_of::<Parameters>(), 120);
    }

    #[test]
    fn a_message_comes_as_it_was_sent_and_one_to_nobody_fails() {
        let (one, two) = match (Ring::new(), Ring::new()) {
            (Ok(one), Ok(two)) => (one, two),
            (Err(error), _) | (_, Err(error)) => {
                println!("skipped: {error}");
                return;
            }
        };
        let (mut from, mut to) = (one.map().unwrap(), two.map().unwrap());
        // More than there are entries, so that both queues wrap.
        for number in 0..100u64 {
            from.message(two.descriptor(), number, u64::MAX).unwrap();
            // To itself, so that its own wait ends.
            from.message(one.descriptor(), number + 1, u64::MAX).unwrap();
            assert_eq!(from.wait(2).unwrap(), Completion { data: number + 1, result: 0 });
            assert_eq!(to.wait(0).unwrap(), Completion { data: number, result: 0 });
        }
        let nobody: OwnedFd = std::io::pipe().unwrap().0.into();
        from.message(&nobody, 7, u64::MAX).unwrap();
        let failed = from.wait(1).unwrap();
        assert_eq!((failed.data, failed.result < 0), (u64::MAX, true), "{failed:?}");
    }
}
