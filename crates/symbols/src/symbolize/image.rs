//! What an ELF file says about itself: where its code is mapped, which sources of names it has, which debug file it asks for.

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use std::fs::File;

/// Uncompressed size that compressed sections may claim together. The parser allocates what they claim, so a lie of a file of
/// 100 bytes would end this process. The largest debug files known to us (browsers) have less.
const MAX_UNCOMPRESSED: u64 = 4 << 30;

/// Size of compressed `.gnu_debugdata`, which does not claim what it unpacks to. Distributions' are below 1 MiB.
const MAX_DEBUGDATA: u64 = 8 << 20;

/// Sections and segments that are looked at; a file with more is damaged or made to keep us busy.
const MAX_HEADERS: usize = 1 << 17;

/// A range of addresses or offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    from: u64,
    size: u64,
}

impl Range {
    fn has(self, at: u64) -> bool {
        at.checked_sub(self.from).is_some_and(|distance| distance < self.size)
    }
}

/// A segment of the file as it is mapped.
#[derive(Clone, Copy, Debug)]
struct Segment {
    file: Range,
    address: u64,
    executable: bool,
}

/// The parts of an ELF file that decide how its symbols are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    segments: Vec<Segment>,
    sections: Vec<(Range, bool)>,
    /// Build-id.
    pub build_id: Option<Vec<u8>>,
    /// File name and checksum of `.gnu_debuglink`.
    pub debug_link: Option<(Vec<u8>, u32)>,
    /// It names another file that the parser would open by itself: a debug link, or DWARF that was moved together (dwz).
    pub names_others: bool,
    /// It has debug information of its own.
    pub has_debug_information: bool,
    /// It has a full table of symbols.
    pub has_symbols: bool,
    /// It exports symbols.
    pub exports: bool,
}

/// Why a file is no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoImage {
    /// It is something else.
    NotElf,
    /// It says impossible things about itself.
    Damaged,
}

impl From<object::Error> for NoImage {
    fn from(_: object::Error) -> Self {
        Self::Damaged
    }
}

impl Image {
    /// Reads the headers of a file.
    pub fn of(file: &File) -> Result<Self, NoImage> {
        use std::os::unix::fs::FileExt;
        let mut magic = [0u8; 4];
        if file.read_exact_at(&mut magic, 0).is_err() || &magic != b"\x7fELF" {
            return Err(NoImage::NotElf);
        }
        let data = ReadCache::new(file);
        Self::parse(&data)
    }

    fn parse(data: &ReadCache<&File>) -> Result<Self, NoImage> {
        let elf = object::File::parse(data)?;
        let mut image = Self {
            build_id: elf.build_id()?.map(<[u8]>::to_vec).filter(|id| id.len() >= 4 && id.len() <= 64),
            debug_link: elf.gnu_debuglink().unwrap_or(None).map(|(name, checksum)| (name.to_vec(), checksum)),
            ..Self::default()
        };
        for segment in elf.segments().take(MAX_HEADERS) {
            let (from, size) = segment.file_range();
            let executable = segment.permissions().executable();
            image.segments.push(Segment { file: Range { from, size }, address: segment.address(), executable });
        }
        image.exports = elf.dynamic_symbols().any(|symbol| symbol.is_definition());
        let mut uncompressed = 0u64;
        let mut too_large = false;
        for section in elf.sections().take(MAX_HEADERS) {
            let name = section.name_bytes()?;
            let content = section.compressed_file_range()?;
            let stored = content.compressed_size > 0;
            if content.format != object::CompressionFormat::None {
                uncompressed = uncompressed.saturating_add(content.uncompressed_size);
            }
            match name {
                b".debug_info" | b".zdebug_info" => image.has_debug_information |= stored,
                b".symtab" => image.has_symbols |= stored,
                b".gnu_debugdata" => {
                    image.has_symbols |= stored;
                    too_large |= content.compressed_size > MAX_DEBUGDATA;
                }
                b".gnu_debuglink" | b".gnu_debugaltlink" | b".debug_sup" => image.names_others = true,
                _ => {}
            }
            if section.address() != 0 {
                let range = Range { from: section.address(), size: section.size() };
                image.sections.push((range, name.starts_with(b".plt")));
            }
        }
        if too_large || uncompressed > MAX_UNCOMPRESSED {
            return Err(NoImage::Damaged);
        }
        Ok(image)
    }

    /// The address, as the file's symbols count, of what stands at an offset of the file. Code first: linkers let segments
    /// share a page of the file, never a byte, but nothing keeps a made-up file from it.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let holding = |executable| {
            self.segments.iter().find(|segment| segment.executable == executable && segment.file.has(offset))
        };
        let segment = holding(true).or_else(|| holding(false))?;
        segment.address.checked_add(offset - segment.file.from)
    }

    /// Whether it says where code lies in the file: not so a debug file from which `objcopy --only-keep-debug` cut that.
    pub fn places_code(&self) -> bool {
        self.segments.iter().any(|segment| segment.executable && segment.file.size > 0)
    }

    /// Whether both addresses are in the same section, or the file has no sections.
    pub fn same_section(&self, one: u64, other: u64) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|(range, _)| range.has(one) && range.has(other))
    }

    /// Whether the address is in a procedure linkage table.
    pub fn is_linkage_stub(&self, address: u64) -> bool {
        self.sections.iter().any(|(range, stubs)| *stubs && range.has(address))
    }
}

/// Bytes as a build-id is written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
