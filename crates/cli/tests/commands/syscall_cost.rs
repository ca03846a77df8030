//! `context syscall-cost`: which arms there are, what the kernel says of them, and the report on a filter that cannot be measured. What calls
//! cost here is for `bench/accept/syscall-cost`.

use crate::running::*;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const CALLS: [&str; 5] = ["getppid", "read_byte", "futex_wake", "clock_gettime", "open_close"];
const CODE: [&str; 2] = ["stores_and_loads", "indirect_calls"];
const ARMS: [&str; 5] = ["none", "none_again", "filter_speculation_allowed", "filter", "speculation_disabled"];

fn measured(filter: &str) -> Value {
    let done = run(slowpath(["context", "syscall-cost", "--json", "--max-time", "1s", "--filter", filter]));
    done.succeeds();
    done.json()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn arm<'a>(arms: &'a Value, name: &str) -> &'a Value {
    list(arms).iter().find(|arm| arm["arm"] == name).unwrap_or(&Value::Null)
}

fn workload<'a>(report: &'a Value, name: &str) -> &'a Value {
    list(&report["workloads"]).iter().find(|one| one["workload"] == name).unwrap()
}

/// Why an arm or a workload with the filter is missing.
fn reason<'a>(report: &'a Value, what: &str) -> &'a str {
    let gap = list(&report["unavailable"]).iter().find(|gap| gap["what"] == what);
    let gap = gap.unwrap_or_else(|| panic!("{what} is not reported as unavailable: {}", report["unavailable"]));
    assert_ne!(gap["remedy"], "");
    gap["reason"].as_str().unwrap()
}

/// Every arm is the thread that it should be, or has its reason; `programs` is what the filter has.
fn check_arms(report: &Value, programs: u64) {
    assert_eq!(report["schema"], "slowpath-syscall-cost/1");
    let arms = &report["arms"];
    assert_eq!(list(arms).iter().map(|arm| arm["arm"].as_str().unwrap()).collect::<Vec<_>>(), ARMS);
    let own = &arm(arms, "none")["state"];
    let filters = |name: &str| arm(arms, name)["state"]["filters"].as_u64().unwrap();
    let base = own["filters"].as_u64().unwrap();
    assert_eq!((filters("none_again"), arm(arms, "none_again")["measured"].as_bool()), (base, Some(true)));
    for name in ["filter_speculation_allowed", "filter"] {
        assert_eq!((arm(arms, name)["state"]["seccomp"].as_u64(), filters(name)), (Some(2), base + programs), "{name}");
        assert_eq!(arm(arms, name)["measured"], true);
    }
    let speculation = |name: &str| {
        (arm(arms, name)["state"]["store_bypass"].clone(), arm(arms, name)["state"]["indirect_branch"].clone())
    };
    assert_eq!(speculation("filter_speculation_allowed"), speculation("none"), "the flag lets the state as it is");
    match arm(arms, "speculation_disabled")["measured"].as_bool() {
        Some(true) => assert_ne!(speculation("speculation_disabled"), speculation("none")),
        _ => assert!(reason(report, "arm speculation_disabled").contains("cannot be realised here"), "{report}"),
    }
}

/// Bursts of a workload in the arms of these names, and in no others but the one that a machine may not offer.
fn check_bursts(report: &Value, name: &str, expected: &[&str]) {
    let one = workload(report, name);
    let blocks = report["blocks"].as_u64().unwrap();
    assert!(blocks >= 8 && one["steps"].as_u64().unwrap() >= 64, "{name}: {blocks} blocks");
    let there: Vec<&str> =
        list(&one["arms"]).iter().map(|arm| arm["arm"].as_str().unwrap()).filter(|arm| *arm != ARMS[4]).collect();
    assert_eq!(there, expected, "{name}");
    for arm in list(&one["arms"]) {
        assert!(arm["step"]["value"].as_f64().unwrap() > 0.0, "{name}: {arm}");
        let samples = list(&arm["samples"]);
        assert_eq!(samples.len() as u64, blocks);
        assert!(samples.iter().all(|sample| sample.as_f64().is_some_and(|nanos| nanos > 0.0)), "{name}: {arm}");
        if arm["arm"] != "none" {
            assert_eq!(arm["change"]["pairs"].as_u64(), Some(blocks), "{name}: {arm}");
            let difference = &arm["change"]["difference"];
            let part = |key: &str| difference[key].as_f64().unwrap();
            assert!(part("low") <= part("value") && part("value") <= part("high"), "{name}: {arm}");
        }
    }
}

#[test]
fn four_arms_and_the_first_one_again_are_measured_with_the_states_that_they_should_have() {
    let report = measured("allow-list");
    check_arms(&report, 1);
    for name in CALLS.iter().chain(&CODE) {
        check_bursts(&report, name, &ARMS[..4]);
        assert!(
            workload(&report, name)["sham_p"].is_number() && workload(&report, name)["without_flag"].is_object(),
            "{name}"
        );
    }
    assert_eq!(list(&report["workloads"]).len(), CALLS.len() + CODE.len());
    let states = arm(&report["arms"], "filter")["state"]["store_bypass"].as_str().unwrap().to_owned();
    assert_eq!(
        report["forced"].is_object(),
        states.contains("force") && !arm(&report["arms"], "none").to_string().contains("force")
    );
}

#[test]
fn stacked_filters_are_counted_and_shown_for_people_too() {
    let report = measured("arguments:3");
    check_arms(&report, 3);
    assert_eq!(report["filter"]["programs"], 3);
    let done = run(slowpath(["context", "syscall-cost", "--max-time", "1s", "--filter", "arguments:2"]));
    done.succeeds();
    for words in
        ["Filter arguments:2", "none again: resolution", "filter, SPEC_ALLOW", "what the kernel says", "filters 2"]
    {
        assert!(done.stdout.contains(words), "{words}: {}", done.stdout);
    }
}

#[test]
fn what_a_filter_refuses_or_ends_is_left_out_with_its_reason() {
    let place = place();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let profile = file(
        "profile.json",
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["openat", "no_such_call"], "action": "SCMP_ACT_ERRNO"},
            {"names": ["getppid"], "action": "SCMP_ACT_KILL_PROCESS"}]}"#,
    );
    let report = measured(&profile);
    check_arms(&report, 1);
    assert!(reason(&report, "open_close with the filter").contains("EPERM"), "{report}");
    assert!(reason(&report, "getppid with the filter").contains("SIGSYS"), "{report}");
    check_bursts(&report, "open_close", &ARMS[..2]);
    check_bursts(&report, "getppid", &ARMS[..2]);
    check_bursts(&report, "read_byte", &ARMS[..4]);
    assert_eq!(report["filter"]["form"], "profile of a container runtime");

    let several = file(
        "several.json",
        r#"{"vmm": {"mismatch_action": "allow", "match_action": "trap", "filter": [{"syscall": "futex"}]}, "api":
            {"mismatch_action": "allow", "match_action": "log", "filter": []}}"#,
    );
    let report = measured(&format!("{several}#vmm"));
    for name in &ARMS[2..4] {
        assert!(reason(&report, &format!("arm {name}")).contains("SIGSYS"), "{report}");
        assert_eq!(arm(&report["arms"], name)["measured"], false);
    }
    check_bursts(&report, "getppid", &ARMS[..2]);
    run(slowpath(["context", "syscall-cost", "--filter", &several]))
        .fails_with(2, &["2 filters (api, vmm)", "FILE#NAME"]);
}

#[test]
fn what_is_no_filter_says_so() {
    let place = place();
    let file = place.path().join("filter");
    let cost = |filter: &str| run(slowpath(["context", "syscall-cost", "--filter", filter]));
    for (bytes, words) in
        [(&b"{"[..], "JSON"), (b"abc", "3 bytes"), (br#"{"defaultAction": "SCMP_ACT_NOTIFY"}"#, "supervisor")]
    {
        std::fs::write(&file, bytes).unwrap();
        cost(file.to_str().unwrap()).fails_with(2, &["holds no filter", words, "profile of a container runtime"]);
    }
    cost("/no/such/file").fails_with(2, &["No such file"]);
    cost("/dev/zero").fails_with(2, &["not a regular file"]);
    cost("arguments:0").fails_with(2, &["arguments:N"]);
    cost("pid:4194305").fails_with(2, &["there is no process 4194305"]);
    // Bytes of the right length that no kernel takes: the arms are missing, and the rest is measured.
    std::fs::write(&file, [0xff; 16]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let report = measured(file.to_str().unwrap());
    assert!(reason(&report, "arm filter").contains("refuses filter 1: EINVAL"), "{report}");
    check_bursts(&report, "getppid", &ARMS[..2]);
}

/// A process with so many filters that allow everything.
fn filtered(filters: usize) -> Child {
    let mut command = Command::new("/bin/sleep");
    command.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
    // SAFETY: between fork and exec only system calls are made; the kernel reads one instruction and its length.
    unsafe {
        command.pre_exec(move || {
            let mut allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
            let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64);
            for _ in 0..filters {
                if libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u64, &raw const program) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    command.spawn().unwrap()
}

#[test]
fn the_filters_of_a_running_process_are_measured_by_root_and_it_runs_on() {
    let mut sleeper = filtered(2);
    let word = format!("pid:{}", sleeper.id());
    let unprivileged = run(Command::new("/usr/bin/setpriv")
        .args(["--reuid", "65534", "--clear-groups", SLOWPATH, "context", "syscall-cost", "--filter", &word])
        .current_dir("/"));
    let report = nix::unistd::geteuid().is_root().then(|| measured(&word));
    let state = std::fs::read_to_string(format!("/proc/{}/status", sleeper.id())).unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(state.contains("TracerPid:\t0") && state.contains("State:\tS"), "{state}");
    let Some(report) = report else {
        println!("skipped: the kernel shows filters to root only");
        return;
    };
    // Whoever cannot even execute the command under test cannot be refused by it.
    if unprivileged.status.code() != Some(127) && unprivileged.status.code() != Some(126) {
        unprivileged.fails_with(3, &["sudo"]);
    }
    check_arms(&report, 2);
    assert_eq!(report["filter"]["instructions"], 2);
}

#[test]
fn nothing_is_left_when_it_ends_and_when_it_is_killed() {
    let processes = |seed: &str| {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| {
            std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == seed.as_bytes()))
        })
        .count()
    };
    let command = |seed: &str| {
        slowpath(["context", "syscall-cost", "--max-time", "60s", "--seed", seed, "--filter", "arguments:1"])
    };
    for (signal, seed) in
        [(libc::SIGKILL, format!("7{}", std::process::id())), (libc::SIGINT, format!("8{}", std::process::id()))]
    {
        let mut running = start(command(&seed));
        // The measuring child, and the children that try the filter.
        assert!(soon(|| processes(&seed) >= 2), "signal {signal}");
        running.signal(signal);
        let done = running.wait();
        if signal == libc::SIGINT {
            done.fails_with(130, &["interrupted"]);
        }
        assert!(soon(|| processes(&seed) == 0), "signal {signal}: it left a process");
    }
}
