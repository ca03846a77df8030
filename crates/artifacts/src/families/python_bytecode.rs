//! Python's bytecode: `__pycache__/NAME.TAG.pyc` (PEP 3147, PEP 552).

use super::family::{
    Family, Freshness, FreshnessOf, Missing, Regeneration, Trace, everybody, holds, name, parent_name,
};
use crate::access::FileKind;
use crate::disk;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The family.
pub const PYTHON_BYTECODE: Family = Family {
    name: "python_bytecode",
    title: "bytecode of Python modules",
    recognised_by: "`__pycache__/NAME.TAG.pyc`",
    derives_from: "`NAME.py` beside `__pycache__`",
    stale_when: "the modification time or size in its header is not that of the source; with a checked hash, the hash is not that of the \
                 source; the magic number is not that of the CPython release in TAG (3.7 to 3.13). Unknown for other interpreters. A file \
                 whose source is gone, and one with an unchecked hash, Python does not compare",
    fallback: "the process reads and compiles the source at each start and tries to write the bytecode, silently: opens of the .py behind a \
               denied open of the .pyc, CPU time in the compiler (`python3 -X importtime`, `python3 -v`)",
    by_hand: "`python3 -m compileall -f DIR` as the owner of the directory, with a umask that leaves it readable (022)",
    regeneration: Regeneration {
        words: "`pythonX.Y -m compileall -q -f -l DIRECTORY...`, of the CPython release in TAG",
        commands,
    },
    shared_by: "`PYTHONPYCACHEPREFIX=DIRECTORY`, filled with `python3 -m compileall` under the same variable",
    trace: Trace::OfAnyFile,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Looking(freshness),
    missing,
};

/// Magic numbers of CPython's releases by the number in the tag (Lib/importlib/_bootstrap_external.py; from 3.14 on
/// Include/internal/pycore_magic_number.h). Each release of 3.N has the same.
const MAGIC: [(u32, u16); 7] = [(37, 3394), (38, 3413), (39, 3425), (310, 3439), (311, 3495), (312, 3531), (313, 3571)];

/// The first release whose tag has headers of PEP 552, and the first that hashes sources with SipHash-1-3.
const FIRST_WITH_FLAGS: u32 = 37;
const FIRST_WITH_SIPHASH_13: u32 = 311;

/// The largest source that is hashed.
const MOST_SOURCE: u64 = 64 << 20;

/// One command a release and level of optimization, over the directories of its sources. Of other interpreters than CPython the program itself.
fn commands(artifacts: &[&Path]) -> Vec<Vec<OsString>> {
    let mut directories: BTreeMap<(String, String), BTreeSet<&Path>> = BTreeMap::new();
    for artifact in artifacts {
        let Some((directory, (release, level))) =
            artifact.parent().and_then(Path::parent).zip(release_and_level(name(artifact)))
        else {
            return Vec::new();
        };
        directories.entry((release, level)).or_default().insert(directory);
    }
    let command = |((release, level), directories): ((String, String), BTreeSet<&Path>)| {
        let options = ["-m", "compileall", "-q", "-f", "-l"].map(OsString::from).into_iter();
        // Releases before 3.9 know no level but their own.
        let options = options.chain(["-o", &level].into_iter().filter(|_| level != "0").map(OsString::from));
        let places = directories.into_iter().map(OsString::from);
        [OsString::from(format!("python{release}"))].into_iter().chain(options).chain(places).collect()
    };
    directories.into_iter().map(command).collect()
}

/// `3.11` and `1` of `m.cpython-311.opt-1.pyc`.
fn release_and_level(name: &str) -> Option<(String, String)> {
    let mut parts = name.strip_suffix(".pyc")?.rsplit('.');
    let last = parts.next()?;
    let (level, tag) = match last.strip_prefix("opt-") {
        Some(level) => (level, parts.next()?),
        None => ("0", last),
    };
    let (major, minor) = tag.strip_prefix("cpython-")?.split_at_checked(1)?;
    let are_digits =
        [major, minor, level].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    are_digits.then(|| (format!("{major}.{minor}"), level.to_owned()))
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    match kind {
        FileKind::Directory => name(path) == "__pycache__",
        FileKind::Regular => parent_name(path) == "__pycache__" && path.extension().is_some_and(|end| end == "pyc"),
        _ => false,
    }
}

/// What a header says of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Its modification time and size, modulo 2^32.
    Stamp {
        /// Magic number.
        magic: u16,
        /// Seconds since 1970.
        modified: u32,
        /// Bytes.
        size: u32,
    },
    /// Its hash.
    Hash {
        /// Magic number.
        magic: u16,
        /// Whether the interpreter compares it.
        is_checked: bool,
        /// SipHash of the source under the magic number as the key.
        hash: u64,
    },
}

impl Header {
    /// Reads the first 16 bytes of a file; `None` where they are no such header.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<4>();
        let [magic, flags, first, second] = *words.first_chunk::<4>()?;
        let [low, high, b'\r', b'\n'] = magic else { return None };
        let magic = u16::from_le_bytes([low, high]);
        let (first, second) = (u32::from_le_bytes(first), u32::from_le_bytes(second));
        match u32::from_le_bytes(flags) {
            0 => Some(Self::Stamp { magic, modified: first, size: second }),
            flags @ (1 | 3) => {
                let hash = u64::from(first) | u64::from(second) << 32;
                Some(Self::Hash { magic, is_checked: flags == 3, hash })
            }
            _ => None,
        }
    }

    fn magic(self) -> u16 {
        match self {
            Self::Stamp { magic, .. } | Self::Hash { magic, .. } => magic,
        }
    }
}

/// The source of `DIR/__pycache__/NAME.TAG[.opt-N].pyc`, and the number in a tag of CPython.
pub(super) fn origin(path: &Path) -> Option<(PathBuf, Option<u32>)> {
    let stem = name(path).strip_suffix(".pyc")?;
    let stem = stem.rsplit_once(".opt-").map_or(stem, |(stem, _)| stem);
    let (module, tag) = stem.rsplit_once('.')?;
    let source = path.parent()?.parent()?.join(format!("{module}.py"));
    Some((source, tag.strip_prefix("cpython-").and_then(|number| number.parse().ok())))
}

fn freshness(path: &Path) -> Freshness {
    let Some((source, release)) = origin(path) else {
        return Freshness::Unknown("its name has no tag of an interpreter".to_owned());
    };
    let Some(release) = release.filter(|release| *release >= FIRST_WITH_FLAGS) else {
        return Freshness::Unknown("its header is that of another interpreter than CPython 3.7 and later".to_owned());
    };
    if disk::is_gone(&source) {
        return Freshness::Unused(format!("{} is gone: Python looks for no bytecode of it", source.display()));
    }
    let header = match disk::head(path, 16) {
        Ok(bytes) => Header::of(&bytes),
        Err(error) => return Freshness::Unknown(format!("it cannot be read: {error}")),
    };
    let Some(header) = header else { return Freshness::Stale("it has no header of bytecode".to_owned()) };
    if let Some((_, magic)) = MAGIC.iter().find(|(number, _)| *number == release)
        && header.magic() != *magic
    {
        return Freshness::Stale(format!("its magic number is {}, that of the release is {magic}", header.magic()));
    }
    match compared(header, &source, release) {
        Ok(freshness) => freshness,
        Err(error) => Freshness::Unknown(format!("{} cannot be read: {error}", source.display())),
    }
}

fn compared(header: Header, source: &Path, release: u32) -> std::io::Result<Freshness> {
    Ok(match header {
        Header::Stamp { modified, size, .. } => {
            let stamp = disk::stamp(source)?;
            // Both are kept modulo 2^32 (`_code_to_timestamp_pyc`).
            if stamp.modified.0 as u32 != modified {
                Freshness::Stale(format!("{} {}", source.display(), since(stamp.modified.0, modified)))
            } else if stamp.size as u32 != size {
                Freshness::Stale(format!("{} has {} bytes and not {size}", source.display(), stamp.size))
            } else {
                Freshness::Current
            }
        }
        Header::Hash { is_checked: false, .. } => Freshness::Current,
        Header::Hash { magic, hash, .. } => {
            let bytes = disk::whole(source, MOST_SOURCE)?;
            // `_RAW_MAGIC_NUMBER`: the four bytes of the magic number, little-endian.
            let key = u64::from(magic) | 0x0a0d << 16;
            match source_hash(key, &bytes, release) == hash {
                true => Freshness::Current,
                false => Freshness::Stale(format!("the hash of {} is another one", source.display())),
            }
        }
    })
}

/// CPython hashes sources with SipHash-1-3 from 3.11 on and with SipHash-2-4 before (`_Py_KeyedHash`, Python/pyhash.c).
fn source_hash(key: u64, source: &[u8], release: u32) -> u64 {
    match release >= FIRST_WITH_SIPHASH_13 {
        true => siphasher::sip::SipHasher13::new_with_keys(key, 0).hash(source),
        false => siphasher::sip::SipHasher24::new_with_keys(key, 0).hash(source),
    }
}

/// How the time of a source stands to the one in a header.
fn since(source: i64, header: u32) -> String {
    match source.wrapping_sub(header.into()) {
        later @ 1.. => format!("was modified {later} s after what it was made from"),
        earlier => format!("is {} s older than what it was made from", earlier.unsigned_abs()),
    }
}

fn missing(_: &Path, names: &[OsString]) -> Option<Missing> {
    (holds(names, "__init__.py") && !holds(names, "__pycache__")).then(|| Missing {
        name: "__pycache__".into(),
        why: "a package without bytecode: each process compiles what it imports of it",
        is_made_at_first_use: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;
    use std::time::{Duration, SystemTime};

    #[test]
    fn each_release_and_level_compiles_the_directories_of_its_sources() {
        let of = |paths: &[&str]| {
            let all = commands(&paths.iter().map(Path::new).collect::<Vec<_>>());
            all.iter()
                .map(|words| words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
                .collect()
        };
        let none: Vec<String> = Vec::new();
        let found: Vec<String> = of(&[
            "/a/__pycache__/m.cpython-311.pyc",
            "/a/__pycache__/n.cpython-311.pyc",
            "/b/__pycache__/m.cpython-311.pyc",
            "/b/__pycache__/m.cpython-38.opt-2.pyc",
        ]);
        assert_eq!(found, ["python3.11 -m compileall -q -f -l /a /b", "python3.8 -m compileall -q -f -l -o 2 /b"]);
        for other in ["/a/__pycache__/m.pypy310.pyc", "/a/__pycache__/m.cpython-3x.pyc", "/m.cpython-311.pyc"] {
            let found: Vec<String> = of(&["/a/__pycache__/m.cpython-311.pyc", other]);
            assert_eq!(found, none, "{other}");
        }
    }

    /// Compiles a module with Debian's Python and gives the path of the bytecode; `None` where there is none.
    fn compiled(directory: &Path, mode: &str) -> Option<PathBuf> {
        fs::write(directory.join("m.py"), "x = 1\n").unwrap();
        let script = format!(
            "import py_compile as p; print(p.compile('m.py', invalidation_mode=p.PycInvalidationMode.{mode}), end='')"
        );
        let output = Command::new("/usr/bin/python3").args(["-c", &script]).current_dir(directory).output().ok()?;
        assert!(output.status.success(), "{output:?}");
        Some(directory.join(String::from_utf8(output.stdout).unwrap()))
    }

    #[test]
    fn bytecode_with_a_time_is_current_until_the_source_has_another_time_or_size() {
        let place = tempfile::tempdir().unwrap();
        let Some(bytecode) = compiled(place.path(), "TIMESTAMP") else {
            println!("skipped: there is no /usr/bin/python3");
            return;
        };
        assert_eq!(freshness(&bytecode), Freshness::Current);
        let source = fs::File::options().write(true).open(place.path().join("m.py")).unwrap();
        source.set_modified(SystemTime::now() - Duration::from_secs(90)).unwrap();
        assert!(
            matches!(freshness(&bytecode), Freshness::Stale(why) if why.contains("s older than what it was made from"))
        );
        fs::remove_file(place.path().join("m.py")).unwrap();
        assert!(matches!(freshness(&bytecode), Freshness::Unused(_)));
        fs::write(&bytecode, "no header").unwrap();
        fs::write(place.path().join("m.py"), "x = 1\n").unwrap();
        assert!(matches!(freshness(&bytecode), Freshness::Stale(why) if why.contains("no header")));
    }

    #[test]
    fn bytecode_with_a_checked_hash_is_stale_when_the_source_changes_and_with_an_unchecked_one_never() {
        for (mode, is_stale) in [("CHECKED_HASH", true), ("UNCHECKED_HASH", false)] {
            let place = tempfile::tempdir().unwrap();
            let Some(bytecode) = compiled(place.path(), mode) else {
                println!("skipped: there is no /usr/bin/python3");
                return;
            };
            assert_eq!(freshness(&bytecode), Freshness::Current, "{mode}");
            fs::write(place.path().join("m.py"), "x = 2\n").unwrap();
            assert_eq!(matches!(freshness(&bytecode), Freshness::Stale(_)), is_stale, "{mode}");
        }
    }

    #[test]
    fn bytecode_of_another_magic_number_is_stale_and_of_another_interpreter_unknown() {
        let place = tempfile::tempdir().unwrap();
        let cache = place.path().join("__pycache__");
        fs::create_dir(&cache).unwrap();
        fs::write(place.path().join("m.py"), "").unwrap();
        let header = [&3394u16.to_le_bytes()[..], b"\r\n", &[0; 12]].concat();
        fs::write(cache.join("m.cpython-311.opt-1.pyc"), &header).unwrap();
        assert!(
            matches!(freshness(&cache.join("m.cpython-311.opt-1.pyc")), Freshness::Stale(why) if why.contains("3495"))
        );
        fs::write(cache.join("m.pypy310.pyc"), &header).unwrap();
        assert!(matches!(freshness(&cache.join("m.pypy310.pyc")), Freshness::Unknown(_)));
    }

    #[test]
    fn a_package_without_bytecode_misses_it_and_a_folder_of_scripts_does_not() {
        let names = |names: &[&str]| names.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(missing(Path::new("/p"), &names(&["__init__.py", "a.py"])).is_some());
        assert!(missing(Path::new("/p"), &names(&["__init__.py", "__pycache__"])).is_none());
        assert!(missing(Path::new("/p"), &names(&["a.py"])).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(bytes: Vec<u8>) {
            let has_end = bytes.len() >= 16 && bytes[2..4] == *b"\r\n";
            proptest::prop_assert!(Header::of(&bytes).is_none() || has_end);
        }
    }
}
