//! Which pages of which files a launch demands, in order, and by whom.
//!
//! Owns the demand of one training launch: a launch in a lab whose device has `read_ahead_kb` 0, so that a page enters
//! the page cache only when somebody asks for it. A launch with readahead shows which pages were *read*, not which were
//! needed; [`Demand::of_training`] refuses it with the reason, and callers then know nothing about need. Leaves
//! combining several trainings to [`crate::io::merge`].

use crate::integer_hash::{IntegerMap, IntegerSet};
use crate::io::files::FileId;
use crate::io::insertions::Cause;
use crate::launch_facts::LaunchFacts;
use slowpath_tables::{Nanos, PAGE_SIZE, ProcessKey};
use std::collections::{HashMap, HashSet};

/// Why a recording does not tell which pages were needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeededUnknown {
    /// There is no training launch.
    #[error("no launch at readahead 0 was recorded")]
    NoTraining,
    /// The launch did not run in a lab.
    #[error("the launch did not run in a lab, so its reads mix the kernel's readahead with the program's own demand")]
    NoLab,
    /// The lab's device had readahead.
    #[error("device {device} had a readahead of {kib} KiB; a training launch needs 0")]
    Readahead {
        /// Name of the device.
        device: String,
        /// Its readahead.
        kib: u64,
    },
    /// The readahead of the lab's device was not recorded.
    #[error("the readahead of device {device} was not recorded")]
    ReadaheadNotRecorded {
        /// Name of the device.
        device: String,
    },
    /// It claims more pages than a launch needs.
    #[error("the launch read more than {} GiB, too much for a launch: record it again", (MOST_PAGES * PAGE_SIZE as usize) >> 30)]
    TooMuch,
}

/// Pages of a demand at most, 16 GiB of files: they are kept one by one.
const MOST_PAGES: usize = 1 << 22;

/// A file of which pages were demanded, with what identifies its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandedFile {
    /// Canonical path on the host.
    pub path: String,
    /// Size in bytes, where known.
    pub size: Option<u64>,
    /// Modification time, ns since 1970, where known.
    pub mtime: Option<i64>,
    /// ELF build-id in hexadecimal.
    pub build_id: Option<String>,
}

/// The first demand of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandedPage {
    /// Index into [`Demand::files`].
    pub file: u32,
    /// Page in the file.
    pub page: u64,
    /// When, since exec was released.
    pub at: Nanos,
    /// The same without the wall time in which some thread of the tree had been waiting for file reads: the order of
    /// events of a launch without cold reads.
    pub unblocked_at: Nanos,
    /// By which process.
    pub process: ProcessKey,
    /// By which thread.
    pub tid: u32,
    /// How.
    pub cause: Cause,
}

/// What one training launch demanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Files, in the order of their first demand.
    pub files: Vec<DemandedFile>,
    /// Pages, in the order of their first demand, also those after ready.
    pub pages: Vec<DemandedPage>,
    /// From release to ready, or to the end of the recording.
    pub launch: Nanos,
    /// The same without waiting for file reads, as for [`DemandedPage::unblocked_at`].
    pub unblocked_launch: Nanos,
}

/// Steps of a file's demand in order: to the next page, ahead, or back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Jumps {
    /// Steps to a later page that is not the next one.
    pub forward: u64,
    /// Steps to an earlier page.
    pub backward: u64,
    /// Steps to the next page.
    pub adjacent: u64,
}

impl Jumps {
    /// Counts the steps between consecutive pages.
    pub fn count(pages: impl IntoIterator<Item = u64>) -> Self {
        let mut jumps = Self::default();
        let mut last: Option<u64> = None;
        for page in pages {
            match last {
                Some(last) if page == last.saturating_add(1) => jumps.adjacent += 1,
                Some(last) if page > last => jumps.forward += 1,
                Some(last) if page < last => jumps.backward += 1,
                _ => {}
            }
            last = Some(page);
        }
        jumps
    }
}

impl Demand {
    /// The demand of a training launch.
    ///
    /// Counted are insertions on the lab's devices except those of an advice (somebody guessed, nobody needed) and of
    /// directories, each page at its first insertion.
    ///
    /// # Errors
    /// The launch is no training launch; see [`NeededUnknown`].
    pub fn of_training(facts: &LaunchFacts<'_>) -> Result<Self, NeededUnknown> {
        let lab: Vec<_> = facts.tables.manifest.devices.iter().filter(|device| device.lab).collect();
        if lab.is_empty() {
            return Err(NeededUnknown::NoLab);
        }
        for device in &lab {
            match device.read_ahead_kb {
                Some(0) => {}
                Some(kib) => return Err(NeededUnknown::Readahead { device: device.name.clone(), kib }),
                None => return Err(NeededUnknown::ReadaheadNotRecorded { device: device.name.clone() }),
            }
        }
        let lab: HashSet<u64> = lab.iter().map(|device| device.dev).collect();
        Self::collect(facts, &lab).ok_or(NeededUnknown::TooMuch)
    }

    fn collect(facts: &LaunchFacts<'_>, lab: &HashSet<u64>) -> Option<Self> {
        let mut demand = Self { launch: facts.duration(), ..Self::default() };
        let mut numbers: IntegerMap<FileId, Option<u32>> = IntegerMap::default();
        let mut seen: IntegerSet<(u32, u64)> = IntegerSet::default();
        let mut clock = UnblockedClock::new(facts);
        let mut looked_at = 0;
        for insertion in &facts.insertions {
            if insertion.cause == Cause::Advice {
                continue;
            }
            let number = *numbers.entry(insertion.file).or_insert_with(|| {
                let info = facts.files.get(insertion.file);
                let counts = info.named && !info.directory && info.keys.iter().any(|key| lab.contains(&key.dev));
                counts.then(|| {
                    demand.files.push(DemandedFile {
                        path: info.path.clone(),
                        size: info.size,
                        mtime: info.mtime,
                        build_id: info.build_id.clone(),
                    });
                    u32::try_from(demand.files.len() - 1).unwrap_or(u32::MAX)
                })
            });
            let Some(file) = number else { continue };
            let unblocked_at = clock.at(insertion.ts);
            for page in insertion.page..insertion.page.saturating_add(insertion.pages) {
                // Pages that are there already also take time.
                looked_at += 1;
                if looked_at > MOST_PAGES {
                    return None;
                }
                if seen.insert((file, page)) {
                    demand.pages.push(DemandedPage {
                        file,
                        page,
                        at: insertion.ts - facts.released,
                        unblocked_at,
                        process: insertion.process,
                        tid: insertion.tid,
                        cause: insertion.cause,
                    });
                }
            }
        }
        demand.unblocked_launch = UnblockedClock::new(facts).at(facts.until());
        Some(demand)
    }

    /// Pages demanded up to ready, in order.
    pub fn pages_until_ready(&self) -> &[DemandedPage] {
        &self.pages[..self.pages.partition_point(|page| page.at <= self.launch)]
    }

    /// Pages demanded up to ready of each file by path, in order of demand.
    pub fn by_path(&self) -> HashMap<&str, Vec<u64>> {
        let mut files: HashMap<&str, Vec<u64>> = HashMap::new();
        for page in self.pages_until_ready() {
            files.entry(&self.files[page.file as usize].path).or_default().push(page.page);
        }
        files
    }
}

/// Time since release without the time in which some thread waited for file reads; asked in order of time.
struct UnblockedClock<'a> {
    released: Nanos,
    intervals: &'a [crate::io::blocked::BlockedInterval],
    /// Waiting in intervals that were passed, each instant once.
    passed: Nanos,
    /// Up to where `passed` covers.
    covered: Nanos,
    next: usize,
}

impl<'a> UnblockedClock<'a> {
    fn new(facts: &'a LaunchFacts<'_>) -> Self {
        let released = facts.released;
        Self { released, intervals: &facts.blocked.intervals, passed: Nanos(0), covered: released, next: 0 }
    }

    fn at(&mut self, ts: Nanos) -> Nanos {
        while let Some(interval) = self.intervals.get(self.next)
            && interval.from <= ts
        {
            // Of an open interval only its past counts; it is met again at the next question.
            let to = interval.to.min(ts);
            self.passed += to - interval.from.max(self.covered);
            self.covered = self.covered.max(to);
            if interval.to > ts {
                // Later intervals begin later, but may still begin before `ts`; their past is covered already,
                // because this one reaches to `ts`.
                break;
            }
            self.next += 1;
        }
        ts - self.released - self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    fn training(kib: &str, rows: &str) -> Tables {
        let text = format!(
            "== manifest
{{\"launch\": {{\"released\": 1000, \"ready\": 2000, \"ready_when\": \"exit\", \"outcome\": \"ready\"}}, \"devices\": \
             [{{\"dev\": 1, \"name\": \"loop0\", \"mount_point\": \"/\", \"fs\": \"ext4\", \"read_ahead_kb\": {kib}, \
             \"lab\": true}}]}}
== files
dev ino path    size
1   5   /usr/a  99999
1   6   /usr/b  99999
2   7   /home/c 99999
{rows}"
        );
        Tables::from_text(&text).unwrap()
    }

    const ROWS: &str = "
== page_cache
ts   pid start tid op     dev ino page pages asker
1010 7   1     7   add    1   5   3    1     fault
1020 8   1     9   add    1   5   4    2     read
1030 7   1     7   add    1   6   0    1     advice
1040 7   1     7   add    2   7   0    1     fault
1050 7   1     7   delete 1   5   3    1     other
1060 7   1     7   add    1   5   3    1     fault
1070 7   1     7   add    1   5   1    1     exec
2500 7   1     7   add    1   6   9    1     fault
";

    #[test]
    fn pages_are_listed_at_their_first_demand_without_advice_and_without_other_devices() {
        let tables = training("0", ROWS);
        let demand = Demand::of_training(&LaunchFacts::new(&tables)).unwrap();
        let pages: Vec<_> = demand.pages.iter().map(|p| (p.file, p.page, p.at.0, p.tid)).collect();
        assert_eq!(pages, [(0, 3, 10, 7), (0, 4, 20, 9), (0, 5, 20, 9), (0, 1, 70, 7), (1, 9, 1500, 7)]);
        assert_eq!(demand.pages_until_ready().len(), 4);
        assert_eq!(demand.by_path()["/usr/a"], [3, 4, 5, 1]);
        assert_eq!(demand.files[1].path, "/usr/b");
    }

    #[test]
    fn a_launch_with_readahead_does_not_tell_what_was_needed() {
        let tables = training("128", ROWS);
        let unknown = Demand::of_training(&LaunchFacts::new(&tables)).unwrap_err();
        assert_eq!(unknown, NeededUnknown::Readahead { device: "loop0".to_owned(), kib: 128 });
        assert_eq!(Demand::of_training(&LaunchFacts::new(&Tables::default())), Err(NeededUnknown::NoLab));
    }

    #[test]
    fn waiting_of_any_thread_is_taken_out_of_the_unblocked_times_once() {
        let rows = "
== mappings
ts pid start op  address length dev ino offset
1  7   1     map 65536   65536  1   5   0
== faults
ts   duration pid start tid address kind
1100 100      7   1     7   65536   major
1150 100      7   1     8   69632   major
1400 200      7   1     7   73728   major
== page_cache
ts   pid start tid op     dev ino page pages asker
1110 7   1     7   add    1   5   0    1     fault
1160 7   1     8   add    1   5   1    1     fault
1300 7   1     8   add    1   6   1    1     read
1410 7   1     7   add    1   5   2    1     fault
";
        let tables = training("0", rows);
        let demand = Demand::of_training(&LaunchFacts::new(&tables)).unwrap();
        let times: Vec<_> = demand.pages.iter().map(|p| p.unblocked_at.0).collect();
        assert_eq!(times, [100, 100, 150, 250]);
        assert_eq!(demand.unblocked_launch, Nanos(650));
    }

    #[test]
    fn steps_are_counted_by_direction() {
        assert_eq!(Jumps::count([5, 6, 7, 3, 9, 9]), Jumps { forward: 1, backward: 1, adjacent: 2 });
        assert_eq!(Jumps::count([]), Jumps::default());
    }
}
