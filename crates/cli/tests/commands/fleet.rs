//! `slowpath fleet`: what the package is started as. A shell script of its name stands for it.

use crate::running::*;
use std::os::unix::process::CommandExt;

/// Says what it was started as and with.
const PACKAGE: &str = "#!/bin/sh
echo \"ids $(id -u) $(id -ru) $(id -g)\"
grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):' /proc/self/status | tr -d ' \\t'
echo \"home=$HOME config=$XDG_CONFIG_HOME sudo=$SUDO_UID umask=$(umask)\"
if [ -e /proc/$$/fd/77 ]; then echo inherited; fi
echo \"words $*\"
exit 7
";

/// What the package printed when it was started with these variables and a descriptor that is open across exec.
fn started(variables: &[(&str, &str)]) -> Vec<String> {
    let place = place();
    let program = place.path().join("slowpath-fleet");
    write_script(&program, PACKAGE);
    let mut command = slowpath(["fleet", "compare", "--by", "a b"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", place.path().display()));
    for name in ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    // SAFETY: between fork and exec, dup2 alone.
    unsafe {
        command.pre_exec(|| if libc::dup2(0, 77) == 77 { Ok(()) } else { Err(std::io::Error::last_os_error()) });
    }
    let done = run(command);
    done.fails_with(7, &[]);
    done.stdout.lines().map(str::to_owned).collect()
}

#[track_caller]
fn has(printed: &[String], line: &str) {
    assert!(printed.iter().any(|one| one == line), "no {line:?} in {printed:#?}");
}

#[test]
fn the_package_gets_the_words_and_no_descriptor_and_can_gain_no_privilege() {
    let printed = started(&[("HOME", "/elsewhere")]);
    has(&printed, "words compare --by a b");
    has(&printed, "NoNewPrivs:1");
    has(&printed, "home=/elsewhere config= sudo= umask=0077");
    assert!(!printed.contains(&"inherited".to_owned()), "{printed:#?}");
}

#[test]
fn roots_package_reads_the_data_of_others_and_has_no_other_capability() {
    if !root() {
        return;
    }
    let printed = started(&[]);
    has(&printed, "ids 0 0 0");
    // CAP_DAC_READ_SEARCH is capability 2.
    has(&printed, "CapEff:0000000000000004");
    has(&printed, "CapPrm:0000000000000004");
    has(&printed, "CapInh:0000000000000000");
    has(&printed, "CapAmb:0000000000000000");
}

#[test]
fn under_sudo_the_package_is_the_callers_in_ids_capabilities_and_places() {
    if !root() {
        return;
    }
    let nobody = nix::unistd::User::from_uid(65534.into()).unwrap().expect("the database has nobody");
    let printed = started(&[("SUDO_UID", "65534"), ("HOME", "/root"), ("XDG_CONFIG_HOME", "/root/.config")]);
    has(&printed, &format!("ids 65534 65534 {}", nobody.gid));
    has(&printed, "CapEff:0000000000000000");
    has(&printed, "CapPrm:0000000000000000");
    has(&printed, &format!("home={} config= sudo= umask=0077", nobody.dir.display()));
}
