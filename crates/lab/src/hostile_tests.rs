//! What a target, or any other user, could do to a lab: with its own directories between two launches, with set-user-ID
//! copies, with files that it must not read, and with a file system that never answers.

use crate::mounted_tests::needs_root;
use crate::private_mounts::{MountedHere, in_private_namespace};
use crate::*;
use nix::mount::{MsFlags, mount};
use slowpath_launch::{LeftOut, LeftOutReason};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc;
use std::time::Duration;

const NOBODY: u32 = 65534;

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn lab_of(paths: &[PathBuf]) -> Lab {
    let image = Image::build(&Closure::from_paths(paths), Path::new(DEFAULT_BASE), Vec::new()).unwrap();
    assert_eq!(image.files().len(), paths.len(), "{:?}", image.skipped());
    Lab::new(image, Settings::default()).unwrap()
}

/// Runs `work` among the lab's mounts; what was left out comes back with its result.
fn inside<T: Send>(lab: &Lab, work: impl FnOnce() -> T + Send) -> (Vec<LeftOut>, T) {
    in_private_namespace(|| {
        let mut mounted = MountedHere::default();
        let mut left_out = Vec::new();
        for step in &lab.mounts() {
            left_out.extend(mounted.step(step)?);
        }
        Ok((left_out, work()))
    })
    .unwrap()
}

fn as_user(uid: u32, program: &Path, argument: &str) -> Output {
    Command::new(program).arg(argument).uid(uid).gid(uid).current_dir("/").output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_directory_replaced_by_a_link_brings_no_file_over_another_ones_and_is_said() {
    needs_root!();
    let place = place();
    let (own, roots) = (place.path().join("d"), place.path().join("roots"));
    for (directory, content) in [(&own, "the target's"), (&roots, "root's")] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("f"), content).unwrap();
    }
    let lab = lab_of(&[own.join("f")]);
    let copied = inside(&lab, || fs::metadata(own.join("f")).unwrap());
    assert!(copied.0.is_empty());
    fs::rename(&own, place.path().join("e")).unwrap();
    symlink(&roots, &own).unwrap();
    let (left_out, seen) = inside(&lab, || fs::read_to_string(roots.join("f")).unwrap());
    assert_eq!(seen, "root's");
    assert_eq!(left_out, [LeftOut { path: own.join("f"), reason: LeftOutReason::Replaced }]);
    assert!(lab.against_left_out(&left_out).unwrap().contains("1 files"));
    // A real directory with another file in it is none of the closure's either.
    fs::remove_file(&own).unwrap();
    fs::rename(&roots, &own).unwrap();
    let (left_out, seen) = inside(&lab, || fs::read_to_string(own.join("f")).unwrap());
    assert_eq!((seen.as_str(), left_out.len()), ("root's", 1));
    // And the very file, moved back, is.
    fs::rename(&own, &roots).unwrap();
    fs::rename(place.path().join("e"), &own).unwrap();
    let (left_out, seen) = inside(&lab, || fs::read_to_string(own.join("f")).unwrap());
    assert_eq!((seen.as_str(), left_out.len()), ("the target's", 0));
    fs::remove_file(own.join("f")).unwrap();
    let (left_out, ()) = inside(&lab, || ());
    assert_eq!(left_out, [LeftOut { path: own.join("f"), reason: LeftOutReason::Gone }]);
}

/// `id -u` prints the effective user: of a set-user-ID copy its owner, if the mount lets it.
fn set_user_id_copy(place: &Path, owner: u32) -> PathBuf {
    let copy = place.join(format!("id-of-{owner}"));
    // By another process: a child that another test forks meanwhile has what this one has open, and a file that somebody writes is not
    // executed (ETXTBSY).
    assert!(std::process::Command::new("cp").arg("/usr/bin/id").arg(&copy).status().unwrap().success());
    chown(&copy, Some(owner), Some(owner)).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    copy
}

/// Who a set-user-ID copy of root's runs as in a lab, when it lies below `at` on a mount with these flags.
fn power_below(at: Option<&Path>, flags: MsFlags) -> String {
    let (place, none) = (place(), None::<&str>);
    let copy = set_user_id_copy(place.path(), 0);
    let at = at.unwrap_or(place.path());
    let copy = at.join(copy.file_name().unwrap());
    in_private_namespace(|| {
        mount(Some(place.path()), at, none, MsFlags::MS_BIND, none).unwrap();
        mount(none, at, none, MsFlags::MS_BIND | MsFlags::MS_REMOUNT | flags, none).unwrap();
        let lab = lab_of(std::slice::from_ref(&copy));
        assert_eq!(lab.overlay_refused(), None);
        Ok(text(&inside(&lab, || as_user(NOBODY, &copy, "-u")).1))
    })
    .unwrap()
}

#[test]
fn a_set_user_id_copy_on_a_nosuid_mount_has_no_power_in_the_lab() {
    needs_root!();
    // The control: without the option the copy is what it is on the host.
    assert_eq!(power_below(None, MsFlags::empty()), "0");
    assert_eq!(power_below(None, MsFlags::MS_NOSUID), NOBODY.to_string());
}

#[test]
fn a_set_user_id_copy_below_an_overlaid_nosuid_tree_has_no_power_in_the_lab() {
    needs_root!();
    let tree = Path::new("/opt");
    if !fs::symlink_metadata(tree).is_ok_and(|found| found.is_dir()) {
        println!("skipped: there is no /opt");
        return;
    }
    assert_eq!(power_below(Some(tree), MsFlags::empty()), "0");
    assert_eq!(power_below(Some(tree), MsFlags::MS_NOSUID), NOBODY.to_string());
}

#[test]
fn a_program_on_a_noexec_mount_is_not_executed_in_the_lab() {
    needs_root!();
    let (place, none) = (place(), None::<&str>);
    let copy = set_user_id_copy(place.path(), 0);
    in_private_namespace(|| {
        mount(Some(place.path()), place.path(), none, MsFlags::MS_BIND, none).unwrap();
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_NOEXEC;
        mount(none, place.path(), none, flags, none).unwrap();
        let lab = lab_of(std::slice::from_ref(&copy));
        let (_, run) = inside(&lab, || Command::new(&copy).output().map_err(|error| error.kind()));
        assert_eq!(run.unwrap_err(), std::io::ErrorKind::PermissionDenied);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_set_user_id_file_of_another_user_than_root_has_no_power_in_the_lab() {
    needs_root!();
    let place = place();
    let copy = set_user_id_copy(place.path(), 1234);
    let lab = lab_of(std::slice::from_ref(&copy));
    assert_eq!(text(&as_user(NOBODY, &copy, "-u")), "1234", "the control, on the host");
    assert_eq!(text(&inside(&lab, || as_user(NOBODY, &copy, "-u")).1), NOBODY.to_string());
}

#[test]
fn what_the_user_cannot_read_on_the_host_the_user_cannot_read_in_the_lab() {
    needs_root!();
    let place = place();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("closed")).unwrap();
    for name in ["open", "secret", "closed/open", "listed"] {
        fs::write(path(name), "content").unwrap();
    }
    fs::set_permissions(path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    // Mode 0644 for all, but nothing for this user: `struct posix_acl_xattr_header` and its entries
    // (include/uapi/linux/posix_acl_xattr.h): tag, permissions, id.
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in
        [(1u16, 6u16, u32::MAX), (2, 0, NOBODY), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, 4, u32::MAX)]
    {
        list.extend(tag.to_le_bytes().iter().chain(&permissions.to_le_bytes()).chain(&id.to_le_bytes()));
    }
    crate::image_tests::set_attribute(&path("listed"), "system.posix_acl_access", &list);
    let files = ["open", "secret", "closed/open", "listed"].map(path);
    let can_read = |file: &PathBuf| as_user(NOBODY, Path::new("/bin/cat"), file.to_str().unwrap()).status.success();
    let on_host: Vec<bool> = files.iter().map(can_read).collect();
    assert_eq!(on_host, [true, false, false, false]);
    let lab = lab_of(&files);
    let mount_point = lab.image().directory().mount_point();
    let (left_out, in_lab) = inside(&lab, || {
        // At their own places, and where the image is mounted.
        let own: Vec<bool> = files.iter().map(can_read).collect();
        let stored = files.iter().map(|file| crate::fill::inside(&mount_point, file));
        (own, stored.map(|file| can_read(&file)).collect::<Vec<bool>>())
    });
    assert!(left_out.is_empty());
    assert_eq!(in_lab, (on_host, vec![false; 4]));
}

/// A file system whose server never answers; ends with the descriptor.
fn never_answering(at: &Path) -> fs::File {
    let server = fs::File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
    mount(Some("fuse"), at, Some("fuse"), MsFlags::empty(), Some(options.as_str())).unwrap();
    server
}

/// Fails when `work` waits for an answer that does not come.
fn without_waiting<T: Send + 'static>(server: fs::File, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    // In the mount namespace of this thread; the answer comes in milliseconds or never.
    let worker = std::thread::spawn(move || sender.send(work()));
    let answer = receiver.recv_timeout(Duration::from_secs(20));
    // Its server is gone: whoever waits goes on.
    drop(server);
    let _ = worker.join();
    answer.expect("it waited for a file system that does not answer")
}

#[test]
fn a_file_system_that_never_answers_is_not_waited_for() {
    needs_root!();
    if !Path::new("/dev/fuse").exists() {
        println!("skipped: there is no /dev/fuse");
        return;
    }
    let place = place();
    let (served, file, link) =
        (place.path().join("served"), place.path().join("served/file"), place.path().join("link"));
    fs::create_dir(&served).unwrap();
    fs::write(&file, "before").unwrap();
    symlink(&file, &link).unwrap();
    let lab = lab_of(std::slice::from_ref(&file));
    in_private_namespace(|| {
        let server = never_answering(&served);
        let asked = [file.clone(), link.clone()];
        let closure = without_waiting(server, move || Closure::from_paths(asked));
        let reasons: Vec<&SkipReason> = closure.skipped().iter().map(|skipped| &skipped.reason).collect();
        assert_eq!(reasons, [&SkipReason::Network("fuse".into()), &SkipReason::Network("fuse".into())]);
        Ok(())
    })
    .unwrap();
    in_private_namespace(|| {
        let server = never_answering(&served);
        let steps = lab.mounts();
        let left_out = without_waiting(server, move || {
            let mut mounting = slowpath_launch::Mounting::default();
            let each = steps.iter().map(|step| mounting.step(step).unwrap());
            each.flatten().collect::<Vec<LeftOut>>()
        });
        assert_eq!(left_out, [LeftOut { path: file.clone(), reason: LeftOutReason::MayNeverAnswer }]);
        Ok(())
    })
    .unwrap();
}
