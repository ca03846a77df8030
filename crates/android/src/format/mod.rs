//! Files that ART makes and reads: oat and odex, vdex, dex, dm, profiles.
//!
//! Owns their headers, as far as they say which code is compiled, why, and from how much DEX. Every parser is a function of bytes, total on
//! any, with limits; it also takes the head of a file, which is what a shell on a device can give of one that is large.

mod dex;
mod dex_metadata;
mod little_endian;
mod oat;
mod profile;
mod vdex;
mod zip_directory;

pub use dex::{Dex, DexKind};
pub use dex_metadata::DexMetadata;
pub use oat::{FoundBy, Oat};
pub use profile::{Profile, ProfileSection};
pub use vdex::{SectionKind, Vdex, VdexSection};
pub use zip_directory::{ZipMember, members, stored};

/// Why bytes are not what they were taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// They do not begin as such a file does.
    #[error("it does not start like {0}")]
    Magic(&'static str),
    /// A version whose layout is not known.
    #[error("{what} of version {version:?} is not known here")]
    Version {
        /// Of what.
        what: &'static str,
        /// The version, as far as it is printable.
        version: String,
    },
    /// They end inside what they begin.
    #[error("it ends inside {0}")]
    Short(&'static str),
    /// A number in them cannot be.
    #[error("{0}")]
    Wrong(&'static str),
}

/// The three digits of a version that ends with a null byte (`"027\0"`).
fn version(bytes: [u8; 4], what: &'static str) -> Result<u32, FormatError> {
    let digits = &bytes[..3];
    if bytes[3] != 0 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(unknown(bytes, what));
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

fn unknown(bytes: [u8; 4], what: &'static str) -> FormatError {
    let version = bytes.split(|byte| *byte == 0).next().unwrap_or_default().escape_ascii().to_string();
    FormatError::Version { what, version }
}
