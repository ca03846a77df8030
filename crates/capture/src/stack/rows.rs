//! What stacks share is stored once: frames by where their code is, stacks as paths in a tree of them.

use crate::context::Context;
use crate::events::{
    MODULE_VDSO, STACK_BAD_RULE, STACK_CHANGED, STACK_FRAMES, STACK_HANDS_OVER, STACK_NO_TABLE, STACK_TOO_DEEP,
    STACK_UNREADABLE, module_event, record, stack_event,
};
use slowpath_tables::{Bytes, FileKey, Frame, FrameKind, Nanos, ProcessKey, Stack};
use std::collections::HashMap;
use std::hash::Hash;

/// What distinguishes a frame from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum FrameKey {
    File(Option<FileKey>, u64),
    Vdso(u64),
    Generated(ProcessKey, u64),
    Kernel(u64),
    Truncated(u32),
}

/// Numbers for distinct things, from 0.
struct Numbers<K>(HashMap<K, u32>);

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Numbers<K> {
    /// The number of `key`, and whether it is new.
    fn of(&mut self, key: K) -> (u32, bool) {
        let fresh = self.0.len() as u32;
        let number = *self.0.entry(key).or_insert(fresh);
        (number, number == fresh)
    }
}

/// All stacks that were reported so far, and the rows that were not taken yet.
#[derive(Default)]
pub(crate) struct Stacks {
    modules: HashMap<u32, FileKey>,
    places: Numbers<FrameKey>,
    paths: Numbers<(Option<u32>, u32)>,
    /// The row of a user stack by its number in the ring.
    user: HashMap<u32, u32>,
    /// Frames of a kernel stack, the innermost first.
    kernel: HashMap<u32, Vec<u64>>,
    joined: HashMap<(u32, u32), Option<u32>>,
    stacks: Vec<Stack>,
    frames: Vec<Frame>,
}

impl Stacks {
    /// Rows of `stacks` and `frames` that are new since the last call.
    pub(crate) fn take(&mut self) -> (Vec<Stack>, Vec<Frame>) {
        (std::mem::take(&mut self.stacks), std::mem::take(&mut self.frames))
    }

    /// Learns which file a number stands for.
    pub(crate) fn learn_module(&mut self, bytes: &[u8]) {
        if let Some(event) = record::<module_event>(bytes) {
            self.modules.insert(event.module, FileKey { dev: event.dev, ino: event.ino });
        }
    }

    /// Learns a stack.
    pub(crate) fn learn(&mut self, bytes: &[u8], context: &Context) {
        let Some(event) = stack(bytes) else { return };
        let frames = &event.frames[..(event.depth as usize).min(event.frames.len())];
        if event.end == crate::events::STACK_KERNEL {
            self.kernel.insert(event.number, frames.to_vec());
            return;
        }
        let process = context.process(event.header.pid, Nanos(event.header.ts));
        let mut row = match event.end {
            crate::events::STACK_WHOLE => None,
            why => Some(self.call(None, FrameKey::Truncated(why))),
        };
        for frame in frames.iter().rev() {
            let place = self.place(*frame, process);
            row = Some(self.call(row, place));
        }
        if let Some(row) = row {
            self.user.insert(event.number, row);
        }
    }

    /// The row of a stack of user code; `None` for number 0 and for a stack that was lost.
    pub(crate) fn user(&self, number: u32) -> Option<u32> {
        self.user.get(&number).copied()
    }

    /// The row of a stack in the kernel that was entered from a user stack. Either number may be 0.
    pub(crate) fn joined(&mut self, user: u32, kernel: u32) -> Option<u32> {
        if let Some(known) = self.joined.get(&(user, kernel)) {
            return *known;
        }
        let mut row = self.user(user);
        for frame in self.kernel.get(&kernel).cloned().unwrap_or_default().iter().rev() {
            row = Some(self.call(row, FrameKey::Kernel(*frame)));
        }
        self.joined.insert((user, kernel), row);
        row
    }

    fn place(&self, frame: u64, process: ProcessKey) -> FrameKey {
        let offset = frame & ((1 << 48) - 1);
        match (frame >> 48) as u32 {
            0 => FrameKey::Generated(process, frame),
            MODULE_VDSO => FrameKey::Vdso(offset),
            0xffff => FrameKey::Kernel(frame),
            module => FrameKey::File(self.modules.get(&module).copied(), offset),
        }
    }

    /// The row of a frame that `parent` calls.
    fn call(&mut self, parent: Option<u32>, place: FrameKey) -> u32 {
        let (frame, is_new) = self.places.of(place);
        if is_new {
            self.frames.push(frame_row(frame, place));
        }
        let (id, is_new) = self.paths.of((parent, frame));
        if is_new {
            self.stacks.push(Stack { id, parent, frame });
        }
        id
    }
}

/// A stack record, which is as long as its stack is deep.
pub(crate) fn stack(bytes: &[u8]) -> Option<stack_event> {
    let mut whole = vec![0; size_of::<stack_event>()];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    record::<stack_event>(&whole).filter(|event| event.depth <= STACK_FRAMES)
}

fn frame_row(id: u32, place: FrameKey) -> Frame {
    let nothing = Frame {
        id,
        kind: FrameKind::Truncated,
        dev: None,
        ino: None,
        offset: None,
        pid: None,
        start: None,
        address: None,
        truncation: None,
    };
    match place {
        FrameKey::File(file, offset) => Frame {
            kind: FrameKind::File,
            dev: file.map(|file| file.dev),
            ino: file.map(|file| file.ino),
            offset: Some(Bytes(offset)),
            ..nothing
        },
        FrameKey::Vdso(offset) => Frame { kind: FrameKind::Vdso, offset: Some(Bytes(offset)), ..nothing },
        FrameKey::Generated(process, address) => Frame {
            kind: FrameKind::Generated,
            pid: Some(process.pid),
            start: Some(process.start),
            address: Some(address),
            ..nothing
        },
        FrameKey::Kernel(address) => Frame { kind: FrameKind::Kernel, address: Some(address), ..nothing },
        FrameKey::Truncated(why) => Frame { truncation: Some(truncation(why).to_owned()), ..nothing },
    }
}

/// Why a walk ended before the outermost frame.
fn truncation(why: u32) -> &'static str {
    match why {
        STACK_NO_TABLE => "code without an unwinding table, and no frame pointer that leads on",
        STACK_BAD_RULE => "an unwinding rule that cannot be followed here",
        STACK_UNREADABLE => "the stack's memory was not there",
        STACK_TOO_DEEP => "deeper than 127 frames",
        STACK_CHANGED => "the process was changing its mappings",
        STACK_HANDS_OVER => "while the exception unwinder hands over to a handler",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{self, EVENT_STACK, event_header};

    fn stack_bytes(number: u32, end: u32, frames: &[u64]) -> Vec<u8> {
        let header = event_header { kind: EVENT_STACK as u16, pid: 7, tid: 7, ..Default::default() };
        let mut event = stack_event { header, number, end, depth: frames.len() as u32, ..Default::default() };
        event.frames[..frames.len()].copy_from_slice(frames);
        let mut bytes = events::bytes_of(&event);
        bytes.truncate(crate::record_kinds::size_of_record(&bytes).unwrap());
        bytes
    }

    fn path(stacks: &Stacks, row: Option<u32>) -> Vec<u32> {
        let parent = |row: &u32| stacks.stacks[*row as usize].parent;
        std::iter::successors(row, parent).map(|row| stacks.stacks[row as usize].frame).collect()
    }

    #[test]
    fn what_stacks_share_is_one_row() {
        let mut stacks = Stacks::default();
        let context = Context::default();
        stacks.learn(&stack_bytes(1, 0, &[2 << 48 | 0x30, 2 << 48 | 0x20, 2 << 48 | 0x10]), &context);
        stacks.learn(&stack_bytes(2, 0, &[2 << 48 | 0x40, 2 << 48 | 0x20, 2 << 48 | 0x10]), &context);
        assert_eq!((stacks.stacks.len(), stacks.frames.len()), (4, 4));
        assert_eq!(path(&stacks, stacks.user(1)), [2, 1, 0]);
        assert_eq!(path(&stacks, stacks.user(2)), [3, 1, 0]);
        assert!(stacks.stacks.iter().all(|row| row.parent.is_none_or(|parent| parent < row.id)));
    }

    #[test]
    fn a_truncated_stack_says_why_in_its_outermost_frame() {
        let mut stacks = Stacks::default();
        stacks.learn(&stack_bytes(1, STACK_NO_TABLE, &[0x7f00_0000_1000]), &Context::default());
        let frames = path(&stacks, stacks.user(1));
        let outermost = &stacks.frames[frames[1] as usize];
        assert_eq!(outermost.kind, FrameKind::Truncated);
        assert!(outermost.truncation.as_ref().unwrap().contains("without an unwinding table"));
        assert_eq!(stacks.frames[frames[0] as usize].kind, FrameKind::Generated);
    }

    #[test]
    fn kernel_frames_stand_inside_the_user_frames_that_entered() {
        let mut stacks = Stacks::default();
        stacks.learn(&stack_bytes(1, 0, &[2 << 48 | 0x10]), &Context::default());
        stacks.learn(
            &stack_bytes(2, events::STACK_KERNEL, &[0xffff_ffff_8100_0002, 0xffff_ffff_8100_0001]),
            &Context::default(),
        );
        let row = stacks.joined(1, 2);
        let kinds: Vec<_> = path(&stacks, row).iter().map(|frame| stacks.frames[*frame as usize].kind).collect();
        assert_eq!(kinds, [FrameKind::Kernel, FrameKind::Kernel, FrameKind::File]);
        assert_eq!(stacks.joined(1, 2), row);
        assert_eq!(stacks.joined(9, 9), None);
    }

    #[test]
    fn a_depth_beyond_the_record_is_no_stack() {
        let mut bytes = stack_bytes(1, 0, &[1]);
        bytes[28..32].copy_from_slice(&4000u32.to_ne_bytes());
        let mut stacks = Stacks::default();
        stacks.learn(&bytes, &Context::default());
        assert_eq!(stacks.user(1), None);
        assert_eq!(crate::record_kinds::size_of_record(&bytes), None);
    }
}
