//! What a stranger's context gives a command: never more than its user has, and no other code, unless an option says so.

use crate::running::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A saved context, changed by its author.
fn made(place: &Path, change: impl Fn(&mut Value)) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = place.join("context.json");
    run(slowpath(["context", "save", "-o"]).arg(&file).args(["--", "/bin/sleep", "60"])).succeeds();
    let mut context: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut context);
    std::fs::write(&file, context.to_string()).unwrap();
    // The user of the command reads it, also one for whom root's files are closed.
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    file
}

fn greedy(context: &mut Value) {
    let factors = &mut context["threads"][0]["factors"];
    factors["credentials"]["value"] = json!({"user": "0", "group": "0", "groups": "0 6 42"});
    let all = "000001ffffffffff";
    factors["capabilities"]["value"] =
        json!({"inheritable": all, "permitted": all, "effective": all, "bounding": all, "ambient": all});
    factors["scheduling"]["value"] = json!({"policy": "fifo", "nice": "-11", "real_time_priority": "3"});
    factors["io_priority"]["value"] = json!("real time 0");
    context["process"]["limits"]["value"]["locked_memory"] = "77777777777 of 77777777777".into();
    context["process"]["file_systems"]["value"]["working_directory"] = "/root".into();
    let variables = &mut context["process"]["environment"]["value"];
    variables["LD_PRELOAD"] = "/tmp/stranger.so".into();
    variables["PATH"] = "/tmp/stranger".into();
    variables["GLIBC_TUNABLES"] = "glibc.malloc.arena_max=1".into();
    variables["MALLOC_ARENA_MAX"] = "3".into();
}

const LOOK: &str = "id -u; id -G; pwd; echo path=$PATH preload=$LD_PRELOAD tunables=$GLIBC_TUNABLES arenas=$MALLOC_ARENA_MAX; \
                    cut -d' ' -f19,40,41 /proc/self/stat; grep CapEff /proc/self/status; ulimit -Hl";

/// `context run` as root that sudo made, for user 65534.
fn by_sudo(options: &[&str], file: &Path, script: &str) -> Command {
    let mut command = slowpath(["context", "run"]);
    command.env("SUDO_UID", "65534").env("PATH", "/usr/bin:/bin").current_dir("/");
    command.args(options).arg(file).args(["--", "/bin/sh", "-c", script]);
    command
}

#[test]
fn a_strangers_context_gives_a_command_nothing_that_its_user_has_not() {
    if !root() {
        return;
    }
    let place = place();
    let file = made(place.path(), greedy);
    let done = run(&mut by_sudo(&[], &file, LOOK));
    done.succeeds();
    let lines: Vec<&str> = done.stdout.lines().collect();
    let expected =
        ["65534", "65534", "/", "path=/usr/bin:/bin preload= tunables= arenas=3", "0 0 0", "CapEff:\t0000000000000000"];
    assert_eq!(lines[..6], expected, "{}{}", done.stdout, done.stderr);
    assert_ne!(lines[6], "75954860", "{}", done.stdout);
    for stays in [
        "credentials stays \"group 65534, groups 65534, user 65534\"",
        "scheduling stays",
        "io_priority stays",
        "limits locked_memory stays",
        "environment LD_PRELOAD stays \"none\" and does not become \"/tmp/stranger.so\"",
        "environment PATH stays",
        "environment GLIBC_TUNABLES stays",
        "file_systems working_directory stays",
        "--trust-context",
    ] {
        let is_reported = done.stderr.lines().any(|line| line.starts_with("slowpath: ") && line.contains(stays));
        assert!(is_reported, "{stays}: {}", done.stderr);
    }
}

#[test]
fn an_option_takes_all_of_it() {
    if !root() {
        return;
    }
    let place = place();
    let file = made(place.path(), |context| {
        greedy(context);
        // What the kernel here does not allow at all would end the launch.
        let factors = &mut context["threads"][0]["factors"];
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        let bounding = own.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap().to_owned();
        for name in ["permitted", "effective", "bounding"] {
            factors["capabilities"]["value"][name] = bounding.clone().into();
        }
        for name in ["inheritable", "ambient"] {
            factors["capabilities"]["value"][name] = "0000000000000000".into();
        }
        factors["scheduling"]["value"] = json!({"policy": "other", "nice": "-11"});
        context["process"]["environment"]["value"]["LD_PRELOAD"] = "libc.so.6".into();
        context["process"]["environment"]["value"]["PATH"] = "/usr/bin:/bin:/stranger".into();
    });
    let done = run(&mut by_sudo(&["--trust-context"], &file, LOOK));
    done.succeeds();
    let lines: Vec<&str> = done.stdout.lines().collect();
    let environment = "path=/usr/bin:/bin:/stranger preload=libc.so.6 tunables=glibc.malloc.arena_max=1 arenas=3";
    assert_eq!(lines[..5], ["0", "0 6 42", "/root", environment, "-11 0 0"], "{}{}", done.stdout, done.stderr);
}

#[test]
fn a_context_never_names_the_id_that_means_unchanged() {
    if !root() {
        return;
    }
    let place = place();
    let file = made(place.path(), |context| {
        let user = json!({"user": "4294967295", "group": "4294967295", "groups": ""});
        context["threads"][0]["factors"]["credentials"]["value"] = user;
    });
    for options in [&["--trust-context"][..], &[]] {
        let done = run(&mut by_sudo(options, &file, "id -u"));
        assert_eq!(done.stdout, "65534\n", "{}", done.stderr);
        assert!(done.stderr.contains("credentials stays"), "{}", done.stderr);
    }
    let mut command = slowpath(["context", "run"]);
    command.env("SUDO_UID", "4294967295").arg(&file).args(["--", "/usr/bin/id", "-u"]);
    run(&mut command).fails_with(2, &["SUDO_UID is `4294967295`"]);
}

#[test]
fn roots_command_takes_no_code_and_no_filter_from_a_process_of_another_users() {
    if !root() {
        return;
    }
    let mut other = Command::new("/usr/bin/setpriv");
    other.args([
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "/usr/bin/env",
        "LD_PRELOAD=/tmp/stranger.so",
    ]);
    let mut running = start(other.args(["/bin/sleep", "60"]).current_dir("/"));
    let pid = running.child.id();
    let has_begun = || std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep");
    assert!(soon(has_begun));
    let subject = pid.to_string();
    let done = run(slowpath(["context", "run", &subject, "--", "/bin/sh", "-c", "id -u; echo $LD_PRELOAD"]));
    running.signal(libc::SIGKILL);
    running.wait();
    done.succeeds();
    assert_eq!(done.stdout, "0\n\n", "{}", done.stderr);
    assert!(done.stderr.contains("credentials stays") && done.stderr.contains("LD_PRELOAD stays"), "{}", done.stderr);
}
