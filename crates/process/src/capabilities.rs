//! The capability sets of the calling thread (capabilities(7)).

use std::io;

/// `_LINUX_CAPABILITY_VERSION_3`, include/uapi/linux/capability.h.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// `struct __user_cap_data_struct`; two of them hold the low and the high 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// One bit per capability, by the kernel's numbers (`CAP_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// In force now.
    pub effective: u64,
    /// What may be put in force.
    pub permitted: u64,
    /// What an exec of a file with inheritable capabilities keeps.
    pub inheritable: u64,
}

impl Capabilities {
    /// `CAP_DAC_OVERRIDE`, include/uapi/linux/capability.h: passes over the permissions of files.
    pub(crate) const DAC_OVERRIDE: u64 = 1 << 1;
    /// `CAP_DAC_READ_SEARCH`: passes over those for reading files and searching directories.
    pub(crate) const DAC_READ_SEARCH: u64 = 1 << 2;

    /// Those of the calling thread.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of_this_thread() -> io::Result<Self> {
        let mut header = Header { version: VERSION, pid: 0 };
        let mut halves = [Half::default(); 2];
        // SAFETY: both are ours, and as large as this version of the interface says.
        checked(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) })?;
        let whole = |part: fn(&Half) -> u32| u64::from(part(&halves[0])) | u64::from(part(&halves[1])) << 32;
        Ok(Self {
            effective: whole(|half| half.effective),
            permitted: whole(|half| half.permitted),
            inheritable: whole(|half| half.inheritable),
        })
    }

    /// Gives the calling thread these sets.
    ///
    /// # Errors
    /// They hold more than the thread may have.
    pub fn apply(self) -> io::Result<()> {
        let mut header = Header { version: VERSION, pid: 0 };
        let half = |shift: u32| Half {
            effective: (self.effective >> shift) as u32,
            permitted: (self.permitted >> shift) as u32,
            inheritable: (self.inheritable >> shift) as u32,
        };
        let halves = [half(0), half(32)];
        // SAFETY: both are ours, and as large as this version of the interface says.
        checked(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) })
    }

    /// Takes all but these from the calling thread, and reads back that they are gone. What it does not have it does not get.
    ///
    /// # Errors
    /// The kernel refuses, or capabilities are left.
    pub fn keep_only(wanted: u64) -> io::Result<()> {
        let kept = Self::of_this_thread()?.permitted & wanted;
        let reduced = Self { effective: kept, permitted: kept, inheritable: 0 };
        reduced.apply()?;
        match Self::of_this_thread()? == reduced {
            true => Ok(()),
            false => Err(io::Error::other("capabilities are left")),
        }
    }

    /// Whether all three sets are empty.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_that_are_read_can_be_applied_and_are_what_proc_shows() {
        let own = Capabilities::of_this_thread().unwrap();
        own.apply().unwrap();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let shown = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        assert_eq!(own.effective, shown("CapEff:"));
        assert_eq!(own.permitted, shown("CapPrm:"));
        assert_eq!(own.inheritable, shown("CapInh:"));
    }
}
