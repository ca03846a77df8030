//! Call stacks of a trace as a tree of frames; each frame and each name once.

use crate::output::Row;
use slowpath_tables::{Bytes, FileKey, Frame, FrameKind, ProcessKey, Stack, Symbol};
use std::collections::HashMap;

/// Places in call trees at most; of stacks that lead elsewhere the rest is not known.
const MOST_STACKS: usize = 4 << 20;
/// Frames at most.
const MOST_FRAMES: usize = 2 << 20;
/// Frames of a stack at most; the outermost of a deeper one are left out.
pub const DEEPEST: usize = 1024;

/// A place in code, as a trace knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodePlace {
    /// What kind of code.
    pub kind: FrameKind,
    /// The file, for code of one.
    pub file: Option<FileKey>,
    /// Offset in the file, where it is known.
    pub offset: Option<u64>,
    /// The process, for code in no file.
    pub process: Option<ProcessKey>,
    /// Address, of code in no file.
    pub address: Option<u64>,
}

/// The frames and stacks that have rows already. Names of frames that the trace does not name are added at its end.
#[derive(Debug, Default)]
pub struct Stacks {
    names: HashMap<Box<str>, u32>,
    frames: HashMap<(CodePlace, Option<u32>), u32>,
    stacks: HashMap<(Option<u32>, u32), u32>,
    /// The innermost frame of each stack.
    innermost: Vec<u32>,
    /// CPU samples by their innermost frame.
    samples: HashMap<u32, u64>,
    /// Whether there were more than fit.
    pub is_full: bool,
}

impl Stacks {
    /// The stack of these frames, the innermost first, each with the name of its function where that is known. Rows that are new go to
    /// `rows`.
    pub fn stack(&mut self, frames: &[(CodePlace, Option<&str>)], rows: &mut Vec<Row>) -> Option<u32> {
        let mut stack = None;
        for (place, function) in frames.iter().take(DEEPEST).rev() {
            let Some(frame) = self.frame(*place, *function, rows) else { break };
            let Some(next) = self.called(stack, frame, rows) else { break };
            stack = Some(next);
        }
        stack
    }

    /// A CPU sample has this stack.
    pub fn sampled(&mut self, stack: u32) {
        if let Some(frame) = self.innermost.get(stack as usize) {
            *self.samples.entry(*frame).or_default() += 1;
        }
    }

    /// CPU samples whose innermost frame is this one.
    pub fn samples_of(&self, frame: u32) -> u64 {
        self.samples.get(&frame).copied().unwrap_or(0)
    }

    /// CPU samples with a stack.
    pub fn samples(&self) -> u64 {
        self.samples.values().sum()
    }

    /// How many frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The frames that the trace has no name for, in order. They have no row of `symbols` yet.
    pub fn unnamed(&self) -> Vec<Frame> {
        let unnamed = self.frames.iter().filter(|((_, name), _)| name.is_none());
        let mut rows: Vec<Frame> = unnamed.map(|((place, _), id)| row(*id, *place)).collect();
        rows.sort_unstable_by_key(|row| row.id);
        rows
    }

    fn called(&mut self, parent: Option<u32>, frame: u32, rows: &mut Vec<Row>) -> Option<u32> {
        if let Some(id) = self.stacks.get(&(parent, frame)) {
            return Some(*id);
        }
        if self.stacks.len() >= MOST_STACKS {
            self.is_full = true;
            return None;
        }
        let id = self.stacks.len() as u32;
        self.stacks.insert((parent, frame), id);
        self.innermost.push(frame);
        rows.push(Stack { id, parent, frame }.into());
        Some(id)
    }

    fn frame(&mut self, place: CodePlace, function: Option<&str>, rows: &mut Vec<Row>) -> Option<u32> {
        let name = match function {
            Some(function) => Some(self.name(function)?),
            None => None,
        };
        if let Some(id) = self.frames.get(&(place, name)) {
            return Some(*id);
        }
        if self.frames.len() >= MOST_FRAMES {
            self.is_full = true;
            return None;
        }
        let id = self.frames.len() as u32;
        self.frames.insert((place, name), id);
        rows.push(row(id, place).into());
        if let Some(function) = function {
            let function = Some(function.to_owned());
            rows.push(
                Symbol { frame: id, level: 0, function, source_file: None, source_line: None, reason: None }.into(),
            );
        }
        Some(id)
    }

    fn name(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.names.get(name) {
            return Some(*number);
        }
        if self.names.len() >= MOST_FRAMES {
            self.is_full = true;
            return None;
        }
        let number = self.names.len() as u32;
        self.names.insert(name.into(), number);
        Some(number)
    }
}

fn row(id: u32, place: CodePlace) -> Frame {
    Frame {
        id,
        kind: place.kind,
        dev: place.file.map(|file| file.dev),
        ino: place.file.map(|file| file.ino),
        offset: place.offset.map(Bytes),
        pid: place.process.map(|process| process.pid),
        start: place.process.map(|process| process.start),
        address: place.address,
        truncation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stacks_have_in_common_is_written_once() {
        let place = |address| CodePlace {
            kind: FrameKind::Kernel,
            file: None,
            offset: None,
            process: None,
            address: Some(address),
        };
        let mut stacks = Stacks::default();
        let mut rows = Vec::new();
        assert_eq!(stacks.stack(&[], &mut rows), None);
        let inner = stacks.stack(&[(place(3), Some("c")), (place(2), Some("b")), (place(1), None)], &mut rows);
        assert_eq!((inner, rows.len()), (Some(2), 8));
        assert_eq!(stacks.stack(&[(place(2), Some("b")), (place(1), None)], &mut rows), Some(1));
        assert_eq!(rows.len(), 8);
        assert!(stacks.stack(&vec![(place(2), Some("b")); DEEPEST * 2], &mut rows).is_some());
        assert!(rows.len() <= 8 + DEEPEST);
        let unnamed = stacks.unnamed();
        assert_eq!((unnamed.len(), unnamed[0].id, unnamed[0].address), (1, 0, Some(1)));
    }

    #[test]
    fn samples_count_for_the_innermost_frame() {
        let place = |offset| CodePlace {
            kind: FrameKind::Vdso,
            file: None,
            offset: Some(offset),
            process: None,
            address: None,
        };
        let (mut stacks, mut rows) = (Stacks::default(), Vec::new());
        let long = stacks.stack(&[(place(2), None), (place(1), None)], &mut rows).unwrap();
        let short = stacks.stack(&[(place(1), None)], &mut rows).unwrap();
        for stack in [long, long, short, 99] {
            stacks.sampled(stack);
        }
        assert_eq!((stacks.samples(), stacks.samples_of(1), stacks.samples_of(0)), (3, 2, 1));
    }
}
