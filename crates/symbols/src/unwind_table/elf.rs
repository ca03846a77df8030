//! What of an ELF file unwinding needs: the executable segments and the bytes of the frame descriptions.

use super::UnwindTableError;
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, SHF_COMPRESSED, SHT_NOBITS};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// Offset of `e_machine` in both classes of ELF files (ELF specification, "ELF header").
const MACHINE_AT: usize = 18;

/// `e_ident[EI_CLASS]` of 64-bit files.
const CLASS_64: u8 = 2;
/// `e_ident[EI_DATA]` of big-endian files.
const BIG_ENDIAN: u8 = 2;
/// An `.eh_frame` of nothing but its terminator describes nothing.
const TERMINATOR: usize = 4;

/// Part of the file that is mapped, clipped to what the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Address that the file states.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
}

impl Segment {
    /// The range of file offsets.
    pub fn offsets(self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.size
    }
}

/// Bytes with the address at which the file wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub bytes: &'a [u8],
    pub address: u64,
}

/// Where the frame descriptions stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrameSource<'a> {
    /// The section `.eh_frame`.
    EhFrame(Placed<'a>),
    /// What `PT_GNU_EH_FRAME` points at, where no section header names `.eh_frame`.
    EhFrameHeader(Placed<'a>),
    /// The section `.debug_frame`.
    DebugFrame(&'a [u8]),
    /// Neither.
    None,
}

/// Which registers descriptions speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// x86-64.
    X86_64,
    /// AArch64.
    AArch64,
}

impl Architecture {
    /// That of this program.
    #[cfg(target_arch = "aarch64")]
    pub const HERE: Self = Self::AArch64;
    /// That of this program.
    #[cfg(not(target_arch = "aarch64"))]
    pub const HERE: Self = Self::X86_64;
}

/// An ELF file as unwinding sees it.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    bytes: &'a [u8],
    /// What its code is for.
    pub architecture: Architecture,
    loaded: Vec<Segment>,
    /// Executable segments.
    pub executable: Vec<Segment>,
    /// File offset of the entry point, where there is one.
    pub entry: Option<u64>,
    /// The frame descriptions.
    pub frames: FrameSource<'a>,
}

impl<'a> Image<'a> {
    /// Reads the headers.
    ///
    /// # Errors
    ///
    /// [`UnwindTableError::NotElf`], [`UnwindTableError::Architecture`], [`UnwindTableError::NoExecutableSegment`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, UnwindTableError> {
        let architecture = architecture(bytes)?;
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(UnwindTableError::NotElf)?;
        let endian = header.endian().map_err(UnwindTableError::NotElf)?;
        let segments = header.program_headers(endian, bytes).map_err(UnwindTableError::NotElf)?;
        let mut image = Self {
            bytes,
            architecture,
            loaded: Vec::new(),
            executable: Vec::new(),
            entry: None,
            frames: FrameSource::None,
        };
        for segment in segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD) {
            let (offset, length) = (segment.p_offset(endian), bytes.len() as u64);
            if offset >= length {
                continue;
            }
            let size = segment.p_filesz(endian).min(length - offset);
            let part = Segment { address: segment.p_vaddr(endian), offset, size };
            image.loaded.push(part);
            if segment.p_flags(endian).contains(PF_X) && size > 0 {
                image.executable.push(part);
            }
        }
        if image.executable.is_empty() {
            return Err(UnwindTableError::NoExecutableSegment);
        }
        let entry = header.e_entry(endian);
        image.entry = image.offsets_of(entry..entry.saturating_add(1)).map(|offsets| offsets.start);
        image.frames = image.frames_of_sections(header, endian);
        if matches!(image.frames, FrameSource::None) {
            let pointer = segments.iter().find(|segment| segment.p_type(endian) == PT_GNU_EH_FRAME);
            let found = pointer.and_then(|segment| image.loaded_from(segment.p_vaddr(endian)));
            image.frames = found.map_or(FrameSource::None, FrameSource::EhFrameHeader);
        }
        Ok(image)
    }

    /// Reads the headers of a file for x86-64.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], with [`UnwindTableError::Architecture`] for any other.
    pub fn of_this_machine(bytes: &'a [u8]) -> Result<Self, UnwindTableError> {
        let image = Self::parse(bytes)?;
        let machine = match image.architecture {
            Architecture::X86_64 => EM_X86_64,
            Architecture::AArch64 => EM_AARCH64,
        };
        if image.architecture == Architecture::HERE {
            Ok(image)
        } else {
            Err(UnwindTableError::Architecture { machine: machine.0, bits: 64 })
        }
    }

    /// What stands in the file from an address on, to the end of its segment.
    pub fn loaded_from(&self, address: u64) -> Option<Placed<'a>> {
        let holds = |segment: &&Segment| address.checked_sub(segment.address).is_some_and(|at| at < segment.size);
        let segment = self.loaded.iter().find(holds)?;
        let at = segment.offset + (address - segment.address);
        let bytes = self.bytes.get(usize::try_from(at).ok()?..usize::try_from(segment.offset + segment.size).ok()?)?;
        Some(Placed { bytes, address })
    }

    /// Bytes of the file.
    pub fn range(&self, offsets: std::ops::Range<u64>) -> Option<&'a [u8]> {
        self.bytes.get(usize::try_from(offsets.start).ok()?..usize::try_from(offsets.end).ok()?)
    }

    /// File offsets of an address range, clipped to the executable segment in which it begins.
    pub fn offsets_of(&self, addresses: std::ops::Range<u64>) -> Option<std::ops::Range<u64>> {
        let holds =
            |segment: &&Segment| addresses.start.checked_sub(segment.address).is_some_and(|at| at < segment.size);
        let segment = self.executable.iter().find(holds)?;
        let start = segment.offset + (addresses.start - segment.address);
        let length = addresses.end.checked_sub(addresses.start)?;
        let end = start.saturating_add(length).min(segment.offset + segment.size);
        (end > start).then_some(start..end)
    }

    fn frames_of_sections(&self, header: &FileHeader64<Endianness>, endian: Endianness) -> FrameSource<'a> {
        // Section headers are not needed to run a program, so broken ones are as good as none.
        let Ok(sections) = header.sections(endian, self.bytes) else { return FrameSource::None };
        let mut debug_frame = FrameSource::None;
        for section in sections.iter() {
            let compressed = section.sh_flags(endian).contains(SHF_COMPRESSED);
            if section.sh_type(endian) == SHT_NOBITS || compressed {
                continue;
            }
            let (Ok(name), Ok(bytes)) = (sections.section_name(endian, section), section.data(endian, self.bytes))
            else {
                continue;
            };
            if bytes.len() <= TERMINATOR {
                continue;
            }
            match name {
                b".eh_frame" => {
                    return FrameSource::EhFrame(Placed { bytes, address: section.sh_addr(endian) });
                }
                b".debug_frame" => debug_frame = FrameSource::DebugFrame(bytes),
                _ => {}
            }
        }
        debug_frame
    }
}

/// The header of a file of another kind would be read as nonsense, and 32-bit programs have other registers.
fn architecture(bytes: &[u8]) -> Result<Architecture, UnwindTableError> {
    let (Some(b"\x7fELF"), Some(&[class, order])) =
        (bytes.get(..4), bytes.get(4..6).and_then(|two| two.as_array::<2>()))
    else {
        return Ok(Architecture::X86_64);
    };
    let Some(&machine) = bytes.get(MACHINE_AT..MACHINE_AT + 2).and_then(|two| two.as_array::<2>()) else {
        return Ok(Architecture::X86_64);
    };
    let machine = if order == BIG_ENDIAN { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    match machine {
        _ if class != CLASS_64 || order == BIG_ENDIAN => {}
        machine if machine == EM_X86_64.0 => return Ok(Architecture::X86_64),
        machine if machine == EM_AARCH64.0 => return Ok(Architecture::AArch64),
        _ => {}
    }
    Err(UnwindTableError::Architecture { machine, bits: if class == CLASS_64 { 64 } else { 32 } })
}
