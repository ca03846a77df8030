//! Which recordings a side of a comparison has.

use crate::directory::DIAGNOSIS_FILE;
use slowpath_recording::MANIFEST_FILE;
use slowpath_session::failure::{Failure, Kind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The recordings of directories that were named: each is one, or holds several. What is neither is left to the reader of
/// recordings, who says why.
///
/// # Errors
/// The directory of a diagnosis, whose recordings were made under different conditions.
pub fn recordings(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut recordings = Vec::new();
    for directory in named {
        if is_recording(directory) {
            recordings.push(directory.clone());
            continue;
        }
        if directory.join(DIAGNOSIS_FILE).exists() {
            let shown = directory.to_string_lossy();
            return Err(Failure::new(Kind::Usage, format!("{shown} is a diagnosis: its recordings are no set"))
                .hint("name one of its recordings, for example its directory `cold`"));
        }
        let mut held = held(directory);
        if held.is_empty() {
            held.push(directory.clone());
        }
        recordings.append(&mut held);
    }
    Ok(recordings)
}

/// The recordings that a directory holds, in groups: those beside each other in it, and those in each directory in it, called after that.
/// `warm` and `before` are the first, because others are compared with them. A recording, and what is neither, has none; a diagnosis in it
/// is passed by, since its recordings were made under different conditions.
pub fn groups(directory: &Path) -> Vec<(String, Vec<PathBuf>)> {
    if is_recording(directory) {
        return Vec::new();
    }
    let is_group = |path: &PathBuf| path.is_dir() && !is_recording(path) && !path.join(DIAGNOSIS_FILE).exists();
    let beneath = entries(directory).into_iter().filter(is_group);
    let named = beneath.map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), held(&path)));
    let mut groups: Vec<(String, Vec<PathBuf>)> =
        std::iter::once((String::new(), held(directory))).chain(named).collect();
    groups.retain(|(_, recordings)| !recordings.is_empty());
    groups.sort_by_key(|(name, _)| !matches!(name.as_str(), "warm" | "before"));
    groups
}

fn held(directory: &Path) -> Vec<PathBuf> {
    entries(directory).into_iter().filter(|path| is_recording(path)).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn is_recording(directory: &Path) -> bool {
    directory.join(MANIFEST_FILE).exists()
}

/// Fails where a recording stands for two.
///
/// # Errors
/// A recording that was named twice, on one side or on both.
pub fn each_once(before: &[PathBuf], after: &[PathBuf]) -> Result<(), Failure> {
    let mut known = BTreeSet::new();
    for directory in before.iter().chain(after) {
        if !known.insert(directory.canonicalize().unwrap_or_else(|_| directory.clone())) {
            let shown = directory.to_string_lossy();
            return Err(Failure::new(Kind::Usage, format!("{shown} is given twice"))
                .hint("every recording is one run and counts once"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(path: &Path) {
        std::fs::create_dir_all(path).unwrap();
        std::fs::write(path.join(MANIFEST_FILE), "{}").unwrap();
    }

    #[test]
    fn a_directory_is_a_recording_or_holds_some_or_is_left_to_its_reader() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["one", "set/b", "set/a"] {
            recording(&at(name));
        }
        std::fs::create_dir_all(at("set/notes")).unwrap();
        std::fs::create_dir_all(at("empty")).unwrap();
        let found = |names: &[&str]| recordings(&names.iter().map(|name| at(name)).collect::<Vec<_>>()).unwrap();
        assert_eq!(found(&["set", "one"]), [at("set/a"), at("set/b"), at("one")]);
        assert_eq!(found(&["empty", "missing"]), [at("empty"), at("missing")]);
        std::fs::write(at("set").join(DIAGNOSIS_FILE), "{}").unwrap();
        assert!(recordings(&[at("set")]).unwrap_err().to_string().contains("is a diagnosis"));
    }

    #[test]
    fn recordings_in_a_directory_are_grouped_by_their_directories_and_diagnoses_are_passed_by() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["b", "a", "cold/2", "cold/1", "warm/1", "tried/cold", "notes/deeper/1"] {
            recording(&at(name));
        }
        std::fs::write(at("tried").join(DIAGNOSIS_FILE), "{}").unwrap();
        let found = groups(place.path());
        let sets: Vec<(&str, &[PathBuf])> = found.iter().map(|(name, all)| (name.as_str(), all.as_slice())).collect();
        let (own, cold, warm) = ([at("a"), at("b")], [at("cold/1"), at("cold/2")], [at("warm/1")]);
        assert_eq!(sets, [("warm", &warm[..]), ("", &own[..]), ("cold", &cold[..])]);
        assert_eq!((groups(&at("a")).len(), groups(&at("missing")).len()), (0, 0));
    }

    #[test]
    fn one_recording_by_two_names_is_one() {
        let place = tempfile::tempdir().unwrap();
        let (one, other, link) = (place.path().join("one"), place.path().join("other"), place.path().join("link"));
        recording(&one);
        recording(&other);
        std::os::unix::fs::symlink(&one, &link).unwrap();
        assert!(each_once(std::slice::from_ref(&one), std::slice::from_ref(&other)).is_ok());
        let failure = each_once(&[one], &[link]).unwrap_err();
        assert_eq!((failure.kind(), failure.to_string().contains("is given twice")), (Kind::Usage, true));
    }
}
