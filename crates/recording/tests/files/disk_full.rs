//! A full disk ends a recording with a typed error and keeps what is whole.

use crate::samples;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use slowpath_recording::{Manifest, Recording, WriteError, Writer};
use slowpath_tables::PageCache;
use std::path::Path;

/// Runs `test` in a thread with a mount namespace of its own, with a tmpfs of 384 KiB at the given path. The namespace
/// and the mount end with the thread.
fn on_a_small_disk(test: impl FnOnce(&Path) + Send) {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let none: Option<&str> = None;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
            mount(Some("tmpfs"), dir.path(), Some("tmpfs"), MsFlags::empty(), Some("size=384k")).unwrap();
            test(dir.path());
        });
    });
}

#[test]
fn a_full_disk_is_a_typed_error_and_earlier_segments_stay_readable() {
    on_a_small_disk(|disk| {
        let path = disk.join("r");
        let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(5_000);
        let mut pushed = 0;
        let error = loop {
            assert!(pushed < 1_000_000, "the disk never filled up");
            let outcome = writer.push(samples::page_cache(pushed, 5_000));
            pushed += 5_000;
            if let Err(error) = outcome {
                break error;
            }
        };
        assert!(
            matches!(&error, WriteError::Full { source, .. } if source.raw_os_error() == Some(nix::libc::ENOSPC)),
            "{error:?}"
        );
        let leftovers = std::fs::read_dir(path.join("page_cache"))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
            .count();
        assert_eq!(leftovers, 0, "the file that did not fit was left behind");

        let before = Recording::open(&path).unwrap();
        let rows = before.read::<PageCache>().unwrap();
        assert!(rows.len() as u64 >= pushed - 5_000 && pushed > 5_000, "{} of {pushed} rows", rows.len());
        assert!(rows == samples::page_cache(0, rows.len() as u64).collect::<Vec<_>>());

        // Space was held for this, so that the end can be told.
        let manifest = writer.finish(|manifest| manifest.stop_reason = Some("the disk is full".to_owned())).unwrap();
        assert!(!path.join(".reserve").exists());
        let after = Recording::open(&path).unwrap();
        assert_eq!(after.manifest().stop_reason.as_deref(), Some("the disk is full"));
        let lost = manifest.losses.0.get("not_written.page_cache").copied().unwrap_or(0);
        assert_eq!(after.read::<PageCache>().unwrap().len() as u64 + lost, pushed, "rows are read or counted as lost");
    });
}

#[test]
fn of_a_segment_larger_than_the_disk_the_beginning_is_kept() {
    const ROWS: u64 = 1_000_000;
    on_a_small_disk(|disk| {
        let path = disk.join("r");
        let mut writer = Writer::create(&path, Manifest::default()).unwrap().with_segment_rows(ROWS as usize);
        let error = writer.push(samples::page_cache(0, ROWS)).unwrap_err();
        assert!(matches!(error, WriteError::Full { .. }), "{error:?}");
        writer.push(samples::every_table().execs).unwrap();
        let manifest = writer.finish(|_| ()).unwrap();
        let kept = manifest.rows("page_cache");
        assert!(kept > 0 && kept + manifest.losses.0["not_written.page_cache"] == ROWS, "{manifest:?}");
        assert_eq!(manifest.rows("execs"), samples::every_table().execs.len() as u64);
        assert!(
            Recording::open(&path).unwrap().read::<PageCache>().unwrap().into_iter().eq(samples::page_cache(0, kept))
        );
    });
}

#[test]
fn a_disk_without_any_space_refuses_the_recording_at_once() {
    on_a_small_disk(|disk| {
        let filled = std::fs::write(disk.join("big"), vec![0; 1 << 20]).unwrap_err();
        assert_eq!(filled.raw_os_error(), Some(nix::libc::ENOSPC));
        let error = Writer::create(disk.join("r"), Manifest::default()).map(|_| ()).unwrap_err();
        assert!(matches!(error, WriteError::Full { .. }), "{error:?}");
    });
}

#[test]
fn the_manifest_is_written_on_a_disk_that_others_filled() {
    on_a_small_disk(|disk| {
        let path = disk.join("r");
        let mut writer = Writer::create(&path, Manifest::default()).unwrap();
        std::fs::write(disk.join("big"), vec![0; 1 << 20]).unwrap_err();
        writer.push(samples::page_cache(0, 100)).unwrap();
        let error = writer.finish(|manifest| manifest.stop_reason = Some("told".to_owned())).unwrap_err();
        assert!(matches!(&error, WriteError::Full { file, .. } if file == "page_cache/000000.parquet"), "{error:?}");
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.manifest().stop_reason.as_deref(), Some("told"));
        assert_eq!(recording.manifest().losses.0["not_written.page_cache"], 100);
    });
}
