//! Lab misses: file-backed reads from another device than the lab's during a launch in it. Pure.

use slowpath_tables::Bytes;

/// The share of lab misses in all bytes of a launch's reads, 0 to 1; 0 when nothing was read. Reads are device as tables have it, host
/// path and bytes; those of the kernel's own trees (`/proc`, `/sys`, `/dev`) are from no device and do not count.
pub fn lab_misses<'a>(lab_device: u64, reads: impl IntoIterator<Item = (u64, &'a str, Bytes)>) -> f64 {
    let (mut in_lab, mut missed) = (Bytes(0), Bytes(0));
    for (device, path, bytes) in reads {
        if device == lab_device {
            in_lab += bytes;
        } else if !["/proc/", "/sys/", "/dev/"].iter().any(|tree| path.starts_with(tree)) {
            missed += bytes;
        }
    }
    let all = in_lab + missed;
    if all == Bytes(0) { 0.0 } else { missed.0 as f64 / all.0 as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_device_delivered_is_a_miss_and_what_no_device_does_is_none() {
        let reads = [
            (7, "/usr/lib/a", Bytes(9_900)),
            (8, "/home/b", Bytes(60)),
            (8, "/devices", Bytes(40)),
            (0, "/proc/meminfo", Bytes(5_000)),
        ];
        assert_eq!(lab_misses(7, reads), 0.01);
        assert_eq!(lab_misses(8, [(7, "/a", Bytes(1))]), 1.0);
    }

    #[test]
    fn a_launch_that_read_nothing_misses_nothing() {
        assert_eq!(lab_misses(7, []), 0.0);
    }
}
