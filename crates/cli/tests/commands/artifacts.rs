//! `slowpath artifacts audit` on trees whose truth is known: each way in which an artifact cannot be used, and controls beside it.
//! Decided for user 65534, by root and by that user itself.

use crate::running::*;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const NOBODY: &str = "65534";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A package of two modules, compiled by Debian's Python.
fn package(place: &Path) {
    let package = place.join("app/pkg");
    fs::create_dir_all(&package).unwrap();
    for name in ["__init__.py", "m.py"] {
        fs::write(package.join(name), "x = 1\n").unwrap();
    }
    let compiled = Command::new("/usr/bin/python3").args(["-m", "compileall", "-q"]).arg(&package).status().unwrap();
    assert!(compiled.success());
}

fn audit(arguments: &[&str], path: &Path) -> Value {
    let done = run(slowpath(["artifacts", "audit", "--json"]).args(arguments).arg(path));
    done.succeeds();
    done.json()
}

/// The artifacts that root finds for user 65534.
fn for_nobody(path: &Path) -> Vec<Value> {
    audit(&["--as", NOBODY], path)["artifacts"].as_array().unwrap().clone()
}

/// (family, state, path and rule of the denial) of each, without repeats; paths relative to `place`.
fn summaries(artifacts: &[Value], place: &Path) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |artifact: &Value| {
        let denied_by = &artifact["denied_by"];
        let path = text(&denied_by["path"]).replace(&place.to_string_lossy().into_owned(), "");
        let words = if denied_by.is_null() { String::new() } else { format!("{path} {}", text(&denied_by["rule"])) };
        assert_eq!(artifact["uid"], 65534);
        (text(&artifact["family"]), text(&artifact["state"]), words)
    };
    let mut all: Vec<_> = artifacts.iter().map(one).collect();
    all.dedup();
    all
}

fn expect(place: &Path, expected: &[(&str, &str, &str)]) -> Vec<Value> {
    let artifacts = for_nobody(place);
    let expected: Vec<_> =
        expected.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect();
    assert_eq!(summaries(&artifacts, place), expected, "{artifacts:#?}");
    artifacts
}

#[test]
fn bytecode_in_a_private_directory_is_unreadable_and_the_change_repairs_it() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    let cache = place.path().join("app/pkg/__pycache__");
    mode(&cache, 0o700);
    let found = expect(place.path(), &[("python_bytecode", "unreadable", "/app/pkg/__pycache__ other_bits")]);
    assert_eq!(found.len(), 2);
    let change = found[0]["change"].as_str().unwrap();
    assert_eq!(change, format!("chmod o+x {}", cache.display()));
    assert!(Command::new("sh").args(["-c", change]).status().unwrap().success());
    expect(place.path(), &[("python_bytecode", "usable", "")]);
}

#[test]
fn a_directory_two_levels_up_without_x_is_named_as_the_one_that_denies() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    mode(&place.path().join("app"), 0o744);
    expect(place.path(), &[("python_bytecode", "unreadable", "/app other_bits")]);
}

#[test]
fn an_access_control_list_that_denies_is_named_by_its_entry() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    let cache = place.path().join("app/pkg/__pycache__");
    // user::rwx user:65534:--- group::r-x mask::r-x other::r-x, as `setfacl -m u:65534:--- DIR` sets it.
    let entries: [(u16, u16, u32); 5] =
        [(1, 7, u32::MAX), (2, 0, 65534), (4, 5, u32::MAX), (16, 5, u32::MAX), (32, 5, u32::MAX)];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, grants, id) in entries {
        list.extend([&tag.to_le_bytes()[..], &grants.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    rustix::fs::setxattr(&cache, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty()).unwrap();
    let found = expect(place.path(), &[("python_bytecode", "unreadable", "/app/pkg/__pycache__ acl_user")]);
    assert_eq!(found[0]["change"], format!("setfacl -m u:65534:--x,m::r-x {}", cache.display()));
    // Another user has what all others have.
    let others = audit(&["--as", "65533"], place.path());
    assert_eq!(others["artifacts"][0]["state"], "usable");
}

#[test]
fn stale_bytecode_is_stale_and_names_its_source() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    fs::write(place.path().join("app/pkg/m.py"), "x = 1234\n").unwrap();
    let found = for_nobody(place.path());
    let stale: Vec<&Value> = found.iter().filter(|artifact| artifact["state"] == "stale").collect();
    assert_eq!((found.len(), stale.len()), (2, 1));
    assert!(stale[0]["path"].as_str().unwrap().contains("/__pycache__/m.cpython-"), "{stale:?}");
    assert!(stale[0]["reason"].as_str().unwrap().contains("/app/pkg/m.py"), "{stale:?}");
}

#[test]
fn an_archive_of_class_data_and_a_cache_of_fonts_that_others_cannot_read_are_unreadable() {
    if !root() {
        return;
    }
    let place = place();
    let (archive, fonts) = (place.path().join("app.jsa"), place.path().join("cache/fontconfig"));
    fs::write(&archive, 0xf00b_aba2u32.to_ne_bytes()).unwrap();
    mode(&archive, 0o600);
    fs::create_dir_all(&fonts).unwrap();
    fs::write(fonts.join("3830d5c3ddfd5cd38a049b759396e72e-le64.cache-8"), "").unwrap();
    fs::write(fonts.join("CACHEDIR.TAG"), "").unwrap();
    mode(&fonts, 0o700);
    expect(
        place.path(),
        &[
            ("jvm_cds", "unreadable", "/app.jsa other_bits"),
            ("fontconfig_cache", "unreadable", "/cache/fontconfig other_bits"),
        ],
    );
    mode(&archive, 0o644);
    let found = for_nobody(&archive);
    assert_eq!(found[0]["state"], "unknown", "which class path it was made for stands nowhere: {found:?}");
}

#[test]
fn readable_artifacts_ordinary_files_and_optional_ones_that_are_missing_are_no_problem() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    let beside = place.path().join("app/data");
    fs::create_dir(&beside).unwrap();
    for name in ["secret.pem", "m.pyc", "loaders.cache.bak", "app.jar", "script.py"] {
        fs::write(beside.join(name), "x").unwrap();
        mode(&beside.join(name), 0o600);
    }
    mode(&beside, 0o700);
    expect(place.path(), &[("python_bytecode", "usable", "")]);
}

#[test]
fn the_user_itself_learns_the_same_without_privilege() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    let cache = place.path().join("app/pkg/__pycache__");
    mode(&cache, 0o700);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", SLOWPATH, "artifacts", "audit", "--json"]);
    let done = run(command.arg(place.path()).current_dir("/"));
    done.succeeds();
    let found = done.json()["artifacts"].as_array().unwrap().clone();
    // What lies in it cannot be listed: the directory stands for it.
    assert_eq!(found[0]["path"], cache.to_str().unwrap());
    assert_eq!(
        summaries(&found, place.path()),
        [("python_bytecode".to_owned(), "unreadable".to_owned(), "/app/pkg/__pycache__ other_bits".to_owned())]
    );
}

#[test]
fn root_is_warned_and_shown_what_it_would_not_notice() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    mode(&place.path().join("app/pkg/__pycache__"), 0o700);
    let from_shell = || {
        let mut command = slowpath(["artifacts", "audit"]);
        for name in ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"] {
            command.env_remove(name);
        }
        command
    };
    let done = run(from_shell().arg(place.path()));
    done.succeeds();
    assert!(done.stderr.contains("root may read everything"), "{done:?}");
    assert!(done.stdout.starts_with("for user ") && done.stdout.contains("(uid 65534)"), "{done:?}");
    assert!(done.stdout.contains("unreadable  python_bytecode"), "{done:?}");
    assert!(done.stdout.contains("2 artifacts: 2 unreadable"), "{done:?}");
    let as_root = run(from_shell().args(["--as", "root"]).arg(place.path()));
    assert!(as_root.stderr.contains("root may read everything") && as_root.stdout.contains("2 usable"), "{as_root:?}");
    let of_sudo = run(from_shell().arg(place.path()).env("SUDO_UID", NOBODY));
    assert!(of_sudo.stdout.contains("(uid 65534)") && !of_sudo.stderr.contains("root may read"), "{of_sudo:?}");
}

#[test]
fn names_that_are_no_text_and_a_fifo_among_artifacts_neither_hang_nor_reach_the_terminal() {
    if !root() {
        return;
    }
    let place = place();
    let cache = place.path().join("a\u{1b}[2J\n/__pycache__");
    fs::create_dir_all(&cache).unwrap();
    nix::unistd::mkfifo(&cache.join("f.cpython-311.pyc"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(cache.join("m.cpython-311.pyc"), "").unwrap();
    fs::write(cache.join("../m.py"), "").unwrap();
    mode(&cache, 0o700);
    let done = run(slowpath(["artifacts", "audit", "--as", NOBODY]).arg(place.path()));
    done.succeeds();
    assert!(!done.stdout.contains('\u{1b}') && done.stdout.contains("1 artifact: 1 unreadable"), "{done:?}");
    assert!(done.stdout.contains("chmod o+x $'") && done.stdout.contains("\\033[2J\\012"), "{done:?}");
}

#[test]
fn a_user_who_does_not_exist_and_a_path_that_does_not_are_reported() {
    let none = run(slowpath(["artifacts", "audit", "--as", "no-such-user", "/usr"]));
    none.fails_with(2, &["there is no user `no-such-user`"]);
    let done = run(slowpath(["artifacts", "audit", "--as", NOBODY, "/no/such/place"]));
    done.succeeds();
    assert!(
        done.stdout.contains("not audited: path /no/such/place") && done.stdout.contains("no artifacts"),
        "{done:?}"
    );
}

#[test]
fn a_listing_of_another_machine_shows_what_an_isolated_process_cannot_read_there() {
    let place = place();
    let listing = place.path().join("listing");
    let text = "/data/app/a/oat/arm64:\ntotal 8\n\
        -rw-r----- 1 1000 10123 u:object_r:dalvikcache_data_file:s0 9 2020-03-01 10:00 base.odex\n\
        -rw-r--r-- 1 1000 10123 u:object_r:dalvikcache_data_file:s0 9 2020-03-01 10:00 base.vdex\n";
    fs::write(&listing, text).unwrap();
    let done = run(slowpath(["artifacts", "audit", "--json", "--as", "99001", "--listing"]).arg(&listing));
    done.succeeds();
    let found = done.json()["artifacts"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let states: Vec<_> = found.iter().map(|artifact| (text(&artifact["state"]), text(&artifact["path"]))).collect();
    let expected = [("unreadable", "base.odex"), ("unknown", "base.vdex")];
    assert_eq!(states, expected.map(|(state, name)| (state.to_owned(), name.to_owned())), "{found:#?}");
    assert_eq!(found[0]["change"], "chmod o+r /data/app/a/oat/arm64/base.odex");
    run(slowpath(["artifacts", "audit", "--listing"]).arg(&listing)).fails_with(2, &["--as"]);
    run(slowpath(["artifacts", "audit", "--as", "7", "--listing", "/dev/zero"])).fails_with(2, &["not a regular file"]);
}

#[test]
fn a_recording_names_the_artifacts_that_its_command_was_refused_and_no_others() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    mode(&place.path().join("app/pkg/__pycache__"), 0o700);
    // Another one, that is unreadable and that nobody opens.
    fs::write(place.path().join("app/other.jsa"), "").unwrap();
    mode(&place.path().join("app/other.jsa"), 0o600);
    let (out, script) = (place.path().join("out"), "import sys; sys.path.insert(0, sys.argv[1]); import pkg.m");
    let app = place.path().join("app").to_str().unwrap().to_owned();
    let target = ["/usr/bin/python3", "-B", "-c", script, &app];
    record(&out, &["--user", NOBODY], &target).succeeds();
    let done = run(slowpath(["artifacts", "audit", "--json", "--recording"]).arg(&out));
    done.succeeds();
    let said = done.json();
    assert_eq!(said["user"]["uid"], 65534, "the user of the recorded command");
    let found = said["artifacts"].as_array().unwrap();
    let state = |wanted: &str| found.iter().filter(|one| one["state"] == wanted).collect::<Vec<_>>();
    let unreadable: Vec<&str> = state("unreadable").iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(unreadable.len(), 2, "{found:#?}");
    assert!(unreadable.iter().all(|path| path.contains("/app/pkg/__pycache__/")), "{unreadable:?}");
    let usable = state("usable");
    assert!(usable.iter().any(|one| one["path"].as_str().unwrap().starts_with("/usr/lib/python3")), "{found:#?}");
    assert!(state("missing").is_empty(), "a path that was only tried is no artifact: {found:#?}");
}

#[test]
fn a_recording_of_root_shows_what_root_hides() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    mode(&place.path().join("app/pkg/__pycache__"), 0o700);
    let (out, script) = (place.path().join("out"), "import sys; sys.path.insert(0, sys.argv[1]); import pkg.m");
    let app = place.path().join("app").to_str().unwrap().to_owned();
    let target = ["/usr/bin/python3", "-B", "-c", script, &app];
    let recorded = record(&out, &["--user", "root"], &target);
    recorded.succeeds();
    assert!(recorded.stderr.contains("artifacts audit --recording"), "{recorded:?}");
    let done = run(slowpath(["artifacts", "audit", "--recording"]).arg(&out).env_remove("SUDO_UID"));
    done.succeeds();
    assert!(done.stderr.contains("what root hides"), "{done:?}");
    assert!(done.stdout.contains("(uid 65534)") && done.stdout.contains(": 2 unreadable"), "{done:?}");
}

#[test]
fn ctrl_c_ends_an_audit_at_once() {
    if !root() {
        return;
    }
    // SIGINT is ignored where the tests were started in the background by a shell, and by everything that they start.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", SLOWPATH, "artifacts", "audit", "--as", NOBODY, "/"]).current_dir("/");
    let mut running = start(command);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(libc::SIGINT);
    let asked = Instant::now();
    let done = running.wait();
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    // A small machine may have been audited by then.
    assert!(done.status.signal() == Some(libc::SIGINT) || done.status.success(), "{done:?}");
}

#[test]
fn a_running_process_is_asked_about_as_it_is_with_what_lies_beside_its_mapped_files() {
    if !root() {
        return;
    }
    let place = place();
    package(place.path());
    let library = place.path().join("app/pkg/extension.so");
    fs::write(&library, [0; 4096]).unwrap();
    mode(&place.path().join("app/pkg/__pycache__"), 0o700);
    let script = "import mmap, sys, time; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); \
                  print('mapped', flush=True); time.sleep(60)";
    let mut target = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "/usr/bin/python3", "-B", "-c", script])
        .arg(&library)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(target.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let done = run(slowpath(["artifacts", "audit", "--json", "--pid", &target.id().to_string()]));
    target.kill().unwrap();
    target.wait().unwrap();
    done.succeeds();
    let said = done.json();
    assert_eq!((said["user"]["uid"].as_u64(), said["user"]["groups"].as_array().unwrap().len()), (Some(65534), 0));
    let found = said["artifacts"].as_array().unwrap();
    let unreadable: Vec<&Value> = found.iter().filter(|one| one["state"] == "unreadable").collect();
    assert_eq!(unreadable.len(), 2, "{found:#?}");
    assert!(unreadable.iter().all(|one| one["path"].as_str().unwrap().contains("/app/pkg/__pycache__/")));
    run(slowpath(["artifacts", "audit", "--pid", "4194305"])).fails_with(2, &["there is no process 4194305"]);
}
