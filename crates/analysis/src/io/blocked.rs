//! When threads waited for file reads.
//!
//! Owns which time counts as waiting, per thread, process and file, and the launch's wall-clock share of it. Leaves
//! what was read to [`crate::io::insertions`].
//!
//! What counts, and until when:
//!
//! - a **major fault** on a file: its whole duration (the kernel calls a fault major when it had to start a read);
//!   where what its address means is not known, the file is that of the first page that its thread brought into the cache in it;
//! - a **minor fault** on a file: the page was in the cache but still under way, brought by another thread or by a
//!   prefetcher; counted when it took [`LOCKED_PAGE_WAIT`] or more *and* a read of the block device completed in it,
//!   up to the last such completion;
//! - a **read call** that inserted pages into the cache: up to the last completion of a block read in it (what follows
//!   is copying), or whole where block I/O was not recorded;
//! - a **read call** that inserted none: like a minor fault; the bound grows by [`COPY_NS_PER_BYTE`] of what it returned,
//!   so that copying cached data beside foreign I/O is not mistaken for waiting.
//!
//! Completions are those of the file's own device; of any device where the file's number never occurs in `block_io`
//! (partitions, overlay and other file systems with numbers of their own). One instant of one thread counts once: of
//! overlapping intervals the later one keeps what the earlier one left. Faults of unknown duration count as zero and
//! are counted. Where waits were recorded, time that a thread spent runnable without a CPU is cut out ([`cpu_waits`]).

mod cpu_waits;
mod interval;

pub use interval::{BlockedInterval, Wait};

use crate::integer_hash::IntegerMap;
use crate::io::files::{FileId, Files};
use crate::memory::fault_places::FaultPlace;
use slowpath_recording::Tables;
use slowpath_tables::{Asker, FaultKind, Nanos, PAGE_SIZE, PageCache, PageCacheOp, ProcessKey};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Shortest time that a minor fault or a read without insertions must take to count as waiting: a minor fault with
/// fault-around takes a few microseconds, a read of a fast SSD 50 and more.
pub const LOCKED_PAGE_WAIT: Nanos = Nanos(50_000);

/// Allowance for copying what a read returned: 2 GB/s, the slow end of single-thread copies out of the page cache.
pub const COPY_NS_PER_BYTE: f64 = 0.5;

/// Where the wall time of a launch went, as far as file reads explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchTime {
    /// Release to ready (or to the end of the recording).
    pub launch: Nanos,
    /// Time in which at least one thread of the tree waited for a file read.
    pub any_thread: Nanos,
    /// Time in which at least one thread of the given process did.
    pub process: Nanos,
    /// Time in which the first thread of that process did.
    pub first_thread: Nanos,
    /// The rest: nobody waited for a file read that was recorded (computing, path lookup, loading programs, anything).
    pub unexplained: Nanos,
}

/// All waiting for file reads in a recording.
#[derive(Clone, Debug, Default)]
pub struct Blocked {
    /// Disjoint within a thread, sorted by begin.
    pub intervals: Vec<BlockedInterval>,
    /// Major faults whose begin was not seen: they count as zero.
    pub unmeasured: u64,
    /// Major faults whose address could not be resolved.
    pub unresolved: u64,
    /// Major faults on anonymous memory (swap): no file reads, not counted.
    pub swapped: u64,
}

/// Completions of block reads by device, sorted.
struct Completions {
    by_dev: HashMap<u64, Vec<Nanos>>,
    all: Vec<Nanos>,
}

impl Completions {
    fn new(tables: &Tables) -> Self {
        let mut by_dev: HashMap<u64, Vec<Nanos>> = HashMap::new();
        for row in tables.block_io.iter().filter(|row| row.read) {
            if let Some(latency) = row.latency {
                by_dev.entry(row.dev).or_default().push(row.ts + latency);
            }
        }
        let mut all: Vec<Nanos> = by_dev.values().flatten().copied().collect();
        all.sort_unstable();
        by_dev.values_mut().for_each(|times| times.sort_unstable());
        Self { by_dev, all }
    }

    /// The last completion within an interval, of the file's device or of any.
    fn last_within(&self, devices: &[u64], from: Nanos, to: Nanos) -> Option<Nanos> {
        let last = |times: &[Nanos]| {
            let end = times.partition_point(|&time| time <= to);
            times[..end].last().copied().filter(|&time| time > from)
        };
        let mut own = devices.iter().filter_map(|dev| self.by_dev.get(dev)).peekable();
        if own.peek().is_none() {
            return last(&self.all);
        }
        own.filter_map(|times| last(times)).max()
    }
}

/// The first pages that each fault brought into the page cache, by thread and time: what a fault read whose address means nothing.
fn inserted_in_faults(tables: &Tables) -> BTreeMap<(u32, Nanos), &PageCache> {
    let in_faults = tables.page_cache.iter().filter(|row| row.op == PageCacheOp::Add && row.asker == Asker::Fault);
    in_faults.rev().map(|row| ((row.tid, row.ts), row)).collect()
}

impl Blocked {
    /// Finds the waiting; `places` is parallel to `tables.faults`, tables are sorted by time.
    pub fn new(tables: &Tables, files: &mut Files, places: &[FaultPlace]) -> Self {
        let mut blocked = Self::default();
        let completions = Completions::new(tables);
        let devices: Vec<Vec<u64>> = devices_of_files(tables, files);
        let devices_of = |file: FileId| devices.get(file.index()).map_or(&[][..], Vec::as_slice);
        let inserted = inserted_in_faults(tables);
        for (fault, place) in tables.faults.iter().zip(places) {
            let file = match (*place, fault.kind) {
                (FaultPlace::File { file, page, .. }, _) => Some((file, page)),
                (FaultPlace::Anonymous, FaultKind::Major) => {
                    blocked.swapped += 1;
                    continue;
                }
                (FaultPlace::Unknown, FaultKind::Major) => {
                    let end = fault.ts + fault.duration.unwrap_or_default();
                    let read = inserted.range((fault.tid, fault.ts)..=(fault.tid, end)).next();
                    blocked.unresolved += u64::from(read.is_none());
                    read.map(|(_, row)| (files.id(row.file()), row.page.0))
                }
                (_, FaultKind::Minor) => continue,
            };
            let Some(duration) = fault.duration else {
                blocked.unmeasured += u64::from(fault.kind == FaultKind::Major);
                continue;
            };
            let end = fault.ts + duration;
            let (to, wait) = match (fault.kind, file) {
                (FaultKind::Major, _) => (end, Wait::MajorFault),
                (FaultKind::Minor, Some((file, _))) if duration >= LOCKED_PAGE_WAIT => {
                    match completions.last_within(devices_of(file), fault.ts, end) {
                        Some(to) => (to, Wait::MinorFault),
                        None => continue,
                    }
                }
                _ => continue,
            };
            blocked.intervals.push(BlockedInterval {
                from: fault.ts,
                to,
                process: fault.process(),
                tid: fault.tid,
                file: file.map(|(file, _)| file),
                page: file.map_or(0, |(_, page)| page),
                wait,
            });
        }
        blocked.add_reads(tables, files, &completions, &devices_of);
        blocked.make_disjoint();
        let cpu_waits = cpu_waits::CpuWaits::new(&tables.off_cpu);
        blocked.intervals = blocked.intervals.into_iter().flat_map(|interval| cpu_waits.cut_out(interval)).collect();
        blocked.intervals.sort_by_key(|interval| interval.from);
        blocked
    }

    fn add_reads<'d>(
        &mut self,
        tables: &Tables,
        files: &mut Files,
        completions: &Completions,
        devices_of: &dyn Fn(FileId) -> &'d [u64],
    ) {
        let mut insertions: IntegerMap<u32, Vec<(Nanos, FileId)>> = IntegerMap::default();
        for row in tables.page_cache.iter().filter(|row| row.op == PageCacheOp::Add && row.asker == Asker::Read) {
            insertions.entry(row.tid).or_default().push((row.ts, files.id(row.file())));
        }
        let no_block_io = completions.all.is_empty();
        for read in &tables.reads {
            let file = files.id(read.file());
            let end = read.ts + read.duration;
            let inserted = insertions.get(&read.tid).is_some_and(|times| {
                let first = times.partition_point(|&(ts, _)| ts < read.ts);
                times[first..].iter().take_while(|&&(ts, _)| ts <= end).any(|&(_, inserted)| inserted == file)
            });
            let copied = u64::try_from(read.result).unwrap_or(0) as f64 * COPY_NS_PER_BYTE;
            let last = completions.last_within(devices_of(file), read.ts, end);
            let (to, wait) = match (inserted, last) {
                (true, Some(last)) => (last, Wait::Read),
                (true, None) if no_block_io => (end, Wait::Read),
                (false, Some(last)) if read.duration.0 as f64 >= LOCKED_PAGE_WAIT.0 as f64 + copied => {
                    (last, Wait::ReadOfOthers)
                }
                _ => continue,
            };
            self.intervals.push(BlockedInterval {
                from: read.ts,
                to,
                process: read.process(),
                tid: read.tid,
                file: Some(file),
                page: read.offset.0 / PAGE_SIZE,
                wait,
            });
        }
    }

    /// Leaves every instant of a thread to the first interval that holds it.
    fn make_disjoint(&mut self) {
        self.intervals.sort_by_key(|interval| (interval.from, std::cmp::Reverse(interval.to)));
        let mut ends: IntegerMap<(ProcessKey, u32), Nanos> = IntegerMap::default();
        self.intervals.retain_mut(|interval| {
            let end = ends.entry((interval.process, interval.tid)).or_default();
            interval.from = interval.from.max(*end);
            *end = interval.to.max(*end);
            interval.from < interval.to
        });
    }

    /// Intervals cut to `from .. to`.
    pub fn within(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = BlockedInterval> {
        let end = self.intervals.partition_point(|interval| interval.from < to);
        self.intervals[..end].iter().filter_map(move |interval| {
            let cut = BlockedInterval { from: interval.from.max(from), to: interval.to.min(to), ..*interval };
            (cut.from < cut.to).then_some(cut)
        })
    }

    /// Wall time in which at least one interval that passes `filter` was open.
    pub fn union(&self, from: Nanos, to: Nanos, filter: impl Fn(&BlockedInterval) -> bool) -> Nanos {
        let mut total = Nanos(0);
        let mut covered = from;
        for interval in self.within(from, to).filter(|interval| filter(interval)) {
            total += interval.to - interval.from.max(covered);
            covered = covered.max(interval.to);
        }
        total
    }

    /// Sum over threads of the waiting for each file; `None` is what could not be resolved.
    pub fn per_file(&self, from: Nanos, to: Nanos) -> BTreeMap<Option<FileId>, Nanos> {
        let mut sums: IntegerMap<_, Nanos> = IntegerMap::default();
        for interval in self.within(from, to) {
            *sums.entry(interval.file).or_default() += interval.to - interval.from;
        }
        sums.into_iter().collect()
    }

    /// Sum over threads of the waiting of each process.
    pub fn per_process(&self, from: Nanos, to: Nanos) -> BTreeMap<ProcessKey, Nanos> {
        let mut sums: IntegerMap<_, Nanos> = IntegerMap::default();
        for interval in self.within(from, to) {
            *sums.entry(interval.process).or_default() += interval.to - interval.from;
        }
        sums.into_iter().collect()
    }

    /// Divides the wall time of a launch, seen from one process.
    pub fn launch_time(&self, from: Nanos, to: Nanos, process: Option<ProcessKey>) -> LaunchTime {
        let launch = to - from;
        let any_thread = self.union(from, to, |_| true);
        LaunchTime {
            launch,
            any_thread,
            process: self.union(from, to, |interval| Some(interval.process) == process),
            first_thread: self.union(from, to, |interval| {
                process.is_some_and(|process| interval.process == process && interval.tid == process.pid)
            }),
            unexplained: launch - any_thread,
        }
    }
}

/// Numbers of the devices of each file that occur in `block_io`.
fn devices_of_files(tables: &Tables, files: &Files) -> Vec<Vec<u64>> {
    let present: HashSet<u64> = tables.block_io.iter().map(|row| row.dev).collect();
    files
        .iter()
        .map(|(_, info)| info.keys.iter().map(|key| key.dev).filter(|dev| present.contains(dev)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::launch_facts::LaunchFacts;
    use slowpath_recording::Tables;
    use slowpath_tables::{Nanos, ProcessKey};

    const MAPPED: &str = "
== files
dev ino path  size
1   5   /a    99999
1   6   /b    99999
== mappings
ts pid start op  address length dev ino offset
1  7   1     map 65536   65536  1   5   0
1  8   1     map 65536   65536  1   6   0
";
    const P: ProcessKey = ProcessKey { pid: 7, start: Nanos(1) };

    fn total(rows: &str) -> Vec<(u64, u64, Option<String>)> {
        let tables = Tables::from_text(&format!("{MAPPED}{rows}")).unwrap();
        let facts = LaunchFacts::new(&tables);
        let path = |file: Option<crate::io::files::FileId>| file.map(|file| facts.files.get(file).path.clone());
        facts.blocked.intervals.iter().map(|i| (i.from.0, i.to.0, path(i.file))).collect()
    }

    #[test]
    fn a_major_fault_counts_whole_and_a_short_minor_one_not_at_all() {
        let rows = "
== faults
ts   duration pid start tid address kind
1000 500      7   1     7   65536   major
2000 500      7   1     7   69632   minor
3000 -        7   1     7   65536   major
";
        assert_eq!(total(rows), [(1000, 1500, Some("/a".to_owned()))]);
    }

    #[test]
    fn a_minor_fault_waits_for_a_locked_page_only_when_a_block_read_completes_in_it() {
        let rows = "
== faults
ts     duration pid start tid address kind
100000 80000    7   1     7   65536   minor
300000 80000    7   1     7   65536   minor
500000 40000    7   1     7   65536   minor
== block_io
ts     latency dev read
90000  70000   1   true
490000 30000   1   true
";
        assert_eq!(total(rows), [(100_000, 160_000, Some("/a".to_owned()))]);
    }

    #[test]
    fn a_read_that_inserted_pages_counts_until_its_last_completion() {
        let rows = "
== reads
ts     duration pid start tid dev ino offset result syscall
100000 90000    7   1     7   1   6   0      8192   0
300000 90000    7   1     7   1   6   0      8192   0
== page_cache
ts     pid start tid op  dev ino page pages asker
110000 7   1     7   add 1   6   0    2     read
== block_io
ts     latency dev read
111000 20000   1   true
132000 20000   1   true
";
        assert_eq!(total(rows), [(100_000, 152_000, Some("/b".to_owned()))]);
    }

    #[test]
    fn copying_much_cached_data_beside_foreign_reads_is_no_waiting() {
        let rows = |result: u64| {
            format!(
                "
== reads
ts     duration pid start tid dev ino offset result syscall
100000 90000    7   1     7   1   6   0      {result} 0
== block_io
ts     latency dev read
111000 20000   1   true
"
            )
        };
        assert_eq!(total(&rows(4096)).len(), 1);
        assert_eq!(total(&rows(200_000)).len(), 0);
    }

    #[test]
    fn a_thread_that_is_woken_and_waits_for_a_cpu_waits_for_no_file() {
        let rows = |off_cpu: &str| {
            format!(
                "
== faults
ts   duration pid start tid address kind
1000 900      7   1     7   65536   major
{off_cpu}"
            )
        };
        let whole = [(1000, 1900, Some("/a".to_owned()))];
        assert_eq!(total(&rows("")), whole);
        // Of another thread.
        let off_cpu = "== off_cpu\nts duration runnable pid start tid reason\n1100 600 400 7 1 8 fault_io\n";
        assert_eq!(total(&rows(off_cpu)), whole);
        // Woken at 1300, on a CPU from 1700 on, displaced from 1750 to 1800, and until after the end.
        let off_cpu = "
== off_cpu
ts   duration runnable pid start tid reason
1100 600      400      7   1     7   fault_io
1750 50       50       7   1     7   runnable
1850 100      100      7   1     7   runnable
";
        let found: Vec<(u64, u64)> = total(&rows(off_cpu)).into_iter().map(|(from, to, _)| (from, to)).collect();
        assert_eq!(found, [(1000, 1300), (1700, 1750), (1800, 1850)]);
    }

    #[test]
    fn one_instant_of_one_thread_is_counted_once() {
        let rows = "
== faults
ts   duration pid start tid address kind  kernel
1100 300      7   1     7   65536   major true
== reads
ts   duration pid start tid dev ino offset result syscall
1000 200      7   1     7   1   6   0      8192   0
== page_cache
ts   pid start tid op  dev ino page pages asker
1001 7   1     7   add 1   6   0    2     read
";
        assert_eq!(total(rows), [(1000, 1200, Some("/b".to_owned())), (1200, 1400, Some("/a".to_owned()))]);
    }

    #[test]
    fn the_wall_time_of_a_launch_counts_parallel_waiting_once_and_leaves_a_rest() {
        let rows = "
== faults
ts   duration pid start tid address kind
1000 500      7   1     7   65536   major
1200 500      8   1     8   65536   major
1300 600      7   1     9   65536   major
";
        let tables = Tables::from_text(&format!("{MAPPED}{rows}")).unwrap();
        let time = LaunchFacts::new(&tables).blocked.launch_time(Nanos(900), Nanos(1800), Some(P));
        assert_eq!(time.any_thread, Nanos(800));
        assert_eq!(time.process, Nanos(800));
        assert_eq!(time.first_thread, Nanos(500));
        assert_eq!(time.unexplained, Nanos(100));
    }
}
