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

/// The frames and stacks that have rows already.
#[derive(Debug, Default)]
pub struct Stacks {
    names: HashMap<Box<str>, u32>,
    frames: HashMap<(CodePlace, Option<u32>), u32>,
    stacks: HashMap<(Option<u32>, u32), u32>,
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
        rows.push(
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
            .into(),
        );
        rows.push(
            Symbol {
                frame: id,
                level: 0,
                function: function.map(str::to_owned),
                source_file: None,
                source_line: None,
                reason: function.is_none().then(|| "the imported trace has no name for it".to_owned()),
            }
            .into(),
        );
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
        assert_eq!((inner, rows.len()), (Some(2), 9));
        assert_eq!(stacks.stack(&[(place(2), Some("b")), (place(1), None)], &mut rows), Some(1));
        assert_eq!(rows.len(), 9);
        assert!(stacks.stack(&vec![(place(2), Some("b")); DEEPEST * 2], &mut rows).is_some());
        assert!(rows.len() <= 9 + DEEPEST);
    }
}
