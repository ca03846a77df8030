//! Lab misses: file-backed reads from another device than the lab's during a launch in it. Pure.

use crate::coldness::PAST_LAB_AT_MOST;
use serde::Serialize;
use slowpath_tables::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How many files are named.
const NAMED: usize = 10;

/// File-backed reads of a launch, split by whether the lab answered them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PastLab {
    /// Read from the lab's device.
    pub in_lab: Bytes,
    /// Read from elsewhere.
    pub past: Bytes,
    /// The files read elsewhere with the most bytes, most first: candidates for the next closure.
    pub files: Vec<(PathBuf, Bytes)>,
}

impl PastLab {
    /// Sums up the reads (device as tables have it, host path, bytes) of one launch. Files of the kernel's own trees
    /// (`/proc`, `/sys`, `/dev`) are not read from any device and do not count.
    pub fn of<P: AsRef<Path>>(lab_device: u64, reads: impl IntoIterator<Item = (u64, P, Bytes)>) -> Self {
        let (mut sums, mut files) = (Self::default(), BTreeMap::<PathBuf, Bytes>::new());
        for (device, path, bytes) in reads {
            let path = path.as_ref();
            if device == lab_device {
                sums.in_lab += bytes;
            } else if !["/proc", "/sys", "/dev"].iter().any(|tree| path.starts_with(tree)) {
                sums.past += bytes;
                *files.entry(path.to_path_buf()).or_default() += bytes;
            }
        }
        sums.files = files.into_iter().collect();
        sums.files.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        sums.files.truncate(NAMED);
        sums
    }

    /// Share of all bytes that missed the lab, 0 to 1; 0 when nothing was read.
    pub fn share(&self) -> f64 {
        let all = self.in_lab + self.past;
        if all == Bytes(0) { 0.0 } else { self.past.0 as f64 / all.0 as f64 }
    }

    /// Whether the launch counts as cold by this measure: at most 1 % of misses.
    pub fn acceptable(&self) -> bool {
        self.share() <= PAST_LAB_AT_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_counts_with_one_percent_past_the_lab_and_not_with_more() {
        let reads = |past: u64| [(7, "/usr/lib/a", Bytes(9_900)), (8, "/home/b", Bytes(past))];
        assert!(PastLab::of(7, reads(100)).acceptable());
        assert!(!PastLab::of(7, reads(101)).acceptable());
    }

    #[test]
    fn files_past_the_lab_are_summed_and_named_most_bytes_first() {
        let reads = [(8, "/a", Bytes(1)), (8, "/b", Bytes(5)), (8, "/a", Bytes(9)), (0, "/proc/meminfo", Bytes(50))];
        let past = PastLab::of(7, reads);
        assert_eq!(past.files, [("/a".into(), Bytes(10)), ("/b".into(), Bytes(5))]);
        assert_eq!(past.share(), 1.0);
    }

    #[test]
    fn a_launch_that_read_nothing_has_nothing_past_the_lab() {
        assert_eq!(PastLab::of::<&str>(7, []).share(), 0.0);
    }
}
