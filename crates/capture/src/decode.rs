//! From raw records to rows, in pieces: one pass in the order of the ring, pure, and safe on any bytes.
//!
//! However the records are cut into pieces, the rows are the same, up to their order and to rows of `files` that are reported
//! again when more is known; readers sort, and take the last. Only rows of overlays (a lab's) are joined with what was
//! reported up to their piece: what is recorded in a lab is decoded whole.

use crate::context::Context;
use crate::events::{event_header, record};
use crate::file_rows::{Files, HostPaths, Overlays};
use crate::mounts::Mount;
use crate::names::Names;
use crate::record_kinds;
use crate::records::Decoding;
use crate::stack::{CopyReader, StackAudit, Stacks};
use serde::{Deserialize, Serialize};
use slowpath_recording::{Device, MachineFaults, MemoryThreads, Probe, Tables};
use slowpath_tables::{File, FileKey, Losses, Nanos, Unavailable};
use std::collections::BTreeSet;

/// What the recorder knows besides its records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
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
    /// When the probes were ready; of processes that ran already, when they began to be followed.
    pub started: Nanos,
    /// When recording ended.
    pub ended: Nanos,
    /// Faults of the whole machine; known when recording has ended.
    #[serde(default)]
    pub machine_faults: Option<MachineFaults>,
    /// What the kernel's threads for memory did; known when recording has ended.
    #[serde(default)]
    pub memory_threads: Option<MemoryThreads>,
}

/// What the recorder hands over at the end: bytes, and what is needed to understand them elsewhere.
#[derive(Default)]
pub struct RawCapture {
    /// Records, one after another, without those that were taken before.
    pub bytes: Vec<u8>,
    /// The rest.
    pub facts: Facts,
}

/// Counter of a manifest: bytes that were no record; more than 0 is a defect of the recorder.
pub const UNREADABLE_BYTES: &str = "unreadable_bytes";

/// Splits the bytes into records; calls `each` with the kind and the record. Returns the bytes left over.
pub(crate) fn for_each_record(bytes: &[u8], mut each: impl FnMut(u32, &[u8])) -> usize {
    let mut rest = bytes;
    while let Some(header) = record::<event_header>(rest) {
        let Some(size) = record_kinds::size_of_record(rest) else { break };
        each(u32::from(header.kind), &rest[..size]);
        rest = &rest[size..];
    }
    rest.len()
}

/// Events by kind in records that are given up.
pub fn count_events(bytes: &[u8]) -> Losses {
    let mut losses = Losses::default();
    for_each_record(bytes, |kind, bytes| losses.add(record_kinds::kind_name(kind), record_kinds::events_in(bytes)));
    losses
}

/// Of records that are to be given up, those that the kernel reports once and to which later ones refer (processes, mappings, names,
/// call stacks); and the others, counted by kind.
pub fn keep_reported_once(bytes: &[u8]) -> (Vec<u8>, Losses) {
    let (mut kept, mut losses) = (Vec::new(), Losses::default());
    for_each_record(bytes, |kind, record| match record_kinds::of(kind) {
        Some(kind) if kind.is_reported_once => kept.extend_from_slice(record),
        _ => losses.add(record_kinds::kind_name(kind), record_kinds::events_in(record)),
    });
    (kept, losses)
}

/// Decodes records as they come.
#[derive(Default)]
pub struct Decoder {
    host_paths: HostPaths,
    context: Context,
    names: Names,
    stacks: Stacks,
    overlays: Overlays,
    files: Files,
    /// Names that were reported since the last rows of files.
    fresh: BTreeSet<FileKey>,
    unreadable_bytes: u64,
    /// Names of the kernel's functions, by what stands for their addresses.
    kernel_symbols: Vec<(u64, String)>,
    /// Where stacks are audited.
    copies: Option<CopyReader>,
}

impl Decoder {
    /// For processes that see these mounts, in a lab on this device.
    pub fn new(mounts: Vec<Mount>, lab_dev: Option<u64>) -> Self {
        let overlays = Overlays::of(&mounts);
        Self { host_paths: HostPaths { mounts, lab_dev }, overlays, ..Self::default() }
    }

    /// Keeps what is needed to check copied stacks, see [`Decoder::stack_audit`].
    #[must_use]
    pub fn auditing(mut self) -> Self {
        self.copies = Some(CopyReader::default());
        self
    }

    /// The copies of stacks that came since this was asked last, and what became of all stacks; `None` unless asked for by
    /// [`Decoder::auditing`].
    pub fn stack_audit(&mut self) -> Option<StackAudit> {
        self.copies.as_mut().map(CopyReader::take)
    }

    /// Names of the kernel's functions that were reported since this was asked last, by the address that stands for each in frames: not
    /// the kernel's own, in a recording that is not root's.
    pub fn kernel_symbols(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.kernel_symbols)
    }

    /// Rows of the next records, which must be whole ones; those of files come from [`Decoder::files`].
    pub fn feed(&mut self, bytes: &[u8]) -> Tables {
        let Self { context, names, stacks, copies, host_paths, kernel_symbols, .. } = self;
        let mut to = Decoding { out: Tables::default(), context, stacks, host_paths, names, kernel_symbols };
        let unreadable = for_each_record(bytes, |kind, bytes| {
            if let Some(copies) = copies {
                copies.learn(kind, bytes, |file| to.host_paths.path(to.names, file));
            }
            if let Some(kind) = record_kinds::of(kind) {
                (kind.decode)(bytes, &mut to);
            }
            if let Some(header) = record::<event_header>(bytes) {
                to.out.execs.extend(to.context.release(Nanos(header.ts)));
            }
        });
        let mut out = to.out;
        self.unreadable_bytes += unreadable as u64;
        (out.stacks, out.frames) = self.stacks.take();
        // Each CPU's batches come on their own.
        out.faults.sort_by_key(|fault| fault.ts);
        // What lasts is reported at its end.
        out.off_cpu.sort_by_key(|interval| interval.ts);
        out.memory_calls.sort_by_key(|call| call.ts);
        out.page_contents.sort_by_key(|look| look.ts);
        out.memory_work.sort_by_key(|work| work.ts);
        self.settle(&mut out);
        out
    }

    /// Joins rows with the files that they mean, and remembers those.
    fn settle(&mut self, rows: &mut Tables) {
        let fresh = self.names.take_fresh();
        self.overlays.join(rows, &self.names, &fresh, &self.host_paths);
        self.fresh.extend(fresh);
        self.files.want(rows);
    }

    /// Rows of the files that rows named since this was asked last, and of those of which more is known now. By name only:
    /// files are not examined here.
    pub fn files(&mut self) -> Vec<File> {
        self.files.rows(&self.names, &std::mem::take(&mut self.fresh), &self.host_paths, false)
    }

    /// What was kept for later records, and the last rows of files. The manifest holds the counters of decoding.
    pub fn finish(mut self) -> Tables {
        let mut out = Tables { execs: self.context.release_all(), ..Tables::default() };
        self.settle(&mut out);
        out.files = self.files.rows(&self.names, &self.fresh, &self.host_paths, true);
        out.manifest.counters.insert(UNREADABLE_BYTES.to_owned(), self.unreadable_bytes);
        out
    }
}

/// Decodes everything that was captured, at once. The manifest of the result holds losses and counters only.
pub fn decode(raw: &RawCapture) -> Tables {
    let mut decoder = Decoder::new(raw.facts.mounts.clone(), raw.facts.lab_dev);
    let mut out = decoder.feed(&raw.bytes);
    let mut last = decoder.finish();
    out.execs.append(&mut last.execs);
    out.files = last.files;
    out.manifest = last.manifest;
    out.manifest.losses = raw.facts.losses.clone();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events;
    use proptest::prelude::*;
    use slowpath_tables::FaultKind;

    fn capture(bytes: Vec<u8>) -> RawCapture {
        RawCapture { bytes, ..RawCapture::default() }
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
                duration_and_flags: (5 << events::FAULT_FLAG_BITS) | u64::from(*flags),
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
    fn a_faults_flags_are_apart_from_its_duration() {
        let flags = [events::FLAG_NO_START, events::FLAG_MAJOR, events::FLAG_KERNEL, 0];
        let faults: Vec<_> = (1..).zip(flags).map(|(ts, flags)| (7, ts, flags)).collect();
        let rows = decode(&capture(events::bytes_of(&batch(&faults)))).faults;
        let of: Vec<_> = rows.iter().map(|row| (row.duration, row.kind == FaultKind::Major, row.kernel)).collect();
        let five = Some(Nanos(5));
        assert_eq!(of, [(None, false, false), (five, true, false), (five, false, true), (five, false, false)]);
    }

    #[test]
    fn what_recording_a_fault_took_is_there_where_it_was_measured() {
        let mut faults = batch(&[(7, 1, events::FLAG_NO_START), (7, 2, 0)]);
        faults.faults[1].recording = 300;
        let times: Vec<_> =
            decode(&capture(events::bytes_of(&faults))).faults.iter().map(|row| row.recording).collect();
        assert_eq!(times, [None, Some(Nanos(300))]);
    }

    #[test]
    fn a_batch_counts_as_its_faults_when_it_is_lost() {
        assert_eq!(record_kinds::events_in(&events::bytes_of(&batch(&[(7, 1, 0), (7, 2, 0)]))), 2);
        assert_eq!(record_kinds::events_in(&events::bytes_of(&fork(7, 1))), 1);
    }

    #[test]
    fn a_file_opened_through_the_overlay_is_the_file_in_the_lab() {
        let mut raw = capture(Vec::new());
        raw.facts.lab_dev = Some(700);
        raw.facts.mounts = crate::parse_mountinfo(
            "22 1 0:9 / /usr ro - overlay ov ro\n23 1 0:700 / /run/x ro - ext4 /dev/loop0 ro\n24 1 0:1 / / rw - ext4 d rw\n",
        );
        raw.facts.mounts[1].dev = 700;
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

    #[test]
    fn a_file_whose_name_is_learnt_later_is_reported_again_and_only_then() {
        let mounts = crate::parse_mountinfo("24 1 0:1 / / rw - ext4 d rw\n");
        let mut decoder = Decoder::new(mounts, None);
        let read = |ino: u64| {
            let header = event_header { kind: events::EVENT_READ as u16, ..Default::default() };
            events::bytes_of(&events::read_event { header, dev: 1, ino, ..Default::default() })
        };
        let paths = |decoder: &mut Decoder| decoder.files().into_iter().map(|file| file.path).collect::<Vec<_>>();
        assert_eq!(decoder.feed(&[read(3), name(1, 3, 2, 0, "f")].concat()).reads.len(), 1);
        assert_eq!(paths(&mut decoder), ["[f]"]);
        decoder.feed(&[read(3), name(1, 2, 2, 1, "/")].concat());
        assert_eq!(paths(&mut decoder), ["/f"]);
        decoder.feed(&read(3));
        assert_eq!(paths(&mut decoder), [] as [&str; 0]);
        // The other of its hard links.
        decoder.feed(&name(1, 3, 2, 0, "g"));
        assert_eq!(paths(&mut decoder), ["/g"]);
        assert!(decoder.finish().files.is_empty());
    }

    #[test]
    fn what_later_records_refer_to_is_not_given_up() {
        let bytes =
            [events::bytes_of(&fork(8, 50)), events::bytes_of(&batch(&[(7, 1, 0), (7, 2, 0)])), name(1, 2, 0, 1, "a")]
                .concat();
        let (kept, given_up) = keep_reported_once(&bytes);
        assert_eq!(count_events(&kept).0.keys().collect::<Vec<_>>(), ["file_names", "forks"]);
        assert_eq!(given_up.0.into_iter().collect::<Vec<_>>(), [("faults".to_owned(), 2)]);
    }

    #[test]
    fn what_is_given_up_is_counted_by_kind_and_event() {
        let mut bytes = events::bytes_of(&batch(&[(7, 1, 0), (7, 2, 0)]));
        bytes.extend(events::bytes_of(&fork(7, 1)));
        bytes.extend(name(1, 2, 3, 0, "f"));
        let losses = count_events(&bytes).0;
        assert_eq!((losses["faults"], losses["forks"], losses["file_names"], losses.len()), (2, 1, 1, 3));
    }

    /// A record of any kind, of few processes and files, so that pids and inodes come again.
    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        // Names and what asks for them come most often.
        let kind = prop_oneof![
            0..events::EVENT_KINDS as u16,
            Just(events::EVENT_NAME as u16),
            Just(events::EVENT_READ as u16)
        ];
        let numbers = (kind, 0u16..4, 0u32..4, 0u64..6, 0u64..4, any::<u8>());
        numbers.prop_map(|(kind, flags, pid, ts, ino, byte)| {
            let header = event_header { kind, flags, pid, tid: pid, ts: ts * 2_000_000_000, stack: 0 };
            let mut bytes = events::bytes_of(&header);
            bytes.resize(4096, 0);
            let size = record_kinds::size_of_record(&bytes).unwrap();
            bytes.truncate(size);
            match u32::from(kind) {
                events::EVENT_FORK => bytes = events::bytes_of(&fork(pid, ts)),
                events::EVENT_FAULT => bytes = events::bytes_of(&batch(&[(pid, ts, 0), (byte.into(), ts + 1, 0)])),
                events::EVENT_STACK => {
                    let frame = [2 << 48 | u64::from(byte % 3), u64::from(byte % 2)];
                    let mut stack = events::stack_event { number: ino as u32, depth: 2, ..Default::default() };
                    stack.frames[..2].copy_from_slice(&frame);
                    bytes = events::bytes_of(&stack)[..size + 16].to_vec();
                }
                events::EVENT_NAME => bytes = name(1, ino, ino / 2, u32::from(ino == 0), &byte.to_string()),
                events::EVENT_READ | events::EVENT_PAGE_CACHE | events::EVENT_OPEN => {
                    let file = event_header::default();
                    let record = events::read_event { header: file, duration: 1, dev: 1, ino, ..Default::default() };
                    let filled = events::bytes_of(&record);
                    let length = filled.len().min(size);
                    bytes[..length].copy_from_slice(&filled[..length]);
                }
                // Zeros say that no memory follows.
                events::EVENT_STACK_COPY => {}
                _ => bytes[size_of::<event_header>()..].fill(byte % 3),
            }
            bytes[..size_of::<event_header>()].copy_from_slice(&events::bytes_of(&header));
            bytes
        })
    }

    /// As a reader has them: in one order, of each file the last row.
    fn settled(mut tables: Tables) -> String {
        tables.settle();
        tables.manifest = Default::default();
        let text = tables.to_text();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    proptest! {
        #[test]
        fn pieces_give_the_rows_of_the_whole(
            records in proptest::collection::vec(any_record(), 0..60),
            cuts in proptest::collection::btree_set(0usize..60, 0..8),
            asks in proptest::collection::btree_set(0usize..60, 0..8),
        ) {
            let mut raw = capture(records.concat());
            raw.facts.mounts = crate::parse_mountinfo("24 1 0:1 / / rw - ext4 d rw\n");
            let whole = decode(&raw);
            let mut decoder = Decoder::new(raw.facts.mounts.clone(), None);
            let (mut pieces, mut piece) = (Tables::default(), Vec::new());
            for (number, record) in records.iter().enumerate() {
                piece.extend_from_slice(record);
                if cuts.contains(&number) {
                    pieces.append(decoder.feed(&std::mem::take(&mut piece)));
                }
                if asks.contains(&number) {
                    pieces.files.extend(decoder.files());
                }
            }
            pieces.append(decoder.feed(&piece));
            pieces.append(decoder.finish());
            prop_assert_eq!(settled(pieces), settled(whole));
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            decode(&capture(bytes));
        }

        #[test]
        fn records_cut_anywhere_leave_the_whole_ones(cut in 0usize..3700) {
            let mut bytes = events::bytes_of(&batch(&[(7, 1, 0)]));
            bytes.extend(events::bytes_of(&batch(&[(8, 2, 0)])));
            let size = bytes.len() / 2;
            bytes.truncate(cut.min(bytes.len()));
            prop_assert_eq!(decode(&capture(bytes.clone())).faults.len(), bytes.len() / size);
        }
    }
}
