//! Targets that change their identity, and programs that the kernel shields from observers.

use crate::running::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Touches 20,480 pages of anonymous memory.
const FAULT_HEAVY: &str = "
import mmap
m = mmap.mmap(-1, 80 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(0, 80 << 20, 4096): m[i] = 1
";

#[test]
fn a_change_of_uid_is_followed() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let target = [
        "/usr/bin/setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        FAULT_HEAVY,
    ];
    record(&out, &[], &target).succeeds();
    let tables = tables(&out);
    let uids: Vec<u32> = tables.execs.iter().map(|exec| exec.uid).collect();
    assert_eq!(uids, [0, 65534]);
    let after = tables.faults.iter().filter(|fault| fault.ts >= tables.execs[1].ts).count();
    assert!(after >= 20_480, "{after} faults after the change of identity");
    assert_eq!(tables.manifest.losses.total(), 0, "{:?}", tables.manifest.losses);
}

/// Records a copy of python of this `mode`, executed as user 65534.
fn shielded(mode: u32) {
    let place = place();
    let program = place.path().join("python");
    copy_program("/usr/bin/python3", &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
    let out = place.path().join("out");
    let name = program.to_str().unwrap();
    let done = record(&out, &["--user", "65534"], &[name, "-S", "-c", FAULT_HEAVY]);
    done.succeeds();
    let tables = tables(&out);
    let exec = &tables.execs[0];
    assert_eq!(exec.filename, name);
    assert_eq!(exec.uid, if mode & 0o4000 == 0 { 65534 } else { 0 }, "the effective user");
    let counted: u64 =
        tables.exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum::<u64>() - exec.min_flt - exec.maj_flt;
    let seen = tables.faults.iter().filter(|fault| fault.ts >= exec.ts).count() as u64;
    println!("mode {mode:o}: recorded {seen}, the kernel counted {counted}");
    assert!(seen.abs_diff(counted) * 1000 <= counted, "{seen} against {counted}");
}

#[test]
fn every_fault_of_a_set_uid_program_is_recorded() {
    if root() {
        shielded(0o4755);
    }
}

#[test]
fn every_fault_of_an_unreadable_program_is_recorded() {
    if root() {
        shielded(0o711);
    }
}

#[test]
fn an_unreadable_program_runs_in_a_lab() {
    if !root() {
        return;
    }
    let place = place();
    let program = place.path().join("sleep");
    copy_program("/bin/true", &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).unwrap();
    let done = run(slowpath(["lab", "run", "--json", "--user", "65534", "--"]).arg(&program));
    done.succeeds();
    assert_eq!(done.json()["launches"][0]["cold"], true, "{done:?}");
}
