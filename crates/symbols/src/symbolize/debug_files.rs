//! Finding the separate debug file of a stripped one (GDB manual, "Debugging Information in Separate Files").

use super::image::{Image, hexadecimal};
use super::{Options, debuginfod, opened};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A debug file that belongs to the file it was looked for.
pub(super) struct DebugFile {
    /// Opened and checked.
    pub file: File,
    /// What it says about itself.
    pub image: Image,
    /// It lies in one of the debug directories, so whoever administers them vouches for the files that it names.
    pub administered: bool,
}

/// Looks for a debug file: by build-id, by link, through debuginfod. None where there is none that belongs to the file.
pub(super) fn find(
    image: &Image,
    file: &File,
    path: Option<&Path>,
    options: &Options,
    debuginfod: Option<&mut debuginfod::Asked<'_>>,
) -> Option<DebugFile> {
    if let Some(id) = &image.build_id {
        let name = by_build_id(id);
        if let Some(found) = options.debug_dirs.iter().find_map(|dir| by_id(&dir.join(&name), id, true)) {
            return Some(found);
        }
    }
    if let (Some((name, checksum)), Some(path)) = (&image.debug_link, path) {
        let candidates = by_link(name, path, &options.debug_dirs);
        let found = candidates
            .into_iter()
            .find_map(|(candidate, administered)| linked(&candidate, image, *checksum, file, administered));
        if found.is_some() {
            return found;
        }
    }
    let id = image.build_id.as_deref()?;
    by_id(&debuginfod?.ask(id)?, id, false)
}

/// `.build-id/xx/yyyy.debug`.
fn by_build_id(id: &[u8]) -> PathBuf {
    let id = hexadecimal(id);
    let (directory, name) = id.split_at(2.min(id.len()));
    PathBuf::from(format!(".build-id/{directory}/{name}.debug"))
}

/// Places of a linked debug file, and whether they are in a debug directory. A link is the name of a file: one with a slash
/// leads elsewhere and is none.
fn by_link(name: &[u8], path: &Path, debug_dirs: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    let Some(parent) = path.parent() else { return Vec::new() };
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') || name.contains(&0) {
        return Vec::new();
    }
    let name = OsStr::from_bytes(name);
    let mut places = vec![(parent.join(name), false), (parent.join(".debug").join(name), false)];
    let below = parent.strip_prefix("/").unwrap_or(parent);
    places.extend(debug_dirs.iter().map(|dir| (dir.join(below).join(name), true)));
    places
}

fn usable(path: &Path, administered: bool) -> Option<DebugFile> {
    let file = opened::open(path).ok()?;
    let image = Image::of(&file).ok()?;
    (image.has_debug_information || image.has_symbols).then_some(DebugFile { file, image, administered })
}

fn by_id(path: &Path, id: &[u8], administered: bool) -> Option<DebugFile> {
    usable(path, administered).filter(|found| found.image.build_id.as_deref() == Some(id))
}

fn linked(path: &Path, image: &Image, checksum: u32, file: &File, administered: bool) -> Option<DebugFile> {
    let found = usable(path, administered)?;
    let (this, that) = (file.metadata().ok()?, found.file.metadata().ok()?);
    if (this.dev(), this.ino()) == (that.dev(), that.ino()) {
        return None;
    }
    let belongs = match (&image.build_id, &found.image.build_id) {
        (Some(this), Some(that)) => this == that,
        _ => checksum_of(&found.file) == Some(checksum),
    };
    belongs.then_some(found)
}

/// CRC-32 of the whole file, as `.gnu_debuglink` has it.
fn checksum_of(mut file: &File) -> Option<u32> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finalize()),
            read => hasher.update(buffer.get(..read)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_has_its_first_byte_as_directory() {
        assert_eq!(by_build_id(&[0xab, 0x01, 0xff]), Path::new(".build-id/ab/01ff.debug"));
        assert_eq!(by_build_id(&[0xab]), Path::new(".build-id/ab/.debug"));
    }

    #[test]
    fn a_link_is_looked_for_beside_the_file_and_in_debug_directories() {
        let places = by_link(b"x.debug", Path::new("/usr/bin/x"), &[PathBuf::from("/d")]);
        let places: Vec<(&str, bool)> = places.iter().map(|(path, is)| (path.to_str().unwrap(), *is)).collect();
        let expected = [("/usr/bin/x.debug", false), ("/usr/bin/.debug/x.debug", false), ("/d/usr/bin/x.debug", true)];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_none() {
        for name in [&b"/dev/tty"[..], b"../x", b"..", b".", b"", b"a\0b"] {
            assert_eq!(by_link(name, Path::new("/usr/bin/x"), &[PathBuf::from("/d")]), [], "{name:?}");
        }
    }
}
