//! From raw records to rows: one pass in the order of the ring, pure, and safe on any bytes.

use crate::events::{self, event_header, record};
use crate::mounts::{Mount, host_path};
use crate::names::Names;
use slowpath_recording::{Device, Probe};
use slowpath_tables::{
    BlockIo, Exec, Exit, Fault, File, FileKey, FirstWait, Fork, Losses, Mapping, MemoryCall, Nanos, OffCpu, Open,
    PageCache, ProcessKey, Read, Readahead, Unavailable,
};
use std::collections::{BTreeSet, HashMap};

/// What the recorder hands over: bytes, and what is needed to understand them elsewhere.
pub struct RawCapture {
    /// Records, one after another.
    pub bytes: Vec<u8>,
    /// Tasks of the tree that still ran at the end, with their counters.
    pub survivors: Vec<Exit>,
    /// First waits of processes that still were in them at the end.
    pub waiting: Vec<FirstWait>,
    /// The target's mounts.
    pub mounts: Vec<Mount>,
    /// The devices behind them.
    pub devices: Vec<Device>,
    /// Device of the lab.
    pub lab_dev: Option<u64>,
    /// Lost records by kind.
    pub losses: Losses,
    /// What could not be recorded.
    pub unavailable: Vec<Unavailable>,
    /// The probes and their state.
    pub probes: Vec<Probe>,
    /// When the probes were ready.
    pub started: Nanos,
    /// When recording ended.
    pub ended: Nanos,
}

/// Path of the pages of a block device itself: its file system's metadata (directories, inodes, extents).
pub const METADATA: &str = "[file system metadata]";

/// Rows of all tables, in the order of the ring, not yet examined files (sizes, build-ids, sections) left out.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Rows of `forks`.
    pub forks: Vec<Fork>,
    /// Rows of `execs`.
    pub execs: Vec<Exec>,
    /// Rows of `exits`.
    pub exits: Vec<Exit>,
    /// Rows of `faults`.
    pub faults: Vec<Fault>,
    /// Rows of `mappings`.
    pub mappings: Vec<Mapping>,
    /// Rows of `page_cache`.
    pub page_cache: Vec<PageCache>,
    /// Rows of `readaheads`.
    pub readaheads: Vec<Readahead>,
    /// Rows of `block_io`.
    pub block_io: Vec<BlockIo>,
    /// Rows of `opens`.
    pub opens: Vec<Open>,
    /// Rows of `reads`.
    pub reads: Vec<Read>,
    /// Rows of `first_waits`.
    pub first_waits: Vec<FirstWait>,
    /// Rows of `off_cpu`.
    pub off_cpu: Vec<OffCpu>,
    /// Rows of `memory_calls`.
    pub memory_calls: Vec<MemoryCall>,
    /// Rows of `files`, by name only.
    pub files: Vec<File>,
    /// Losses, with those that only show now.
    pub losses: Losses,
    /// Bytes that were no record; more than 0 is a defect of the recorder.
    pub unreadable_bytes: usize,
}

/// What a decoder may know besides its record.
#[derive(Default)]
pub(crate) struct Context {
    /// Starts of the processes that had a pid, in the order in which they were told.
    starts: HashMap<u32, Vec<Nanos>>,
    /// Minor and major faults so far of the further threads of processes that ran already.
    present: HashMap<ProcessKey, (u64, u64)>,
}

impl Context {
    /// The process that had this pid at `ts`; start 0 for one outside the tree. The time decides, not the place in the
    /// ring: a batch of faults comes later than they happened, perhaps after its process ended and its pid was given anew.
    pub(crate) fn process(&self, pid: u32, ts: Nanos) -> ProcessKey {
        let starts = self.starts.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let start = starts.iter().rev().find(|start| **start <= ts).or(starts.first());
        ProcessKey { pid, start: start.copied().unwrap_or_default() }
    }

    /// Takes the counters of a further thread of a process that ran already.
    pub(crate) fn count_present(&mut self, thread: &events::exec_event) {
        let process = ProcessKey { pid: thread.header.pid, start: Nanos(thread.start) };
        let (minor, major) = self.present.entry(process).or_default();
        *minor += thread.min_flt;
        *major += thread.maj_flt;
    }

    /// Minor and major faults of the further threads of the process when it began to be followed.
    pub(crate) fn present(&self, exec: &Exec) -> (u64, u64) {
        self.present.get(&exec.process()).copied().unwrap_or_default()
    }

    pub(crate) fn learn(&mut self, pid: u32, start: Nanos) {
        let starts = self.starts.entry(pid).or_default();
        if starts.last() != Some(&start) {
            starts.push(start);
        }
    }
}

/// Splits the bytes into records; calls `each` with the kind and the record. Returns the bytes left over.
pub(crate) fn for_each_record(bytes: &[u8], mut each: impl FnMut(u32, &[u8])) -> usize {
    let mut rest = bytes;
    while let Some(header) = record::<event_header>(rest) {
        let Some(size) = events::size_of_kind(header.kind).filter(|size| *size <= rest.len()) else { break };
        each(u32::from(header.kind), &rest[..size]);
        rest = &rest[size..];
    }
    rest.len()
}

/// Decodes everything that was captured.
pub fn decode(raw: &RawCapture) -> Decoded {
    let mut out = Decoded { losses: raw.losses.clone(), ..Decoded::default() };
    let mut names = Names::default();
    let mut context = Context::default();
    out.unreadable_bytes = for_each_record(&raw.bytes, |kind, bytes| match kind {
        events::EVENT_FORK => out.forks.extend(crate::process::fork(bytes, &mut context)),
        events::EVENT_EXEC => out.execs.extend(crate::process::exec(bytes, &mut context)),
        events::EVENT_EXIT => out.exits.extend(crate::process::exit(bytes)),
        events::EVENT_FAULT => out.faults.extend(crate::fault::decode(bytes, &context)),
        events::EVENT_MAPPING => out.mappings.extend(crate::mapping::decode(bytes, &context)),
        events::EVENT_PAGE_CACHE => out.page_cache.extend(crate::page_cache::decode(bytes, &context)),
        events::EVENT_READAHEAD => out.readaheads.extend(crate::readahead::decode(bytes, &context)),
        events::EVENT_BLOCK => out.block_io.extend(crate::block::decode(bytes)),
        events::EVENT_OPEN => out.opens.extend(crate::open::decode(bytes, &context)),
        events::EVENT_READ => out.reads.extend(crate::read::decode(bytes, &context)),
        events::EVENT_FIRST_WAIT => out.first_waits.extend(crate::first_wait::decode(bytes, &mut context)),
        events::EVENT_OFF_CPU => out.off_cpu.extend(crate::off_cpu::decode(bytes, &context, raw.ended)),
        events::EVENT_MEMORY_CALL => out.memory_calls.extend(crate::memory::decode(bytes, &context)),
        _ => {
            if let Some(event) = record(bytes) {
                names.learn(&event);
            }
        }
    });
    for exec in out.execs.iter_mut().filter(|exec| exec.present) {
        let (minor, major) = context.present(exec);
        (exec.min_flt, exec.maj_flt) = (exec.min_flt + minor, exec.maj_flt + major);
    }
    // Each processor's batches come on their own.
    out.faults.sort_by_key(|fault| fault.ts);
    // These are told when they are over.
    out.off_cpu.sort_by_key(|interval| interval.ts);
    out.memory_calls.sort_by_key(|call| call.ts);
    out.exits.extend(raw.survivors.iter().cloned());
    out.first_waits.extend(raw.waiting.iter().cloned());
    let paths = paths_of(&names, raw);
    join_overlays(&mut out, &paths, raw);
    out.files = files(&out, &paths, &names);
    out
}

/// Canonical host path of every file that has one.
fn paths_of(names: &Names, raw: &RawCapture) -> HashMap<FileKey, String> {
    names
        .files()
        .filter_map(|file| {
            let inside = names.path(file)?;
            // The lab's image mirrors the host's paths.
            let path = if raw.lab_dev == Some(file.dev) { inside } else { host_path(&raw.mounts, file.dev, &inside)? };
            Some((file, path))
        })
        .collect()
}

/// In a lab a program opens a file through an overlay, which has inodes of its own, while its pages belong to the
/// file below. Rows are moved to the file below: the one in the lab where it holds it, else the host's.
fn join_overlays(out: &mut Decoded, paths: &HashMap<FileKey, String>, raw: &RawCapture) {
    let overlays: BTreeSet<u64> =
        raw.mounts.iter().filter(|mount| mount.fs == "overlay").map(|mount| mount.dev).collect();
    if overlays.is_empty() {
        return;
    }
    let mut below: HashMap<&str, FileKey> = HashMap::new();
    for (file, path) in paths {
        if overlays.contains(&file.dev) {
            continue;
        }
        let slot = below.entry(path.as_str()).or_insert(*file);
        if raw.lab_dev == Some(file.dev) {
            *slot = *file;
        }
    }
    let moved = |file: FileKey| -> Option<FileKey> {
        if !overlays.contains(&file.dev) {
            return None;
        }
        below.get(paths.get(&file)?.as_str()).copied()
    };
    for exec in &mut out.execs {
        if let Some(to) = moved(exec.file()) {
            (exec.dev, exec.ino) = (to.dev, to.ino);
        }
    }
    for read in &mut out.reads {
        if let Some(to) = moved(read.file()) {
            (read.dev, read.ino) = (to.dev, to.ino);
        }
    }
    let optional = |dev: &mut Option<u64>, ino: &mut Option<u64>| {
        if let (Some(d), Some(i)) = (*dev, *ino)
            && let Some(to) = moved(FileKey { dev: d, ino: i })
        {
            (*dev, *ino) = (Some(to.dev), Some(to.ino));
        }
    };
    for mapping in &mut out.mappings {
        optional(&mut mapping.dev, &mut mapping.ino);
    }
    for open in &mut out.opens {
        optional(&mut open.dev, &mut open.ino);
    }
}

/// A row for every file that another table names. A file without a path is called by its last name in brackets.
fn files(out: &Decoded, paths: &HashMap<FileKey, String>, names: &Names) -> Vec<File> {
    let mut named: BTreeSet<FileKey> = BTreeSet::new();
    named.extend(out.execs.iter().map(Exec::file));
    named.extend(out.page_cache.iter().map(PageCache::file));
    named.extend(out.readaheads.iter().map(Readahead::file));
    named.extend(out.reads.iter().map(Read::file));
    let pair = |dev: Option<u64>, ino: Option<u64>| dev.zip(ino).map(|(dev, ino)| FileKey { dev, ino });
    named.extend(out.mappings.iter().filter_map(|row| pair(row.dev, row.ino)));
    named.extend(out.opens.iter().filter_map(|row| pair(row.dev, row.ino)));
    named
        .into_iter()
        .map(|file| File {
            dev: file.dev,
            ino: file.ino,
            path: paths.get(&file).cloned().unwrap_or_else(|| match file.ino {
                0 => METADATA.to_owned(),
                _ => format!("[{}]", names.last_name(file).unwrap_or("unnamed")),
            }),
            directory: names.is_directory(file),
            size: None,
            mtime: None,
            build_id: None,
            host_dev: None,
            host_ino: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capture(bytes: Vec<u8>) -> RawCapture {
        RawCapture {
            bytes,
            survivors: Vec::new(),
            waiting: Vec::new(),
            mounts: Vec::new(),
            devices: Vec::new(),
            lab_dev: None,
            losses: Losses::default(),
            unavailable: Vec::new(),
            probes: Vec::new(),
            started: Nanos(0),
            ended: Nanos(1),
        }
    }

    fn batch(faults: &[(u32, u64, u32)]) -> events::fault_event {
        let mut batch = events::fault_event {
            header: event_header { kind: events::EVENT_FAULT as u16, ..Default::default() },
            count: faults.len() as u32,
            ..Default::default()
        };
        for (slot, (pid, ts, flags)) in batch.faults.iter_mut().zip(faults) {
            *slot = events::fault_record {
                ts: *ts,
                pid: *pid,
                tid: *pid,
                flags: *flags,
                duration: 5,
                ..Default::default()
            };
        }
        batch
    }

    fn fork(child: u32, start: u64) -> events::fork_event {
        events::fork_event {
            header: event_header { kind: events::EVENT_FORK as u16, pid: 1, tid: 1, ..Default::default() },
            start,
            child_pid: child,
            child_tid: child,
            ..Default::default()
        }
    }

    fn name(dev: u64, ino: u64, parent: u64, is_root: u32, text: &str) -> Vec<u8> {
        let mut event = events::name_event {
            header: event_header { kind: events::EVENT_NAME as u16, ..Default::default() },
            dev,
            ino,
            parent_ino: parent,
            mode: 0o100_644,
            is_root,
            ..Default::default()
        };
        for (slot, byte) in event.name.iter_mut().zip(text.bytes()) {
            *slot = byte as std::os::raw::c_char;
        }
        events::bytes_of(&event)
    }

    #[test]
    fn a_pid_used_again_belongs_to_the_process_that_had_it_then() {
        let mut bytes = events::bytes_of(&fork(7, 100));
        bytes.extend(events::bytes_of(&fork(7, 200)));
        bytes.extend(events::bytes_of(&batch(&[(7, 250, 0), (7, 150, 0)])));
        let faults = decode(&capture(bytes)).faults;
        let starts: Vec<_> = faults.iter().map(|row| (row.ts.0, row.start.0)).collect();
        assert_eq!(starts, [(150, 100), (250, 200)]);
    }

    #[test]
    fn a_fault_whose_beginning_was_not_seen_has_no_duration() {
        let bytes = events::bytes_of(&batch(&[(7, 1, events::FLAG_NO_START)]));
        assert_eq!(decode(&capture(bytes)).faults[0].duration, None);
    }

    #[test]
    fn a_batch_counts_as_its_faults_when_it_is_lost() {
        assert_eq!(events::events_in(&events::bytes_of(&batch(&[(7, 1, 0), (7, 2, 0)]))), 2);
        assert_eq!(events::events_in(&events::bytes_of(&fork(7, 1))), 1);
    }

    #[test]
    fn a_file_opened_through_the_overlay_is_the_file_in_the_lab() {
        let mut raw = capture(Vec::new());
        raw.lab_dev = Some(700);
        raw.mounts = crate::parse_mountinfo(
            "22 1 0:9 / /usr ro - overlay ov ro\n23 1 0:700 / /run/x ro - ext4 /dev/loop0 ro\n24 1 0:1 / / rw - ext4 d rw\n",
        );
        raw.mounts[1].dev = 700;
        for (dev, root, file) in [(9, 2, 3), (700, 20, 30)] {
            raw.bytes.extend(name(dev, file, root, 0, "f"));
            raw.bytes.extend(name(dev, root, root, 1, "/"));
        }
        // In the image the file stands below usr.
        raw.bytes.clear();
        raw.bytes.extend(name(9, 3, 2, 0, "f"));
        raw.bytes.extend(name(9, 2, 2, 1, "/"));
        raw.bytes.extend(name(700, 30, 21, 0, "f"));
        raw.bytes.extend(name(700, 21, 20, 0, "usr"));
        raw.bytes.extend(name(700, 20, 20, 1, "/"));
        let read = events::read_event {
            header: event_header { kind: events::EVENT_READ as u16, ..Default::default() },
            dev: 9,
            ino: 3,
            ..Default::default()
        };
        raw.bytes.extend(events::bytes_of(&read));
        let out = decode(&raw);
        assert_eq!(out.reads[0].file(), FileKey { dev: 700, ino: 30 });
        assert_eq!(out.files[0].path, "/usr/f");
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            decode(&capture(bytes));
        }

        #[test]
        fn records_cut_anywhere_leave_the_whole_ones(cut in 0usize..3300) {
            let mut bytes = events::bytes_of(&batch(&[(7, 1, 0)]));
            bytes.extend(events::bytes_of(&batch(&[(8, 2, 0)])));
            let size = bytes.len() / 2;
            bytes.truncate(cut.min(bytes.len()));
            prop_assert_eq!(decode(&capture(bytes.clone())).faults.len(), bytes.len() / size);
        }
    }
}
