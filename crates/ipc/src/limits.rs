//! Limits that a large benchmark meets: descriptors, bytes of message queues, memory. Owns what is raised or refused before anything
//! is started; what a refusal of the kernel means is [`IpcError::remedy`]'s.

use crate::transport::IpcError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limits of descriptors (each connection takes four, each process two) and of message queues to the hard ones, for
/// this process and those that it forks. Where that is refused they stay.
pub fn raise() {
    for resource in [Resource::RLIMIT_NOFILE, Resource::RLIMIT_MSGQUEUE] {
        if let Ok((_, hard)) = getrlimit(resource) {
            let _ = setrlimit(resource, hard, hard);
        }
    }
}

/// Refuses samples that take more than a quarter of the available memory: they are mapped and populated before anything is measured.
///
/// # Errors
/// [`IpcError::Usage`] with what to lower.
pub(crate) fn affordable(bytes: u64, lower: &str) -> Result<(), IpcError> {
    within(bytes, available(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default()), lower)
}

fn within(bytes: u64, available: Option<u64>, lower: &str) -> Result<(), IpcError> {
    const MIB: u64 = 1024 * 1024;
    match available {
        Some(available) if bytes > available / 4 => Err(IpcError::Usage(format!(
            "the samples take {} MiB of memory, more than a quarter of what is available ({} MiB): lower {lower}",
            bytes.div_ceil(MIB),
            available / MIB
        ))),
        _ => Ok(()),
    }
}

/// `MemAvailable` in bytes (proc_meminfo(5)).
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_quarter_of_the_available_memory_is_refused() {
        let available = available("MemTotal:  9999 kB\nMemAvailable:   4096 kB\n");
        assert_eq!(available, Some(4 * 1024 * 1024));
        assert!(within(1024 * 1024, available, "-i").is_ok());
        let refused = within(1024 * 1024 + 1, available, "-i or -pair").unwrap_err().to_string();
        assert!(refused.contains("2 MiB") && refused.contains("(4 MiB): lower -i or -pair"), "{refused}");
        assert!(within(u64::MAX, None, "-i").is_ok(), "a kernel that does not say refuses nothing");
    }
}
