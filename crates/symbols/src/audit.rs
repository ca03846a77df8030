//! A second opinion on walked stacks, from a copy of the stack's memory.
//!
//! Owns: unwinding such a copy without the tables of this crate ([`Oracle`]), and the comparison ([`compare`]). Steps are done by
//! `framehop` from the files' own `.eh_frame`. Where framehop would silently guess (no description covers the code) the oracle
//! stops instead, and where a description needs expressions that read memory (signal trampolines, realigned stacks), which
//! framehop cannot follow, gimli evaluates them. What cannot be followed to the outermost frame is reported as incomplete and
//! proves nothing. Leaves taking copies and choosing stacks to whoever audits.

mod evaluation;

pub use crate::symbolize::vdso_image;

use crate::walk::{Registers, WalkEnd};
use evaluation::{Next, Sections};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSegment, SegmentFlags};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Frames after which the oracle stops: more than any walk has.
const MAX_FRAMES: usize = 1024;

/// An executable mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The file, readable from here.
    pub path: PathBuf,
    /// Addresses.
    pub addresses: Range<u64>,
    /// Offset of the first address in the file.
    pub offset: u64,
}

/// What the oracle found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleStack {
    /// As [`crate::walk::Walk::frames`].
    pub frames: Vec<u64>,
    /// The addresses by which the frames were looked up: of a caller the byte before its return address.
    pub lookups: Vec<u64>,
    /// Whether it came to the outermost frame.
    pub complete: bool,
}

/// What a comparison says of the walked stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// All frames are those of the oracle, and there are no more.
    Same,
    /// The first frames are those of the oracle, the others are missing, and the walk said so.
    Truncated,
    /// A frame that is not there, or frames missing from what was called whole.
    Wrong,
    /// No difference up to where the oracle had to stop.
    Unknown,
}

/// Compares a walked stack with the oracle's.
///
/// A walk that ended as [`WalkEnd::Outermost`] claims to be whole, so missing frames make it wrong and not truncated.
pub fn compare(walked: &[u64], walked_end: WalkEnd, oracle: &OracleStack) -> Agreement {
    compare_frames(walked, walked_end == WalkEnd::Outermost, &oracle.frames, oracle.complete)
}

/// [`compare`] for frames in any form that both sides have. `is_whole` is what the walk says of itself, `is_complete` what the
/// oracle does.
pub fn compare_frames<T: PartialEq>(walked: &[T], is_whole: bool, known: &[T], is_complete: bool) -> Agreement {
    let agreed = walked.iter().zip(known).take_while(|(walked, known)| walked == known).count();
    if agreed < walked.len().min(known.len()) {
        return Agreement::Wrong;
    }
    match (walked.len() < known.len(), walked.len() > known.len()) {
        (true, _) if is_whole => Agreement::Wrong,
        (true, _) => Agreement::Truncated,
        _ if !is_complete => Agreement::Unknown,
        (_, true) => Agreement::Wrong,
        _ => Agreement::Same,
    }
}

/// Unwinds copies of stacks of one process.
pub struct Oracle {
    unwinder: UnwinderX86_64<Arc<[u8]>, MayAllocateDuringUnwind>,
    cache: CacheX86_64<MayAllocateDuringUnwind>,
    files: Vec<(Range<u64>, Sections)>,
}

/// What oracles need of files, read once of each.
#[derive(Default)]
pub struct Files(HashMap<PathBuf, Option<Arc<Image>>>);

impl Files {
    /// Has the file at `path` looked at, unless it was before. `content` gives its bytes, or none where there are none to be had.
    pub fn learn(&mut self, path: &Path, content: impl FnOnce() -> Option<Vec<u8>>) {
        if !self.0.contains_key(path) {
            let image = content().and_then(|bytes| Image::of(&bytes)).map(Arc::new);
            self.0.insert(path.to_owned(), image);
        }
    }
}

impl Oracle {
    /// Reads the files of the mappings. Those that cannot be read are left out: stacks that lead through them are incomplete.
    pub fn new(mappings: &[Mapping]) -> Self {
        let mut files = Files::default();
        for mapping in mappings {
            files.learn(&mapping.path, || std::fs::read(&mapping.path).ok());
        }
        Self::with(mappings, &files)
    }

    /// As [`Oracle::new`], with what was learnt of the files; others are left out.
    pub fn with(mappings: &[Mapping], files: &Files) -> Self {
        let mut oracle = Self { unwinder: UnwinderX86_64::new(), cache: CacheX86_64::new_in(), files: Vec::new() };
        for mapping in mappings {
            if let Some(sections) = files.0.get(&mapping.path).and_then(|image| image.as_ref()?.mapped(mapping)) {
                oracle.add(mapping, sections);
            }
        }
        oracle
    }

    fn add(&mut self, mapping: &Mapping, sections: Sections) {
        let header = sections.header.clone();
        let info = ExplicitModuleSectionInfo {
            eh_frame_svma: Some(sections.frames.1..sections.frames.1 + sections.frames.0.len() as u64),
            eh_frame: Some(sections.frames.0.clone()),
            eh_frame_hdr_svma: header.as_ref().map(|(bytes, address)| *address..*address + bytes.len() as u64),
            eh_frame_hdr: header.map(|(bytes, _)| bytes),
            ..Default::default()
        };
        let name = mapping.path.display().to_string();
        self.unwinder.add_module(Module::new(name, mapping.addresses.clone(), sections.bias, info));
        self.files.push((mapping.addresses.clone(), sections));
    }

    /// Unwinds from `registers`; `stack` is a copy of the memory from the stack pointer upward.
    pub fn unwind(&mut self, registers: Registers, stack: &[u8]) -> OracleStack {
        let bottom = registers.sp;
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(bottom).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.get(at..at.checked_add(8).ok_or(())?).and_then(|bytes| bytes.as_array::<8>());
            bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(())
        };
        let mut frames = vec![registers.ip];
        let mut lookups = vec![registers.ip];
        let mut registers = registers;
        let mut address = FrameAddress::from_instruction_pointer(registers.ip);
        let complete = loop {
            let lookup = address.address_for_lookup();
            let Some((_, sections)) = self.files.iter().find(|(range, _)| range.contains(&lookup)) else { break false };
            let caller = match sections.next(lookup, registers, &mut |address| read(address).ok()) {
                Next::Uncovered => break false,
                Next::Outermost => break true,
                Next::Evaluated(caller, interrupted) => {
                    registers = caller;
                    (caller.ip, interrupted)
                }
                Next::Plain => {
                    let mut state = UnwindRegsX86_64::new(registers.ip, registers.sp, registers.bp);
                    match self.unwinder.unwind_frame(address, &mut state, &mut self.cache, &mut read) {
                        Ok(Some(_)) => {}
                        Ok(None) => break true,
                        Err(_) => break false,
                    }
                    // The copy has nothing to say about a stack pointer that does not rise.
                    if state.sp() <= registers.sp {
                        break false;
                    }
                    registers = Registers { ip: state.ip(), sp: state.sp(), bp: state.bp() };
                    (state.ip(), false)
                }
            };
            if caller.0 == 0 {
                break true;
            }
            if frames.len() >= MAX_FRAMES {
                break false;
            }
            frames.push(caller.0);
            address = match FrameAddress::from_return_address(caller.0) {
                Some(address) if !caller.1 => address,
                _ => FrameAddress::from_instruction_pointer(caller.0),
            };
            lookups.push(address.address_for_lookup());
        };
        OracleStack { frames, lookups, complete }
    }
}

/// What is needed of a file.
struct Image {
    frames: (Arc<[u8]>, u64),
    header: Option<(Arc<[u8]>, u64)>,
    /// Executable segments: offset and size in the file, and stated address.
    segments: Vec<(u64, u64, u64)>,
}

impl Image {
    /// None where the file has no `.eh_frame`.
    fn of(bytes: &[u8]) -> Option<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let section = |name| {
            let section = file.section_by_name(name)?;
            Some((Arc::<[u8]>::from(section.data().ok()?), section.address()))
        };
        let executable =
            |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        let segments = file.segments().filter(|segment| executable(segment.flags())).map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        Some(Self { frames: section(".eh_frame")?, header: section(".eh_frame_hdr"), segments: segments.collect() })
    }

    /// None where the file is not mapped as its headers say.
    fn mapped(&self, mapping: &Mapping) -> Option<Sections> {
        let page = |address: u64| address & !4095;
        let is_of = |(offset, size, _): &&(u64, u64, u64)| {
            mapping.offset >= page(*offset) && mapping.offset < offset.saturating_add(*size)
        };
        let (offset, _, address) = self.segments.iter().find(is_of)?;
        let stated = address.checked_sub(*offset)?.checked_add(mapping.offset)?;
        let bias = mapping.addresses.start.checked_sub(stated)?;
        Some(Sections { frames: self.frames.clone(), header: self.header.clone(), bias })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_never_invented() {
        let whole = OracleStack { frames: vec![1, 2, 3], lookups: vec![1, 1, 2], complete: true };
        let part = OracleStack { frames: vec![1, 2], lookups: vec![1, 1], complete: false };
        let end = WalkEnd::NoTable;
        assert_eq!(compare(&[1, 2, 3], WalkEnd::Outermost, &whole), Agreement::Same);
        assert_eq!(compare(&[1, 2], end, &whole), Agreement::Truncated);
        assert_eq!(compare(&[1, 2], WalkEnd::Outermost, &whole), Agreement::Wrong);
        assert_eq!(compare(&[1, 4], end, &whole), Agreement::Wrong);
        assert_eq!(compare(&[1, 2, 3, 4], end, &whole), Agreement::Wrong);
        assert_eq!(compare(&[1, 2], end, &part), Agreement::Unknown);
        assert_eq!(compare(&[1, 2, 3], WalkEnd::Outermost, &part), Agreement::Unknown);
        assert_eq!(compare(&[1], end, &part), Agreement::Truncated);
        assert_eq!(compare(&[4, 2, 3], end, &part), Agreement::Wrong);
    }
}
