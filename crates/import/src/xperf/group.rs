//! Events of one moment and the call stacks that belong to them.
//!
//! A stack names the thread and the time of its event. An event that names no thread (VirtualAlloc) has the stack of the thread that no
//! other event of that moment is of.

use crate::problem::ImportError;
use crate::stacks::{CodePlace, DEEPEST};
use crate::trace::Trace;
use slowpath_tables::{CpuSample, Fault, FrameKind, MemoryCall};
use std::collections::BTreeMap;

/// Events of one moment at most: some for each CPU.
const MOST_EVENTS: usize = 1 << 14;

/// A row that waits for its stack.
#[derive(Debug)]
pub enum Waiting {
    /// A sample.
    Sample(CpuSample),
    /// A page fault.
    Fault(Fault),
    /// A memory call, whose thread its stack says.
    Memory(MemoryCall),
}

/// A frame as xperf prints it.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameText {
    /// Address of the instruction; 0 where it is not known.
    pub address: u64,
    /// `image!function`; foreign text.
    pub code: String,
}

/// The events of a moment.
#[derive(Debug, Default)]
pub struct Group {
    time: u64,
    events: Vec<Waiting>,
    stacks: BTreeMap<u32, Vec<FrameText>>,
    /// The instruction of a sample, in case that no stack comes.
    leaves: BTreeMap<u32, FrameText>,
}

impl Group {
    /// There is an event at this time: what came before is written.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn at(&mut self, trace: &mut Trace<'_>, time: u64) -> Result<(), ImportError> {
        if time != self.time || self.events.len() >= MOST_EVENTS {
            self.flush(trace)?;
            self.time = time;
        }
        Ok(())
    }

    /// An event of this moment.
    pub fn add(&mut self, event: Waiting) {
        self.events.push(event);
    }

    /// The instruction of a sample of this moment, where no stack comes.
    pub fn leaf(&mut self, tid: u32, frame: FrameText) {
        if self.leaves.len() < MOST_EVENTS {
            self.leaves.insert(tid, frame);
        }
    }

    /// A frame of a stack of this moment.
    pub fn frame(&mut self, tid: u32, frame: FrameText) {
        if self.stacks.len() < MOST_EVENTS || self.stacks.contains_key(&tid) {
            let frames = self.stacks.entry(tid).or_default();
            if frames.len() < DEEPEST {
                frames.push(frame);
            }
        }
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn flush(&mut self, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        let events = std::mem::take(&mut self.events);
        let mut stacks = std::mem::take(&mut self.stacks);
        for (tid, leaf) in std::mem::take(&mut self.leaves) {
            stacks.entry(tid).or_insert_with(|| vec![leaf]);
        }
        let mut numbers: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        for (tid, frames) in &stacks {
            let mut places = Vec::with_capacity(frames.len());
            for frame in frames {
                places.push(place(trace, frame)?);
            }
            numbers.insert(*tid, trace.stack(&places)?);
        }
        let of = |tid: u32| numbers.get(&tid).copied().flatten();
        let owned: Vec<u32> = events.iter().filter_map(Waiting::tid).collect();
        let free = numbers.iter().find(|(tid, _)| !owned.contains(tid)).map(|(tid, stack)| (*tid, *stack));
        for event in events {
            match event {
                Waiting::Sample(row) => {
                    let stack = of(row.tid);
                    let kernel = stacks.get(&row.tid).and_then(|frames| frames.first()).map(FrameText::is_kernel);
                    trace.row(CpuSample { stack, kernel: kernel.unwrap_or(row.kernel), ..row })?;
                }
                Waiting::Fault(row) => trace.row(Fault { stack: of(row.tid), ..row })?,
                Waiting::Memory(row) => {
                    let (tid, stack) = free.unwrap_or((row.tid, None));
                    trace.row(MemoryCall { tid, stack, ..row })?;
                }
            }
        }
        Ok(())
    }
}

impl Waiting {
    fn tid(&self) -> Option<u32> {
        match self {
            Self::Sample(row) => Some(row.tid),
            Self::Fault(row) => Some(row.tid),
            Self::Memory(_) => None,
        }
    }
}

impl FrameText {
    /// Image and function; no function where only its address is known, or why it is not (`<PDB not found>`).
    pub fn parts(&self) -> (&str, Option<&str>) {
        let (image, function) = self.code.split_once('!').unwrap_or((&self.code, ""));
        let is_reason = function.starts_with('<') && function.ends_with('>');
        let is_known = !function.is_empty() && !function.starts_with("0x") && function != "?" && !is_reason;
        (image, is_known.then_some(function))
    }

    /// Whether it is code of the kernel: of the upper half of the address space, or on 32 bits of a driver or the kernel itself.
    pub fn is_kernel(&self) -> bool {
        let image = self.parts().0.to_ascii_lowercase();
        let is_system = image.ends_with(".sys")
            || image.starts_with("ntoskrnl")
            || image.starts_with("ntkrnl")
            || image.starts_with("hal");
        self.address >> 47 != 0 || is_system
    }
}

/// Where a frame is, and its function.
///
/// # Errors
/// The recording cannot be written.
pub fn place<'f>(trace: &mut Trace<'_>, frame: &'f FrameText) -> Result<(CodePlace, Option<&'f str>), ImportError> {
    let (image, function) = frame.parts();
    let nowhere = CodePlace { kind: FrameKind::Generated, file: None, offset: None, process: None, address: None };
    let place = if frame.is_kernel() {
        CodePlace { kind: FrameKind::Kernel, address: Some(frame.address).filter(|at| *at != 0), ..nowhere }
    } else if image.is_empty() || image == "?" || image == "Unknown" {
        CodePlace { address: Some(frame.address), ..nowhere }
    } else {
        CodePlace { kind: FrameKind::File, file: Some(trace.file(image)?), ..nowhere }
    };
    Ok((place, function))
}
