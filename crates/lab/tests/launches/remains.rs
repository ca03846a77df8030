//! What is left of a lab: nothing.

use crate::{PROBE, lab_of, needs_root};
use slowpath_lab::{Closure, Image, Lab, Settings, Throttle, leftovers};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn some_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = vec!["/usr/bin/sleep".into(), "/usr/bin/dash".into()];
    for number in 0..40 {
        let path = directory.join(format!("file-{number}"));
        fs::write(&path, vec![number; 100_000]).unwrap();
        files.push(path);
    }
    files
}

/// Loop devices and mounts (of any process) whose file is below the directory or whose place is a lab's of the owner.
fn kernel_objects(below: &Path, owner: u32) -> Vec<String> {
    let mut found = Vec::new();
    let (wanted, lab) = (below.to_str().unwrap(), &format!("/lab-{owner}-"));
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if backing.starts_with(wanted) {
            found.push(format!("{:?}: {backing}", entry.file_name()));
        }
    }
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let text = fs::read(entry.path().join("mountinfo")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let of_lab = |line: &&str| line.contains(wanted) || line.contains(lab);
        found.extend(text.lines().filter(of_lab).map(|line| format!("{:?}: {line}", entry.path())));
    }
    found
}

fn directories_of(pid: u32) -> Vec<leftovers::Trace> {
    let of_pid = |trace: &leftovers::Trace| trace.kind == leftovers::TraceKind::Directory && trace.pid == pid;
    leftovers::list().into_iter().filter(of_pid).collect()
}

/// The kernel frees namespaces and devices a moment after their last holder.
fn gone_soon(below: &Path, owner: u32) {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let found = kernel_objects(below, owner);
        if found.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    leftovers::list()
        .into_iter()
        .filter(|trace| trace.kind == leftovers::TraceKind::Cgroup && trace.pid == pid)
        .map(|trace| trace.path)
        .collect()
}

#[test]
fn nothing_is_left_after_drop_and_after_a_panic() {
    needs_root!();
    for panics in [false, true] {
        let (base, home) = (directory(), directory());
        let files = some_files(home.path());
        let result = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let image = Image::build(&Closure::from_paths(&files), base.path(), Vec::new()).unwrap();
                let throttle = Some(Throttle { iops: 1000, bytes_per_second: 0 });
                let lab = Lab::new(image, Settings { throttle, ..Settings::default() }).unwrap();
                assert!(!kernel_objects(base.path(), 0).is_empty());
                let listed = directories_of(std::process::id());
                // Labs of other tests live beside it.
                let own = listed.iter().find(|trace| trace.size.is_some_and(|size| size.0 > 4_000_000)).unwrap();
                assert!(own.owner_alive, "{own:?}");
                if panics {
                    panic!("on purpose");
                }
                drop(lab);
            });
            thread.join()
        });
        assert_eq!(result.is_err(), panics);
        gone_soon(base.path(), 0);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
        // Labs of other tests live beside it, none with a throttle.
        assert_eq!(cgroups_of(std::process::id()), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_failed_build_leaves_nothing() {
    needs_root!();
    let base = directory();
    let closure = Closure::from_paths(["/proc/self/exe"]);
    assert!(Image::build(&closure, base.path(), Vec::new()).is_err());
    gone_soon(base.path(), 0);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn after_a_kill_at_any_moment_only_a_listed_directory_and_cgroup_are_left_and_cleaning_removes_them() {
    needs_root!();
    let (base, home) = (directory(), directory());
    let files = some_files(home.path());
    // Spread over building, calibrating, launching and dropping (a round takes about a second here).
    let mut moment = 0x2545_F491u64;
    for round in 0..20u64 {
        let mut holder =
            Command::new(PROBE).arg("hold").arg(base.path()).args(&files).stdout(Stdio::null()).spawn().unwrap();
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(round * 45 + (moment >> 33) % 45));
        assert!(holder.try_wait().unwrap().is_none(), "the holder ended by itself");
        holder.kill().unwrap();
        holder.wait().unwrap();
        gone_soon(base.path(), holder.id());
        // An image never has a name.
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
        let mut tries = 0;
        let failed =
            |(trace, result): &(leftovers::Trace, std::io::Result<()>)| trace.pid == holder.id() && result.is_err();
        // A child that was just forked holds the lock until its exec.
        while leftovers::clean().iter().any(failed) || !directories_of(holder.id()).is_empty() {
            tries += 1;
            assert!(tries < 200, "{:?}", leftovers::list());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(cgroups_of(holder.id()), Vec::<PathBuf>::new());
    }
}

#[test]
fn cleaning_leaves_the_lab_of_a_living_process_alone() {
    needs_root!();
    let home = directory();
    let lab = lab_of(&Closure::from_paths(some_files(home.path())));
    for (trace, _) in leftovers::clean() {
        assert_ne!(trace.pid, std::process::id());
    }
    lab.prepare_cold().unwrap();
    assert!(lab.io().is_ok());
}
