//! What `/proc` shows of a process that may be anybody's.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

/// What follows `name` and the colon in the text of `/proc/PID/status` (proc_pid_status(5)), without the white space around it.
pub fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    status.lines().find_map(value)
}

/// A size in such a text, or in that of `/proc/PID/smaps_rollup` (`VmHWM:     1234 kB`), in bytes.
pub fn size_field(text: &str, name: &str) -> Option<u64> {
    let kib = status_field(text, name)?.strip_suffix(" kB")?.trim_end().parse::<u64>().ok()?;
    kib.checked_mul(1024)
}

/// The text of `/proc/NAME/status`, by a number or another name in `/proc`. A program's name in it may be any bytes: those that are no text
/// are replaced.
///
/// # Errors
/// There is no such process, or not any more.
pub fn status_of(name: impl fmt::Display) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(format!("/proc/{name}/status"))?).into_owned())
}

/// A link of `/proc` that could not be read: the process has ended, or the caller may not look at it.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {error}", path.display())]
pub struct UnreadableLink {
    /// The link.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// Whether the paths that a process uses lead to the same files for the caller: both have the same mounts and the same root directory.
///
/// # Errors
/// That cannot be read.
pub fn shares_files(pid: u32) -> Result<bool, UnreadableLink> {
    let leads = |of: &str, name: &str| {
        let path = PathBuf::from(format!("/proc/{of}/{name}"));
        fs::read_link(&path).map_err(|error| UnreadableLink { path, error })
    };
    let own = pid.to_string();
    Ok(leads(&own, "ns/mnt")? == leads("self", "ns/mnt")? && leads(&own, "root")? == leads("self", "root")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tUid:\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGroups:\t \n";
        assert_eq!(status_field(status, "Uid"), Some("1000\t0\t0\t0"));
        assert_eq!((status_field(status, "Groups"), status_field(status, "U")), (Some(""), None));
    }

    #[test]
    fn a_size_is_in_bytes_and_what_is_none_has_none() {
        let rollup =
            "5601-7ffd ---p 00000000 00:00 0    [rollup]\nRss:  8 kB\nPss:                1234 kB\nPss_Anon:   5 kB\n";
        assert_eq!((size_field(rollup, "Pss"), size_field(rollup, "Pss_Anon")), (Some(1234 << 10), Some(5 << 10)));
        for text in ["", "Pss: 1", "Pss: kB", "Pss: 1 MB", "Pss: -1 kB", "Pss: 18446744073709551615 kB"] {
            assert_eq!(size_field(text, "Pss"), None, "{text}");
        }
    }

    #[test]
    fn a_process_whose_name_is_no_text_has_its_status_all_the_same() {
        let named = std::thread::spawn(|| {
            // SAFETY: the name is a string of at most 16 bytes, and is copied.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_NAME, c"\xff\xfe".as_ptr()) }, 0);
            let status = status_of("thread-self").unwrap();
            (status.starts_with("Name:\t\u{fffd}"), status_field(&status, "Tgid").map(str::to_owned))
        });
        assert_eq!(named.join().unwrap(), (true, Some(std::process::id().to_string())));
        assert!(status_of(u32::MAX).is_err());
    }

    #[test]
    fn this_process_has_its_own_files_and_one_that_is_gone_none() {
        assert!(shares_files(std::process::id()).unwrap());
        let gone = shares_files(u32::MAX).unwrap_err().to_string();
        assert!(gone.starts_with("/proc/4294967295/ns/mnt cannot be read: "), "{gone}");
    }
}
