//! The cache of shared libraries of glibc's dynamic loader (ld.so(8), ldconfig(8)).

use super::family::{Family, Freshness, FreshnessOf, Missing, Regeneration, Trace, everybody, holds, name};
use crate::access::FileKind;
use crate::disk;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The family.
pub const LD_SO_CACHE: Family = Family {
    name: "ld_so_cache",
    title: "the dynamic loader's list of libraries",
    recognised_by: "`ld.so.cache`, in `/etc`",
    derives_from: "the libraries in the directories of `/etc/ld.so.conf` and in the default ones",
    stale_when: "it lists a library that is gone. Unknown where a directory of listed libraries was modified after it: what was added there \
                 may be a library or not",
    fallback: "the loader tries the default directories one after the other, each with its subdirectories for the CPU, and does not find \
               libraries elsewhere: `strace -e trace=openat`, `LD_DEBUG=libs`",
    by_hand: "`ldconfig` as root, with a umask that leaves the cache readable (022)",
    regeneration: Regeneration { words: "`ldconfig`", commands },
    shared_by: "",
    trace: Trace::NoWork,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Looking(freshness),
    missing,
};

/// `CACHEMAGIC_NEW` and `CACHE_VERSION` (sysdeps/generic/dl-cache.h).
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Sizes of `struct cache_file_new` and `struct file_entry_new`, there.
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// The largest cache that is read.
const MOST: u64 = 64 << 20;

fn commands(_: &[&Path]) -> Vec<Vec<OsString>> {
    vec![vec!["/sbin/ldconfig".into()]]
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    kind == FileKind::Regular && name(path) == "ld.so.cache"
}

/// The paths of libraries that a cache lists; `None` where it is none of the form that glibc has written since 2.2 (and, from 2.32 on, alone).
pub fn libraries(bytes: &[u8]) -> Option<Vec<PathBuf>> {
    // Behind a table of the older form, if there is one, to which nothing here refers.
    let at = bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let cache = &bytes[at..];
    let count = u32::from_le_bytes(*cache.get(MAGIC.len()..)?.first_chunk()?);
    let (entries, _) = cache.get(HEADER..)?.as_chunks::<ENTRY>();
    let entries = entries.get(..usize::try_from(count).ok()?)?;
    let path = |entry: &[u8; ENTRY]| {
        // `value` is an offset from the beginning of this table.
        let offset = usize::try_from(u32::from_le_bytes(*entry[8..].first_chunk()?)).ok()?;
        let text = cache.get(offset..)?;
        let end = text.iter().take(4096).position(|byte| *byte == 0)?;
        Some(PathBuf::from(OsStr::from_bytes(&text[..end])))
    };
    entries.iter().map(path).collect()
}

fn freshness(path: &Path) -> Freshness {
    match path == Path::new("/etc/ld.so.cache") {
        true => of_this_root(path),
        // A container's or chroot's.
        false => Freshness::Unknown("it lists files of another root directory".to_owned()),
    }
}

fn of_this_root(path: &Path) -> Freshness {
    let cannot = |error: std::io::Error| Freshness::Unknown(format!("it cannot be read: {error}"));
    let (bytes, written) = match disk::whole(path, MOST).and_then(|bytes| Ok((bytes, disk::stamp(path)?))) {
        Ok(read) => read,
        Err(error) => return cannot(error),
    };
    let Some(libraries) = libraries(&bytes) else {
        return Freshness::Stale("it is no cache of this loader".to_owned());
    };
    if let Some(gone) = libraries.iter().find(|library| disk::is_gone(library)) {
        return Freshness::Stale(format!("it lists {}, which is gone", gone.display()));
    }
    let directories: BTreeSet<&Path> = libraries.iter().filter_map(|library| library.parent()).collect();
    let later = directories
        .into_iter()
        .find(|directory| disk::stamp(directory).map_or(true, |stamp| stamp.modified > written.modified));
    match later {
        None => Freshness::Current,
        Some(directory) => Freshness::Unknown(format!("{} was modified after it", directory.display())),
    }
}

fn missing(directory: &Path, names: &[OsString]) -> Option<Missing> {
    (name(directory) == "etc" && holds(names, "ld.so.conf") && !holds(names, "ld.so.cache")).then(|| Missing {
        name: "ld.so.cache".into(),
        why: "without it each process searches directories for each library",
        is_made_at_first_use: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn cache(paths: &[&Path]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(paths.len() as u32).to_le_bytes());
        bytes.resize(HEADER, 0);
        let mut text = Vec::new();
        for path in paths {
            let offset = HEADER + paths.len() * ENTRY + text.len();
            bytes.extend_from_slice(&[0; 8]);
            bytes.extend_from_slice(&(offset as u32).to_le_bytes());
            bytes.extend_from_slice(&[0; 12]);
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(0);
        }
        [bytes, text].concat()
    }

    #[test]
    fn a_cache_is_stale_where_a_library_is_gone_and_unknown_where_its_directory_changed() {
        let place = tempfile::tempdir().unwrap();
        let (directory, path) = (place.path().join("lib"), place.path().join("ld.so.cache"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("a.so"), "").unwrap();
        fs::write(&path, cache(&[&directory.join("a.so")])).unwrap();
        assert_eq!(of_this_root(&path), Freshness::Current);
        assert!(matches!(freshness(&path), Freshness::Unknown(why) if why.contains("another root")));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        fs::File::open(&directory).unwrap().set_modified(later).unwrap();
        assert!(matches!(of_this_root(&path), Freshness::Unknown(why) if why.contains("modified after")));
        fs::write(&path, cache(&[&directory.join("a.so"), &directory.join("b.so")])).unwrap();
        assert!(matches!(of_this_root(&path), Freshness::Stale(why) if why.contains("b.so, which is gone")));
        fs::write(&path, "text").unwrap();
        assert!(matches!(of_this_root(&path), Freshness::Stale(why) if why.contains("no cache")));
    }

    #[test]
    fn the_cache_of_this_machine_lists_its_libc() {
        let Ok(bytes) = fs::read("/etc/ld.so.cache") else {
            println!("skipped: there is no /etc/ld.so.cache");
            return;
        };
        let found = libraries(&bytes).unwrap();
        assert!(found.iter().any(|path| name(path).starts_with("libc.so")), "{} libraries", found.len());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_behind_the_magic_number_are_a_list_or_none(bytes: Vec<u8>) {
            let found = libraries(&[MAGIC, &bytes].concat());
            proptest::prop_assert!(found.is_none_or(|found| found.len() * ENTRY <= bytes.len()));
        }
    }
}
