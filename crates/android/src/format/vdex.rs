//! vdex: which DEX files were verified, and until Android 11 mostly also the DEX code itself.
//!
//! By `runtime/vdex_file.h` of AOSP's art: 006 of Android 8.0, 010 of 8.1, 019 of 9, 020 of a preview of 10, 021 of 10 and 11, 027 of 12 to 14.

use super::dex::{self, Dex};
use super::little_endian::Bytes;
use super::{FormatError, version};

const WHAT: &str = "a vdex header";
/// `VdexSection` has four kinds in 027.
const MOST_SECTIONS: u32 = 64;
/// `multidex` gives an APK at most some hundred.
const MOST_DEX_FILES: u32 = 1 << 16;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// Checksums of the DEX files.
    Checksums,
    /// The DEX files.
    DexFiles,
    /// Data that DEX files have in common (compact dex).
    DexData,
    /// What verification depends on.
    VerifierDeps,
    /// How instructions were quickened.
    Quickening,
    /// Class path and its checksums.
    ClassPath,
    /// Tables of types.
    TypeLookup,
    /// A kind of a later version.
    Other(u32),
}

/// Part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VdexSection {
    /// What it holds.
    pub kind: SectionKind,
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// The header of a vdex file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vdex {
    /// Its version.
    pub version: u32,
    /// DEX files that were verified.
    pub dex_files: u32,
    /// Its sections that are not empty, in the order of the file's own table.
    pub sections: Vec<VdexSection>,
    /// The DEX files inside, as far as the bytes hold their headers.
    pub dex: Vec<Dex>,
}

impl Vdex {
    /// Reads it from a file, or from the head of one.
    ///
    /// # Errors
    /// It is none, or of an unknown version.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut head = Bytes::new(bytes, WHAT);
        if head.take(4)? != b"vdex" {
            return Err(FormatError::Magic("a vdex file"));
        }
        let text = head.array()?;
        let version = version(text, "a vdex file")?;
        let (dex_files, mut sections) = match version {
            6 | 10 => of_android_8(head)?,
            19..=21 => of_android_9(head, version)?,
            27.. => of_sections(head)?,
            _ => return Err(super::unknown(text, "a vdex file")),
        };
        if dex_files > MOST_DEX_FILES {
            return Err(FormatError::Wrong("it is of more DEX files than there are"));
        }
        sections.retain(|section| section.size > 0);
        let dex = sections.iter().find(|section| section.kind == SectionKind::DexFiles);
        let dex = dex.map_or_else(Vec::new, |section| dex_inside(bytes, *section, version, dex_files));
        Ok(Self { version, dex_files, sections, dex })
    }

    /// Bytes of the section of this kind; 0 where there is none.
    pub fn size_of(&self, kind: SectionKind) -> u64 {
        self.sections
            .iter()
            .filter(|section| section.kind == kind)
            .map(|section| section.size)
            .fold(0, u64::saturating_add)
    }

    /// Bytes of DEX inside; 0 where only checksums are.
    pub fn dex_bytes(&self) -> u64 {
        self.size_of(SectionKind::DexFiles).saturating_add(self.size_of(SectionKind::DexData))
    }
}

/// Sections that follow each other.
struct Following {
    at: u64,
    sections: Vec<VdexSection>,
}

impl Following {
    fn add(&mut self, kind: SectionKind, size: u32) {
        self.sections.push(VdexSection { kind, offset: self.at, size: u64::from(size) });
        self.at = self.at.saturating_add(u64::from(size));
    }

    fn checksums(at: u64, dex_files: u32) -> Self {
        let mut following = Self { at, sections: Vec::new() };
        following.add(SectionKind::Checksums, dex_files.saturating_mul(4));
        following
    }
}

/// 006 and 010: four numbers, checksums, DEX files, dependencies, quickening.
fn of_android_8(mut head: Bytes<'_>) -> Result<(u32, Vec<VdexSection>), FormatError> {
    let (dex_files, dex, deps, quickening) = (head.u32()?, head.u32()?, head.u32()?, head.u32()?);
    let mut following = Following::checksums(24, dex_files);
    following.add(SectionKind::DexFiles, dex);
    following.add(SectionKind::VerifierDeps, deps);
    following.add(SectionKind::Quickening, quickening);
    Ok((dex_files, following.sections))
}

/// 019 to 021: a second version says whether there is a section of DEX files, whose header stands behind the checksums.
fn of_android_9(mut head: Bytes<'_>, version: u32) -> Result<(u32, Vec<VdexSection>), FormatError> {
    let has_dex = &head.array::<4>()? != b"000\0";
    let (dex_files, deps) = (head.u32()?, head.u32()?);
    let class_path = if version == 21 { head.u32()?.saturating_add(head.u32()?) } else { 0 };
    let header = if version == 21 { 28 } else { 20 };
    let mut following = Following::checksums(header, dex_files);
    let mut quickening = 0;
    if has_dex {
        head.take((dex_files as usize).checked_mul(4).ok_or(FormatError::Short(WHAT))?)?;
        let (dex, data) = (head.u32()?, head.u32()?);
        quickening = head.u32()?;
        following.at = following.at.saturating_add(12);
        following.add(SectionKind::DexFiles, dex);
        following.add(SectionKind::DexData, data);
    }
    following.add(SectionKind::VerifierDeps, deps);
    following.add(SectionKind::Quickening, quickening);
    following.add(SectionKind::ClassPath, class_path);
    Ok((dex_files, following.sections))
}

/// 027: a number of sections, and a row of three numbers for each.
fn of_sections(mut head: Bytes<'_>) -> Result<(u32, Vec<VdexSection>), FormatError> {
    let count = head.u32()?;
    if count > MOST_SECTIONS {
        return Err(FormatError::Wrong("it has more sections than any"));
    }
    let mut sections = Vec::new();
    for _ in 0..count {
        let (kind, offset, size) = (head.u32()?, head.u32()?, head.u32()?);
        let kind = match kind {
            0 => SectionKind::Checksums,
            1 => SectionKind::DexFiles,
            2 => SectionKind::VerifierDeps,
            3 => SectionKind::TypeLookup,
            other => SectionKind::Other(other),
        };
        sections.push(VdexSection { kind, offset: u64::from(offset), size: u64::from(size) });
    }
    let checksums = sections.iter().find(|section| section.kind == SectionKind::Checksums);
    let dex_files = checksums.map_or(0, |section| u32::try_from(section.size / 4).unwrap_or(u32::MAX));
    Ok((dex_files, sections))
}

/// The headers of the DEX files inside: they follow each other, aligned to 4; before each of them 019 to 021 have the offset of its
/// quickening table (`VdexFile::GetNextDexFileData`, runtime/vdex_file.cc). The first that is not there, or none, ends the list.
fn dex_inside(bytes: &[u8], section: VdexSection, version: u32, dex_files: u32) -> Vec<Dex> {
    let mut found = Vec::new();
    let Ok(mut at) = usize::try_from(section.offset) else { return found };
    let end = section.offset.saturating_add(section.size);
    for _ in 0..dex_files.min(dex::MOST_INSIDE) {
        if matches!(version, 19..=21) {
            at = at.saturating_add(4);
        }
        let Some(Ok(dex)) = bytes.get(at..).map(Dex::parse) else { break };
        let next = (at as u64).saturating_add(u64::from(dex.file_size)).next_multiple_of(4);
        found.push(dex);
        match usize::try_from(next) {
            Ok(next) if (next as u64) < end && next > at => at = next,
            _ => break,
        }
    }
    found
}
