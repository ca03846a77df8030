//! Call stacks as a trace holds them: interned, with their frames, mappings and names; only those that events use.

use super::messages::{Callstack, Frame, InternedBytes, InternedData, Mapping};
use super::packets::{Interned, Packets};
use slowpath_analysis::stacks::call_stacks::{CallStacks, CodeFrame, FramePlace, StackPath};
use std::collections::HashMap;

/// Stacks of one packet: a packet of all could be larger than a reader takes.
const STACKS_A_PACKET: usize = 10_000;

/// Which stacks are used.
pub(super) struct Stacks<'a> {
    stacks: &'a CallStacks<'a>,
    used: Vec<bool>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(stacks: &'a CallStacks<'a>) -> Self {
        Self { stacks, used: vec![false; stacks.len()] }
    }

    /// Number of a row's stack in the trace; null where none was recorded.
    pub(super) fn number(&mut self, stack: Option<u32>) -> Option<u64> {
        let path = self.stacks.path(stack)?;
        self.used[path as usize] = true;
        Some(u64::from(path) + 1)
    }

    /// Adds what the numbers mean.
    pub(super) fn intern(self, packets: &mut Packets) {
        let used: Vec<StackPath> = (0..self.used.len() as StackPath).filter(|path| self.used[*path as usize]).collect();
        if used.is_empty() {
            return;
        }
        let mut tables = FrameTables::default();
        // Numbers of the functions of each frame, the outermost first.
        let mut functions: Vec<Vec<u64>> = vec![Vec::new(); self.stacks.frames().len()];
        let mut stacks = Vec::with_capacity(used.len());
        for path in used {
            let mut frame_ids = Vec::new();
            for number in self.stacks.outermost_first(path) {
                let functions = &mut functions[number as usize];
                if functions.is_empty() {
                    *functions = tables.add(&self.stacks.frames()[number as usize]);
                }
                frame_ids.extend_from_slice(functions);
            }
            stacks.push(Callstack { iid: Some(u64::from(path) + 1), frame_ids });
        }
        packets.interned(tables.into_data());
        while !stacks.is_empty() {
            let rest = stacks.split_off(stacks.len().min(STACKS_A_PACKET));
            packets
                .interned(InternedData { callstacks: std::mem::replace(&mut stacks, rest), ..InternedData::default() });
        }
    }
}

/// Frames and what they are made of.
#[derive(Default)]
struct FrameTables {
    functions: Interned,
    paths: Interned,
    build_ids: Interned,
    sources: Interned,
    mappings: Vec<Mapping>,
    mapping_of_path: HashMap<(u64, Option<u64>), u64>,
    frames: Vec<Frame>,
}

impl FrameTables {
    /// Adds a frame for each function at a place, the outermost first.
    fn add(&mut self, frame: &CodeFrame) -> Vec<u64> {
        let (path, address, build_id) = match frame.place {
            FramePlace::File { file: Some(file), offset, .. } => (file.path.as_str(), offset, file.build_id.as_deref()),
            FramePlace::File { offset, .. } => ("[file]", offset, None),
            FramePlace::Vdso(offset) => ("[vdso]", offset, None),
            FramePlace::Generated(address) => ("[generated]", address, None),
            FramePlace::Kernel(address) => ("[kernel]", address, None),
            FramePlace::Truncated(_) => ("[truncated]", None, None),
            FramePlace::Unknown => ("[unknown]", None, None),
        };
        let mapping = self.mapping(path, build_id);
        let mut numbers = Vec::with_capacity(frame.functions.len());
        for function in frame.functions.iter().rev() {
            let number = self.frames.len() as u64 + 1;
            self.frames.push(Frame {
                iid: Some(number),
                function_name_id: Some(self.functions.number(&function.name)),
                mapping_id: Some(mapping),
                // Of a file it is the offset in it.
                rel_pc: Some(address.unwrap_or(0)),
                source_path_iid: function.source_file.map(|source| self.sources.number(source)),
                line_number: function.source_line,
            });
            numbers.push(number);
        }
        numbers
    }

    /// A reader ignores frames without a mapping, so code in no file has one too.
    fn mapping(&mut self, path: &str, build_id: Option<&str>) -> u64 {
        let path = self.paths.number(path);
        let build_id = build_id.map(|build_id| self.build_ids.number(build_id));
        let next = self.mappings.len() as u64 + 1;
        *self.mapping_of_path.entry((path, build_id)).or_insert_with(|| {
            self.mappings.push(Mapping { iid: Some(next), build_id, path_string_ids: vec![path] });
            next
        })
    }

    fn into_data(self) -> InternedData {
        InternedData {
            function_names: self.functions.list(),
            frames: self.frames,
            build_ids: self
                .build_ids
                .list()
                .into_iter()
                .map(|id| InternedBytes { iid: id.iid, bytes: id.name.map(raw) })
                .collect(),
            mapping_paths: self.paths.list(),
            source_paths: self.sources.list(),
            mappings: self.mappings,
            ..InternedData::default()
        }
    }
}

/// A build-id in hexadecimal as bytes, which the trace has; up to the first that is no digit.
fn raw(build_id: String) -> Vec<u8> {
    let digits: Vec<u32> = build_id.chars().map_while(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
