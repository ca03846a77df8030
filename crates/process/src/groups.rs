//! The supplementary groups of this process, asked without a look into `/proc`.
//!
//! `nix::unistd::getgroups` asks first how many there can be at all, which the C library reads from `/proc/sys/kernel/ngroups_max`: three
//! more system calls between a fork and its exec, and a file that is not there in every root directory.

use nix::errno::Errno;

/// The supplementary group ids, in the kernel's order.
///
/// # Errors
/// What getgroups(2) says.
pub fn own_groups() -> nix::Result<Vec<u32>> {
    loop {
        // SAFETY: with a size of 0 nothing is written.
        let count = Errno::result(unsafe { libc::getgroups(0, std::ptr::null_mut()) })?;
        let mut groups: Vec<u32> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many ids as are said to fit.
        match Errno::result(unsafe { libc::getgroups(count, groups.as_mut_ptr()) }) {
            Ok(count) => {
                groups.truncate(usize::try_from(count).unwrap_or(0));
                return Ok(groups);
            }
            // Another thread has taken more on.
            Err(Errno::EINVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::own_groups;

    #[test]
    fn they_are_those_of_the_status_file() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        let mut shown: Vec<u32> = line.split_whitespace().map(|id| id.parse().unwrap()).collect();
        let mut own = own_groups().unwrap();
        shown.sort_unstable();
        own.sort_unstable();
        assert_eq!(own, shown);
    }
}
