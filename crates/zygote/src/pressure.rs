//! The kernel's own word that memory is short (Documentation/accounting/psi.rst): a trigger that is polled, long before the OOM killer comes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// Some task waited for memory for 100 ms of 2 s. Without privilege the window is a multiple of 2 s.
const TRIGGER: &[u8] = b"some 100000 2000000\0";

/// An armed trigger; its descriptor has `POLLPRI` when it fires.
#[derive(Debug)]
pub(crate) struct MemoryPressure(File);

impl MemoryPressure {
    /// Arms it: of the process's own cgroup v2 where that reports pressure, else of the machine.
    ///
    /// # Errors
    /// The kernel has no pressure stall information, or not for this caller.
    pub(crate) fn armed() -> io::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = own
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .map(|path| format!("/sys/fs/cgroup{path}/memory.pressure"));
        let arm = |path: &str| -> io::Result<Self> {
            let mut file = File::options().read(true).write(true).open(path)?;
            file.write_all(TRIGGER)?;
            Ok(Self(file))
        };
        group.and_then(|path| arm(&path).ok()).map_or_else(|| arm("/proc/pressure/memory"), Ok)
    }
}

impl AsFd for MemoryPressure {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_can_be_armed_where_the_kernel_tells_of_pressure() {
        match MemoryPressure::armed() {
            Ok(_) => {}
            Err(error) => {
                assert!(
                    !nix::unistd::geteuid().is_root() || !std::path::Path::new("/proc/pressure/memory").exists(),
                    "{error}"
                );
                println!("skipped: {error}");
            }
        }
    }
}
