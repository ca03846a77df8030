//! Packages of Debian's archive are unpacked only where its keys have signed for them (`bench/accept/debian_archive.py`).
//!
//! The archive in `debian_archive/` has one suite with one package of one file. Who made it signed its index and threw the key away:
//! `make_archive.sh` there makes another.

use slowpath_house::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &str = "dists/probe/main/binary-all/Packages.xz";

/// An archive of a test's own, its cache, and where packages are unpacked.
struct Archive {
    place: tempfile::TempDir,
    keys: PathBuf,
}

impl Archive {
    fn new() -> Self {
        let (place, made) = (tempfile::tempdir().unwrap(), root().join("crates/house/tests/debian_archive"));
        for file in ["dists/probe/InRelease", PACKAGES, "pool/tiny.deb"] {
            let to = place.path().join("archive").join(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(made.join(file), to).unwrap();
        }
        Self { place, keys: made.join("keys.gpg") }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join("archive").join(name)
    }

    fn cached(&self, name: &str) -> PathBuf {
        self.place.path().join("cache").join(format!("probe-all-{name}"))
    }

    /// What it says on standard error when it has unpacked the package, or refuses to with exit code 3 and unpacks nothing.
    fn unpacked(&self, suite: &str) -> Result<String, String> {
        let to = self.place.path().join("unpacked");
        let mut python = Command::new("/usr/bin/python3");
        python.arg("-B").arg(root().join("bench/accept/debian_archive.py")).args(["all", suite]).arg(&to).arg("tiny");
        python.env("SLOWPATH_ARCHIVE", format!("file://{}", self.place.path().join("archive").display()));
        python
            .env("SLOWPATH_ARCHIVE_KEYRING", &self.keys)
            .env("SLOWPATH_KERNEL_CACHE", self.place.path().join("cache"));
        let done = python.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() {
            assert_eq!(fs::read_to_string(to.join("tiny")).unwrap(), "tiny\n");
            fs::remove_dir_all(to).unwrap();
            return Ok(said);
        }
        assert!(done.status.code() == Some(3) && said.starts_with("unavailable: ") && !to.exists(), "{said}");
        Err(said)
    }

    fn refuses(&self, suite: &str, words: &str) {
        let said = self.unpacked(suite).unwrap_err();
        assert!(said.contains(words), "{words}: {said}");
    }
}

fn change(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(text.clone());
    assert_ne!(changed, text);
    fs::write(path, changed).unwrap();
}

fn append(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, [&bytes[..], b"\0"].concat()).unwrap();
}

#[test]
fn a_package_that_the_archives_keys_have_signed_for_is_unpacked() {
    assert_eq!(Archive::new().unpacked("probe").unwrap(), "");
}

#[test]
fn without_the_signature_of_one_of_its_keys_nothing_of_an_archive_is_unpacked() {
    let archive = Archive::new();
    fs::remove_file(archive.file("dists/probe/InRelease")).unwrap();
    archive.refuses("probe", "InRelease");

    let archive = Archive::new();
    change(&archive.file("dists/probe/InRelease"), |text| text.replace("Date: Sat", "Date: Sun"));
    archive.refuses("probe", "BAD signature");

    let unsigned = |text: String| {
        let text = text.split_once("\n\n").unwrap().1.to_owned();
        text.split_once("-----BEGIN PGP SIGNATURE").unwrap().0.to_owned()
    };
    let archive = Archive::new();
    change(&archive.file("dists/probe/InRelease"), unsigned);
    archive.refuses("probe", "is not signed");

    let mut archive = Archive::new();
    archive.keys = archive.file("no-keys.gpg");
    fs::write(&archive.keys, "").unwrap();
    archive.refuses("probe", "is not signed");
    archive.keys = archive.file("nothing");
    archive.refuses("probe", "debian-archive-keyring");
}

#[test]
fn what_an_archive_serves_beside_its_signed_index_is_not_unpacked() {
    let archive = Archive::new();
    append(&archive.file(PACKAGES));
    archive.refuses("probe", "Packages.xz of probe is not what the signed index says");

    let archive = Archive::new();
    append(&archive.file("pool/tiny.deb"));
    archive.refuses("probe", "is not what the archive's index says");

    // Text around what is signed says nothing.
    let archive = Archive::new();
    append(&archive.file(PACKAGES));
    let sum = Command::new("sha256sum").arg(archive.file(PACKAGES)).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned();
    let forged = format!("Suite: probe\nSHA256:\n {sum} 1 main/binary-all/Packages.xz\n");
    change(&archive.file("dists/probe/InRelease"), |text| format!("{forged}\n{text}\n{forged}"));
    archive.refuses("probe", "not");

    // Another suite's index is signed as well.
    let archive = Archive::new();
    fs::rename(archive.file("dists/probe"), archive.file("dists/later")).unwrap();
    archive.refuses("later", "the index of later is one of probe");
}

#[test]
fn without_the_archive_what_was_fetched_before_is_checked_again_and_its_date_said() {
    let archive = Archive::new();
    archive.unpacked("probe").unwrap();
    fs::rename(archive.file("dists"), archive.file("gone")).unwrap();
    let said = archive.unpacked("probe").unwrap();
    assert!(said.contains("fetched before (Date: Sat, 01 Jan 2000"), "{said}");

    append(&archive.cached("Packages.xz"));
    archive.refuses("probe", "is not what the signed index says");
    // As versions that checked no signature left it.
    fs::remove_file(archive.cached("InRelease")).unwrap();
    archive.refuses("probe", "InRelease");
}
