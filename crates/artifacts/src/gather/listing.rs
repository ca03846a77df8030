//! Listings made elsewhere, as text: `ls -lR`, with `-a`, `-n` and `-Z`, by GNU coreutils or Android's toybox.
//!
//! Owns the parser, which is total on any bytes, and the lookups that a listing gives. What a listing does not show (directories above it,
//! entries of access control lists, mounts, the policy of SELinux) stays unknown; what it shows to be denied is denied there too.

use crate::access::{self, AclFact, FileKind, Lookup, LookupEnd, MountFacts, Step};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The largest listing that is read, in bytes, and the most files of it that are kept: those of a whole distribution.
pub const MOST_BYTES: u64 = 256 << 20;
const MOST_FILES: usize = 1 << 20;

/// One file of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, set-id and sticky bits included.
    pub mode: u32,
    /// Whether it has an access control list, of which nothing else is shown.
    pub has_acl: bool,
    /// Its owner; `None` where the listing has a name that does not say its number.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Whether it has a security label.
    pub is_labelled: bool,
    /// Its bytes; `None` of a device, and of what `ls` could not look at.
    pub size: Option<u64>,
}

/// A listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    files: BTreeMap<PathBuf, Listed>,
    /// Lines that are none of a listing, or of a file beyond the limit.
    pub skipped: u64,
}

impl Listing {
    /// Reads a listing. A line that is none of one is counted and takes no other with it.
    pub fn parse(text: &[u8]) -> Self {
        let mut listing = Self::default();
        let mut directory = PathBuf::new();
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(b"total ") {
                continue;
            }
            if let Some((name, file)) = long_line(line) {
                listing.add(&directory, name, file);
            } else if let Some(header) = line.strip_suffix(b":") {
                directory = PathBuf::from(OsStr::from_bytes(header));
            } else {
                listing.skipped += 1;
            }
        }
        listing
    }

    fn add(&mut self, directory: &Path, name: &[u8], file: Listed) {
        let path = match name {
            b"." => directory.to_owned(),
            // Shown again where it is listed itself, or of no interest.
            b".." => return,
            name => directory.join(OsStr::from_bytes(name)),
        };
        if self.files.len() < MOST_FILES {
            self.files.insert(path, file);
        } else {
            self.skipped += 1;
        }
    }

    /// All files, by path.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &Listed)> {
        self.files.iter().map(|(path, file)| (path.as_path(), file))
    }

    /// What the listing shows of one file.
    pub fn get(&self, path: &Path) -> Option<&Listed> {
        self.files.get(path)
    }

    /// Whether some file has a security label, so that a security module decides there too.
    pub fn is_labelled(&self) -> bool {
        self.files.values().any(|file| file.is_labelled)
    }

    /// The lookup of a file, with the directories that the listing shows, and the first directory that it does not show.
    pub fn lookup(&self, path: &Path) -> Option<(Lookup, Option<PathBuf>)> {
        let end = LookupEnd::File(component(path, self.files.get(path)?));
        let mut above: Vec<&Path> =
            path.ancestors().skip(1).filter(|directory| !directory.as_os_str().is_empty()).collect();
        above.reverse();
        let shown =
            above.iter().filter_map(|directory| Some(Step::Search(component(directory, self.files.get(*directory)?))));
        let steps = shown.collect();
        let unshown = above.iter().find(|directory| !self.files.contains_key(**directory));
        Some((Lookup { steps, end, protected_symlinks: None }, unshown.map(|directory| directory.to_path_buf())))
    }
}

fn component(path: &Path, file: &Listed) -> access::Component {
    let undecidable = match (file.uid, file.gid) {
        (Some(_), Some(_)) => None,
        _ => Some("the listing has its owner or group by name: list with -n".to_owned()),
    };
    let unread = || AclFact::Unread("a listing shows only that there is one".to_owned());
    access::Component {
        path: path.to_owned(),
        kind: file.kind,
        mode: file.mode,
        uid: file.uid.unwrap_or(slowpath_process::NO_ID),
        gid: file.gid.unwrap_or(slowpath_process::NO_ID),
        acl: if file.has_acl { unread() } else { AclFact::None },
        immutable: false,
        mount: MountFacts { undecidable, ..MountFacts::default() },
    }
}

/// The name and the facts of a line such as `-rw-r----- 1 system u0_a12 u:object_r:x:s0 4096 2020-01-01 00:00 base.odex`.
fn long_line(line: &[u8]) -> Option<(&[u8], Listed)> {
    let (permissions, rest) = word(line)?;
    let (kind, mode, has_acl) = permissions_of(permissions)?;
    let (links, rest) = word(rest)?;
    if !links.iter().all(u8::is_ascii_digit) && links != b"?" {
        return None;
    }
    let (owner, rest) = word(rest)?;
    let (group, rest) = word(rest)?;
    let (mut size, mut rest) = word(rest)?;
    // A label has colons, and none is a question mark; GNU shows a size of what it cannot look at that way too, then twice.
    let is_label = size.contains(&b':') || size == b"?" && word(rest).is_some_and(|(next, _)| is_size(next));
    let is_labelled = size.contains(&b':');
    if is_label {
        (size, rest) = word(rest)?;
    }
    // Of a device `major, minor` stand for the size.
    let is_device = size.ends_with(b",");
    if is_device {
        (size, rest) = word(rest)?;
    }
    if !is_size(size) {
        return None;
    }
    let name = after_date(rest)?;
    let name = if kind == FileKind::Link { before_arrow(name) } else { name };
    let size = if is_device { None } else { std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()) };
    let (uid, gid) = (user(owner), self::group(group));
    is_name(name).then_some((name, Listed { kind, mode, has_acl, uid, gid, is_labelled, size }))
}

/// The name of a file in the directory that is listed, or an absolute path: what `ls` was asked for by name, as with `-d`.
fn is_name(name: &[u8]) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let is_absolute = || name.starts_with(b"/") && Path::new(OsStr::from_bytes(name)).components().all(is_plain);
    !name.is_empty() && !name.contains(&0) && (!name.contains(&b'/') || is_absolute())
}

fn is_size(word: &[u8]) -> bool {
    word == b"?" || !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// The next word and what is behind it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = line.iter().position(|byte| *byte != b' ')?;
    let line = &line[start..];
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    Some((&line[..end], &line[end..]))
}

/// What stands behind the date and one space: `2020-01-01 00:00`, with seconds and a zone in full, or `Jan  1 00:00` and `Jan  1  2020`.
fn after_date(rest: &[u8]) -> Option<&[u8]> {
    let (first, rest) = word(rest)?;
    let is_iso = first.len() == 10 && first.iter().filter(|byte| **byte == b'-').count() == 2;
    let (second, rest) = word(rest)?;
    let rest = match is_iso {
        true if second.contains(&b'.') => word(rest)?.1,
        true => rest,
        false => word(rest)?.1,
    };
    rest.strip_prefix(b" ")
}

fn before_arrow(name: &[u8]) -> &[u8] {
    let at = name.windows(4).position(|window| window == b" -> ");
    at.map_or(name, |at| &name[..at])
}

/// Kind, mode and whether there is a list, of `drwxr-x---+`.
fn permissions_of(word: &[u8]) -> Option<(FileKind, u32, bool)> {
    let (first, rest) = word.split_first()?;
    let kind = match first {
        b'-' => FileKind::Regular,
        b'd' => FileKind::Directory,
        b'l' => FileKind::Link,
        b'b' | b'c' | b'p' | b's' => FileKind::Special,
        _ => return None,
    };
    let (letters, mark) = rest.split_at_checked(9)?;
    // `.` is a label without a list, `@` other attributes.
    let has_acl = match mark {
        b"" | b"." | b"@" => false,
        b"+" => true,
        _ => return None,
    };
    let mut mode = 0;
    for (index, letter) in letters.iter().enumerate() {
        let (bit, special) = (0o400 >> index, [0o4000, 0o2000, 0o1000][index / 3]);
        mode |= match (index % 3, letter) {
            (_, b'-') => 0,
            (0, b'r') | (1, b'w') | (2, b'x') => bit,
            (2, b's') if index < 6 => bit | special,
            (2, b'S') if index < 6 => special,
            (2, b't') if index == 8 => bit | special,
            (2, b'T') if index == 8 => special,
            _ => return None,
        };
    }
    Some((kind, mode, has_acl))
}

/// Android's users by name (system/core/libcutils/include/private/android_filesystem_config.h; bionic/libc/bionic/grp_pwd.cpp).
const ANDROID: [(&[u8], u32); 6] =
    [(b"root", 0), (b"system", 1000), (b"cache", 2001), (b"shell", 2000), (b"install", 1012), (b"nobody", 9999)];
/// `AID_USER_OFFSET`, `AID_APP_START`, `AID_CACHE_GID_START`, `AID_SHARED_GID_START`, `AID_ISOLATED_START`, there.
const USER_OFFSET: u32 = 100_000;
const APP_START: u32 = 10_000;
const CACHE_START: u32 = 20_000;
const SHARED_START: u32 = 50_000;
const ISOLATED_START: u32 = 99_000;

/// The number of a user: a number, or a name of which every Android knows the number.
fn user(word: &[u8]) -> Option<u32> {
    let number = std::str::from_utf8(word).ok()?.parse().ok().filter(|number| *number != slowpath_process::NO_ID);
    let known = ANDROID.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    number.or(known).or_else(|| app(word))
}

/// The number of a group, which besides those of users can be `u0_a12_cache` or `all_a12`.
fn group(word: &[u8]) -> Option<u32> {
    let shared = || {
        let number: u32 = std::str::from_utf8(word.strip_prefix(b"all_a")?).ok()?.parse().ok()?;
        (number < APP_START).then(|| SHARED_START + number)
    };
    let cache = || {
        let number = app(word.strip_suffix(b"_cache")?)?;
        number.checked_add(CACHE_START - APP_START)
    };
    user(word).or_else(cache).or_else(shared)
}

/// The number of `u0_a12` (an app) or `u0_i12` (an isolated process).
fn app(word: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(word).ok()?.strip_prefix('u')?;
    let (user, rest) = text.split_once('_')?;
    let (start, end, number) = match rest.strip_prefix('a') {
        Some(number) => (APP_START, ISOLATED_START, number),
        None => (ISOLATED_START, USER_OFFSET, rest.strip_prefix('i')?),
    };
    let (user, number): (u32, u32) = (user.parse().ok()?, number.parse().ok()?);
    (number < end - start).then_some(())?;
    user.checked_mul(USER_OFFSET)?.checked_add(start + number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Android 10's toybox prints it.
    const ANDROID_LISTING: &[u8] = b"/data/app/a.b-1==/oat/arm64:\n\
total 3444\n\
drwxr-x--x 2 system system u:object_r:dalvikcache_data_file:s0    4096 2020-03-01 10:00 .\n\
-rw-r----- 1 system u0_a123 u:object_r:dalvikcache_data_file:s0 1758912 2020-03-01 10:00 base.odex\n\
-rw-r--r-- 1 system all_a123 u:object_r:dalvikcache_data_file:s0 1758912 2020-03-01 10:00 base.vdex\n";

    /// As GNU coreutils 9.1 prints it with `-lRZ`, `-lR --time-style=full-iso`, and of what is no regular file.
    const GNU_LISTING: &[u8] = b".:\ntotal 4\n\
drwxr-sr-t+ 2 0 1000 ? 4096 Nov 23 03:47 a b\n\
lrwxrwxrwx  1 0    0 ?    4 Nov 23  2024 l -> a b/x\n\
\n./a b:\n\
-rw-rw-r--. 1 1000 1000 system_u:object_r:x_t:s0 1 2026-11-23 03:47:01.000000000 +0000 +x\n\
crw-rw-rw-  1 0 0 1, 3 2026-11-23 03:47 null\n\
ls: cannot open directory './c': Permission denied\n\
-rw-r--r--  1 joe users 1 2026-11-23 03:47  two  spaces \n";

    #[test]
    fn a_listing_of_android_has_numbers_modes_and_labels() {
        let listing = Listing::parse(ANDROID_LISTING);
        assert_eq!((listing.files.len(), listing.skipped, listing.is_labelled()), (3, 0, true));
        let odex = &listing.files[Path::new("/data/app/a.b-1==/oat/arm64/base.odex")];
        assert_eq!((odex.uid, odex.gid, odex.mode), (Some(1000), Some(10_123), 0o640));
        assert_eq!(listing.files[Path::new("/data/app/a.b-1==/oat/arm64/base.vdex")].gid, Some(50_123));
        let directory = &listing.files[Path::new("/data/app/a.b-1==/oat/arm64")];
        assert_eq!((directory.kind, directory.mode), (FileKind::Directory, 0o751));
    }

    #[test]
    fn a_listing_of_gnu_has_names_with_spaces_links_devices_and_lists() {
        let listing = Listing::parse(GNU_LISTING);
        let names: Vec<String> = listing.files().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(names, ["./a b", "./a b/ two  spaces ", "./a b/+x", "./a b/null", "./l"]);
        let directory = &listing.files[Path::new("./a b")];
        assert_eq!((directory.mode, directory.has_acl, directory.is_labelled), (0o3755, true, false));
        assert_eq!(listing.files[Path::new("./a b/null")].kind, FileKind::Special);
        assert_eq!(listing.files[Path::new("./a b/ two  spaces ")].uid, None);
        assert_eq!(listing.skipped, 1);
    }

    #[test]
    fn the_lookup_has_the_directories_that_are_shown_and_names_the_first_that_is_not() {
        let listing = Listing::parse(ANDROID_LISTING);
        let (lookup, unshown) = listing.lookup(Path::new("/data/app/a.b-1==/oat/arm64/base.odex")).unwrap();
        assert_eq!((lookup.steps.len(), unshown), (1, Some(PathBuf::from("/"))));
        assert!(listing.lookup(Path::new("/data/none")).is_none());
    }

    #[test]
    fn files_that_were_asked_for_by_their_paths_are_listed_too_and_have_sizes() {
        let listing = Listing::parse(
            b"drwxr-xr-x 27 0 0 u:object_r:rootfs:s0 4096 2009-01-01 01:00 /\n\
drwxrwx--x 55 1000 1000 u:object_r:system_data_file:s0 4096 2020-01-01 00:00 /data\n\
-rw-r--r-- 1 1000 1000 ? 17 2020-01-01 00:00 /data/x\n\
-rw-r--r-- 1 1000 1000 ? 17 2020-01-01 00:00 /data/../x\n\
-rw-r--r-- 1 1000 1000 ? 17 2020-01-01 00:00 data/x\n",
        );
        assert_eq!((listing.files.len(), listing.skipped), (3, 2));
        let (lookup, unshown) = listing.lookup(Path::new("/data/x")).unwrap();
        assert_eq!((lookup.steps.len(), unshown), (2, None));
        assert_eq!(listing.get(Path::new("/data/x")).and_then(|file| file.size), Some(17));
    }

    #[test]
    fn names_of_apps_and_isolated_processes_are_numbers() {
        assert_eq!((user(b"u0_a123"), user(b"u10_a7"), user(b"u0_i5")), (Some(10_123), Some(1_010_007), Some(99_005)));
        assert_eq!((group(b"u0_a123_cache"), group(b"all_a5")), (Some(20_123), Some(50_005)));
        assert_eq!(
            (user(b"joe"), user(b"4294967295"), user(b"u4294967295_a9"), user(b"u0_a99999")),
            (None, None, None, None)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_listing_whose_files_can_be_looked_up(text in "[-dlrwxst+. 0-9:?,u_ab/\n]{0,200}", bytes: Vec<u8>) {
            for text in [text.as_bytes(), &bytes, &[ANDROID_LISTING, &bytes].concat()] {
                let listing = Listing::parse(text);
                for (path, _) in listing.files() {
                    prop_assert!(listing.lookup(path).is_some());
                }
            }
        }
    }
}
