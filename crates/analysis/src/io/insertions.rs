//! Why each page entered the page cache.
//!
//! Owns the split of an insertion made in a fault or a read into the page that was demanded and the pages the kernel
//! added on its own account (readahead). Leaves drawing to [`crate::io::io_map`] and sums to the findings.
//!
//! The demanded page of a fault is the one its address means; those of a read are the pages of
//! `offset .. offset + result`. An insertion during which no fault or read of its thread was recorded keeps the
//! recorder's word: without the request nobody can tell the demanded page from the others.

use crate::integer_hash::{IntegerMap, IntegerSet};
use crate::io::files::{FileId, Files};
use crate::memory::fault_places::FaultPlace;
use slowpath_recording::Tables;
use slowpath_tables::{Asker, Nanos, PAGE_SIZE, PageCache, PageCacheOp, ProcessKey};
use std::ops::Range;

/// Why pages entered the page cache; the words of the report's map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A fault on the page itself.
    Fault,
    /// A read of the page itself.
    Read,
    /// Added by the kernel beside a page that a fault or a read demanded.
    Readahead,
    /// An advice.
    Advice,
    /// The kernel loading a program.
    Exec,
    /// Path lookup or directory listing.
    Metadata,
    /// Anything else.
    Other,
}

impl Cause {
    /// All causes, in the order of the report's `askers`.
    pub const ALL: [Self; 7] =
        [Self::Fault, Self::Read, Self::Readahead, Self::Advice, Self::Exec, Self::Metadata, Self::Other];

    /// The word in the report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Read => "read",
            Self::Readahead => "readahead",
            Self::Advice => "advice",
            Self::Exec => "exec",
            Self::Metadata => "metadata",
            Self::Other => "other",
        }
    }
}

/// Consecutive pages that entered the page cache at once and for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// When.
    pub ts: Nanos,
    /// Process of the running task.
    pub process: ProcessKey,
    /// The running task.
    pub tid: u32,
    /// The file.
    pub file: FileId,
    /// First page.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Why.
    pub cause: Cause,
}

impl Insertion {
    /// Its pages; those behind the last possible one are none.
    pub fn range(&self) -> Range<u64> {
        self.page..self.page.saturating_add(self.pages)
    }
}

/// Requests of one thread, by begin: begin, end, file, first demanded page, page after the last.
type Request = (Nanos, Nanos, FileId, u64, u64);

/// The requests of every thread, sorted by begin; requests of one kind do not overlap within a thread.
#[derive(Debug, Default)]
struct Requests(IntegerMap<u32, Vec<Request>>);

impl Requests {
    fn add(&mut self, tid: u32, request: Request) {
        self.0.entry(tid).or_default().push(request);
    }

    fn covering(&self, tid: u32, ts: Nanos) -> Option<&Request> {
        let requests = self.0.get(&tid)?;
        let after = requests.partition_point(|request| request.0 <= ts);
        requests[..after].last().filter(|request| request.1 >= ts)
    }
}

/// Splits all insertions of a recording; insertions of new data (write calls) are left out: nothing is read for them.
///
/// `places` is parallel to `tables.faults`; tables are sorted by time. Rows stay in the order of `page_cache`.
pub fn split(tables: &Tables, files: &mut Files, places: &[FaultPlace]) -> Vec<Insertion> {
    // Only threads in whose faults pages were brought are asked for.
    let fault_brought = |row: &&PageCache| row.op == PageCacheOp::Add && row.asker == Asker::Fault;
    let brought: IntegerSet<u32> = tables.page_cache.iter().filter(fault_brought).map(|row| row.tid).collect();
    let mut faults = Requests::default();
    for (fault, place) in tables.faults.iter().zip(places) {
        if let (Some(duration), FaultPlace::File { file, page, .. }) = (fault.duration, *place)
            && brought.contains(&fault.tid)
        {
            faults.add(fault.tid, (fault.ts, fault.ts + duration, file, page, page + 1));
        }
    }
    let mut reads = Requests::default();
    for read in &tables.reads {
        let Ok(bytes @ 1..) = u64::try_from(read.result) else { continue };
        let first = read.offset.0 / PAGE_SIZE;
        let end = read.offset.0.saturating_add(bytes).div_ceil(PAGE_SIZE);
        reads.add(read.tid, (read.ts, read.ts + read.duration, files.id(read.file()), first, end));
    }
    let mut insertions = Vec::with_capacity(tables.page_cache.len());
    for row in &tables.page_cache {
        if row.op != PageCacheOp::Add || row.pages.0 == 0 {
            continue;
        }
        let (cause, request) = match row.asker {
            Asker::Write => continue,
            Asker::Fault => (Cause::Fault, faults.covering(row.tid, row.ts)),
            Asker::Read => (Cause::Read, reads.covering(row.tid, row.ts)),
            Asker::Advice => (Cause::Advice, None),
            Asker::Exec => (Cause::Exec, None),
            Asker::Metadata => (Cause::Metadata, None),
            Asker::Other => (Cause::Other, None),
        };
        let file = files.id(row.file());
        let (page, end) = (row.page.0, row.page.0.saturating_add(row.pages.0));
        let mut push = |from: u64, to: u64, cause: Cause| {
            if from < to {
                let process = row.process();
                insertions.push(Insertion {
                    ts: row.ts,
                    process,
                    tid: row.tid,
                    file,
                    page: from,
                    pages: to - from,
                    cause,
                });
            }
        };
        match request {
            // Demanded pages of another file, or none of these: all of them are the kernel's own.
            Some(&(_, _, demanded_file, first, after)) => {
                let (first, after) =
                    if demanded_file == file { (first.clamp(page, end), after.clamp(page, end)) } else { (page, page) };
                push(page, first, Cause::Readahead);
                push(first, after, cause);
                push(after, end, Cause::Readahead);
            }
            None => push(page, end, cause),
        }
    }
    insertions
}

#[cfg(test)]
mod tests {
    use crate::launch_facts::LaunchFacts;
    use slowpath_recording::Tables;

    fn causes(text: &str) -> Vec<(u64, u64, &'static str)> {
        let tables = Tables::from_text(text).unwrap();
        let facts = LaunchFacts::new(&tables);
        facts.insertions.iter().map(|i| (i.page, i.pages, i.cause.as_str())).collect()
    }

    #[test]
    fn a_large_folio_added_in_a_fault_is_split_around_the_demanded_page() {
        let text = "
== mappings
ts pid start op  address length dev ino offset
1  7   1     map 65536   65536  1   5   4096
== faults
ts duration pid start tid address kind
10 10       7   1     7   69700   major
== page_cache
ts pid start tid op  dev ino page pages asker
12 7   1     7   add 1   5   0    4     fault
13 7   1     7   add 1   5   4    4     fault
30 7   1     7   add 1   5   9    1     fault
";
        // The address is one page into a mapping that begins at page 1: page 2. At 30 no fault was under way.
        assert_eq!(
            causes(text),
            [(0, 2, "readahead"), (2, 1, "fault"), (3, 1, "readahead"), (4, 4, "readahead"), (9, 1, "fault")]
        );
    }

    #[test]
    fn a_read_demands_every_page_it_returned_and_write_calls_read_nothing() {
        let text = "
== reads
ts duration pid start tid dev ino offset result syscall
10 10       7   1     7   1   5   4000   200    0
== page_cache
ts pid start tid op  dev ino page pages asker
12 7   1     7   add 1   5   0    4     read
13 7   1     7   add 1   6   0    1     read
14 7   1     7   add 1   5   8    1     write
15 7   1     7   delete 1 5  0    1     other
16 7   1     7   add 1   5   9    1     advice
";
        assert_eq!(causes(text), [(0, 2, "read"), (2, 2, "readahead"), (0, 1, "readahead"), (9, 1, "advice")]);
    }
}
