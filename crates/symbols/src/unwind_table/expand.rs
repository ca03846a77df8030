//! From all frame descriptions of a file to the rows of its table.
//!
//! Two passes, so that only 32 bytes a description are held beside the table: the first learns which range each one covers and
//! sorts them, the second runs their programs in the order of the file.

use super::builder::Builder;
use super::hand_over::hand_over;
use super::program::{Bytes, Machine, Rule, Rules};
use super::undescribed::{ENTRY_CODE, SCANNED, SHORTEST_GAP, known_aarch64, known_code};
use super::{Architecture, CfaRule, FramePointerRule, FrameSource, Image, Row, UnwindTable, UnwindTableError};
use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EhFrameHdr,
    FrameDescriptionEntry, LittleEndian, UnwindOffset, UnwindSection, Vendor,
};
use std::collections::HashMap;
use std::ops::Range;

/// Frame descriptions in one file; Firefox's libxul has some 300 000.
const MAX_FRAMES: usize = 8 << 20;
/// Common parts of frame descriptions in one file: one a compiled file at most, and linkers merge them.
const MAX_CIES: usize = 1 << 18;
/// Instructions in all programs of one file: a file in which descriptions overlap could ask for more than it has bytes.
const MAX_INSTRUCTIONS: u64 = 1 << 27;

/// One description.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Covered {
    /// File offsets.
    range: Range<u64>,
    /// The source of the rules.
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// Offset of a description in its section.
    Description(usize),
    /// Known code that has none; which of [`Expansion::known`].
    Known(usize),
}

impl UnwindTable {
    /// Makes the table of an ELF file for x86-64 or AArch64. `bytes` may be a mapping of the file; apart from the headers and the frame
    /// descriptions, only gaps between functions are looked at.
    ///
    /// Code that no description covers gets [`CfaRule::Unknown`]; where descriptions overlap, the one that begins last holds, as
    /// in the search of `.eh_frame_hdr`. What cannot be read behind the first good description is left out.
    ///
    /// # Errors
    ///
    /// All of [`UnwindTableError`].
    pub fn of_elf(bytes: &[u8]) -> Result<Self, UnwindTableError> {
        table(&Image::parse(bytes)?)
    }
}

/// The table of a file.
pub(super) fn table(image: &Image) -> Result<UnwindTable, UnwindTableError> {
    let bases = BaseAddresses::default();
    match image.frames {
        FrameSource::EhFrame(frames) => {
            let section = eh_frame(frames.bytes, image.architecture);
            Expansion::new(section, bases.set_eh_frame(frames.address), image).table(None)
        }
        FrameSource::EhFrameHeader(header) => {
            let bases = bases.set_eh_frame_hdr(header.address);
            let parsed = EhFrameHdr::new(header.bytes, LittleEndian).parse(&bases, 8);
            let parsed = parsed.map_err(UnwindTableError::BadUnwindInformation)?;
            let frames = image.loaded_from(parsed.eh_frame_ptr().pointer());
            let frames = frames.ok_or(UnwindTableError::NoUnwindInformation)?;
            let bases = bases.set_eh_frame(frames.address);
            let mut listed = Vec::new();
            if let Some(table) = parsed.table() {
                let mut entries = table.iter(&bases);
                while let Ok(Some((_, entry))) = entries.next() {
                    let Some(at) = entry.pointer().checked_sub(frames.address) else { continue };
                    listed.extend(usize::try_from(at).ok());
                    if listed.len() > MAX_FRAMES {
                        return Err(TOO_MANY_FRAMES);
                    }
                }
                listed.sort_unstable();
                listed.dedup();
            }
            let listed = (!listed.is_empty()).then_some(listed);
            Expansion::new(eh_frame(frames.bytes, image.architecture), bases, image).table(listed)
        }
        FrameSource::DebugFrame(bytes) => {
            let mut section = DebugFrame::new(bytes, LittleEndian);
            section.set_address_size(8);
            section.set_vendor(vendor(image.architecture));
            Expansion::new(section, bases, image).table(None)
        }
        FrameSource::None => Expansion::new(eh_frame(&[], image.architecture), bases, image).table(None),
    }
}

/// Whose numbers of instructions a description may have beside the usual ones.
fn vendor(architecture: Architecture) -> Vendor {
    match architecture {
        Architecture::X86_64 => Vendor::Default,
        Architecture::AArch64 => Vendor::AArch64,
    }
}

fn eh_frame(bytes: &[u8], architecture: Architecture) -> EhFrame<Bytes<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section.set_vendor(vendor(architecture));
    section
}

/// A CIE with what its instructions leave.
struct Common<'a> {
    entry: CommonInformationEntry<Bytes<'a>>,
    /// None where they cannot be run.
    rules: Option<Rules>,
}

struct Expansion<'i, 'a, S> {
    section: S,
    bases: BaseAddresses,
    image: &'i Image<'a>,
    commons: HashMap<usize, Common<'a>>,
    instructions: u64,
    /// Rules of known code.
    known: Vec<Row>,
}

impl<'i, 'a, S: UnwindSection<Bytes<'a>>> Expansion<'i, 'a, S> {
    fn new(section: S, bases: BaseAddresses, image: &'i Image<'a>) -> Self {
        Self { section, bases, image, commons: HashMap::new(), instructions: 0, known: Vec::new() }
    }

    /// Both passes; `listed` are the offsets of the descriptions where something better than their own sequence lists them.
    fn table(mut self, listed: Option<Vec<usize>>) -> Result<UnwindTable, UnwindTableError> {
        let mut covered = match listed {
            Some(listed) => self.covered_by(&listed)?,
            None => self.covered_in_sequence()?,
        };
        // Of two that begin at the same place, the longer is the one that a search would want.
        covered.sort_unstable_by_key(|one| (one.range.start, one.range.end, one.source));
        let found = self.undescribed(&covered);
        if covered.is_empty() && found.is_empty() {
            return Err(UnwindTableError::NoUnwindInformation);
        }
        if !found.is_empty() {
            covered.extend(found);
            covered.sort_unstable_by_key(|one| (one.range.start, one.range.end, one.source));
        }
        let starts = self.image.executable.iter().map(|segment| segment.offset);
        let ends = self.image.executable.iter().map(|segment| segment.offsets().end);
        let mut builder = Builder::new(starts.min().unwrap_or(0), ends.max().unwrap_or(0))?;
        for (index, one) in covered.iter().enumerate() {
            // Where descriptions overlap, the later one holds.
            let next = covered.get(index + 1).map_or(u64::MAX, |next| next.range.start);
            let range = one.range.start..one.range.end.min(next);
            if range.is_empty() {
                continue;
            }
            match one.source {
                Source::Description(entry) => self.expand(entry, range.clone(), &mut builder)?,
                Source::Known(which) => builder.change(range.start, self.known[which])?,
            }
            builder.change(range.end, Row::UNKNOWN)?;
        }
        builder.finish()
    }

    fn covered_in_sequence(&mut self) -> Result<Vec<Covered>, UnwindTableError> {
        let section = self.section.clone();
        let bases = self.bases.clone();
        let mut entries = section.entries(&bases);
        let (mut covered, mut failure) = (Vec::new(), None);
        loop {
            match entries.next() {
                Ok(Some(CieOrFde::Fde(partial))) => match partial.parse(|_, _, offset| self.common(offset)) {
                    Ok(entry) => self.cover(&entry, &mut covered)?,
                    // One bad description; the next one begins at a known place.
                    Err(error) => failure = failure.or(Some(error)),
                },
                Ok(Some(CieOrFde::Cie(_))) => {}
                Ok(None) => break,
                Err(error) => {
                    failure = failure.or(Some(error));
                    break;
                }
            }
        }
        self.usable(covered, failure)
    }

    fn covered_by(&mut self, listed: &[usize]) -> Result<Vec<Covered>, UnwindTableError> {
        let (mut covered, mut failure) = (Vec::new(), None);
        for &offset in listed {
            match self.description(offset) {
                Ok(entry) => self.cover(&entry, &mut covered)?,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        self.usable(covered, failure)
    }

    /// Descriptions that were read are worth having without the others; none at all is an error.
    fn usable(&self, covered: Vec<Covered>, failure: Option<gimli::Error>) -> Result<Vec<Covered>, UnwindTableError> {
        if self.commons.len() > MAX_CIES {
            return Err(UnwindTableError::TooLarge { what: "kinds of frame descriptions", limit: MAX_CIES as u64 });
        }
        match failure {
            Some(error) if covered.is_empty() => Err(UnwindTableError::BadUnwindInformation(error)),
            _ => Ok(covered),
        }
    }

    fn cover(
        &self,
        entry: &FrameDescriptionEntry<Bytes<'a>>,
        covered: &mut Vec<Covered>,
    ) -> Result<(), UnwindTableError> {
        if let Some(range) = self.image.offsets_of(entry.initial_address()..entry.end_address()) {
            if covered.len() >= MAX_FRAMES {
                return Err(TOO_MANY_FRAMES);
            }
            covered.push(Covered { range, source: Source::Description(entry.offset()) });
        }
        Ok(())
    }

    fn description(&mut self, offset: usize) -> gimli::Result<FrameDescriptionEntry<Bytes<'a>>> {
        let section = self.section.clone();
        let bases = self.bases.clone();
        section.fde_from_offset(&bases, S::Offset::from(offset), |_, _, offset| self.common(offset))
    }

    /// The CIE at an offset, parsed and run once.
    fn common(&mut self, offset: S::Offset) -> gimli::Result<CommonInformationEntry<Bytes<'a>>> {
        let at = UnwindOffset::into(offset);
        if let Some(common) = self.commons.get(&at) {
            return Ok(common.entry.clone());
        }
        if self.commons.len() > MAX_CIES {
            // Told as an error when the pass ends.
            return Err(gimli::Error::OffsetOutOfBounds(at as u64));
        }
        let entry = self.section.cie_from_offset(&self.bases, offset)?;
        let rules = self.run_common(&entry);
        self.commons.insert(at, Common { entry: entry.clone(), rules });
        Ok(entry)
    }

    fn run_common(&mut self, entry: &CommonInformationEntry<Bytes<'a>>) -> Option<Rules> {
        if entry.return_address_register() != self.image.architecture.return_address() {
            return None;
        }
        let mut machine = Machine::new(self.image.architecture, None);
        let mut instructions = entry.instructions(&self.section, &self.bases);
        while let Some(instruction) = instructions.next().ok()? {
            self.instructions += 1;
            if self.instructions > MAX_INSTRUCTIONS {
                // The first description to be run defines it.
                return None;
            }
            machine.apply(&instruction, entry, &self.section)?;
        }
        Some(machine.rules)
    }

    /// Runs one description; `range` are the file offsets that it is to fill, beginning with its first.
    fn expand(&mut self, entry: usize, range: Range<u64>, builder: &mut Builder) -> Result<(), UnwindTableError> {
        let Ok(description) = self.description(entry) else {
            return builder.change(range.start, Row::UNSUPPORTED);
        };
        if description.is_signal_trampoline() {
            return builder.change(range.start, Row::SIGNAL_FRAME);
        }
        let at = UnwindOffset::into(S::Offset::from(description.cie().offset()));
        let Some(initial) = self.commons.get(&at).and_then(|common| common.rules) else {
            return builder.change(range.start, Row::UNSUPPORTED);
        };
        let mut machine = Machine::new(self.image.architecture, Some(initial));
        let mut location = range.start;
        let (mut filling, mut hands_over) = (Filling { builder, last: None }, false);
        let mut instructions = description.instructions(&self.section, &self.bases);
        let factor = description.cie().code_alignment_factor();
        loop {
            self.instructions += 1;
            if self.instructions > MAX_INSTRUCTIONS {
                return Err(UnwindTableError::TooLarge { what: "instructions", limit: MAX_INSTRUCTIONS });
            }
            let target = match instructions.next() {
                Ok(Some(CallFrameInstruction::AdvanceLoc { delta })) => {
                    u64::from(delta).checked_mul(factor).and_then(|bytes| location.checked_add(bytes))
                }
                Ok(Some(CallFrameInstruction::SetLoc { address })) => {
                    let moved = address.checked_sub(description.initial_address());
                    moved.and_then(|bytes| range.start.checked_add(bytes)).filter(|target| *target >= location)
                }
                Ok(Some(instruction)) => {
                    if machine.apply(&instruction, description.cie(), &self.section).is_none() {
                        return filling.end(location, Row::UNSUPPORTED);
                    }
                    let is_last = hands_over && instruction != CallFrameInstruction::RestoreState;
                    if machine.hands_over() && !hands_over {
                        filling.hands_over(self.image)?;
                    }
                    hands_over = is_last || machine.hands_over();
                    continue;
                }
                Ok(None) => Some(range.end),
                Err(_) => return filling.end(location, Row::UNSUPPORTED),
            };
            let Some(target) = target else { return filling.end(location, Row::UNSUPPORTED) };
            let end = target.min(range.end);
            if end > location {
                let rule =
                    if hands_over { Rule::Row(Row::HANDS_OVER) } else { machine.rules.rule(self.image.architecture) };
                filling.fill(location..end, rule)?;
            }
            if target >= range.end {
                return filling.flush();
            }
            location = target;
        }
    }

    /// Known code in the gaps between descriptions.
    fn undescribed(&mut self, covered: &[Covered]) -> Vec<Covered> {
        let (mut found, mut left) = (Vec::new(), SCANNED);
        // Where nothing else is known, neither is the code around the entry point.
        let mut entry = self.image.entry.filter(|_| !covered.is_empty());
        let (image, known) = (self.image, &mut self.known);
        let known_by_bytes = match image.architecture {
            Architecture::X86_64 => known_code,
            Architecture::AArch64 => known_aarch64,
        };
        let mut look = |gap: Range<u64>| {
            if let Some(at) = entry.filter(|at| gap.contains(at)) {
                found.push(Covered { range: at..gap.end.min(at + ENTRY_CODE), source: Source::Known(known.len()) });
                known.push(Row::OUTERMOST);
                entry = None;
            }
            let gap = gap.start..gap.end.min(gap.start.saturating_add(left));
            if gap.end.saturating_sub(gap.start) < SHORTEST_GAP {
                return;
            }
            left -= gap.end - gap.start;
            for (at, rule) in image.range(gap.clone()).into_iter().flat_map(known_by_bytes) {
                let range = gap.start + at.start as u64..gap.start + at.end as u64;
                found.push(Covered { range, source: Source::Known(known.len()) });
                known.push(rule);
            }
        };
        for segment in &self.image.executable {
            let segment = segment.offsets();
            let mut end = segment.start;
            let first = covered.partition_point(|one| one.range.end <= segment.start);
            for one in covered.get(first..).unwrap_or_default() {
                if one.range.start >= segment.end {
                    break;
                }
                look(end..one.range.start);
                end = end.max(one.range.end);
            }
            look(end..segment.end);
        }
        found
    }
}

/// Fills ranges of a description one later, because what follows may change the meaning of the one before.
struct Filling<'b> {
    builder: &'b mut Builder,
    last: Option<(Range<u64>, Rule)>,
}

impl Filling<'_> {
    fn fill(&mut self, range: Range<u64>, rule: Rule) -> Result<(), UnwindTableError> {
        self.flush()?;
        self.last = Some((range, rule));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), UnwindTableError> {
        self.last.take().map_or(Ok(()), |(range, rule)| fill(self.builder, range, rule))
    }

    /// The rest of the description is lost.
    fn end(mut self, at: u64, row: Row) -> Result<(), UnwindTableError> {
        self.flush()?;
        self.builder.change(at, row)
    }

    /// Behind the last range the frame is a handler's; it had begun to be before.
    fn hands_over(&mut self, image: &Image) -> Result<(), UnwindTableError> {
        let Some((range, rule)) = self.last.take() else { return Ok(()) };
        let segment = image.executable.iter().map(|segment| segment.offsets()).find(|all| all.contains(&range.start));
        let begins = match (image.range(range.clone()), segment) {
            (Some(code), Some(segment)) => hand_over(code, range.start, &segment),
            _ => 0..0,
        };
        fill(self.builder, range.clone(), rule)?;
        let handing_over = match rule {
            Rule::Row(row) if row.cfa_rule() == CfaRule::FramePointer => Row {
                cfa: CfaRule::HandingOver as u8,
                // It is copied before the return address is.
                frame_pointer: FramePointerRule::Unknown as u8,
                frame_pointer_offset: 0,
                ..row
            },
            _ => Row::HANDS_OVER,
        };
        self.builder.change(range.start + begins.start, handing_over)?;
        self.builder.change(range.start + begins.end, Row::HANDS_OVER)
    }
}

fn fill(builder: &mut Builder, range: Range<u64>, rule: Rule) -> Result<(), UnwindTableError> {
    let threshold = match rule {
        Rule::Row(row) => return builder.change(range.start, row),
        Rule::Alternating(threshold) => u64::from(threshold),
    };
    let row = |pushed: i64| Row::new(CfaRule::StackPointer, 8 + 8 * pushed, FramePointerRule::Same, 0);
    let mut entry = range.start - range.start % 16;
    while entry < range.end {
        let later = entry + threshold;
        builder.change(entry.max(range.start), row(i64::from(range.start >= later)))?;
        if later > range.start && later < range.end {
            builder.change(later, row(1))?;
        }
        entry += 16;
    }
    Ok(())
}

const TOO_MANY_FRAMES: UnwindTableError =
    UnwindTableError::TooLarge { what: "frame descriptions", limit: MAX_FRAMES as u64 };
