//! The tables. A column is added here before a probe fills it; a change bumps `recording::SCHEMA_VERSION`.
//!
//! Times are `CLOCK_MONOTONIC`; `pid` and `start` name the process ([`ProcessKey`]), `dev` and `ino` the file
//! ([`FileKey`]). In a lab `dev` is the lab's own device and `files.path` the path on the host.

use crate::declare::{Table, TableDoc, table};
use crate::linking::FileRelocations;
use crate::profile::{
    CpuEvent, CpuSample, Frame, MemoryCall, MemoryWork, OffCpu, PageContent, Stack, Symbol, ThreadCounters,
};
use crate::units::{Bytes, FileKey, Nanos, Pages, ProcessKey};
use crate::vocabulary::{Asker, FaultKind, MappingOp, PageCacheOp, RefusedCall, SectionKind};

table! {
    /// A new thread or process.
    Fork = "forks" {
        /// When.
        ts: Nanos,
        /// Pid of the parent.
        parent_pid: u32,
        /// Start of the parent.
        parent_start: Nanos,
        /// Pid (thread group) of the child.
        pid: u32,
        /// Start of the child's process.
        start: Nanos,
        /// Thread id of the child.
        tid: u32,
        /// True for a new thread of the same process.
        thread: bool,
    }
}

table! {
    /// A program image that began to run.
    Exec = "execs" {
        /// When.
        ts: Nanos,
        /// True for a process that ran its program already when it began to be followed: `ts` is that moment, and the
        /// counters are those of all its threads.
        present: bool,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Pid of the parent.
        parent_pid: u32,
        /// Effective user id after the exec.
        uid: u32,
        /// Effective group id after the exec.
        gid: u32,
        /// Name of the program as given to exec.
        filename: String,
        /// Command line, arguments joined by spaces; cut after 512 bytes.
        command_line: String,
        /// Device of the executable.
        dev: u64,
        /// Inode of the executable.
        ino: u64,
        /// Minor faults of the process's thread so far: faults before the program image, not recorded.
        min_flt: u64,
        /// Major faults of the thread so far.
        maj_flt: u64,
        /// Time that the thread ran so far, by the scheduler's clock; null in recordings that lack the column.
        run_time: Option<Nanos>,
    }
}

table! {
    /// The first time that the main thread of a process waited for something to happen (an event, a timer, another thread)
    /// for 1 ms or more: its start was over. Waiting in a read does not count. Only recorded where it was asked for.
    FirstWait = "first_waits" {
        /// When the wait began.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// How long it waited; for a wait that lasted beyond the recording, until its end.
        waited: Nanos,
        /// Number of the system call in which it waited.
        syscall: i32,
        /// Command line after that wait, as the program may have rewritten it; cut after 512 bytes.
        command_line: String,
    }
}

table! {
    /// A thread that ended, with the kernel's own counters: the oracle for completeness.
    Exit = "exits" {
        /// When.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// True for the last thread of the process.
        last: bool,
        /// Exit status (0-255) of the process, where it exited.
        status: Option<i32>,
        /// Signal that ended the process.
        signal: Option<i32>,
        /// Minor faults of this thread over its life, as the kernel counted them.
        min_flt: u64,
        /// Major faults of this thread over its life.
        maj_flt: u64,
        /// User CPU time of this thread.
        utime: Nanos,
        /// System CPU time of this thread.
        stime: Nanos,
        /// Time that this thread ran, by the scheduler's clock: `utime` and `stime` together, which many kernels count by ticks of
        /// some ms. Null in recordings that lack the column.
        run_time: Option<Nanos>,
        /// Bytes this thread caused to be read from storage (`task_io_accounting.read_bytes`).
        read_bytes: Bytes,
        /// True when the thread still ran and the recording ended: the counters are those of that moment.
        running: bool,
    }
}

impl Exit {
    /// Whether the process ended: the row is its last thread's, and no count of one that still ran.
    pub fn ends_process(&self) -> bool {
        self.last && !self.running
    }
}

table! {
    /// A page fault.
    Fault = "faults" {
        /// When it began.
        ts: Nanos,
        /// How long it took; null where the beginning was not seen.
        duration: Option<Nanos>,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Faulting address; 0 where the recording's owner may not see it.
        address: u64,
        /// Instruction that faulted; 0 where the recording's owner may not see it, which the kernel's own are for all but root.
        ip: u64,
        /// Minor or major.
        kind: FaultKind,
        /// True when the kernel faulted on behalf of the thread (a system call touching a user buffer).
        kernel: bool,
        /// Innermost frame of its call stack, where stacks of faults were asked for: `stacks.id`.
        stack: Option<u32>,
        /// Time of the thread that recording it took behind its end, the walk of its call stack mostly, by the clock; of faults in a row at
        /// one stack, what one of eight took. Null where it was not measured, as without stacks.
        recording: Option<Nanos>,
    }
}

table! {
    /// A change of an address space that concerns a file, or an unmapping; also memory without a file that mmap or mremap made. An
    /// area that is split or grows (mprotect of a part, munmap of a middle, a merge) is reported again in its new extent.
    Mapping = "mappings" {
        /// When.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// What happened.
        op: MappingOp,
        /// First address.
        address: u64,
        /// Length. What other calls than munmap took away is reported with the free space around it.
        length: Bytes,
        /// Protection bits (`PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4) at that moment; mprotect changes them afterwards.
        prot: u32,
        /// Device of the mapped file; null for anonymous memory.
        dev: Option<u64>,
        /// Inode of the mapped file.
        ino: Option<u64>,
        /// Offset in the file.
        offset: Bytes,
    }
}

table! {
    /// Consecutive pages of a file that entered or left the page cache together.
    PageCache = "page_cache" {
        /// When.
        ts: Nanos,
        /// Pid of the task that was running.
        pid: u32,
        /// Start of its process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Inserted or removed.
        op: PageCacheOp,
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// First page, as an index into the file (or the device, where the inode is 0).
        page: Pages,
        /// Number of pages (more than one for a large folio).
        pages: Pages,
        /// What the task was doing.
        asker: Asker,
        /// System call the task was in; -1 for a fault taken in user mode.
        syscall: i32,
    }
}

table! {
    /// A readahead request as the kernel decided it.
    Readahead = "readaheads" {
        /// When.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// First page asked for.
        page: Pages,
        /// Pages asked for.
        pages: Pages,
        /// Which path asked: sync, async, unbounded or order (`include/trace/events/readahead.h`).
        kind: String,
    }
}

table! {
    /// A request to a block device.
    BlockIo = "block_io" {
        /// When the driver got it.
        ts: Nanos,
        /// Until it was complete; null where the completion was not seen.
        latency: Option<Nanos>,
        /// Device.
        dev: u64,
        /// First 512-byte sector.
        sector: u64,
        /// Size.
        bytes: Bytes,
        /// True for a read.
        read: bool,
        /// Pid of the task that issued it, which need not be the one that asked for the data.
        pid: u32,
        /// True when that task belongs to the recorded tree.
        in_tree: bool,
    }
}

table! {
    /// An attempt to open a file; or a look at a path, or an attempt to make a directory, that was refused (EACCES, EPERM, EROFS).
    Open = "opens" {
        /// When it returned.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Path as the program gave it, which is cut after 255 bytes; a relative one behind the path of the directory that it starts
        /// from, where that is known.
        path: String,
        /// `open(2)` flags; in recordings of earlier versions 0 for `openat2`.
        flags: u32,
        /// What was refused that is no open; null for an open, and in recordings of earlier versions, which hold opens alone.
        call: Option<RefusedCall>,
        /// Descriptor, or the negated errno.
        result: i32,
        /// Device of the opened file; null when the open failed.
        dev: Option<u64>,
        /// Inode of the opened file.
        ino: Option<u64>,
    }
}

table! {
    /// A read-like system call on a regular file.
    Read = "reads" {
        /// When it began.
        ts: Nanos,
        /// How long it took.
        duration: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// File position at which it began.
        offset: Bytes,
        /// Bytes read, or the negated errno.
        result: i64,
        /// System call number.
        syscall: i32,
    }
}

table! {
    /// A file that another table names, with what identifies its content.
    File = "files" {
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// Canonical path on the host.
        path: String,
        /// True for a directory.
        directory: bool,
        /// Size when the recording ended; null where the file could not be examined.
        size: Option<Bytes>,
        /// Modification time, ns since 1970.
        mtime: Option<i64>,
        /// ELF build-id in hexadecimal.
        build_id: Option<String>,
        /// Device of the same file on the host, where the recording was made in a lab.
        host_dev: Option<u64>,
        /// Inode of the same file on the host.
        host_ino: Option<u64>,
    }
}

table! {
    /// A section of an ELF file.
    Section = "sections" {
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// Name.
        name: String,
        /// What it is for.
        kind: SectionKind,
        /// Offset in the file.
        offset: Bytes,
        /// Size in the file.
        size: Bytes,
    }
}

macro_rules! process_rows {
    ($($row:ty),*) => { $(
        impl $row {
            /// The process this row belongs to.
            pub fn process(&self) -> ProcessKey {
                ProcessKey { pid: self.pid, start: self.start }
            }
        }
    )* };
}
process_rows!(
    Fork,
    Exec,
    Exit,
    FirstWait,
    Fault,
    Mapping,
    PageCache,
    Readahead,
    Open,
    Read,
    CpuSample,
    OffCpu,
    MemoryCall,
    MemoryWork,
    PageContent,
    ThreadCounters
);

macro_rules! file_rows {
    ($($row:ty),*) => { $(
        impl $row {
            /// The file this row is about.
            pub fn file(&self) -> FileKey {
                FileKey { dev: self.dev, ino: self.ino }
            }
        }
    )* };
}
file_rows!(Exec, PageCache, Readahead, Read, File, Section);

/// Documentation of every table, in the order of the reference.
pub fn all_tables() -> Vec<TableDoc> {
    vec![
        Fork::doc(),
        Exec::doc(),
        Exit::doc(),
        FirstWait::doc(),
        Fault::doc(),
        Mapping::doc(),
        PageCache::doc(),
        Readahead::doc(),
        BlockIo::doc(),
        Open::doc(),
        Read::doc(),
        CpuSample::doc(),
        OffCpu::doc(),
        CpuEvent::doc(),
        ThreadCounters::doc(),
        MemoryCall::doc(),
        MemoryWork::doc(),
        PageContent::doc(),
        Stack::doc(),
        Frame::doc(),
        Symbol::doc(),
        File::doc(),
        Section::doc(),
        FileRelocations::doc(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_row(path: &str, dev: Option<u64>) -> Open {
        Open {
            ts: Nanos(7),
            pid: 1,
            start: Nanos(2),
            tid: 3,
            path: path.to_owned(),
            flags: 0,
            call: dev.map(|_| RefusedCall::Look),
            result: -2,
            dev,
            ino: dev,
        }
    }

    #[test]
    fn rows_survive_the_way_through_columns() {
        let rows = vec![open_row("/a", None), open_row("/b\u{202e}", Some(9))];
        assert_eq!(Open::from_batch(&Open::to_batch(&rows)).unwrap(), rows);
    }

    #[test]
    fn a_missing_column_is_named() {
        let batch = Fork::to_batch(&[]);
        let error = Open::from_batch(&batch).unwrap_err().to_string();
        assert_eq!(error, "table opens: column path is missing");
    }

    #[test]
    fn an_unknown_word_is_an_error_with_its_row() {
        use arrow_array::{RecordBatch, StringArray};
        let row = PageCache {
            ts: Nanos(1),
            pid: 1,
            start: Nanos(1),
            tid: 1,
            op: PageCacheOp::Add,
            dev: 1,
            ino: 1,
            page: Pages(0),
            pages: Pages(1),
            asker: Asker::Fault,
            syscall: -1,
        };
        let good = PageCache::to_batch(&[row]);
        let mut columns = good.columns().to_vec();
        let at = good.schema().index_of("asker").unwrap();
        columns[at] = std::sync::Arc::new(StringArray::from(vec!["nobody"]));
        let bad = RecordBatch::try_new(good.schema(), columns).unwrap();
        let error = PageCache::from_batch(&bad).unwrap_err().to_string();
        assert_eq!(error, "table page_cache: column asker, row 0: unknown word \"nobody\"");
    }

    #[test]
    fn every_table_and_column_is_documented_and_names_are_unique() {
        let tables = all_tables();
        let names: std::collections::BTreeSet<_> = tables.iter().map(|table| table.name).collect();
        assert_eq!(names.len(), tables.len());
        for table in &tables {
            assert!(!table.doc.is_empty(), "{} has no documentation", table.name);
            for column in &table.columns {
                assert!(!column.doc.is_empty(), "{}.{} has no documentation", table.name, column.name);
            }
        }
    }
}
