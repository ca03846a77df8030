//! The states of artifacts in trees that are made for it. For another user: `cli`'s tests, with real programs.

use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use tempfile::TempDir;

/// A package with one module, compiled for a release that has the magic number 3495.
fn package() -> TempDir {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let cache = place.path().join("p/__pycache__");
    fs::create_dir_all(&cache).unwrap();
    for name in ["__init__", "m"] {
        fs::write(place.path().join(format!("p/{name}.py")), "x = 1\n").unwrap();
        // An unchecked hash, so that no time of a file matters.
        let header = [&3495u16.to_le_bytes()[..], b"\r\n", &1u32.to_le_bytes(), &[0; 8]].concat();
        fs::write(cache.join(format!("{name}.cpython-311.pyc")), header).unwrap();
    }
    place
}

fn audited(paths: &[PathBuf], limits: Limits) -> Audit {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let nobody = Identity::new(65534, 65534, Vec::new());
    audit(&Machine::read().unwrap(), &nobody, &paths, limits, &mut |_| {})
}

fn states(audit: &Audit) -> Vec<(State, &str)> {
    let name = |artifact: &Artifact| artifact.path.rfind('/').map_or(0, |at| at + 1);
    audit.artifacts.iter().map(|artifact| (artifact.state, &artifact.path[name(artifact)..])).collect()
}

#[test]
fn a_readable_package_is_usable_and_given_twice_it_is_audited_once() {
    let place = package();
    let paths = [place.path().to_owned(), place.path().join("p/__pycache__/m.cpython-311.pyc")];
    let audit = audited(&paths, Limits::DEFAULT);
    assert_eq!(states(&audit), [(State::Usable, "__init__.cpython-311.pyc"), (State::Usable, "m.cpython-311.pyc")]);
    assert_eq!(audit.unavailable, []);
}

#[test]
fn a_directory_without_x_makes_all_below_unreadable_and_is_named_with_the_change() {
    let place = package();
    let closed = place.path().join("p");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let audit = audited(&[place.path().to_owned()], Limits::DEFAULT);
    assert_eq!(audit.artifacts.len(), 2);
    for artifact in &audit.artifacts {
        let denied_by = artifact.denied_by.as_ref().unwrap();
        assert_eq!((artifact.state, denied_by.path.as_str()), (State::Unreadable, closed.to_str().unwrap()));
        assert_eq!(artifact.change.as_deref(), Some(format!("chmod o+x {}", closed.display()).as_str()));
    }
}

#[test]
fn links_special_files_and_ordinary_files_are_no_artifacts() {
    let place = package();
    let cache = place.path().join("p/__pycache__");
    fs::remove_file(cache.join("m.cpython-311.pyc")).unwrap();
    nix::unistd::mkfifo(&cache.join("m.cpython-311.pyc"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    symlink("__init__.cpython-311.pyc", cache.join("other.cpython-311.pyc")).unwrap();
    symlink("/usr", place.path().join("outside")).unwrap();
    fs::write(place.path().join("secret"), "").unwrap();
    fs::set_permissions(place.path().join("secret"), Permissions::from_mode(0o600)).unwrap();
    let audit = audited(&[place.path().to_owned()], Limits::DEFAULT);
    assert_eq!(states(&audit), [(State::Usable, "__init__.cpython-311.pyc")]);
    assert!(audit.entries < 20, "a link was followed: {} names", audit.entries);
}

#[test]
fn an_audit_that_reaches_a_limit_says_so() {
    let place = package();
    let few = [
        (Limits { entries: 2, ..Limits::DEFAULT }, 0),
        (Limits { depth: 1, ..Limits::DEFAULT }, 0),
        (Limits { text: 1, ..Limits::DEFAULT }, 1),
    ];
    for (limits, artifacts) in few {
        let audit = audited(&[place.path().to_owned()], limits);
        assert_eq!(audit.unavailable[0].what, "the rest of the paths", "{limits:?}");
        assert_eq!(audit.artifacts.len(), artifacts, "{limits:?}");
    }
}

#[test]
fn paths_that_do_not_exist_are_unavailable_or_missing_artifacts() {
    let place = package();
    let paths = [place.path().join("none"), place.path().join("ld.so.cache"), "/proc/self".into()];
    let audit = audited(&paths, Limits::DEFAULT);
    assert_eq!(states(&audit), [(State::Missing, "ld.so.cache")]);
    let reasons: Vec<&str> = audit.unavailable.iter().map(|gap| gap.reason.as_str()).collect();
    assert!(reasons[0].contains("does not exist") && reasons[1].contains("proc has rules of its own"), "{reasons:?}");
}

#[test]
fn a_package_without_bytecode_is_missing_it_only_for_users_who_cannot_make_it() {
    let place = package();
    fs::remove_dir_all(place.path().join("p/__pycache__")).unwrap();
    let paths = [place.path().to_owned()];
    assert_eq!(states(&audited(&paths, Limits::DEFAULT)), [(State::Missing, "__pycache__")]);
    fs::set_permissions(place.path().join("p"), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(states(&audited(&paths, Limits::DEFAULT)), []);
}

#[test]
fn beside_a_file_lie_the_artifacts_of_its_directory_and_not_those_further_below() {
    let place = package();
    fs::write(place.path().join("p/extension.so"), "").unwrap();
    fs::create_dir_all(place.path().join("p/sub/__pycache__")).unwrap();
    fs::write(place.path().join("p/sub/__pycache__/n.cpython-311.pyc"), "").unwrap();
    let file = place.path().join("p/extension.so");
    let nobody = Identity::new(65534, 65534, Vec::new());
    let machine = Machine::read().unwrap();
    let audit = audit_beside(&machine, &nobody, &[&file], Limits::DEFAULT, &mut |_| {});
    assert_eq!(states(&audit), [(State::Usable, "__init__.cpython-311.pyc"), (State::Usable, "m.cpython-311.pyc")]);
}
