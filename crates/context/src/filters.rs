//! System call filters of a process as the kernel runs them. It shows them only to a tracer with `CAP_SYS_ADMIN`, which has to stop
//! the process for some ten microseconds (`PTRACE_SECCOMP_GET_FILTER`, ptrace(2)). Own small module because that is all unsafe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::ptr;

/// `BPF_MAXINSNS`: instructions that a filter has at most.
const MOST_INSTRUCTIONS: usize = 4096;
/// Filters that are read at most: a stack of them has at most 32,768 instructions (kernel/seccomp.c, `MAX_INSNS_PER_PATH`).
const MOST_FILTERS: usize = 8192;
const PTRACE_SECCOMP_GET_FILTER: libc::c_uint = 0x420c;

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filter(
    /// Its program, 8 bytes an instruction (`struct sock_filter` of the machine's byte order), in hexadecimal digits. Foreign.
    String,
);

impl Filter {
    fn new(instructions: &[libc::sock_filter]) -> Self {
        let bytes = instructions.iter().flat_map(|one| {
            let ([a, b], [c, d, e, f]) = (one.code.to_ne_bytes(), one.k.to_ne_bytes());
            [a, b, one.jt, one.jf, c, d, e, f]
        });
        Self(bytes.map(|byte| format!("{byte:02x}")).collect())
    }

    /// The program; none where the text is none.
    pub fn program(&self) -> Option<Vec<u8>> {
        let digits = self.0.as_bytes();
        let is_whole = !digits.is_empty() && digits.len().is_multiple_of(16) && digits.len() / 16 <= MOST_INSTRUCTIONS;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().filter(|_| is_whole)
    }

    /// How many instructions it has.
    pub fn instructions(&self) -> usize {
        self.0.len() / 16
    }
}

/// All filters of a thread, the first one that was put on first.
///
/// # Errors
/// The caller is no administrator, the thread is traced already, or a filter is not a classic program.
pub(crate) fn read(tid: u32) -> io::Result<Vec<Filter>> {
    let tid = i32::try_from(tid).map_err(io::Error::other)?;
    let seized = Seized::new(tid)?;
    let mut filters = Vec::new();
    loop {
        match seized.filter(filters.len()) {
            Ok(filter) => filters.push(filter),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
            Err(error) => return Err(error),
        }
        if filters.len() > MOST_FILTERS {
            return Err(io::Error::other("more filters than a kernel allows"));
        }
    }
    filters.reverse();
    Ok(filters)
}

/// A stopped thread, let go when dropped.
struct Seized(i32);

impl Seized {
    fn new(tid: i32) -> io::Result<Self> {
        let none = ptr::null_mut::<libc::c_void>();
        // SAFETY: takes integers and touches no memory of ours.
        answered(unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, none, none) })?;
        let seized = Self(tid);
        // SAFETY: as above.
        answered(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, none, none) })?;
        let mut status = 0;
        // SAFETY: the status is valid for writes.
        answered(unsafe { libc::waitpid(tid, &mut status, libc::__WALL) }.into())?;
        if libc::WIFSTOPPED(status) { Ok(seized) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }

    /// The filter at `index`, the last one that was put on first.
    fn filter(&self, index: usize) -> io::Result<Filter> {
        let mut program = vec![libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; MOST_INSTRUCTIONS];
        let to = program.as_mut_ptr();
        // SAFETY: the buffer has room for the longest filter that a kernel takes.
        let length = answered(unsafe { libc::ptrace(PTRACE_SECCOMP_GET_FILTER, self.0, index, to) })?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        program.get(..length).map(Filter::new).ok_or_else(|| io::Error::other("longer than a filter can be"))
    }
}

impl Drop for Seized {
    fn drop(&mut self) {
        let none = ptr::null_mut::<libc::c_void>();
        // SAFETY: takes integers and touches no memory of ours.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, none, none) };
    }
}

fn answered(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_same_program_after_it_was_saved() {
        let one = libc::sock_filter { code: 0x15, jt: 3, jf: 0, k: 0x5109_7000 };
        let filter = Filter::new(&[one]);
        let ([a, b], [c, d, e, f]) = (one.code.to_ne_bytes(), one.k.to_ne_bytes());
        assert_eq!(filter.program(), Some(vec![a, b, 3, 0, c, d, e, f]));
        assert_eq!(filter.instructions(), 1);
        for wrong in ["", "00", "zz00000000000000", &"0".repeat(16 * 4097)] {
            assert_eq!(Filter(wrong.to_owned()).program(), None);
        }
    }

    #[test]
    fn a_thread_that_cannot_be_traced_has_no_filters_to_tell() {
        assert!(read(u32::MAX).is_err());
        // Nobody traces itself.
        assert!(read(std::process::id()).is_err());
    }
}
