//! The call stacks of a recording with their names, resolved once for all that show them.
//!
//! Owns what a frame is called: by its symbols, else by what is known of its place. A recording can be damaged or forged: a
//! stack that names a row that is not there, that is its own caller, that has two meanings or that is deeper than
//! [`DEEPEST`] is the one stack [`UNKNOWN`]; nothing of it is guessed. Leaves weights and forms to `report`.

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{File, FileKey, Frame, FrameKind, Stack, Symbol};
use std::borrow::Cow;

/// Frames of a stack; the recorder stops walking far earlier.
pub const DEEPEST: u16 = 2048;

/// Functions that one frame can be: nothing is inlined that deep.
const MOST_FUNCTIONS: usize = 256;

/// Number of a stack in [`CallStacks`]: its innermost frame and the way out from there.
pub type StackPath = u32;

/// The stack of which nothing is known; its one frame is `[unknown]`, number 0 of [`CallStacks::frames`].
pub const UNKNOWN: StackPath = 0;

/// All stacks of a recording. Paths are numbered from 0, callers before what they call.
#[derive(Debug)]
pub struct CallStacks<'a> {
    frames: Vec<CodeFrame<'a>>,
    /// Caller, frame and depth of each path.
    paths: Vec<(Option<StackPath>, u32, u16)>,
    path_of_stack: Numbers,
}

/// A place in code and the functions that it is in.
#[derive(Debug, PartialEq)]
pub struct CodeFrame<'a> {
    /// Where it is.
    pub place: FramePlace<'a>,
    /// The innermost first: functions that were inlined, then the one that holds their code. Never empty.
    pub functions: Vec<Function<'a>>,
}

/// Where code is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FramePlace<'a> {
    /// A damaged row.
    Unknown,
    /// In a mapped file.
    File {
        /// Which.
        key: FileKey,
        /// Its row, where there is one.
        file: Option<&'a File>,
        /// Offset in the file, in bytes.
        offset: Option<u64>,
    },
    /// In the vdso, at this offset.
    Vdso(Option<u64>),
    /// Generated at run time, at this address of its process.
    Generated(Option<u64>),
    /// In the kernel, at this address.
    Kernel(Option<u64>),
    /// Nowhere: the stack could not be followed further out, for this reason.
    Truncated(Option<&'a str>),
}

impl<'a> FramePlace<'a> {
    /// Whether it is a place at all: neither what a stack ends with that could not be followed further out, nor a damaged row.
    pub fn is_code(&self) -> bool {
        !matches!(self, Self::Unknown | Self::Truncated(_))
    }

    /// Name of the file, or what stands for the kind of code: `[kernel]`, `[vdso]`, `[generated]`, `[truncated]`, `[unknown]`. Foreign
    /// text.
    pub fn name(&self) -> Cow<'a, str> {
        match *self {
            Self::File { key, file, .. } => file_name(key, file),
            Self::Vdso(_) => Cow::Borrowed("[vdso]"),
            Self::Generated(_) => Cow::Borrowed("[generated]"),
            Self::Kernel(_) => Cow::Borrowed("[kernel]"),
            Self::Truncated(_) => Cow::Borrowed("[truncated]"),
            Self::Unknown => Cow::Borrowed("[unknown]"),
        }
    }
}

/// A function of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name, or what stands for it: `libfoo.so+0x1234`, `[vdso]+0x10`, `[generated 0x7f00]`, `[kernel]+0xffff`,
    /// `[truncated: reason]`, `[unknown]`. Foreign text.
    pub name: Cow<'a, str>,
    /// Whether the name is the function's own.
    pub named: bool,
    /// Source file.
    pub source_file: Option<&'a str>,
    /// Line in it.
    pub source_line: Option<u32>,
}

impl<'a> CallStacks<'a> {
    /// Resolves all stacks. Rows may be in any order.
    pub fn new(tables: &'a Tables) -> Self {
        let files: IntegerMap<FileKey, &File> = tables.files.iter().map(|file| (file.file(), file)).collect();
        let symbols = Symbols::new(&tables.symbols);
        let mut frames = vec![unknown()];
        let mut frame_numbers = Numbers::for_ids(tables.frames.iter().map(|row| row.id));
        for row in unambiguous(&tables.frames, |row| row.id) {
            frame_numbers.set(row.id, frames.len() as u32);
            frames.push(code_frame(row, &files, &symbols));
        }
        let mut paths = vec![(None, 0, 1)];
        let mut path_of_stack = Numbers::for_ids(tables.stacks.iter().map(|row| row.id));
        for row in unambiguous(&tables.stacks, |row| row.id) {
            if let Some(path) = path(row, &path_of_stack, &paths, &frame_numbers) {
                path_of_stack.set(row.id, paths.len() as u32);
                paths.push(path);
            }
        }
        Self { frames, paths, path_of_stack }
    }

    /// The path of a row's column `stack`: null where none was recorded, [`UNKNOWN`] where it is damaged.
    pub fn path(&self, stack: Option<u32>) -> Option<StackPath> {
        stack.map(|id| self.path_of_stack.get(id))
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Never: there is always [`UNKNOWN`].
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The path of the caller, which has a smaller number; null for an outermost frame, and for no path of these.
    pub fn caller(&self, path: StackPath) -> Option<StackPath> {
        self.paths.get(path as usize)?.0
    }

    /// Innermost frame of a path, as an index into [`Self::frames`].
    pub fn frame_number(&self, path: StackPath) -> u32 {
        self.paths.get(path as usize).map_or(0, |path| path.1)
    }

    /// All frames.
    pub fn frames(&self) -> &[CodeFrame<'a>] {
        &self.frames
    }

    /// The frames of a path from the outermost to the innermost, as indices into [`Self::frames`].
    pub fn outermost_first(&self, path: StackPath) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            std::iter::successors(Some(path), |path| self.caller(*path)).map(|path| self.frame_number(path)).collect();
        numbers.reverse();
        numbers
    }
}

/// A path whose caller and frame are known; null for a damaged one.
fn path(
    row: &Stack,
    path_of_stack: &Numbers,
    paths: &[(Option<StackPath>, u32, u16)],
    frames: &Numbers,
) -> Option<(Option<StackPath>, u32, u16)> {
    let frame = Some(frames.get(row.frame)).filter(|frame| *frame != 0)?;
    let Some(parent) = row.parent else { return Some((None, frame, 1)) };
    // Only rows with smaller numbers are known by now, so there are no cycles.
    let caller = Some(path_of_stack.get(parent)).filter(|caller| *caller != UNKNOWN)?;
    let depth = paths.get(caller as usize)?.2;
    (depth < DEEPEST).then_some((Some(caller), frame, depth + 1))
}

/// Rows by number, without the numbers that two different rows have.
fn unambiguous<Row: PartialEq>(rows: &[Row], id: impl Fn(&Row) -> u32) -> Vec<&Row> {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    if !rows.is_sorted_by_key(&id) {
        sorted.sort_by_key(|row| id(row));
    }
    let groups = sorted.chunk_by(|one, other| id(one) == id(other));
    groups.filter(|group| group.iter().all(|row| *row == group[0])).map(|group| group[0]).collect()
}

/// From the numbers of rows to others; 0 where there is none.
#[derive(Debug)]
enum Numbers {
    /// For numbers that were given out one after the other.
    Dense(Vec<u32>),
    /// For any others: a number does not say how much memory it may cost.
    Sparse(IntegerMap<u32, u32>),
}

impl Numbers {
    fn for_ids(ids: impl ExactSizeIterator<Item = u32>) -> Self {
        let rows = ids.len();
        let end = ids.max().map_or(0, |last| last as usize + 1);
        if end <= rows.saturating_mul(4) { Self::Dense(vec![0; end]) } else { Self::Sparse(IntegerMap::default()) }
    }

    fn set(&mut self, id: u32, number: u32) {
        match self {
            Self::Dense(numbers) => {
                if let Some(place) = numbers.get_mut(id as usize) {
                    *place = number;
                }
            }
            Self::Sparse(numbers) => {
                numbers.insert(id, number);
            }
        }
    }

    fn get(&self, id: u32) -> u32 {
        match self {
            Self::Dense(numbers) => numbers.get(id as usize).copied().unwrap_or(0),
            Self::Sparse(numbers) => numbers.get(&id).copied().unwrap_or(0),
        }
    }
}

/// Symbols by frame and level.
struct Symbols<'a>(Vec<&'a Symbol>);

impl<'a> Symbols<'a> {
    fn new(rows: &'a [Symbol]) -> Self {
        let mut sorted: Vec<&Symbol> = rows.iter().collect();
        sorted.sort_by_key(|row| (row.frame, row.level));
        Self(sorted)
    }

    /// Those of a frame, if they are one a level.
    fn of(&self, frame: u32) -> &[&'a Symbol] {
        let from = self.0.partition_point(|row| row.frame < frame);
        let length = self.0[from..].partition_point(|row| row.frame == frame);
        let found = &self.0[from..from + length];
        let is_sound = length <= MOST_FUNCTIONS && found.windows(2).all(|pair| pair[0].level < pair[1].level);
        if is_sound { found } else { &[] }
    }
}

fn unknown<'a>() -> CodeFrame<'a> {
    CodeFrame { place: FramePlace::Unknown, functions: vec![unnamed(&FramePlace::Unknown)] }
}

fn code_frame<'a>(row: &'a Frame, files: &IntegerMap<FileKey, &'a File>, symbols: &Symbols<'a>) -> CodeFrame<'a> {
    let offset = row.offset.map(|offset| offset.0);
    let place = match row.kind {
        FrameKind::File => match (row.dev, row.ino) {
            (Some(dev), Some(ino)) => {
                let key = FileKey { dev, ino };
                FramePlace::File { key, file: files.get(&key).copied(), offset }
            }
            _ => FramePlace::Unknown,
        },
        FrameKind::Vdso => FramePlace::Vdso(offset),
        FrameKind::Generated => FramePlace::Generated(row.address),
        FrameKind::Kernel => FramePlace::Kernel(row.address),
        FrameKind::Truncated => FramePlace::Truncated(row.truncation.as_deref()),
    };
    let symbols = if place.is_code() { symbols.of(row.id) } else { &[] };
    let mut functions: Vec<Function> = symbols
        .iter()
        .map(|symbol| Function {
            source_file: symbol.source_file.as_deref(),
            source_line: symbol.source_line,
            ..match symbol.function.as_deref() {
                Some(name) if !name.is_empty() => {
                    Function { name: Cow::Borrowed(name), named: true, source_file: None, source_line: None }
                }
                _ => unnamed(&place),
            }
        })
        .collect();
    if functions.is_empty() {
        functions.push(unnamed(&place));
    }
    CodeFrame { place, functions }
}

/// What stands for the name of a function at `place`.
fn unnamed<'a>(place: &FramePlace<'a>) -> Function<'a> {
    let whole = place.name();
    let name = match place {
        FramePlace::File { offset: Some(offset), .. }
        | FramePlace::Vdso(Some(offset))
        | FramePlace::Kernel(Some(offset)) => {
            format!("{whole}+{offset:#x}")
        }
        FramePlace::Generated(Some(address)) => format!("[generated {address:#x}]"),
        FramePlace::Truncated(Some(reason)) => format!("[truncated: {reason}]"),
        _ => whole.into_owned(),
    };
    Function { name: Cow::Owned(name), named: false, source_file: None, source_line: None }
}

/// Last part of a file's path; `[file 7:0/42]` (device and inode) for a file without a path.
pub fn file_name(key: FileKey, file: Option<&File>) -> Cow<'_, str> {
    match file.and_then(|file| file.path.rsplit('/').next()).filter(|name| !name.is_empty()) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("[file {key}]")),
    }
}
