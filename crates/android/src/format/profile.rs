//! The header of a profile: which methods and classes were used, and so are compiled (libprofile/profile/profile_compilation_info.cc).

use super::little_endian::Bytes;
use super::{FormatError, version};

const WHAT: &str = "a profile header";
/// `FileSectionType` has four kinds.
const MOST_SECTIONS: u32 = 64;

/// A section of a profile since Android 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileSection {
    /// 0 DEX files, 1 descriptors, 2 classes, 3 methods.
    pub kind: u32,
    /// Bytes in the file.
    pub size: u32,
    /// Bytes when it is not compressed; 0 where it is not.
    pub inflated: u32,
}

/// The header of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// 9 of Android 8.1, 10 of 9 to 11, 15 of 12 and later; 12 and 16 of the boot image.
    pub version: u32,
    /// DEX files in it, where the header says so (until Android 11).
    pub dex_files: Option<u32>,
    /// Bytes of its data when they are not compressed.
    pub inflated: u64,
    /// Its sections (since Android 12).
    pub sections: Vec<ProfileSection>,
}

impl Profile {
    /// Reads it from a profile (`primary.prof`, `baseline.prof`).
    ///
    /// # Errors
    /// It is none, or of an unknown version.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut head = Bytes::new(bytes, WHAT);
        if head.take(4)? != b"pro\0" {
            return Err(FormatError::Magic("a profile"));
        }
        let text = head.array()?;
        let version = version(text, "a profile")?;
        let of_header = |dex_files: u32, inflated: u32| Self {
            version,
            dex_files: Some(dex_files),
            inflated: u64::from(inflated),
            sections: Vec::new(),
        };
        match version {
            9 | 10 => {
                let dex_files = u32::from(head.array::<1>()?[0]);
                Ok(of_header(dex_files, head.u32()?))
            }
            12 => {
                let dex_files = u32::from(head.u16()?);
                Ok(of_header(dex_files, head.u32()?))
            }
            15 | 16 => sectioned(head, version),
            _ => Err(super::unknown(text, "a profile")),
        }
    }
}

fn sectioned(mut head: Bytes<'_>, version: u32) -> Result<Profile, FormatError> {
    let count = head.u32()?;
    if count == 0 || count > MOST_SECTIONS {
        return Err(FormatError::Wrong("it has no section, or more than any"));
    }
    let mut sections = Vec::new();
    for _ in 0..count {
        let (kind, _offset, size, inflated) = (head.u32()?, head.u32()?, head.u32()?, head.u32()?);
        sections.push(ProfileSection { kind, size, inflated });
    }
    let bytes =
        |section: &ProfileSection| u64::from(if section.inflated == 0 { section.size } else { section.inflated });
    let inflated = sections.iter().map(bytes).fold(0, u64::saturating_add);
    Ok(Profile { version, dex_files: None, inflated, sections })
}
