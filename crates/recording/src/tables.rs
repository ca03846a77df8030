//! All tables of a recording in memory.

use crate::manifest::Manifest;
use crate::order::sort_pieces;
use crate::read::Recording;
use crate::read_error::{Damage, ReadError};
use crate::write::Writer;
use crate::write_error::WriteError;
use arrow_array::RecordBatch;
use slowpath_tables::{
    BlockIo, ColumnError, CpuEvent, CpuSample, Exec, Exit, Fault, File, FileRelocations, FirstWait, Fork, Frame,
    Mapping, MemoryCall, MemoryWork, OffCpu, Open, PageCache, PageContent, Read, Readahead, Section, Stack, Symbol,
    Table, ThreadCounters,
};
use std::ops::Range;

/// Pages that enter the page cache at once at most: a huge page of 1 GiB (hugetlbfs); others are smaller
/// (`MAX_PAGECACHE_ORDER`, include/linux/pagemap.h).
const MOST_FOLIO_PAGES: u64 = 1 << 18;
/// Largest page in a file: files end at 2^63 bytes (`MAX_LFS_FILESIZE`, include/linux/fs.h).
const MOST_PAGE_INDEX: u64 = 1 << 51;

/// Calls a macro with every field of [`Tables`] and its row type.
macro_rules! each_table {
    ($call:ident!($($argument:tt)*)) => {
        $call! { [$($argument)*]
            forks: slowpath_tables::Fork, execs: slowpath_tables::Exec, exits: slowpath_tables::Exit,
            first_waits: slowpath_tables::FirstWait,
            faults: slowpath_tables::Fault, mappings: slowpath_tables::Mapping,
            page_cache: slowpath_tables::PageCache, readaheads: slowpath_tables::Readahead,
            block_io: slowpath_tables::BlockIo, opens: slowpath_tables::Open, reads: slowpath_tables::Read,
            cpu_samples: slowpath_tables::CpuSample, off_cpu: slowpath_tables::OffCpu,
            cpu_events: slowpath_tables::CpuEvent,
            thread_counters: slowpath_tables::ThreadCounters, memory_calls: slowpath_tables::MemoryCall,
            memory_work: slowpath_tables::MemoryWork, page_contents: slowpath_tables::PageContent, stacks: slowpath_tables::Stack,
            frames: slowpath_tables::Frame, symbols: slowpath_tables::Symbol,
            files: slowpath_tables::File, sections: slowpath_tables::Section,
            relocations: slowpath_tables::FileRelocations
        }
    };
}
pub(crate) use each_table;

/// All tables of a recording, as rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// New threads and processes.
    pub forks: Vec<Fork>,
    /// Program images that began to run.
    pub execs: Vec<Exec>,
    /// Threads that ended, with the kernel's counters.
    pub exits: Vec<Exit>,
    /// When processes first waited for events.
    pub first_waits: Vec<FirstWait>,
    /// Page faults.
    pub faults: Vec<Fault>,
    /// Changes of address spaces.
    pub mappings: Vec<Mapping>,
    /// Pages that entered or left the page cache.
    pub page_cache: Vec<PageCache>,
    /// Readahead requests.
    pub readaheads: Vec<Readahead>,
    /// Requests to block devices.
    pub block_io: Vec<BlockIo>,
    /// Attempts to open files.
    pub opens: Vec<Open>,
    /// Read-like system calls.
    pub reads: Vec<Read>,
    /// Samples of running threads.
    pub cpu_samples: Vec<CpuSample>,
    /// Intervals in which threads did not run.
    pub off_cpu: Vec<OffCpu>,
    /// What CPUs did.
    pub cpu_events: Vec<CpuEvent>,
    /// The kernel's account of threads where `off_cpu` begins or ends.
    pub thread_counters: Vec<ThreadCounters>,
    /// System calls that change address spaces.
    pub memory_calls: Vec<MemoryCall>,
    /// What pages held when their memory was given back or their process ended.
    pub page_contents: Vec<PageContent>,
    /// What the kernel did to have free and huge pages.
    pub memory_work: Vec<MemoryWork>,
    /// Frames of call stacks and their callers.
    pub stacks: Vec<Stack>,
    /// Places in code.
    pub frames: Vec<Frame>,
    /// What they are called.
    pub symbols: Vec<Symbol>,
    /// Files that other tables name.
    pub files: Vec<File>,
    /// Sections of ELF files.
    pub sections: Vec<Section>,
    /// What the run-time linker has to do for ELF files.
    pub relocations: Vec<FileRelocations>,
    /// The manifest.
    pub manifest: Manifest,
}

macro_rules! read_all {
    ([$recording:expr] $($field:ident: $row:ty),*) => {
        Tables { $($field: $recording.read::<$row>()?,)* manifest: $recording.manifest().clone() }
    };
}

macro_rules! read_whole_all {
    ([$recording:expr, $damages:ident] $($field:ident: $row:ty),*) => {{
        let mut manifest = $recording.manifest().clone();
        let tables = ($({
            let (rows, mut damages) = $recording.read_whole::<$row>();
            for damage in &damages {
                manifest.losses.add(&format!("damaged.{}", <$row>::NAME), damage.rows);
            }
            $damages.append(&mut damages);
            rows
        },)*);
        let ($($field,)*) = tables;
        Tables { $($field,)* manifest }
    }};
}

macro_rules! batch_of {
    ([$tables:ident, $name:ident, $rows:ident] $($field:ident: $row:ty),*) => {
        match $name {
            $(<$row>::NAME => Some(batch::<$row>(&$tables.$field, $rows)),)*
            _ => None,
        }
    };
}

macro_rules! append_batch {
    ([$tables:ident, $name:ident, $batch:ident] $($field:ident: $row:ty),*) => {
        match $name {
            $(<$row>::NAME => <$row>::append_batch($batch, &mut $tables.$field).map(|()| true),)*
            _ => Ok(false),
        }
    };
}

macro_rules! row_counts {
    ([$tables:ident] $($field:ident: $row:ty),*) => { vec![$((<$row>::NAME, $tables.$field.len())),*] };
}

fn batch<T: Table>(all: &[T], rows: Range<usize>) -> RecordBatch {
    let end = rows.end.min(all.len());
    T::to_batch(&all[rows.start.min(end)..end])
}

macro_rules! write_all {
    ([$tables:ident, $writer:ident] $($field:ident: $row:ty),*) => {{
        let mut first = Ok(());
        $(first = first.and($writer.push::<$row>($tables.$field));)*
        first
    }};
}

macro_rules! append_all {
    ([$tables:ident, $more:ident] $($field:ident: $row:ty),*) => { $($tables.$field.append(&mut $more.$field);)* };
}

impl Recording {
    /// All tables, sorted.
    ///
    /// # Errors
    /// The first damaged segment.
    pub fn tables(&self) -> Result<Tables, ReadError> {
        Tables::read(self)
    }

    /// All tables, sorted, without what is damaged: the rows left out are counted in the manifest's losses as
    /// `damaged.<table>`.
    pub fn tables_whole(&self) -> (Tables, Vec<Damage>) {
        Tables::read_whole(self)
    }
}

impl Tables {
    /// Adds the rows of `more`; its manifest is left out.
    pub fn append(&mut self, more: Self) {
        let (tables, mut more) = (self, more);
        each_table!(append_all!(tables, more));
    }

    /// Hands all rows to a writer; the manifest is left to the writer.
    ///
    /// # Errors
    /// As [`Writer::push`]; all tables are tried, the first error is returned.
    pub fn write(self, writer: &mut Writer) -> Result<(), WriteError> {
        let tables = self;
        each_table!(write_all!(tables, writer))
    }

    /// Rows of the table `name` as columns; fewer where it ends before. Null for a table that is not declared.
    pub fn batch(&self, name: &str, rows: Range<usize>) -> Option<RecordBatch> {
        let tables = self;
        each_table!(batch_of!(tables, name, rows))
    }

    /// Adds the rows of a batch to the table `name`; false for a table that is not declared.
    ///
    /// # Errors
    /// As [`Table::append_batch`].
    pub fn append_batch(&mut self, name: &str, batch: &RecordBatch) -> Result<bool, ColumnError> {
        let tables = self;
        each_table!(append_batch!(tables, name, batch))
    }

    /// Name of every table and its number of rows.
    pub fn row_counts(&self) -> Vec<(&'static str, usize)> {
        let tables = self;
        each_table!(row_counts!(tables))
    }

    pub(crate) fn read(recording: &Recording) -> Result<Self, ReadError> {
        let mut tables = each_table!(read_all!(recording));
        tables.settle();
        Ok(tables)
    }

    pub(crate) fn read_whole(recording: &Recording) -> (Self, Vec<Damage>) {
        let mut damages = Vec::new();
        let mut tables = each_table!(read_whole_all!(recording, damages));
        tables.settle();
        (tables, damages)
    }

    /// Sorts every table, and leaves of each file the row that was written last: a recorder that learns more about a file
    /// writes it again, and its sections too.
    pub fn settle(&mut self) {
        self.drop_impossible();
        self.sort();
        self.files.reverse();
        self.files.dedup_by_key(|row| (row.dev, row.ino));
        self.files.reverse();
        self.sections.dedup();
        self.relocations.reverse();
        self.relocations.dedup_by_key(|row| (row.dev, row.ino));
        self.relocations.reverse();
    }

    /// Leaves out rows that no kernel writes and that stand for more work than they are long, and counts them as lost.
    fn drop_impossible(&mut self) {
        let before = self.page_cache.len();
        self.page_cache.retain(|row| row.pages.0 <= MOST_FOLIO_PAGES && row.page.0 <= MOST_PAGE_INDEX);
        let dropped = before - self.page_cache.len();
        if dropped > 0 {
            self.manifest.losses.add("impossible.page_cache", dropped as u64);
        }
    }

    /// Sorts every table by time, keeping the recorded order of rows of the same moment; files and sections by
    /// device, inode, offset and name; stacks, frames and symbols by their numbers.
    pub fn sort(&mut self) {
        sort_pieces(&mut self.forks, |row| row.ts);
        sort_pieces(&mut self.execs, |row| row.ts);
        sort_pieces(&mut self.exits, |row| row.ts);
        sort_pieces(&mut self.first_waits, |row| row.ts);
        sort_pieces(&mut self.faults, |row| row.ts);
        sort_pieces(&mut self.mappings, |row| row.ts);
        sort_pieces(&mut self.page_cache, |row| row.ts);
        sort_pieces(&mut self.readaheads, |row| row.ts);
        sort_pieces(&mut self.block_io, |row| row.ts);
        sort_pieces(&mut self.opens, |row| row.ts);
        sort_pieces(&mut self.reads, |row| row.ts);
        sort_pieces(&mut self.cpu_samples, |row| row.ts);
        sort_pieces(&mut self.off_cpu, |row| row.ts);
        sort_pieces(&mut self.cpu_events, |row| row.ts);
        sort_pieces(&mut self.thread_counters, |row| row.ts);
        sort_pieces(&mut self.memory_calls, |row| row.ts);
        sort_pieces(&mut self.page_contents, |row| row.ts);
        sort_pieces(&mut self.memory_work, |row| row.ts);
        sort_pieces(&mut self.stacks, |row| row.id);
        sort_pieces(&mut self.frames, |row| row.id);
        self.symbols.sort_by_key(|row| (row.frame, row.level));
        self.files.sort_by_key(|row| (row.dev, row.ino));
        self.relocations.sort_by_key(|row| (row.dev, row.ino));
        self.sections.sort_by(|a, b| (a.dev, a.ino, a.offset, &a.name).cmp(&(b.dev, b.ino, b.offset, &b.name)));
    }
}
