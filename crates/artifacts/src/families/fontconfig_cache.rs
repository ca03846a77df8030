//! Caches of fontconfig: one file a directory of fonts.

use super::family::{Family, Freshness, FreshnessOf, Regeneration, Trace, everybody, name, never_missing, parent_name};
use crate::access::FileKind;
use crate::disk;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The family.
pub const FONTCONFIG_CACHE: Family = Family {
    name: "fontconfig_cache",
    title: "caches of directories of fonts",
    recognised_by: "`HASH-ARCHITECTURE.cache-VERSION`, mostly in `/var/cache/fontconfig` and `~/.cache/fontconfig`",
    derives_from: "the fonts of one directory, which the file names",
    stale_when: "the modification time of the directory is not the one in the header, to the nanosecond (`FcCacheTimeValid`; a directory of \
                 1970 fits always). Unknown for caches of 32-bit or big-endian programs",
    fallback: "each process opens and parses every font of the directory with FreeType and tries to write a cache: `FC_DEBUG=16 fc-match`",
    by_hand: "`fc-cache -f` as the owner of the cache directory, with a umask that leaves it readable (022)",
    regeneration: Regeneration { words: "`fc-cache`, with the fonts.conf of the program", commands },
    shared_by: "a `<cachedir>` in fonts.conf that every user reads, filled with `fc-cache -f`; `/var/cache/fontconfig` is one",
    trace: Trace::ReadsSources { is_source: is_font },
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Looking(freshness),
    missing: never_missing,
};

/// `FC_CACHE_MAGIC_MMAP` (src/fcint.h).
const MAGIC: u32 = 0xfc02_fc04;

/// The largest cache whose directory is looked for.
const MOST: u64 = 64 << 20;

/// Caches that fit stay.
fn commands(_: &[&Path]) -> Vec<Vec<OsString>> {
    vec![vec!["fc-cache".into()]]
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    match kind {
        FileKind::Directory => name(path) == "fontconfig" && ["cache", ".cache"].contains(&parent_name(path)),
        FileKind::Regular => is_cache(name(path)),
        _ => false,
    }
}

/// A hash of 32 digits, or a UUID, the architecture, and the version of the format.
fn is_cache(name: &str) -> bool {
    let Some((hash, version)) = name.split_once(".cache-") else { return false };
    let Some((hash, architecture)) = hash.rsplit_once('-') else { return false };
    let is_hash = hash.len() >= 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_architecture = ["le", "be"].iter().any(|order| architecture.starts_with(order));
    is_hash && is_architecture && !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// By the formats that FreeType reads.
fn is_font(path: &Path) -> bool {
    const ENDINGS: [&str; 10] = ["ttf", "otf", "ttc", "otc", "woff", "woff2", "pfb", "pfa", "t1", "bdf"];
    let name = name(path).to_ascii_lowercase();
    let ends = |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.'));
    ENDINGS.iter().any(|ending| ends(ending)) || ends("pcf") || ends("pcf.gz")
}

/// What a cache of a 64-bit little-endian program says of its directory (`struct _FcCache`, src/fcint.h).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The directory.
    pub directory: PathBuf,
    /// Its modification time, in seconds since 1970, modulo 2^32.
    pub seconds: u32,
    /// The nanoseconds behind.
    pub nanoseconds: i64,
}

impl Header {
    /// Reads a file; `None` where it is no cache.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let four = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let eight = |at: usize| Some(i64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        if four(0)? != MAGIC {
            return None;
        }
        // `dir` is an offset from the beginning; strings end with 0.
        let directory = bytes.get(usize::try_from(eight(16)?).ok()?..)?;
        let end = directory.iter().take(4096).position(|byte| *byte == 0)?;
        let directory = PathBuf::from(OsStr::from_bytes(&directory[..end]));
        directory.is_absolute().then_some(Self { directory, seconds: four(48)?, nanoseconds: eight(56)? })
    }
}

fn freshness(path: &Path) -> Freshness {
    let is_of_this_root =
        |place: &Path| place == Path::new("/var/cache/fontconfig") || place.ends_with(".cache/fontconfig");
    match path.parent().is_some_and(is_of_this_root) {
        true => of_this_root(path),
        // A container's or a Flatpak's.
        false => Freshness::Unknown("the directory that it is for may be one of another root directory".to_owned()),
    }
}

fn of_this_root(path: &Path) -> Freshness {
    if !name(path).contains("-le64.") {
        return Freshness::Unknown("its header is that of another architecture".to_owned());
    }
    let header = match disk::whole(path, MOST) {
        Ok(bytes) => Header::of(&bytes),
        Err(error) => return Freshness::Unknown(format!("it cannot be read: {error}")),
    };
    let Some(header) = header else { return Freshness::Stale("it has no header of a cache of fonts".to_owned()) };
    if disk::is_gone(&header.directory) {
        return Freshness::Unused(format!("{} is gone", header.directory.display()));
    }
    match disk::stamp(&header.directory) {
        Ok(stamp) if stamp.modified.0 == 0 => Freshness::Current,
        Ok(stamp) if (stamp.modified.0 as u32, i64::from(stamp.modified.1)) == (header.seconds, header.nanoseconds) => {
            Freshness::Current
        }
        Ok(_) => Freshness::Stale(format!("{} was modified since", header.directory.display())),
        Err(error) => Freshness::Unknown(format!("{} cannot be looked at: {error}", header.directory.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, SystemTime};

    fn cache(directory: &Path, modified: Duration) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[16..24].copy_from_slice(&64i64.to_le_bytes());
        bytes[48..52].copy_from_slice(&(modified.as_secs() as u32).to_le_bytes());
        bytes[56..64].copy_from_slice(&i64::from(modified.subsec_nanos()).to_le_bytes());
        bytes.extend_from_slice(directory.as_os_str().as_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_cache_fits_the_directory_of_its_time_to_the_nanosecond() {
        let place = tempfile::tempdir().unwrap();
        let fonts = place.path().join("fonts");
        fs::create_dir(&fonts).unwrap();
        let modified = Duration::new(1_700_000_000, 5);
        fs::File::open(&fonts).unwrap().set_modified(SystemTime::UNIX_EPOCH + modified).unwrap();
        let path = place.path().join("3830d5c3ddfd5cd38a049b759396e72e-le64.cache-8");
        fs::write(&path, cache(&fonts, modified)).unwrap();
        assert_eq!(of_this_root(&path), Freshness::Current);
        assert!(matches!(freshness(&path), Freshness::Unknown(why) if why.contains("another root")));
        fs::write(&path, cache(&fonts, modified + Duration::from_nanos(1))).unwrap();
        assert!(matches!(of_this_root(&path), Freshness::Stale(why) if why.contains("was modified since")));
        fs::write(&path, cache(&place.path().join("none"), modified)).unwrap();
        assert!(matches!(of_this_root(&path), Freshness::Unused(_)));
        fs::write(&path, "x").unwrap();
        assert!(matches!(of_this_root(&path), Freshness::Stale(_)));
    }

    #[test]
    fn names_of_caches_are_known_and_near_ones_are_not() {
        assert!(is_cache("3830d5c3ddfd5cd38a049b759396e72e-le64.cache-8"));
        assert!(is_cache("d589a488-62cc-4d3e-9ba8-3f6e0f5c0c8f-le64.cache-7"));
        assert!(!is_cache("CACHEDIR.TAG") && !is_cache("x-le64.cache-8"));
        assert!(!is_cache("3830d5c3ddfd5cd38a049b759396e72e-le64.cache-8.NEW"));
    }

    #[test]
    fn fonts_are_known_by_their_formats() {
        let is_font = |path: &str| is_font(Path::new(path));
        assert!(is_font("/f/DejaVuSans.ttf") && is_font("/f/a.b.OTF") && is_font("/f/7x13.pcf.gz"));
        assert!(!is_font("/f/fonts.dir") && !is_font("/etc/passwd") && !is_font("/f/ttf"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_behind_the_magic_number_are_a_header_or_none(bytes: Vec<u8>) {
            let directory = Header::of(&[&MAGIC.to_le_bytes()[..], &bytes].concat()).map(|header| header.directory);
            proptest::prop_assert!(directory.is_none_or(|directory| directory.is_absolute()));
        }
    }
}
