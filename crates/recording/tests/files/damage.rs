//! Whatever happens to a recording, what is whole is read and what is not is named.

use crate::samples;
use slowpath_recording::{Damage, MANIFEST_FILE, Manifest, OpenError, ReadError, Recording, Why, Writer};
use slowpath_tables::{Bytes, Nanos, PageCache};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A finished recording of three page-cache segments of 1,000 rows.
fn three_segments() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(1_000);
    writer.push(samples::page_cache(0, 3_000)).unwrap();
    writer.finish(|manifest| manifest.ended = Some(Nanos(1))).unwrap();
    (dir, path)
}

fn open_error(path: &Path) -> OpenError {
    Recording::open(path).map(|_| ()).unwrap_err()
}

fn edit_manifest(path: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let file = path.join(MANIFEST_FILE);
    let mut value: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    edit(&mut value);
    std::fs::write(file, value.to_string()).unwrap();
}

/// Reads the whole rows and checks that exactly the rows of segment 1 are missing.
fn only_the_second_segment_is_missing(path: &Path) -> Damage {
    let recording = Recording::open(path).unwrap();
    let error = recording.read::<PageCache>().unwrap_err();
    assert!(matches!(&error, ReadError::Damaged { file, .. } if file == "page_cache/000001.parquet"), "{error:?}");
    assert!(error.source().is_some());
    let (rows, mut damages) = recording.read_whole::<PageCache>();
    let expected: Vec<PageCache> = samples::page_cache(0, 1_000).chain(samples::page_cache(2_000, 1_000)).collect();
    assert!(rows == expected, "the rest is not read");
    assert_eq!(damages.len(), 1);
    let (tables, _) = recording.tables_whole();
    assert_eq!(tables.page_cache.len(), 2_000);
    assert_eq!(tables.manifest.losses.0["damaged.page_cache"], 1_000);
    damages.remove(0)
}

#[test]
fn a_truncated_segment_is_damaged_and_the_rest_is_read() {
    let (_dir, path) = three_segments();
    let file = std::fs::File::options().write(true).open(path.join("page_cache/000001.parquet")).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let damage = only_the_second_segment_is_missing(&path);
    assert!(matches!(damage.why, Why::Size { .. }), "{damage:?}");
    assert_eq!(damage.rows, 1_000);
}

#[test]
fn a_segment_of_the_right_size_and_wrong_content_is_damaged() {
    let (_dir, path) = three_segments();
    let file = path.join("page_cache/000001.parquet");
    let length = file.metadata().unwrap().len() as usize;
    std::fs::write(&file, vec![b'x'; length]).unwrap();
    assert!(matches!(only_the_second_segment_is_missing(&path).why, Why::Parquet(_)));
}

#[test]
fn a_missing_segment_is_damaged() {
    let (_dir, path) = three_segments();
    std::fs::remove_file(path.join("page_cache/000001.parquet")).unwrap();
    assert!(matches!(only_the_second_segment_is_missing(&path).why, Why::Io(_)));
}

#[test]
fn a_segment_that_is_a_link_or_a_pipe_is_damaged_and_not_waited_for() {
    let (_dir, path) = three_segments();
    let file = path.join("page_cache/000001.parquet");
    std::fs::rename(&file, path.join("moved")).unwrap();
    std::os::unix::fs::symlink(path.join("moved"), &file).unwrap();
    assert!(matches!(only_the_second_segment_is_missing(&path).why, Why::Io(_)));
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert!(matches!(only_the_second_segment_is_missing(&path).why, Why::Io(_)));
}

#[test]
fn a_segment_of_another_table_is_damaged() {
    let (_dir, path) = three_segments();
    let other = path.join("other");
    let mut writer = Writer::create(&other, Manifest::default()).unwrap();
    writer.push(samples::every_table().opens.into_iter().cycle().take(1_000)).unwrap();
    let manifest = writer.finish(|_| ()).unwrap();
    std::fs::copy(other.join(&manifest.segments[0].file), path.join("page_cache/000001.parquet")).unwrap();
    let bytes = manifest.segments[0].bytes.0;
    edit_manifest(&path, |manifest| manifest["segments"][1]["bytes"] = bytes.into());
    assert!(matches!(only_the_second_segment_is_missing(&path).why, Why::Column(_)));
}

#[test]
fn a_manifest_cannot_name_files_outside_the_recording() {
    for name in ["../page_cache/000001.parquet", "/etc/passwd", "page_cache/../../x.parquet", "opens/000001.parquet"] {
        let (_dir, path) = three_segments();
        edit_manifest(&path, |manifest| manifest["segments"][1]["file"] = name.into());
        let (rows, damages) = Recording::open(&path).unwrap().read_whole::<PageCache>();
        assert_eq!(rows.len(), 2_000);
        assert!(matches!(damages[0].why, Why::Name), "{name}: {:?}", damages[0]);
    }
}

#[test]
fn changed_bytes_anywhere_in_a_segment_never_panic_the_reader() {
    let (_dir, path) = three_segments();
    let file = path.join("page_cache/000001.parquet");
    let whole = std::fs::read(&file).unwrap();
    // The decoder's own panics are caught; keep their messages out of the test's output.
    std::panic::set_hook(Box::new(|_| ()));
    let mut damaged = 0;
    for step in 0..300 {
        let mut content = whole.clone();
        let at = step * whole.len() / 300;
        content[at] ^= 1 << (step % 8);
        content[whole.len() - 1 - step % 60] ^= if step % 3 == 0 { 0x15 } else { 0 };
        std::fs::write(&file, content).unwrap();
        damaged += usize::from(Recording::open(&path).unwrap().read::<PageCache>().is_err());
    }
    let _ = std::panic::take_hook();
    assert!(damaged > 100, "only {damaged} of 300 changes were noticed");
}

#[test]
fn a_foreign_directory_is_not_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(open_error(dir.path()), OpenError::NotARecording { .. }));
    std::fs::write(dir.path().join(MANIFEST_FILE), r#"{"name": "an extension", "manifest_version": 3}"#).unwrap();
    assert!(matches!(open_error(dir.path()), OpenError::NotARecording { .. }));
    assert!(matches!(open_error(&dir.path().join(MANIFEST_FILE)), OpenError::NotARecording { .. }));
    assert!(matches!(open_error(&dir.path().join("missing")), OpenError::Io { .. }));
}

#[test]
fn a_newer_version_is_named_with_the_version_known_here() {
    let (_dir, path) = three_segments();
    edit_manifest(&path, |manifest| *manifest = serde_json::json!({"schema_version": 7, "other": "shape"}));
    let error = open_error(&path);
    assert_eq!(error.to_string(), "the recording has schema version 7; this program knows versions up to 1");
    assert!(matches!(error, OpenError::Newer { found: 7, known: 1 }));
}

#[test]
fn a_truncated_manifest_is_damaged() {
    let (_dir, path) = three_segments();
    let json = std::fs::read(path.join(MANIFEST_FILE)).unwrap();
    std::fs::write(path.join(MANIFEST_FILE), &json[..json.len() / 2]).unwrap();
    assert!(matches!(open_error(&path), OpenError::Damaged { why: Why::Json(_), .. }));
}

#[test]
fn the_manifest_is_truth_and_leftovers_of_a_crash_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(1_000);
    writer.push(samples::page_cache(0, 1_500)).unwrap();
    drop(writer);
    let half = std::fs::read(path.join("page_cache/000000.parquet")).unwrap();
    // Killed while writing a segment, and killed after renaming it, before the manifest.
    std::fs::write(path.join("page_cache/.000001.parquet.tmp"), &half[..half.len() / 2]).unwrap();
    std::fs::write(path.join("page_cache/000001.parquet"), &half).unwrap();
    std::fs::write(path.join(".manifest.json.tmp"), "{").unwrap();
    let recording = Recording::open(&path).unwrap();
    assert!(recording.manifest().ended.is_none());
    assert_eq!(recording.read::<PageCache>().unwrap().len(), 1_000);
}

/// Not a test of its own: the recorder that the next test kills.
#[test]
#[ignore = "started by killing_the_recorder_at_any_moment_leaves_a_readable_recording"]
fn recorder_that_never_ends() {
    let path = std::env::var_os("RECORDING_TO_KILL").unwrap();
    let mut writer = Writer::create(path, Manifest::default()).unwrap().with_segment_rows(100);
    // Ends by itself should the test die first.
    for from in 0..2_000 {
        writer.push(samples::page_cache(from * 100, 100)).unwrap();
    }
}

#[test]
fn killing_the_recorder_at_any_moment_leaves_a_readable_recording() {
    for pause in [0, 3, 7, 13, 29] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let mut recorder = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "damage::recorder_that_never_ends"])
            .env("RECORDING_TO_KILL", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !path.join("page_cache/000003.parquet").exists() && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(pause));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.manifest().ended, None);
        let rows = recording.read::<PageCache>().unwrap();
        assert!(rows.len() >= 300, "{} rows", rows.len());
        assert!(rows == samples::page_cache(0, rows.len() as u64).collect::<Vec<_>>());
        assert!(recording.manifest().segments.iter().all(|segment| segment.bytes > Bytes(0)));
    }
}
