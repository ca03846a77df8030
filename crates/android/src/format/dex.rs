//! The header of a DEX file (source.android.com/docs/core/runtime/dex-format, `header_item`), and of a compact one inside vdex.

use super::little_endian::Bytes;
use super::{FormatError, version};

const WHAT: &str = "a DEX header";
/// DEX files of one vdex whose headers are kept.
pub const MOST_INSIDE: u32 = 1024;
/// `ENDIAN_CONSTANT`.
const ENDIAN: u32 = 0x1234_5678;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DexKind {
    /// `dex\n`.
    Standard,
    /// `cdex`, which only ART writes and reads (libdexfile/dex/compact_dex_file.h).
    Compact,
}

/// A DEX header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dex {
    /// Which form.
    pub kind: DexKind,
    /// Its version (35 to 41; 1 of a compact one).
    pub version: u32,
    /// Checksum of all behind it.
    pub checksum: u32,
    /// Bytes of the file.
    pub file_size: u32,
    /// Methods that it names.
    pub methods: u32,
    /// Classes that it defines.
    pub classes: u32,
}

impl Dex {
    /// Reads it from the begin of a DEX file.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut head = Bytes::new(bytes, WHAT);
        let kind = match head.take(4)? {
            b"dex\n" => DexKind::Standard,
            b"cdex" => DexKind::Compact,
            _ => return Err(FormatError::Magic("a DEX file")),
        };
        let version = version(head.array()?, "a DEX file")?;
        let checksum = head.u32()?;
        head.take(20)?;
        let (file_size, header_size, endian) = (head.u32()?, head.u32()?, head.u32()?);
        if endian != ENDIAN {
            return Err(FormatError::Wrong("its numbers are of the other byte order"));
        }
        if header_size < 0x70 || file_size < header_size {
            return Err(FormatError::Wrong("its size is less than that of its header"));
        }
        // link, map, strings, types, prototypes, fields
        head.take(11 * 4)?;
        let (methods, _) = (head.u32()?, head.u32()?);
        let classes = head.u32()?;
        Ok(Self { kind, version, checksum, file_size, methods, classes })
    }
}
