//! Tests of what an image holds, compared with the host through a mount that only the test's thread sees.

use crate::fill::inside;
use crate::private_mounts::{MountedHere, in_private_namespace};
use crate::*;
use slowpath_tables::FileKey;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

fn home() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn build(paths: &[PathBuf]) -> Image {
    Image::build(&Closure::from_paths(paths), Path::new(DEFAULT_BASE), Vec::new()).unwrap()
}

/// Runs `check` with the root of the mounted image.
fn mounted<T: Send>(image: &Image, check: impl FnOnce(&Path) -> T + Send) -> T {
    let device = LoopDevice::attach_read_only(image.file()).unwrap();
    in_private_namespace(|| {
        let mut mounts = MountedHere::default();
        let root = image.directory().mount_point();
        mounts.ext4(&device.path(), &root, true)?;
        Ok(check(&root))
    })
    .unwrap()
}

pub(crate) fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    let (path, name) =
        (std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap(), std::ffi::CString::new(name).unwrap());
    // SAFETY: both strings end with a zero byte; `value` is valid for its length.
    let result = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn attributes_of(path: &Path) -> Vec<(String, Vec<u8>)> {
    let file = fs::File::open(path).unwrap();
    let mut attributes: Vec<_> = attributes::names(&file)
        .unwrap()
        .into_iter()
        .map(|name| (name.to_string_lossy().into_owned(), attributes::value(&file, &name).unwrap()))
        .collect();
    attributes.sort();
    attributes
}

/// Everything that a program can see of a file but its device, inode number and atime.
fn assert_same(host: &Path, copy: &Path) {
    let (one, two) = (fs::symlink_metadata(host).unwrap(), fs::symlink_metadata(copy).unwrap());
    let visible = |m: &fs::Metadata| (m.mode(), m.uid(), m.gid(), m.mtime(), m.mtime_nsec());
    assert_eq!(visible(&one), visible(&two), "{}", host.display());
    assert_eq!(attributes_of(host), attributes_of(copy), "{}", host.display());
    if one.is_file() {
        assert!(fs::read(host).unwrap() == fs::read(copy).unwrap(), "content of {}", host.display());
    }
}

#[test]
fn a_program_and_its_libraries_are_in_the_image_as_on_the_host_with_all_directories_above() {
    crate::mounted_tests::needs_root!();
    let image =
        build(&crate::mounted_tests::python_closure().files().map(|file| file.path.clone()).collect::<Vec<_>>());
    assert!(image.skipped().is_empty() && image.lost_attributes().is_empty());
    mounted(&image, |root| {
        for file in image.files() {
            assert_same(&file.path, &inside(root, &file.path));
            assert_eq!(fs::metadata(inside(root, &file.path)).unwrap().ino(), file.image_inode);
            for directory in file.path.ancestors().skip(1).filter(|directory| *directory != Path::new("/")) {
                assert_same(directory, &inside(root, directory));
            }
        }
    });
}

#[test]
fn set_id_bits_owners_capabilities_lists_and_times_to_the_nanosecond_are_kept() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let path = home.path().join("tool");
    fs::write(&path, "x").unwrap();
    chown(&path, Some(1234), Some(65534)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6711)).unwrap();
    // VFS_CAP_REVISION_2 with the effective flag, cap_net_raw: `struct vfs_cap_data`.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    set_attribute(&path, "security.capability", &capability);
    set_attribute(&path, "user.note", b"bytes \0 and more");
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(attributes_of(&path).len(), 2);
    let image = build(std::slice::from_ref(&path));
    mounted(&image, |root| {
        assert_same(&path, &inside(root, &path));
        assert_eq!(fs::metadata(inside(root, &path)).unwrap().mtime_nsec(), 123_456_789);
    });
}

#[test]
fn names_of_any_bytes_come_over_the_hosts_files_in_a_launch() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let names: [&[u8]; 6] = [b"a:b", b"a,b", b"a\\b", b"a\nb", b"a b\t", b"\xff\xfe"];
    let paths: Vec<PathBuf> = names
        .iter()
        .map(|name| {
            let directory = home.path().join(OsStr::from_bytes(name));
            fs::create_dir(&directory).unwrap();
            let path = directory.join(OsStr::from_bytes(name));
            fs::write(&path, name).unwrap();
            path
        })
        .collect();
    let lab = Lab::new(build(&paths), Settings::default()).unwrap();
    in_private_namespace(|| {
        let mut mounts = MountedHere::default();
        for step in &lab.mounts() {
            mounts.step(step)?;
        }
        for (path, name) in paths.iter().zip(names) {
            assert_eq!(fs::read(path).unwrap(), name);
            let metadata = fs::metadata(path).unwrap();
            let key = FileKey { dev: closure::kernel_device(metadata.dev()), ino: metadata.ino() };
            assert_eq!(lab.host_path(key), Some(path.as_path()));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn hard_links_stay_links_and_holes_stay_holes() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let (one, two, sparse) = (home.path().join("one"), home.path().join("two"), home.path().join("sparse"));
    fs::write(&one, vec![7; 300_000]).unwrap();
    fs::hard_link(&one, &two).unwrap();
    let file = fs::File::create(&sparse).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(b"middle", 30 << 20).unwrap();
    file.write_all_at(b"end", (64 << 20) - 3).unwrap();
    let image = build(&[one.clone(), two.clone(), sparse.clone()]);
    mounted(&image, |root| {
        let inode = |path: &Path| fs::metadata(inside(root, path)).unwrap().ino();
        assert_eq!(inode(&one), inode(&two));
        assert_same(&sparse, &inside(root, &sparse));
        assert!(fs::metadata(inside(root, &sparse)).unwrap().blocks() * 512 < 1 << 20);
    });
}

#[test]
fn what_vanishes_changes_or_is_replaced_after_the_closure_was_made_is_skipped_and_said() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let path = |name: &str| {
        let path = home.path().canonicalize().unwrap().join(name);
        fs::write(&path, vec![1; 20 << 20]).unwrap();
        path
    };
    let (stays, vanishes, replaced, pipe, changes) = (path("a"), path("b"), path("c"), path("d"), path("e"));
    let closure = Closure::from_paths([&stays, &vanishes, &replaced, &pipe, &changes]);
    assert_eq!(closure.files().len(), 5);
    for gone in [&vanishes, &replaced, &pipe] {
        fs::remove_file(gone).unwrap();
    }
    symlink(&stays, &replaced).unwrap();
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let done = AtomicBool::new(false);
    let image = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().append(true).open(&changes).unwrap();
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"more").unwrap();
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        let image = Image::build(&closure, Path::new(DEFAULT_BASE), Vec::new());
        done.store(true, Ordering::Relaxed);
        image.unwrap()
    });
    assert_eq!(image.files().iter().map(|file| file.path.clone()).collect::<Vec<_>>(), [stays]);
    let reasons: Vec<_> =
        image.skipped().iter().map(|skipped| (skipped.path.clone(), skipped.reason.clone())).collect();
    assert_eq!(
        reasons,
        [
            (vanishes, SkipReason::Vanished),
            (replaced, SkipReason::Replaced),
            (pipe, SkipReason::NotRegular("pipe")),
            (changes.clone(), SkipReason::Changed)
        ]
    );
    mounted(&image, |root| assert!(!inside(root, &changes).exists()));
}

#[test]
fn copying_does_not_warm_files_that_the_host_had_not_cached() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let (cold, warm) = (home.path().join("cold"), home.path().join("warm"));
    for path in [&cold, &warm] {
        fs::write(path, vec![1; 1 << 20]).unwrap();
        fs::File::open(path).unwrap().sync_all().unwrap();
    }
    let cached = |path: &Path| device::cached_pages(&fs::File::open(path).unwrap()).unwrap().0;
    device::forget_pages(&fs::File::open(&cold).unwrap()).unwrap();
    assert_eq!((cached(&cold), cached(&warm)), (0, 256));
    let _image = build(&[cold.clone(), warm.clone()]);
    assert_eq!((cached(&cold), cached(&warm)), (0, 256));
}

#[test]
fn the_device_reads_past_the_page_cache_and_is_freed_with_its_last_holder() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let path = home.path().join("data");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let image = build(std::slice::from_ref(&path));
    let device = LoopDevice::attach_read_only(image.file()).unwrap();
    let name = device.name();
    let dio = fs::read_to_string(format!("/sys/block/{name}/loop/dio")).unwrap();
    assert_eq!(dio.trim() == "1", device.direct_io());
    assert!(device.direct_io(), "ext4 does direct I/O");
    assert_eq!(fs::read_to_string(format!("/sys/block/{name}/loop/autoclear")).unwrap().trim(), "1");
    in_private_namespace(|| {
        let mut mounts = MountedHere::default();
        let root = image.directory().mount_point();
        mounts.ext4(&device.path(), &root, true)?;
        assert_eq!(fs::read(inside(&root, &path)).unwrap().len(), 1 << 20);
        Ok(())
    })
    .unwrap();
    assert_eq!(device::cached_pages(image.file()).unwrap().0, 0);
}

#[test]
fn a_directory_without_room_is_refused_before_anything_is_written() {
    crate::mounted_tests::needs_root!();
    let home = home();
    let path = home.path().join("huge");
    fs::File::create(&path).unwrap().set_len(1 << 43).unwrap();
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let result = Image::build(&Closure::from_paths([&path]), base.path(), Vec::new());
    assert!(matches!(result, Err(LabError::NoSpace { .. })), "{result:?}");
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_in_memory_is_refused_because_reads_from_it_are_never_cold() {
    let closure = Closure::from_paths(["/usr/bin/python3"]);
    let result = Image::build(&closure, Path::new("/dev/shm"), Vec::new());
    assert!(matches!(result, Err(LabError::Unavailable { .. })), "{result:?}");
}
