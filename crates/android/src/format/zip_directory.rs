//! The directory of a zip file, and members that are not compressed: APKs and dm files (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12, 4.3.16).

use super::FormatError;
use super::little_endian::Bytes;

/// Members that are looked at: an APK has some ten thousand, a dm file two.
const MOST_MEMBERS: usize = 1 << 16;
/// The end record, and the longest comment behind it.
const END: usize = 22;
const MOST_COMMENT: usize = 65_535;
/// The longest name that is kept, in bytes.
const MOST_NAME: usize = 4096;

/// A member of a zip file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZipMember {
    /// Its name. Bytes that are no UTF-8 are U+FFFD.
    pub name: String,
    /// Its bytes.
    pub size: u32,
    /// Its bytes in the file.
    pub compressed: u32,
    /// Whether they are the same: method 0.
    pub is_stored: bool,
    /// Where its own header begins.
    offset: u32,
}

/// The members, in the order of the directory. Zip64 is not read: no APK is one.
///
/// # Errors
/// It is no zip file, or its directory is broken.
pub fn members(bytes: &[u8]) -> Result<Vec<ZipMember>, FormatError> {
    let last = bytes.len().checked_sub(END).ok_or(FormatError::Magic("a zip file"))?;
    let first = last.saturating_sub(MOST_COMMENT);
    let end = (first..=last).rev().find(|at| bytes[*at..].starts_with(b"PK\x05\x06"));
    let end = end.ok_or(FormatError::Magic("a zip file"))?;
    let mut record = Bytes::new(&bytes[end..], "a zip file's end");
    record.take(10)?;
    let count = usize::from(record.u16()?).min(MOST_MEMBERS);
    record.take(4)?;
    let start = record.u32()? as usize;
    let mut directory = Bytes::new(
        bytes.get(start..end).ok_or(FormatError::Short("a zip file's directory"))?,
        "a zip file's directory",
    );
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(member(&mut directory)?);
    }
    Ok(found)
}

fn member(directory: &mut Bytes<'_>) -> Result<ZipMember, FormatError> {
    if directory.take(4)? != b"PK\x01\x02" {
        return Err(FormatError::Wrong("its directory is broken"));
    }
    directory.take(6)?;
    let method = directory.u16()?;
    directory.take(8)?;
    let (compressed, size) = (directory.u32()?, directory.u32()?);
    let (name, extra, comment) = (directory.u16()?, directory.u16()?, directory.u16()?);
    directory.take(8)?;
    let offset = directory.u32()?;
    let name = directory.take(usize::from(name))?;
    directory.take(usize::from(extra) + usize::from(comment))?;
    let name = String::from_utf8_lossy(&name[..name.len().min(MOST_NAME)]).into_owned();
    Ok(ZipMember { name, size, compressed, is_stored: method == 0, offset })
}

/// The bytes of a member that is not compressed, as far as the file has them.
pub fn stored<'a>(bytes: &'a [u8], member: &ZipMember) -> Option<&'a [u8]> {
    if !member.is_stored {
        return None;
    }
    let local = bytes.get(member.offset as usize..)?;
    let mut head = Bytes::new(local, "a member");
    let mut read = || {
        let is_member = head.take(4)? == b"PK\x03\x04";
        head.take(22)?;
        Ok::<_, FormatError>((is_member, usize::from(head.u16()?) + usize::from(head.u16()?)))
    };
    let (is_member, names) = read().ok()?;
    let data = local.get(30 + names..).filter(|_| is_member)?;
    Some(&data[..data.len().min(member.size as usize)])
}
