//! The size of the kernel's pages: 4, 16 or 64 KiB on arm64, 4 KiB on x86-64.

/// Bytes of one of the kernel's pages.
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes an integer and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}
