//! What is written is read, with the right rights and within the limits.

use crate::samples;
use slowpath_recording::{Manifest, Recording, SCHEMA_VERSION, Tables, WriteError, Writer};
use slowpath_tables::{Bytes, Fault, Nanos, PageCache, all_tables};

#[test]
fn every_table_and_the_manifest_survive_writing_and_reading() {
    let dir = tempfile::tempdir().unwrap();
    let tables = samples::every_table();
    let mut writer = Writer::create(dir.path().join("r"), tables.manifest.clone()).unwrap();
    samples::push_all(&mut writer, &tables);
    let manifest = writer.finish(|manifest| manifest.ended = Some(Nanos(99))).unwrap();
    assert_eq!(manifest.ended, Some(Nanos(99)));

    let recording = Recording::open(dir.path().join("r")).unwrap();
    assert_eq!(*recording.manifest(), manifest);
    assert_eq!(manifest.segments.len(), all_tables().len());
    let read = recording.tables().unwrap();
    assert_eq!(Tables { manifest: tables.manifest.clone(), ..read }, tables);
}

#[test]
fn rows_of_many_segments_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<PageCache> = samples::page_cache(0, 2_500).collect();
    let mut writer = Writer::create(dir.path().join("r"), Manifest::default()).unwrap().with_segment_rows(1_000);
    writer.push(rows.clone()).unwrap();
    let manifest = writer.finish(|_| ()).unwrap();
    let files: Vec<_> = manifest.segments.iter().map(|segment| (segment.file.as_str(), segment.rows)).collect();
    let expected = [
        ("page_cache/000000.parquet", 1_000),
        ("page_cache/000001.parquet", 1_000),
        ("page_cache/000002.parquet", 500),
    ];
    assert_eq!(files, expected);
    assert_eq!(manifest.rows("page_cache"), 2_500);
    assert_eq!(Recording::open(dir.path().join("r")).unwrap().read::<PageCache>().unwrap(), rows);
}

#[test]
fn a_table_without_rows_reads_as_empty() {
    let dir = tempfile::tempdir().unwrap();
    Writer::create(dir.path().join("r"), Manifest::default()).unwrap().finish(|_| ()).unwrap();
    assert_eq!(Recording::open(dir.path().join("r")).unwrap().read::<Fault>().unwrap(), Vec::new());
}

#[test]
fn directories_are_0700_and_files_0600() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let tables = samples::every_table();
    let mut writer = Writer::create(&path, tables.manifest.clone()).unwrap();
    samples::push_all(&mut writer, &tables);
    writer.finish(|_| ()).unwrap();
    let modes = samples::modes(&path);
    assert_eq!(modes.len(), 2 + 2 * all_tables().len(), "directory, manifest, a folder and a file a table");
    for (file, mode) in modes {
        let expected = if file.ends_with(".parquet") || file.ends_with(".json") { 0o600 } else { 0o700 };
        assert_eq!(mode, expected, "{file} has mode {mode:o}");
    }
}

#[test]
fn a_symbolic_link_at_the_output_path_is_refused_and_its_target_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    for (name, to) in [("link", target.clone()), ("dangling", dir.path().join("nowhere"))] {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(to, &link).unwrap();
        let error = Writer::create(&link, Manifest::default()).map(|_| ()).unwrap_err();
        assert!(matches!(error, WriteError::Symlink { .. }), "{error:?}");
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn a_file_at_the_output_path_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Writer::create(file.path(), Manifest::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error, WriteError::NotADirectory { .. }), "{error:?}");
}

#[test]
fn a_directory_with_content_is_refused_and_an_empty_one_taken() {
    let dir = tempfile::tempdir().unwrap();
    Writer::create(dir.path(), Manifest::default()).unwrap().finish(|_| ()).unwrap();
    let error = Writer::create(dir.path(), Manifest::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error, WriteError::NotEmpty { recording: true, .. }), "{error:?}");

    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("thesis.tex"), "text").unwrap();
    let error = Writer::create(foreign.path(), Manifest::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error, WriteError::NotEmpty { recording: false, .. }), "{error:?}");
    assert_eq!(std::fs::read_dir(foreign.path()).unwrap().count(), 1);
}

#[test]
fn a_missing_parent_directory_is_an_error_with_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let error = Writer::create(dir.path().join("no/such"), Manifest::default()).map(|_| ()).unwrap_err();
    assert!(matches!(&error, WriteError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}

#[test]
fn the_size_limit_is_announced_while_rows_still_fit_and_is_never_exceeded() {
    let dir = tempfile::tempdir().unwrap();
    let limit = Bytes(200_000);
    let path = dir.path().join("r");
    let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(1_000).with_limit(limit);
    let mut pushed = 0;
    let error = loop {
        pushed += 1_000;
        assert!(pushed < 1_000_000, "the limit was never announced");
        if let Err(error) = writer.push(samples::page_cache(pushed, 1_000)) {
            break error;
        }
    };
    assert!(matches!(error, WriteError::LimitReached { limit: l } if l == limit), "{error:?}");
    assert_eq!(writer.manifest().losses.total(), 0, "the announcement loses nothing");
    assert_eq!(writer.manifest().rows("page_cache"), pushed);

    // Closing rows fit into what was kept for them.
    writer.push(samples::every_table().files).unwrap();
    writer.flush().unwrap();

    // A recorder that goes on all the same loses rows, counted, and stays within the limit.
    let mut refused = 0;
    for _ in 0..100 {
        match writer.push(samples::page_cache(0, 1_000)) {
            Ok(()) => {}
            Err(WriteError::LimitReached { .. }) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(refused > 1);
    // What tells about the rows still finds room.
    writer.push(samples::every_table().exits).unwrap();
    let manifest = writer.finish(|_| ()).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(manifest.rows("exits"), samples::every_table().exits.len() as u64);
    let lost = manifest.losses.0.get("not_written.page_cache").copied().unwrap_or_default();
    assert_eq!(manifest.rows("page_cache") + lost, pushed + 100_000);
    let on_disk: u64 = manifest.segments.iter().map(|s| path.join(&s.file).metadata().unwrap().len()).sum();
    assert!(on_disk <= limit.0, "{on_disk}");
    assert_eq!(manifest.schema_version, SCHEMA_VERSION);
    assert_eq!(Recording::open(&path).unwrap().read::<PageCache>().unwrap().len() as u64, manifest.rows("page_cache"));
}

#[test]
fn of_a_segment_larger_than_the_limit_as_much_is_kept_as_fits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let limit = Bytes(150_000);
    let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(400_000).with_limit(limit);
    let error = writer.push(samples::page_cache(0, 400_000)).unwrap_err();
    assert!(matches!(error, WriteError::LimitReached { .. }), "{error:?}");
    writer.push(samples::every_table().execs).unwrap();
    let manifest = writer.finish(|_| ()).unwrap();
    let on_disk: u64 = manifest.segments.iter().map(|s| path.join(&s.file).metadata().unwrap().len()).sum();
    assert!((limit.0 / 2..=limit.0).contains(&on_disk), "{on_disk}");
    assert_eq!(manifest.rows("execs"), samples::every_table().execs.len() as u64);
    let kept = manifest.rows("page_cache");
    assert!(kept > 10_000 && kept + manifest.losses.0["not_written.page_cache"] == 400_000, "{manifest:?}");
    assert!(Recording::open(&path).unwrap().read::<PageCache>().unwrap().into_iter().eq(samples::page_cache(0, kept)));
}

#[test]
fn a_recording_that_was_taken_back_leaves_an_empty_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut writer = Writer::create(&path, Manifest::default()).unwrap();
    writer.push(samples::page_cache(0, 10)).unwrap();
    writer.flush().unwrap();
    assert_eq!(Recording::open(&path).unwrap().manifest().rows("page_cache"), 10);
    writer.discard().unwrap();
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn of_a_file_that_was_written_again_the_last_row_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut writer = Writer::create(&path, Manifest::default()).unwrap();
    let file = |ino: u64, path: &str| slowpath_tables::File {
        dev: 1,
        ino,
        path: path.to_owned(),
        directory: false,
        size: None,
        mtime: None,
        build_id: None,
        host_dev: None,
        host_ino: None,
    };
    for rows in [[file(3, "[f]"), file(2, "/b")], [file(3, "/f"), file(1, "/a")]] {
        writer.push(rows).unwrap();
        writer.flush().unwrap();
    }
    writer.finish(|_| ()).unwrap();
    let files = Recording::open(&path).unwrap().tables().unwrap().files;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["/a", "/b", "/f"]);
}

#[test]
fn the_manifest_lists_nearly_all_segments_before_they_are_flushed_and_all_after() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(1);
    writer.push(samples::page_cache(0, 1000)).unwrap();
    let listed = Recording::open(&path).unwrap().manifest().segments.len();
    assert!((990..=1000).contains(&listed), "{listed}");
    writer.push(samples::page_cache(1000, 1)).unwrap();
    writer.flush().unwrap();
    assert_eq!(Recording::open(&path).unwrap().manifest().segments.len(), 1001);
    // What is held grew with it.
    let held = std::fs::metadata(path.join(".reserve")).unwrap().len();
    let manifest = std::fs::metadata(path.join("manifest.json")).unwrap().len();
    assert!(held >= 2 * manifest && manifest > 64 * 1024, "{held} for {manifest}");
}
