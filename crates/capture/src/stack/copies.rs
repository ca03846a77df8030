//! Copies of stacks' memory and what the kernel walked there, brought together for an audit. Pure; the comparison itself reads
//! files and is left to the process that writes the recording.

use super::code_mappings::{CodeMapping, CodeMappings};
use super::rows::stack;
use crate::events::{
    EVENT_CPU_SAMPLE, EVENT_FAULT, EVENT_MEMORY_CALL, EVENT_MODULE, EVENT_OFF_CPU, EVENT_STACK, EVENT_STACK_COPY,
    MODULE_VDSO, STACK_BAD_RULE, STACK_CHANGED, STACK_HANDS_OVER, STACK_KERNEL, STACK_NO_TABLE, STACK_TOO_DEEP,
    STACK_UNREADABLE, STACK_WHOLE, cpu_sample_event, event_header, fault_event, module_event, record, stack_copy_event,
};
use slowpath_tables::FileKey;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Frames of stacks that are remembered at most: 128 MiB. Copies of stacks that are reported later cannot be compared.
const FRAMES_KEPT: usize = 16 << 20;

/// Where an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePlace {
    /// In a file, at this offset in bytes.
    File(FileKey, u64),
    /// In the vdso, at this offset in bytes.
    Vdso(u64),
    /// At an address of no file.
    Address(u64),
}

impl CodePlace {
    /// Where an address of a process with these mappings is.
    pub fn of(address: u64, mappings: &[CodeMapping]) -> Self {
        let Some(mapping) = mappings.iter().find(|mapping| mapping.addresses.contains(&address)) else {
            return Self::Address(address);
        };
        let within = address - mapping.addresses.start;
        mapping.file.map_or(Self::Vdso(within), |file| Self::File(file, mapping.offset.saturating_add(within)))
    }
}

/// How a walk in the kernel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalkFate {
    /// At the outermost frame.
    Whole,
    /// In code without a table, and no frame pointer led on.
    NoTable,
    /// At a rule that could not be followed.
    BadRule,
    /// At memory that could not be read.
    Unreadable,
    /// At the most frames that are recorded.
    TooDeep,
    /// While the process changed its mappings.
    Changed,
    /// While the exception unwinder handed over to a handler.
    HandsOver,
}

impl WalkFate {
    fn of(end: u32) -> Option<Self> {
        Some(match end {
            STACK_WHOLE => Self::Whole,
            STACK_NO_TABLE => Self::NoTable,
            STACK_BAD_RULE => Self::BadRule,
            STACK_UNREADABLE => Self::Unreadable,
            STACK_TOO_DEEP => Self::TooDeep,
            STACK_CHANGED => Self::Changed,
            STACK_HANDS_OVER => Self::HandsOver,
            _ => return None,
        })
    }

    /// Its word in names of counters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::NoTable => "no_table",
            Self::BadRule => "bad_rule",
            Self::Unreadable => "unreadable",
            Self::TooDeep => "too_deep",
            Self::Changed => "changed",
            Self::HandsOver => "hands_over",
        }
    }
}

/// A stack's memory with what was walked there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackCopy {
    /// Process.
    pub pid: u32,
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub bp: u64,
    /// The memory from the stack pointer upward.
    pub memory: Vec<u8>,
    /// The recorded frames, innermost first. Of a caller it is the last byte of its call instruction.
    pub frames: Vec<CodePlace>,
    /// How the walk ended.
    pub fate: WalkFate,
    /// Executable mappings at that moment.
    pub mappings: Arc<Vec<CodeMapping>>,
}

/// What an audit is made from.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StackAudit {
    /// New copies.
    pub copies: Vec<StackCopy>,
    /// New copies whose recorded frames are not known.
    pub unmatched: u64,
    /// How many events so far have a stack that ended so.
    pub events: BTreeMap<WalkFate, u64>,
}

/// Reads what an audit needs out of the records.
#[derive(Default)]
pub(crate) struct CopyReader {
    mappings: CodeMappings,
    modules: HashMap<u32, FileKey>,
    stacks: HashMap<u32, (WalkFate, Box<[u64]>)>,
    kept: usize,
    audit: StackAudit,
}

impl CopyReader {
    /// Takes a record of any kind; `path` returns the name of a file.
    pub(crate) fn learn(&mut self, kind: u32, bytes: &[u8], path: impl FnOnce(FileKey) -> Option<String>) {
        match kind {
            EVENT_MODULE => {
                if let Some(event) = record::<module_event>(bytes) {
                    self.modules.insert(event.module, FileKey { dev: event.dev, ino: event.ino });
                }
            }
            EVENT_STACK => self.learn_stack(bytes),
            EVENT_STACK_COPY => match self.copy(bytes) {
                Some(copy) => self.audit.copies.push(copy),
                None => self.audit.unmatched += 1,
            },
            EVENT_CPU_SAMPLE => {
                if let Some(event) = record::<cpu_sample_event>(bytes) {
                    self.count(event.header.stack);
                }
            }
            EVENT_OFF_CPU | EVENT_MEMORY_CALL => {
                if let Some(header) = record::<event_header>(bytes) {
                    self.count(header.stack);
                }
            }
            EVENT_FAULT => {
                if let Some(batch) = record::<fault_event>(bytes) {
                    batch.faults.iter().take(batch.count as usize).for_each(|fault| self.count(fault.stack));
                }
            }
            _ => self.mappings.learn(kind, bytes, path),
        }
    }

    /// What is new, and the counts so far.
    pub(crate) fn take(&mut self) -> StackAudit {
        let events = self.audit.events.clone();
        std::mem::replace(&mut self.audit, StackAudit { events, ..StackAudit::default() })
    }

    fn learn_stack(&mut self, bytes: &[u8]) {
        let Some(event) = stack(bytes).filter(|event| event.end != STACK_KERNEL) else { return };
        let Some(fate) = WalkFate::of(event.end) else { return };
        let depth = event.depth as usize;
        let is_room = self.kept + depth <= FRAMES_KEPT;
        let frames: Box<[u64]> = if is_room { event.frames[..depth].into() } else { Box::default() };
        self.kept += frames.len();
        self.stacks.insert(event.number, (fate, frames));
    }

    fn count(&mut self, stack: u32) {
        if let Some((fate, _)) = self.stacks.get(&stack) {
            *self.audit.events.entry(*fate).or_default() += 1;
        }
    }

    fn copy(&self, bytes: &[u8]) -> Option<StackCopy> {
        let event = record::<stack_copy_event>(bytes)?;
        let memory = bytes.get(size_of::<stack_copy_event>()..)?.to_vec();
        let (fate, frames) = self.stacks.get(&event.stack).filter(|(_, frames)| !frames.is_empty())?;
        let frames = frames.iter().map(|frame| self.place(*frame)).collect::<Option<Vec<_>>>()?;
        let mappings = self.mappings.of(event.header.pid);
        let stack_copy_event { ip, sp, bp, .. } = event;
        Some(StackCopy { pid: event.header.pid, ip, sp, bp, memory, frames, fate: *fate, mappings })
    }

    /// Where a recorded frame is: see `STACK_FRAMES` in `events.h`.
    fn place(&self, frame: u64) -> Option<CodePlace> {
        let offset = frame & ((1 << 48) - 1);
        match (frame >> 48) as u32 {
            0 => Some(CodePlace::Address(frame)),
            MODULE_VDSO => Some(CodePlace::Vdso(offset)),
            module => self.modules.get(&module).map(|file| CodePlace::File(*file, offset)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{self, EVENT_MAPPING, MAPPING_MAP, event_header, mapping_event, stack_event};

    const FILE: FileKey = FileKey { dev: 1, ino: 5 };

    fn header(kind: u32) -> event_header {
        event_header { kind: kind as u16, pid: 7, tid: 7, ..Default::default() }
    }

    fn stack_bytes(number: u32, end: u32, frames: &[u64]) -> Vec<u8> {
        let depth = frames.len() as u32;
        let mut event = stack_event { header: header(EVENT_STACK), number, end, depth, ..Default::default() };
        event.frames[..frames.len()].copy_from_slice(frames);
        let mut bytes = events::bytes_of(&event);
        bytes.truncate(crate::record_kinds::size_of_record(&bytes).unwrap());
        bytes
    }

    fn copied(stack: u32, memory: &[u8]) -> Vec<u8> {
        let bytes = memory.len() as u32;
        let event = stack_copy_event { header: header(EVENT_STACK_COPY), ip: 1, sp: 2, bp: 3, stack, bytes };
        [events::bytes_of(&event), memory.to_vec()].concat()
    }

    /// A reader that knows one file, mapped at 0x1000 from offset 0x4000.
    fn reader() -> CopyReader {
        let mut reader = CopyReader::default();
        let module = module_event { header: header(EVENT_MODULE), dev: 1, ino: 5, module: 2, ..Default::default() };
        reader.learn(EVENT_MODULE, &events::bytes_of(&module), |_| None);
        let mapping = mapping_event {
            header: header(EVENT_MAPPING),
            address: 0x1000,
            length: 0x2000,
            dev: 1,
            ino: 5,
            offset: 0x4000,
            prot: 5,
            op: MAPPING_MAP,
        };
        reader.learn(EVENT_MAPPING, &events::bytes_of(&mapping), |_| Some("/lib".to_owned()));
        reader
    }

    #[test]
    fn a_copy_comes_with_the_frames_of_its_number_and_the_mappings_of_its_process() {
        let mut reader = reader();
        reader.learn(EVENT_STACK, &stack_bytes(9, STACK_NO_TABLE, &[2 << 48 | 0x4010, 1 << 48 | 8, 0x7000]), |_| None);
        reader.learn(EVENT_STACK_COPY, &copied(9, &[1, 2, 3]), |_| None);
        let audit = reader.take();
        let [copy] = audit.copies.as_slice() else { panic!("{audit:?}") };
        assert_eq!(copy.frames, [CodePlace::File(FILE, 0x4010), CodePlace::Vdso(8), CodePlace::Address(0x7000)]);
        assert_eq!((copy.ip, copy.sp, copy.bp, copy.fate), (1, 2, 3, WalkFate::NoTable));
        assert_eq!((copy.memory.as_slice(), copy.mappings.len()), (&[1, 2, 3][..], 1));
        assert_eq!(CodePlace::of(0x1010, &copy.mappings), copy.frames[0]);
        assert_eq!(CodePlace::of(0x3000, &copy.mappings), CodePlace::Address(0x3000));
        assert!(reader.take().copies.is_empty());
    }

    #[test]
    fn a_copy_whose_stack_or_file_was_lost_is_counted() {
        let mut reader = reader();
        reader.learn(EVENT_STACK, &stack_bytes(9, 0, &[3 << 48 | 0x4010]), |_| None);
        reader.learn(EVENT_STACK_COPY, &copied(9, &[]), |_| None);
        reader.learn(EVENT_STACK_COPY, &copied(10, &[]), |_| None);
        let audit = reader.take();
        assert_eq!((audit.copies.len(), audit.unmatched), (0, 2));
    }

    #[test]
    fn every_event_counts_for_how_its_stack_ended() {
        let mut reader = reader();
        reader.learn(EVENT_STACK, &stack_bytes(1, STACK_WHOLE, &[2 << 48]), |_| None);
        reader.learn(EVENT_STACK, &stack_bytes(2, STACK_UNREADABLE, &[2 << 48]), |_| None);
        for user_stack in [1, 2, 1, 0, 77] {
            let header = event_header { stack: user_stack, ..header(EVENT_CPU_SAMPLE) };
            let sample = cpu_sample_event { header, ..Default::default() };
            reader.learn(EVENT_CPU_SAMPLE, &events::bytes_of(&sample), |_| None);
        }
        let mut batch = fault_event { header: header(EVENT_FAULT), count: 2, ..Default::default() };
        (batch.faults[0].stack, batch.faults[1].stack, batch.faults[2].stack) = (2, 1, 2);
        reader.learn(EVENT_FAULT, &events::bytes_of(&batch), |_| None);
        assert_eq!(reader.take().events, [(WalkFate::Whole, 3), (WalkFate::Unreadable, 2)].into());
        assert_eq!(reader.take().events.len(), 2);
    }

    #[test]
    fn a_copy_is_as_long_as_it_says_and_not_longer_than_the_kernel_makes_one() {
        let bytes = copied(1, &[0; 24]);
        assert_eq!(crate::record_kinds::size_of_record(&bytes), Some(bytes.len()));
        assert_eq!(crate::record_kinds::size_of_record(&bytes[..bytes.len() - 1]), None);
        let mut long = copied(1, &vec![0; events::COPY_BYTES as usize + 8]);
        assert_eq!(crate::record_kinds::size_of_record(&long), None);
        long.truncate(long.len() - 8);
        let at = size_of::<stack_copy_event>() - 4;
        long[at..at + 4].copy_from_slice(&events::COPY_BYTES.to_ne_bytes());
        assert_eq!(crate::record_kinds::size_of_record(&long), Some(long.len()));
    }
}
