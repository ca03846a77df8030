//! Targets that misbehave: each is told apart, with the right exit code, and what was recorded is kept.

use crate::running::*;
use crate::traces::{assert_nothing_left, processes_with};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_command_that_is_nowhere_is_not_found_and_leaves_no_directory() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    for name in ["/no/such/program", "no-such-program-here"] {
        let done = record(&out, &[], &[name]);
        done.fails_with(4, &[&format!("command not found: {name}"), "hint:"]);
        assert!(!out.exists(), "nothing was recorded, so nothing is left");
    }
    run(slowpath(["lab", "run", "--", "/no/such/program"])).fails_with(4, &["command not found"]);
    let done = run(slowpath(["diagnose", "--blocks", "1", "-o"]).arg(&out).args(["--", "/no/such/program"]));
    done.fails_with(4, &["command not found"]);
    assert!(!out.exists());
    record(&out, &[], &[""]).fails_with(2, &["no command"]);
}

#[test]
fn a_directory_that_was_there_stays_when_the_command_is_not_found() {
    if !root() {
        return;
    }
    let place = place();
    record(place.path(), &[], &["/no/such/program"]).fails_with(4, &["command not found"]);
    assert!(place.path().exists());
}

#[test]
fn a_file_that_cannot_be_executed_says_why() {
    if !root() {
        return;
    }
    let place = place();
    let file = |name: &str, content: &str, mode: u32| {
        let path = place.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let out = place.path().join("out");
    let cases = [
        (file("plain", "text", 0o644), "is not an executable file"),
        (file("format", "no program\n", 0o755), "is not an executable file"),
        (file("script", "#!/no/such/interpreter\n", 0o755), "its interpreter or loader does not"),
        ("/usr/bin".to_owned(), "is not an executable file"),
    ];
    for (program, words) in &cases {
        record(&out, &[], &[program]).fails_with(4, &[words]);
    }
    let secret = file("secret", "#!/bin/sh\n", 0o700);
    record(&out, &["--user", "65534"], &[&secret]).fails_with(4, &["no permission to execute", "--user"]);
}

#[test]
fn a_target_that_exits_at_once_is_recorded_whole() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let done = record(&out, &[], &["/bin/true"]);
    done.succeeds();
    assert_eq!(done.stdout, "", "the target said nothing");
    let tables = tables(&out);
    assert_eq!((tables.execs.len(), tables.exits.len()), (1, 1));
    assert_eq!(tables.exits[0].status, Some(0));
    assert!(!tables.faults.is_empty());
    assert_eq!(tables.manifest.losses.total(), 0);
}

#[test]
fn a_status_and_a_signal_are_reported_and_what_was_recorded_is_kept() {
    if !root() {
        return;
    }
    let place = place();
    let failed = place.path().join("failed");
    record(&failed, &[], &["/bin/sh", "-c", "exit 7"]).fails_with(4, &["exited with status 7", "is kept"]);
    assert_eq!(tables(&failed).exits[0].status, Some(7));
    let died = place.path().join("died");
    record(&died, &[], &["/bin/sh", "-c", "kill -SEGV $$"]).fails_with(4, &["died of signal 11", "is kept"]);
    assert_eq!(tables(&died).exits[0].signal, Some(11));
    run(slowpath(["lab", "run", "--", "/bin/sh", "-c", "echo the reason >&2; exit 7"]))
        .fails_with(4, &["exited with status 7", "its last line: the reason"]);
    run(slowpath(["lab", "run", "--", "/bin/sh", "-c", "kill -SEGV $$"])).fails_with(4, &["died of signal 11"]);
}

#[test]
fn a_target_that_is_never_ready_lives_on_after_record_and_ends_after_a_lab() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let (name, value) = mark();
    let mut command = slowpath(["record", "--timeout", "0.5", "--ready", "line:never", "-o"]);
    let done = run(command.arg(&out).args(["--", "/bin/sleep", "4"]).env(name, &value));
    done.fails_with(4, &["not ready within the time-out", "--timeout", "is kept"]);
    let tables = tables(&out);
    assert_eq!(tables.manifest.launch.as_ref().unwrap().ready, None);
    assert!(tables.exits.iter().any(|exit| exit.running), "its counters are those of the end of the recording");

    let (name, value) = mark();
    let mut command = slowpath(["lab", "run", "--timeout", "0.5", "--ready", "line:never", "--", "/bin/sleep", "100"]);
    let done = run(command.env(name, &value));
    done.fails_with(4, &["not ready within the time-out", "--timeout"]);
    assert_eq!(processes_with(&value), [] as [u32; 0]);
    assert_nothing_left(&done);
}

#[test]
fn a_target_that_deletes_its_own_binary_is_still_named() {
    if !root() {
        return;
    }
    let place = place();
    let program = place.path().join("deletes-itself");
    copy_program("/bin/dash", &program);
    let name = program.to_str().unwrap().to_owned();
    let out = place.path().join("out");
    record(&out, &[], &[&name, "-c", &format!("/bin/rm {name}; /bin/ls / > /dev/null; :")]).succeeds();
    assert!(!program.exists());
    let tables = tables(&out);
    assert_eq!(tables.execs[0].filename, name);
    let file = tables.files.iter().find(|file| file.path == name || file.path == format!("{name} (deleted)"));
    let file = file.unwrap_or_else(|| panic!("{name} is not among {:?}", tables.files));
    assert_eq!((file.dev, file.ino), (tables.execs[0].dev, tables.execs[0].ino));
    assert_eq!(tables.execs.len(), 3, "{:?}", tables.execs);
}
