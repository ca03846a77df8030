//! `perf_event_open(2)` for the kinds of events the probes need: software events of a CPU (page faults, its clock).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// `struct perf_event_attr` up to `PERF_ATTR_SIZE_VER0` (64 bytes), include/uapi/linux/perf_event.h.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// Software events of a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEvent {
    /// `PERF_COUNT_SW_PAGE_FAULTS`: a fault begins.
    Begin = 2,
    /// `PERF_COUNT_SW_PAGE_FAULTS_MIN`: it ended without storage.
    Minor = 5,
    /// `PERF_COUNT_SW_PAGE_FAULTS_MAJ`: it ended after waiting for storage.
    Major = 6,
}

fn open(attributes: &Attributes, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
    // SAFETY: `attributes` is a valid perf_event_attr of the size it states; the kernel only reads it.
    let result = unsafe {
        libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attributes), pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let raw = i32::try_from(result).map_err(io::Error::other)?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The event for all tasks on one CPU and for faults of both modes: the program distinguishes them.
pub(crate) fn fault_of_cpu(event: FaultEvent, cpu: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: 64,
        config: event as u64,
        sample_period: 1,
        flags: EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    open(&attributes, -1, cpu)
}

/// The kernel's timer event of a CPU, `hertz` times a second (`PERF_COUNT_SW_CPU_CLOCK`, whose period is in ns).
pub(crate) fn clock_of_cpu(hertz: u32, cpu: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: 64,
        config: 0,
        sample_period: 1_000_000_000 / u64::from(hertz.max(1)),
        flags: EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    open(&attributes, -1, cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_that_they_state() {
        assert_eq!(size_of::<Attributes>(), 64);
    }
}
