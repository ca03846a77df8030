//! What the cgroups of a target counted.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::GroupCounts;

/// Files that stand beside `cgroup.procs`, in whichever version has them.
const FILES: [&str; 3] = ["cpu.stat", "memory.failcnt", "memory.events"];
/// They have some ten lines each.
const MOST_BYTES: usize = 4096;

/// The counters of the groups of these `cgroup.procs` files: opened where the hierarchies can be seen, read wherever the launch is.
pub(super) fn open(cgroups: &[PathBuf]) -> Vec<File> {
    let beside = |file: &PathBuf| FILES.map(|name| File::open(file.with_file_name(name)).ok());
    cgroups.iter().flat_map(beside).flatten().collect()
}

/// What they say now.
pub(super) fn read(files: &[File]) -> GroupCounts {
    let mut counts = GroupCounts::default();
    for file in files {
        let mut buffer = [0; MOST_BYTES];
        let length = file.read_at(&mut buffer, 0).unwrap_or(0);
        counts.add(&String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()));
    }
    counts
}

/// What came since `before`; none where there is no group.
pub(super) fn since(files: &[File], before: &GroupCounts) -> Option<GroupCounts> {
    (!files.is_empty()).then(|| read(files).since(before))
}

impl GroupCounts {
    /// Lines of any of the files: a name and a number, or the number of `memory.failcnt` alone.
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let (name, number) = line.split_once(' ').unwrap_or(("", line));
            let Ok(number) = number.trim().parse::<u64>() else { continue };
            let (place, number) = match name {
                "nr_periods" => (&mut self.periods, number),
                "nr_throttled" => (&mut self.throttled_periods, number),
                "throttled_time" => (&mut self.throttled, number),
                "throttled_usec" => (&mut self.throttled, number.saturating_mul(1000)),
                "" | "high" | "max" => (&mut self.memory_limit_hits, number),
                _ => continue,
            };
            *place = Some(place.unwrap_or(0).saturating_add(number));
        }
    }

    /// What came since `before`.
    fn since(&self, before: &Self) -> Self {
        let change = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then.unwrap_or(0)));
        Self {
            periods: change(self.periods, before.periods),
            throttled_periods: change(self.throttled_periods, before.throttled_periods),
            throttled: change(self.throttled, before.throttled),
            memory_limit_hits: change(self.memory_limit_hits, before.memory_limit_hits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_files_are_counted_in_the_same_units() {
        let mut first = GroupCounts::default();
        first.add("nr_periods 10\nnr_throttled 4\nthrottled_time 5000\nnr_bursts 0\n");
        first.add("7\n");
        let mut second = GroupCounts::default();
        second.add("usage_usec 1\nnr_periods 12\nnr_throttled 5\nthrottled_usec 6\n");
        second.add("low 0\nhigh 3\nmax 6\noom 0\n");
        let counted = second.since(&first);
        let expected = GroupCounts {
            periods: Some(2),
            throttled_periods: Some(1),
            throttled: Some(1000),
            memory_limit_hits: Some(2),
        };
        assert_eq!(counted, expected);
        assert_eq!(GroupCounts::default().since(&first), GroupCounts::default());
    }
}
