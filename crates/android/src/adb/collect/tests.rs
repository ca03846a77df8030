//! Collecting over Debian's adb client from a server that plays a hostile device (`tests/scripted_device`).

use super::*;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says that a process runs one test alone, with a device of its own: the client finds its server by a variable.
const ALONE: &str = "SLOWPATH_ANDROID_ALONE";

/// Ends with its standard input, which is ours.
struct Phone(Child);

impl Drop for Phone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was collected from a healthy device with this fault. Nothing in the process that only starts the test `name` once more.
fn collected(name: &str, fault: &str) -> Option<(tempfile::TempDir, EvidenceManifest)> {
    if std::env::var_os(ALONE).is_some() {
        let place = tempfile::tempdir().unwrap();
        let adb = Adb::connect(Path::new("adb"), None, Duration::from_secs(60), &|| true).unwrap();
        let packages = ["com.android.chrome".to_owned(), "com.google.android.webview".to_owned()];
        let asked = Asked { packages: &packages, now: String::new(), progress: &mut |_| {} };
        let (manifest, ended) = collect(&adb, place.path(), asked).unwrap();
        assert!(ended.is_none() && manifest.is_complete, "{ended:?}");
        return Some((place, manifest));
    }
    if Command::new("adb").arg("version").output().is_err() {
        println!("skipped: there is no adb");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted_device/server.py");
    let mut server = Command::new("/usr/bin/python3");
    server.arg("-B").arg(script).args(["healthy", fault]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = Phone(server.spawn().unwrap());
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", &format!("adb::collect::tests::{name}"), "--nocapture"]);
    test.env(ALONE, "1")
        .env("ADB_SERVER_SOCKET", format!("tcp:127.0.0.1:{}", port.trim()))
        .env_remove("ANDROID_SERIAL");
    let done = test.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    None
}

/// All files below a directory.
fn files(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn pulls<'a>(manifest: &'a EvidenceManifest, end: &str) -> Vec<&'a Step> {
    let is_one = |step: &&Step| step.command[0] == "pull" && step.command[1].ends_with(end);
    manifest.steps.iter().filter(is_one).collect()
}

/// No vdex file is there, each was tried and failed with these words, and the rest came.
fn assert_failed(place: &Path, manifest: &EvidenceManifest, words: &str) {
    let failed = pulls(manifest, ".vdex");
    assert!(failed.len() >= 3, "{failed:#?}");
    for step in failed {
        assert_eq!((step.outcome, step.bytes, &step.file), (StepOutcome::Failed, 0, &None), "{step:#?}");
        assert!(step.said.as_ref().is_some_and(|said| said.contains(words)) && step.remedy.is_some(), "{step:#?}");
    }
    let came = pulls(manifest, ".dm");
    assert!(came.len() == 1 && came[0].outcome == StepOutcome::Done && came[0].bytes > 0, "{came:#?}");
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let names: Vec<String> = files(place).iter().map(name).collect();
    assert!(names.contains(&"base.dm".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".vdex") || name == "planted"), "{names:?}");
}

#[test]
fn a_file_that_is_larger_than_the_device_listed_fails_alone_and_is_not_kept() {
    let name = "a_file_that_is_larger_than_the_device_listed_fails_alone_and_is_not_kept";
    let Some((place, manifest)) = collected(name, "grows") else { return };
    assert_failed(place.path(), &manifest, "more than 16 MiB");
}

#[test]
fn a_device_that_says_a_file_is_a_directory_plants_no_file_under_a_name_of_its_own() {
    let name = "a_device_that_says_a_file_is_a_directory_plants_no_file_under_a_name_of_its_own";
    let Some((place, manifest)) = collected(name, "directory") else { return };
    assert_failed(place.path(), &manifest, "");
}

#[test]
fn a_file_that_two_packages_share_is_copied_once() {
    let name = "a_file_that_two_packages_share_is_copied_once";
    let Some((place, manifest)) = collected(name, "") else { return };
    let shared: Vec<&Step> =
        manifest.steps.iter().filter(|step| step.command.join(" ").contains("trichrome")).collect();
    let of =
        |end: &str| shared.iter().filter(|step| step.what.starts_with("file ") && step.what.ends_with(end)).count();
    assert_eq!(of(".vdex"), 1, "{shared:#?}");
    assert!(pulls(&manifest, ".vdex").iter().all(|step| step.outcome == StepOutcome::Done && step.bytes > 0));
    assert!(files(place.path()).iter().filter(|path| path.extension().is_some_and(|end| end == "vdex")).count() >= 3);
}
