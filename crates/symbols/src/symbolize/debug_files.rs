//! Finding the separate debug file of a stripped one (GDB manual, "Debugging Information in Separate Files"), and files that are not
//! where they were recorded, by their build-id.

use super::image::{Image, hexadecimal};
use super::{Options, debuginfod, opened};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

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
        let administered = options.debug_dirs.iter().map(|dir| (dir, true));
        let mut dirs = administered.chain(options.image_dirs.iter().map(|dir| (dir, false)));
        if let Some(found) = dirs.find_map(|(dir, administered)| by_id(&dir.join(&name), id, administered)) {
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

/// A file of this build-id, in hexadecimal, that was recorded at this path: from one of the directories, where it has its build-id as
/// name or the recorded one. A debug file comes last; where its program headers are those of the file, it says where code lies, too.
pub(super) fn of_build_id(id: &str, path: &Path, options: &Options) -> Option<(File, Image)> {
    let id = bytes_of(id)?;
    let places = by_recorded_id(&id, path);
    let dirs = || options.image_dirs.iter().chain(&options.debug_dirs);
    places.iter().flat_map(|place| dirs().map(move |dir| dir.join(place))).find_map(|path| {
        let file = opened::open(&path).ok()?;
        let image = Image::of(&file).ok()?;
        (image.build_id.as_ref() == Some(&id) && image.places_code()).then_some((file, image))
    })
}

/// Where a directory may have a file: as perf's cache (`perf buildid-cache`), by a link beside that to its debug file, as a tree of
/// files like the recorded one, in a heap, and as debug file.
fn by_recorded_id(id: &[u8], path: &Path) -> Vec<PathBuf> {
    let debug = by_build_id(id);
    let link = debug.with_extension("");
    let mut places = vec![link.join("elf"), link];
    let below = path.strip_prefix("/").unwrap_or(path);
    if below.components().all(|part| matches!(part, Component::Normal(_))) {
        places.extend([below.to_owned()].into_iter().filter(|below| !below.as_os_str().is_empty()));
        places.extend(below.file_name().filter(|name| Path::new(name) != below).map(PathBuf::from));
    }
    places.push(debug);
    places
}

/// A build-id from hexadecimal digits; none where it is too short or too long to identify a file.
fn bytes_of(id: &str) -> Option<Vec<u8>> {
    // `from_str_radix` takes a sign.
    let is_sound = id.len().is_multiple_of(2) && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = id.as_bytes().as_chunks::<2>().0.iter().map(byte).collect::<Option<Vec<u8>>>()?;
    (is_sound && (4..=64).contains(&bytes.len())).then_some(bytes)
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
    fn a_recorded_file_is_looked_for_by_build_id_and_by_a_path_that_leads_nowhere_else() {
        let places = |path: &str| {
            let places = by_recorded_id(&[0xab, 1, 2, 3], Path::new(path));
            places.iter().map(|place| place.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let id = [".build-id/ab/010203/elf", ".build-id/ab/010203", ".build-id/ab/010203.debug"];
        assert_eq!(places("/usr/bin/x"), [id[0], id[1], "usr/bin/x", "x", id[2]]);
        assert_eq!(places("x"), [id[0], id[1], "x", id[2]]);
        for path in ["", "/", "/a/../../etc/x", ".."] {
            assert_eq!(places(path), id, "{path}");
        }
    }

    #[test]
    fn a_build_id_has_whole_bytes_and_enough_of_them() {
        assert_eq!(bytes_of("00ff10Ab"), Some(vec![0, 0xff, 0x10, 0xab]));
        for id in ["", "00ff10", "00ff10abc", "00ff10+1", "zzzzzzzz", &"00".repeat(65)] {
            assert_eq!(bytes_of(id), None, "{id}");
        }
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
