//! Machines and users that cannot: exit code 3, the reason, and what would change it.

use crate::running::*;
use std::process::Command;

/// Every command that needs privilege.
const PRIVILEGED: [&str; 4] = [
    "record -o /var/tmp/slowpath-never -- true",
    "lab run -- true",
    "diagnose -o /var/tmp/slowpath-never -- true",
    "diagnose --warm -o /var/tmp/slowpath-never -- true",
];

fn unprivileged(arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", SLOWPATH]).args(arguments).current_dir("/");
    command
}

#[test]
fn without_root_the_reason_and_sudo_are_said() {
    if !root() {
        return;
    }
    for line in PRIVILEGED {
        let words: Vec<&str> = line.split(' ').collect();
        run(&mut unprivileged(&words))
            .fails_with(3, &["this machine cannot", "CAP_SYS_ADMIN", "sudo", "slowpath doctor"]);
    }
    assert!(!std::path::Path::new("/var/tmp/slowpath-never").exists());
    let doctor = run(&mut unprivileged(&["doctor", "--json"]));
    doctor.succeeds();
    let said = doctor.json();
    assert_eq!((said["can_record"].as_bool(), said["can_use_lab"].as_bool()), (Some(false), Some(false)));
    let remedies: Vec<_> =
        said["unavailable"].as_array().unwrap().iter().map(|gap| gap["remedy"].to_string()).collect();
    assert!(remedies.iter().any(|remedy| remedy.contains("sudo")), "{remedies:?}");
}

#[test]
fn a_kernel_without_btf_cannot_and_the_kernel_option_is_named() {
    if !root() {
        return;
    }
    for line in PRIVILEGED {
        let script = format!("mount -t tmpfs none /sys/kernel/btf; exec \"$SLOWPATH\" {line}");
        run(&mut in_private_mounts(&script)).fails_with(3, &["this machine cannot", "CONFIG_DEBUG_INFO_BTF"]);
    }
    assert!(!std::path::Path::new("/var/tmp/slowpath-never").exists());
    let doctor = run(&mut in_private_mounts("mount -t tmpfs none /sys/kernel/btf; exec \"$SLOWPATH\" doctor --json"));
    doctor.succeeds();
    let said = doctor.json();
    assert_eq!((said["can_record"].as_bool(), said["can_use_lab"].as_bool()), (Some(false), Some(false)));
}

#[test]
fn a_machine_without_mkfs_records_and_has_no_lab() {
    if !root() {
        return;
    }
    let hide = "mount -t tmpfs none /usr/sbin; [ -L /sbin ] || mount -t tmpfs none /sbin;";
    let lab = run(&mut in_private_mounts(&format!("{hide} exec \"$SLOWPATH\" lab run -- true")));
    lab.fails_with(3, &["e2fsprogs"]);
    let place = place();
    let record = format!("{hide} exec \"$SLOWPATH\" record -o {}/out -- true", place.path().display());
    run(&mut in_private_mounts(&record)).succeeds();
}

#[test]
fn here_as_root_doctor_says_that_all_works() {
    if !root() {
        return;
    }
    let said = run(&mut slowpath(["doctor", "--json"])).json();
    assert_eq!((said["can_record"].as_bool(), said["can_use_lab"].as_bool()), (Some(true), Some(true)), "{said}");
}
