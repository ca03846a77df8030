//! What other users can put in root's way: names of leftovers, links in place of directories. Each of these made root remove,
//! mount over or give away what was not meant.

use crate::running::*;
use crate::traces::{alone_in_cleaning, kill_all_with};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

const NOBODY: u32 = 65534;

/// A directory of the stranger's, with what it should not lead root to.
fn strangers(path: &Path) {
    fs::create_dir(path).unwrap();
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

#[test]
fn cleaning_removes_nothing_that_somebody_else_named_like_a_leftover() {
    if !root() {
        return;
    }
    let place = place();
    fs::write(place.path().join("precious"), "x").unwrap();
    // No process ever has this pid: PID_MAX_LIMIT is 2^22.
    let (lab, fresh) =
        (PathBuf::from("/var/tmp/slowpath-lab-4194306-1-0"), PathBuf::from("/tmp/slowpath-tmp-4194306-1-0"));
    for planted in [&lab, &fresh] {
        strangers(planted);
        symlink(place.path(), planted.join("stash")).unwrap();
    }
    let cleaned = [&["doctor", "--clean"][..], &["lab", "remove"]].map(|command| run(slowpath(command)));
    let stayed = [&place.path().join("precious"), &lab, &fresh].map(|path| path.exists());
    for planted in [&lab, &fresh] {
        let _ = fs::remove_file(planted.join("stash"));
        let _ = fs::remove_dir(planted);
    }
    assert_eq!(stayed, [true; 3]);
    assert!(cleaned.iter().all(|done| !done.stdout.contains("4194306")));
}

#[test]
fn one_leftover_that_cannot_be_removed_is_said_and_the_others_go() {
    if !root() {
        return;
    }
    run(slowpath(["lab", "list"])).succeeds();
    let _alone = alone_in_cleaning();
    // Directories of a lab that is gone, of which one holds what no lab makes.
    let [full, empty] = ["lab-4194306-1-0", "lab-4194306-1-1"].map(|name| Path::new("/run/slowpath").join(name));
    fs::create_dir_all(full.join("mount/precious")).unwrap();
    fs::create_dir_all(empty.join("mount")).unwrap();
    let done = run(slowpath(["doctor", "--clean", "--json"]));
    // By this command, or one that began beside it.
    let stayed = (full.join("mount/precious").exists(), empty.exists());
    fs::remove_dir_all(&full).unwrap();
    assert_eq!(stayed, (true, false));
    done.fails_with(3, &["could not be removed", "lab-4194306-1-0"]);
    assert!(done.json()["not_removed"][0].as_str().unwrap().contains("lab-4194306-1-0"));
}

#[test]
fn a_fresh_directory_of_a_killed_slowpath_is_removed_and_one_put_in_its_place_is_not() {
    if !root() {
        return;
    }
    let made = |replaced: bool| {
        let script = "touch {tmp}/file; sleep 60";
        let place = place();
        chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let (name, value) = mark();
        let mut command = slowpath(["record", "--user", "65534", "-o"]);
        command.arg(place.path().join("out")).args(["--", "/bin/sh", "-c", script]).env(name, &value);
        let mut running = start(command);
        let pid = running.child.id();
        // By the note of that process, as root reads it.
        let noted = || {
            let notes = fs::read_dir("/run/slowpath").ok()?.flatten().map(|entry| entry.path());
            let mut own = notes.filter(|path| path.to_string_lossy().contains(&format!("tmp-{pid}-")));
            let note: serde_json::Value = serde_json::from_slice(&fs::read(own.next()?).ok()?).ok()?;
            Some(Path::new("/tmp").join(note["name"].as_str()?))
        };
        assert!(soon(|| noted().is_some_and(|directory| directory.join("file").exists())));
        let directory = noted().unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().uid(), NOBODY);
        // Before it is killed: from then on any slowpath of the machine may clean up after it.
        let elsewhere = directory.with_extension("moved");
        if replaced {
            fs::rename(&directory, &elsewhere).unwrap();
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("precious"), "x").unwrap();
        }
        running.signal(libc::SIGKILL);
        // The target lives on, and with it the end of its output.
        kill_all_with(&value);
        running.wait();
        let alone = alone_in_cleaning();
        let done = run(slowpath(["doctor", "--clean"]));
        drop(alone);
        let stayed = (directory.exists(), directory.join("precious").exists());
        if replaced {
            fs::remove_dir_all(&directory).unwrap();
            fs::remove_dir_all(&elsewhere).unwrap();
        }
        (stayed, done.status.success())
    };
    assert_eq!(made(false), ((false, false), true));
    assert_eq!(made(true), ((true, true), true));
}

#[test]
fn a_target_that_makes_a_link_of_its_directory_gets_its_file_over_nothing_in_the_lab() {
    if !root() {
        return;
    }
    let place = place();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| place.path().join(name);
    for name in ["home", "home/d", "home/launches"] {
        strangers(&at(name));
    }
    fs::create_dir(at("roots")).unwrap();
    fs::write(at("roots/f"), "of root").unwrap();
    fs::write(at("home/d/f"), "of the target").unwrap();
    chown(at("home/d/f"), Some(NOBODY), Some(NOBODY)).unwrap();
    // The first launch, on the host, and the first one in the lab are well-behaved.
    let target = format!(
        "cd {home}; n=$(ls launches | wc -l); touch launches/$n; cat d/f > /dev/null\n\
         test $n -gt 1 && cat {roots}/f >> seen; test $n -eq 1 && mv d e && ln -s {roots} d; true",
        home = at("home").display(),
        roots = at("roots").display()
    );
    let done =
        run(slowpath(["lab", "run", "--json", "--runs", "3", "--user", "65534", "--", "/bin/sh", "-c", &target]));
    done.succeeds();
    assert_eq!(fs::read_to_string(at("home/seen")).unwrap(), "of root".repeat(2));
    let launches = done.json()["launches"].as_array().unwrap().clone();
    let left_out: Vec<usize> = launches.iter().map(|launch| launch["left_out"].as_array().unwrap().len()).collect();
    assert_eq!(left_out, [0, 1, 1]);
}

#[test]
fn no_directory_is_made_for_a_user_where_the_users_link_leads() {
    if !root() {
        return;
    }
    let place = place();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (home, roots) = (place.path().join("home"), place.path().join("roots"));
    strangers(&home);
    fs::create_dir(&roots).unwrap();
    symlink(&roots, home.join("link")).unwrap();
    let recording = |out: &Path| run(slowpath(["record", "--user", "65534", "-o"]).arg(out).args(["--", "/bin/true"]));
    recording(&home.join("link/out")).fails_with(2, &["cannot be used"]);
    assert!(!roots.join("out").exists());
    // Where only root can write, root makes it and hands it over.
    recording(&roots.join("out")).succeeds();
    assert_eq!(fs::metadata(roots.join("out")).unwrap().uid(), NOBODY);
    // And takes it back when nothing came of it.
    let failed = run(slowpath(["record", "--user", "65534", "-o"]).arg(roots.join("none")).args(["--", "/no/such"]));
    assert!(!failed.status.success() && !roots.join("none").exists());
}
