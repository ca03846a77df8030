//! The data of the report's I/O map: which pages of which file were read when, by whom and why.
//!
//! Owns the columns and their order. Leaves the split between demand and readahead to [`crate::io::insertions`], drawing to
//! the report.

use crate::integer_hash::IntegerMap;
use crate::io::demand::{Demand, Jumps};
use crate::io::files::FileId;
use crate::io::insertions::{Cause, Insertion};
use crate::launch_facts::LaunchFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Nanos, PAGE_SIZE, SectionKind};

/// Longest time between insertions of one run: the kernel inserts the folios of a request one by one, well below a
/// microsecond each; a thread that waits for a read in between takes at least some 50 us.
const SAME_INSTANT: Nanos = Nanos(20_000);

/// A map of all file reads of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoMap {
    /// Bytes of a page, as pages are counted here, whatever pages the kernel has.
    pub page_bytes: u64,
    /// From release of exec to the end of the recording.
    pub duration_ns: u64,
    /// From release to ready; null when there was no ready event.
    pub ready_ns: Option<u64>,
    /// Files, most pages read first.
    pub files: Vec<IoFile>,
    /// Processes that read.
    pub processes: Vec<IoProcess>,
    /// Why something was read, by index.
    pub askers: Vec<String>,
    /// The reads.
    pub reads: ReadColumns,
}

/// A file of the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoFile {
    /// Path on the host.
    pub path: String,
    /// Size in bytes; the end of the last page seen where it is not known.
    pub size: u64,
    /// ELF sections by offset.
    pub sections: Vec<IoSection>,
    /// `[first page, count]` that a launch without readahead demanded, by page; null where need is not known.
    pub needed: Option<Vec<(u64, u64)>>,
    /// Pages so demanded.
    pub pages_needed: Option<u64>,
    /// Pages read, sum of the columns.
    pub pages_read: u64,
    /// Steps of the demand in order; null where need is not known.
    pub jumps: Option<Jumps>,
    /// Waiting for this file, summed over threads.
    pub blocked_ns: u64,
}

/// A section of a file of the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoSection {
    /// Name.
    pub name: String,
    /// What it is for.
    pub kind: SectionKind,
    /// Offset in the file.
    pub offset: u64,
    /// Size in the file.
    pub size: u64,
}

/// A process of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoProcess {
    /// Pid.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
}

/// Columns of one length, sorted by time; an entry is one run of consecutive pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadColumns {
    /// Time since release.
    pub t_ns: Vec<u64>,
    /// Index into `files`.
    pub file: Vec<u32>,
    /// First page.
    pub page: Vec<u64>,
    /// Number of pages.
    pub pages: Vec<u64>,
    /// Index into `askers`.
    pub asker: Vec<u8>,
    /// Index into `processes`.
    pub process: Vec<u32>,
}

/// Sorted pages as `[first, count]`.
pub fn ranges(pages: &[u64]) -> Vec<(u64, u64)> {
    let mut sorted = pages.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for page in sorted {
        match ranges.last_mut() {
            Some((first, count)) if *first + *count == page => *count += 1,
            _ => ranges.push((page, 1)),
        }
    }
    ranges
}

/// Joins insertions of one task, file and cause that follow each other in pages and at once in time.
pub fn runs(insertions: &[Insertion]) -> Vec<Insertion> {
    // A fault's insertions alternate between causes, so each thread has one open run a cause.
    joined(insertions, |insertion| (insertion.tid, insertion.cause))
}

/// The same whatever the cause: what the kernel read at one request. The cause of the first insertion stays.
pub fn requests(insertions: &[Insertion]) -> Vec<Insertion> {
    joined(insertions, |insertion| insertion.tid)
}

fn joined<K: std::hash::Hash + Eq>(insertions: &[Insertion], key: impl Fn(&Insertion) -> K) -> Vec<Insertion> {
    let mut runs: Vec<Insertion> = Vec::new();
    let mut open: IntegerMap<K, (usize, Nanos)> = IntegerMap::default();
    for insertion in insertions {
        let key = key(insertion);
        if let Some((index, last)) = open.get_mut(&key) {
            let run = &mut runs[*index];
            let follows = run.page + run.pages == insertion.page;
            if follows && run.file == insertion.file && insertion.ts - *last <= SAME_INSTANT {
                run.pages += insertion.pages;
                *last = insertion.ts;
                continue;
            }
        }
        open.insert(key, (runs.len(), insertion.ts));
        runs.push(*insertion);
    }
    runs
}

/// Builds the map of a launch; `needed` is the demand of a training launch of the same command.
pub fn io_map(facts: &LaunchFacts<'_>, needed: Option<&Demand>) -> IoMap {
    // By file number: pages read, and the page after the last one read.
    let mut pages_read = vec![0u64; facts.files.len()];
    let mut last_page = vec![0u64; facts.files.len()];
    for insertion in &facts.insertions {
        let file = insertion.file.index();
        pages_read[file] += insertion.pages;
        last_page[file] = last_page[file].max(insertion.page.saturating_add(insertion.pages));
    }
    let mut order: Vec<FileId> = facts.files.iter().map(|(id, _)| id).filter(|id| pages_read[id.index()] > 0).collect();
    order.sort_by_key(|file| (std::cmp::Reverse(pages_read[file.index()]), *file));
    let mut numbers = vec![0u32; facts.files.len()];
    for (number, file) in (0..).zip(&order) {
        numbers[file.index()] = number;
    }
    let blocked = facts.blocked.per_file(facts.released, facts.ended);
    let demanded = needed.map(Demand::by_path);
    let files = order
        .iter()
        .map(|id| {
            let info = facts.files.get(*id);
            let demanded =
                demanded.as_ref().map(|by_path| by_path.get(info.path.as_str()).map_or(&[][..], Vec::as_slice));
            IoFile {
                path: info.path.clone(),
                size: info.size.unwrap_or_else(|| last_page[id.index()].saturating_mul(PAGE_SIZE)),
                sections: info
                    .sections
                    .iter()
                    .map(|s| IoSection { name: s.name.clone(), kind: s.kind, offset: s.offset.0, size: s.size.0 })
                    .collect(),
                needed: demanded.map(ranges),
                pages_needed: demanded.map(|pages| pages.len() as u64),
                pages_read: pages_read[id.index()],
                jumps: demanded.map(|pages| Jumps::count(pages.iter().copied())),
                blocked_ns: blocked.get(&Some(*id)).copied().unwrap_or_default().0,
            }
        })
        .collect();
    let mut processes: Vec<IoProcess> = Vec::new();
    let mut process_numbers = IntegerMap::default();
    let mut reads = ReadColumns::default();
    for run in runs(&facts.insertions) {
        let process = *process_numbers.entry(run.process).or_insert_with(|| {
            processes.push(IoProcess { pid: run.process.pid, name: facts.processes.name(run.process) });
            u32::try_from(processes.len() - 1).unwrap_or(u32::MAX)
        });
        reads.t_ns.push((run.ts - facts.released).0);
        reads.file.push(numbers[run.file.index()]);
        reads.page.push(run.page);
        reads.pages.push(run.pages);
        reads.asker.push(run.cause as u8);
        reads.process.push(process);
    }
    IoMap {
        page_bytes: PAGE_SIZE,
        duration_ns: (facts.ended - facts.released).0,
        ready_ns: facts.ready.map(|ready| (ready - facts.released).0),
        files,
        processes,
        askers: Cause::ALL.iter().map(|cause| cause.as_str().to_owned()).collect(),
        reads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    const TEXT: &str = "
== manifest
{\"launch\": {\"released\": 100, \"ready\": 900000, \"ready_when\": \"exit\", \"outcome\": \"ready\"}, \"ended\": 1000000}
== files
dev ino path  size
1   5   /a    99999
== execs
ts  pid start filename
100 7   1     /bin/prog
== page_cache
ts     pid start tid op     dev ino page pages asker
200    7   1     7   add    1   5   0    1     advice
201    7   1     8   add    1   6   4    1     read
202    7   1     7   add    1   5   1    2     advice
203    7   1     7   add    1   5   3    1     fault
50000  7   1     7   add    1   5   4    4     fault
50001  7   1     7   delete 1   5   0    1     other
50002  7   1     7   add    1   5   9    3     write
";

    #[test]
    fn runs_of_one_task_and_cause_are_joined_within_an_instant_only() {
        let tables = Tables::from_text(TEXT).unwrap();
        let map = io_map(&LaunchFacts::new(&tables), None);
        assert_eq!(map.reads.t_ns, [100, 101, 103, 49900]);
        assert_eq!(map.reads.pages, [3, 1, 1, 4]);
        assert_eq!(map.reads.file, [0, 1, 0, 0]);
        assert_eq!(
            map.reads.asker.iter().map(|&a| map.askers[a as usize].as_str()).collect::<Vec<_>>(),
            ["advice", "read", "fault", "fault"]
        );
        assert_eq!(map.processes, [IoProcess { pid: 7, name: "prog".to_owned() }]);
        assert_eq!((map.duration_ns, map.ready_ns), (999_900, Some(899_900)));
        assert_eq!((map.files[0].path.as_str(), map.files[1].size), ("/a", 5 * 4096));
        assert_eq!(map.files[0].needed, None);
    }

    #[test]
    fn the_columns_hold_exactly_the_pages_that_were_read() {
        let tables = Tables::from_text(TEXT).unwrap();
        let map = io_map(&LaunchFacts::new(&tables), None);
        let rows: u64 = tables
            .page_cache
            .iter()
            .filter(|row| row.op == slowpath_tables::PageCacheOp::Add && row.asker != slowpath_tables::Asker::Write)
            .map(|row| row.pages.0)
            .sum();
        assert_eq!(map.reads.pages.iter().sum::<u64>(), rows);
        assert_eq!(map.files.iter().map(|file| file.pages_read).sum::<u64>(), rows);
        assert!(map.reads.t_ns.is_sorted());
    }

    #[test]
    fn pages_become_ranges() {
        assert_eq!(ranges(&[7, 1, 2, 3, 8, 2]), [(1, 3), (7, 2)]);
    }
}
