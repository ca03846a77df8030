//! What an open(2), or another call that was refused, asked for, and what its path says.
//!
//! The numbers are those of include/uapi/asm-generic/fcntl.h and errno-base.h, as a recording holds them, whatever machine reads it.

use slowpath_tables::{Open, RefusedCall};

const O_ACCMODE: u32 = 0o3;
const O_WRONLY: u32 = 0o1;
const O_CREAT: u32 = 0o100;
const O_EXCL: u32 = 0o200;
const O_TRUNC: u32 = 0o1000;
const O_PATH: u32 = 0o10_000_000;
/// `O_DIRECTORY` of asm-generic, and of arm64 and powerpc. Each is `O_DIRECT` of the others, with which no artifact is read.
const O_DIRECTORY: u32 = 0o200_000 | 0o40_000;

/// No such file or directory.
const ENOENT: i32 = 2;
/// Operation not permitted.
const EPERM: i32 = 1;
/// Permission denied.
const EACCES: i32 = 13;

/// Where the kernel and its devices show themselves as files: none of these is an artifact.
const NO_ARTIFACTS: [&str; 3] = ["/proc/", "/sys/", "/dev/"];

/// A file of the kernel's own, or the path is not known.
pub(super) fn is_no_artifact(open: &Open) -> bool {
    open.path.is_empty() || NO_ARTIFACTS.iter().any(|place| open.path.starts_with(place))
}

/// Opens or makes a directory, or opens a path without reading it.
pub(super) fn is_directory(open: &Open) -> bool {
    open.call == Some(RefusedCall::MakeDirectory) || open.flags & (O_DIRECTORY | O_PATH) != 0
}

/// Was refused to make a directory.
pub(super) fn is_refused_directory(open: &Open) -> bool {
    open.call == Some(RefusedCall::MakeDirectory) && open.result < 0
}

/// Was refused to look at the path, or asked whether it may read it and got no.
pub(super) fn is_look(open: &Open) -> bool {
    open.call == Some(RefusedCall::Look)
}

/// Was refused a look at, or to make, the directory of this file or one above it.
pub(super) fn is_refused_above(open: &Open, file: &str) -> bool {
    let below = file.strip_prefix(open.path.trim_end_matches('/'));
    open.call.is_some() && !open.path.is_empty() && below.is_some_and(|below| below.starts_with('/'))
}

/// Reads what is there already, or is refused a look at it.
pub(super) fn reads(open: &Open) -> bool {
    open.flags & O_ACCMODE != O_WRONLY && open.flags & O_CREAT == 0 && !is_directory(open)
}

/// Makes a file, or writes one anew.
pub(super) fn makes(open: &Open) -> bool {
    open.flags & O_ACCMODE != 0 && open.flags & (O_CREAT | O_TRUNC) != 0 && !is_directory(open)
}

pub(super) fn is_denied(open: &Open) -> bool {
    [-EACCES, -EPERM].contains(&open.result)
}

pub(super) fn is_absent(open: &Open) -> bool {
    open.result == -ENOENT
}

/// The error as errno(3) names it.
pub(crate) fn error_name(result: i32) -> &'static str {
    match -result {
        EPERM => "EPERM",
        ENOENT => "ENOENT",
        EACCES => "EACCES",
        30 => "EROFS",
        _ => "",
    }
}

/// Directory and file name of a path.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether an open makes this artifact: under its own name, under one that holds it (`m.pyc.4711`), or under a name that nobody had
/// before (`O_EXCL`, as of mkstemp) in its directory. The latter two are renamed when they are whole.
pub(super) fn makes_artifact(open: &Open, artifact: &str) -> bool {
    let ((directory, name), (place, wanted)) = (split(&open.path), split(artifact));
    let is_new = open.flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
    makes(open) && directory == place && (is_new || name.contains(wanted))
}

/// What stands behind the last dot of a name.
pub(super) fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

/// The name without its last extension.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map(|(stem, _)| stem).filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// Whether one name is that of the other and more: `m.cpython-311.pyc` and `m.py`, `app.jsa` and `app-2.jar`.
pub(super) fn are_alike(artifact: &str, source: &str) -> bool {
    let (artifact, source) = (split(artifact).1, split(source).1);
    let begins = |name: &str, stem: &str| {
        !stem.is_empty() && name.strip_prefix(stem).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    artifact != source && (begins(artifact, stem(source)) || begins(source, stem(artifact)))
}

/// What artifacts of one kind have in common: the extension of their names (`*.pyc`), or their directory where there is none.
pub(crate) fn family(path: &str) -> String {
    let (directory, name) = split(path);
    let is_extension = |text: &&str| {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        text.contains(|letter: char| letter.is_ascii_alphabetic()) && text.len() <= 16 && text.chars().all(is_word)
    };
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    match extension.filter(is_extension) {
        Some(extension) => format!("*.{extension}"),
        None => format!("{directory}/*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_an_artifact_and_its_source_are_alike_and_those_of_copies_and_others_are_not() {
        assert!(are_alike("/a/__pycache__/m.cpython-311.pyc", "/a/m.py"));
        assert!(are_alike("/c/app.jsa", "/b/app-2.jar") && are_alike("/c/t.cache", "t"));
        assert!(!are_alike("/c/app.jsa", "/d/app.jsa"), "another copy of it");
        assert!(!are_alike("/c/m.pyc", "/c/main.py") && !are_alike("/c/table", "/c/tablespoon"));
        assert!(!are_alike("/c/.x", "/c/.y") && !are_alike("", "/c/y"));
    }

    #[test]
    fn a_family_is_an_extension_or_a_directory() {
        assert_eq!(family("/a/m.cpython-311.opt-1.pyc"), "*.pyc");
        assert_eq!(family("/f/38-le64.cache-9"), "*.cache-9");
        assert_eq!((family("/b/lib.so.6").as_str(), family("/b/.hidden").as_str()), ("/b/*", "/b/*"));
    }
}
