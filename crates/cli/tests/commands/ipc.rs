//! `slowpath ipc`: keys, words, exit codes, and what is left when it is killed. Verdicts, never times.

use crate::running::*;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Transports that work on every Linux.
const TRANSPORTS: [&str; 10] = [
    "in-process",
    "pipe",
    "unix-stream",
    "unix-seqpacket",
    "eventfd-shm",
    "futex-shm",
    "pi-futex-shm",
    "posix-mq",
    "tcp-loopback",
    "grpc",
];

/// Those that work here: with io_uring, where the kernel says that it is allowed (since Linux 6.6), and D-Bus where its daemon is
/// installed.
fn working() -> Vec<&'static str> {
    let allowed = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|text| text.trim() == "0");
    let daemon = Command::new("dbus-daemon").arg("--version").output().is_ok();
    TRANSPORTS.into_iter().chain(allowed.then_some("io-uring")).chain(daemon.then_some("dbus")).collect()
}

pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn throughput_has_a_benchmark_for_each_transport_and_size_in_the_format_of_google_benchmark() {
    let words = ["ipc", "throughput", "--size", "4..8", "--benchmark_min_time", "0.001", "--benchmark_format=json"];
    let done = run(slowpath(words));
    done.succeeds();
    let report = parsed(&done.stdout);
    let names: Vec<_> =
        report["benchmarks"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<_> = working()
        .into_iter()
        .flat_map(|transport| [4, 8].map(|size| format!("BM_sendVec_{transport}/{size}")))
        .collect();
    assert_eq!(names, expected, "{}", done.stderr);
    for one in report["benchmarks"].as_array().unwrap() {
        let payload: f64 = one["name"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
        let bandwidth = one["bytes_per_second"].as_f64().unwrap() * one["real_time"].as_f64().unwrap() / 1e9;
        assert!((bandwidth / payload - 1.0).abs() < 1e-9, "{one}");
    }
    let csv = run(slowpath([
        "ipc",
        "throughput",
        "--transport",
        "pipe",
        "--size",
        "4",
        "--benchmark_min_time",
        "0.001",
        "--benchmark_format=csv",
    ]));
    assert!(csv.stdout.starts_with("name,iterations,real_time,cpu_time,time_unit,bytes_per_second,"), "{csv:?}");
}

#[test]
fn the_multiplied_figure_of_the_original_is_printed_on_demand_only_and_said() {
    let words = ["ipc", "throughput", "--transport", "pipe", "--size", "4", "--benchmark_min_time", "0.001", "--json"];
    let plain = run(slowpath(words));
    assert!(parsed(&plain.stdout)["benchmarks"][0]["reference_bytes_per_second"].is_null(), "{plain:?}");
    let reference = run(slowpath(words.iter().copied().chain(["--reference"])));
    let one = &parsed(&reference.stdout)["benchmarks"][0];
    let factor = one["reference_bytes_per_second"].as_f64().unwrap() / one["bytes_per_second"].as_f64().unwrap();
    assert_eq!(factor.round(), one["iterations"].as_f64().unwrap());
    assert!(reference.stderr.contains("too large"), "{}", reference.stderr);
}

#[test]
fn compare_py_of_google_benchmark_reads_two_results() {
    let tool = Path::new("/usr/share/benchmark/compare.py");
    if !tool.exists() {
        println!("skipped: no {} (package libbenchmark-tools)", tool.display());
        return;
    }
    let place = place();
    let files = ["a.json", "b.json"].map(|name| {
        let words =
            ["ipc", "throughput", "--transport", "pipe", "--size", "4", "--benchmark_min_time", "0.001", "--json"];
        let file = place.path().join(name);
        std::fs::write(&file, run(slowpath(words)).stdout).unwrap();
        file
    });
    // Debian's, for which scipy is installed.
    let compared = Command::new("/usr/bin/python3").arg(tool).arg("benchmarks").args(&files).output().unwrap();
    let text = String::from_utf8_lossy(&compared.stdout);
    assert!(compared.status.success() && text.contains("BM_sendVec_pipe/4"), "{compared:?}");
}

#[test]
fn latency_has_the_keys_of_the_original_on_every_transport_with_its_own_options() {
    for transport in working() {
        // One dash, as in the original.
        let words =
            ["ipc", "latency", "-i", "2", "-pair", "2", "-deadline_us", "5000000", "--transport", transport, "--json"];
        let done = run(slowpath(words));
        let result = done.json();
        let cfg = &result["cfg"];
        assert_eq!(
            (cfg["pair"].as_u64(), cfg["iterations"].as_u64(), cfg["deadline_us"].as_u64()),
            (Some(2), Some(2), Some(5_000_000))
        );
        for pair in ["P0", "P1"] {
            let pair = &result[pair];
            for key in ["SYNC", "S", "I", "R"] {
                assert!(!pair[key].is_null(), "{transport}: {key} of {pair}");
            }
            for callers in ["other_ms", "fifo_ms"] {
                let keys: Vec<_> = pair[callers].as_object().unwrap().keys().cloned().collect();
                let mut expected = ["avg", "wst", "bst", "miss", "meetR"];
                expected.sort_unstable();
                let mut keys: Vec<_> = keys.iter().map(String::as_str).collect();
                keys.sort_unstable();
                assert_eq!(keys, expected, "{transport}");
            }
        }
        let verdict = result["inheritance"].as_str().unwrap();
        let code = i32::from(verdict == "FAIL");
        assert_eq!(done.code(), code, "{transport}: {verdict}");
        if root() {
            let inherits = ["in-process", "pi-futex-shm"].contains(&transport);
            assert_eq!(verdict, if inherits { "PASS" } else { "FAIL" }, "{transport}: {}", result["inherited"]);
        }
    }
}

#[test]
fn without_the_right_to_real_time_nothing_is_called_inherited() {
    if !root() {
        return;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", SLOWPATH, "ipc", "latency", "-i", "2", "--json"]);
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: no setpriv");
            return;
        }
        output => output.unwrap(),
    };
    // Codes of setpriv(1) for a program that it cannot execute; any other end is one of slowpath.
    if let Some(126 | 127) = output.status.code() {
        println!("skipped: uid 65534 cannot execute {SLOWPATH}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let result = parsed(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(result["inheritance"], "NOT_TESTABLE");
    assert_eq!(result["inherited"]["kind"], "not_testable");
    assert!(result["inherited"]["cause"].as_str().unwrap().contains("RLIMIT_RTPRIO"), "{result}");
    assert_eq!(result["P0"]["fifo"]["transactions"], 0);
    assert_eq!(result["P0"]["normal"]["transactions"], 2);
}

/// A command under a limit of prlimit(1).
fn limited(limit: &str, words: &[&str]) -> Done {
    let mut command = Command::new("prlimit");
    command.args([limit, SLOWPATH]).args(words).current_dir("/");
    run(command)
}

#[test]
fn more_descriptors_than_the_soft_limit_are_used_and_the_hard_limit_is_named() {
    // 56 connections of four descriptors.
    let words = ["ipc", "latency", "-w", "8", "-i", "5", "--transport", "pipe"];
    let soft = limited("--nofile=64:1024", &[&words[..], &["--json"]].concat());
    soft.succeeds();
    assert_eq!(soft.json()["calls"], 40);
    limited("--nofile=64:64", &words).fails_with(3, &["transport pipe cannot be set up", "ulimit -n"]);
    let pairs = ["ipc", "latency", "-i", "1", "-pair", "40", "--transport", "unix-stream"];
    limited("--nofile=64:64", &pairs).fails_with(3, &["transport unix-stream cannot be set up", "ulimit -n"]);
}

#[test]
fn which_limit_a_message_queue_met_is_said() {
    let words = ["ipc", "latency", "-w", "8", "-i", "5", "--transport", "posix-mq"];
    let queues = limited("--msgqueue=8192:8192", &words);
    queues.fails_with(3, &["RLIMIT_MSGQUEUE", "ulimit -q"]);
    assert!(!queues.stderr.contains("ulimit -n"), "{queues:?}");
    let descriptors = limited("--nofile=64:64", &words);
    descriptors.fails_with(3, &["ulimit -n"]);
    assert!(!descriptors.stderr.contains("ulimit -q"), "{descriptors:?}");
}

#[test]
fn the_worker_pool_and_the_comparison_count_what_they_did() {
    let pool = run(slowpath(["ipc", "latency", "-w", "4", "-i", "20", "-s", "64", "-p", "--json"]));
    pool.succeeds();
    assert_eq!(
        (pool.json()["calls"].as_u64(), pool.json()["schema"].as_str()),
        (Some(40), Some("slowpath-ipc-pool/1"))
    );
    let compared = run(slowpath(["ipc", "compare", "--transports", "pipe,unix-stream", "--blocks", "6", "--json"]));
    compared.succeeds();
    assert_eq!(compared.json()["comparisons"][0]["pairs"], 6);
    run(slowpath(["ipc", "compare", "--transports", "pipe"])).fails_with(2, &["at least two"]);
    run(slowpath(["ipc", "compare", "--transports", "all", "--blocks", "6"])).fails_with(2, &["--blocks 9"]);
    run(slowpath(["ipc", "throughput", "--transport", "pigeon"])).fails_with(2, &["posix-mq"]);
}

#[test]
fn doctor_says_of_every_transport_whether_it_works() {
    let doctor = run(slowpath(["ipc", "doctor", "--json"]));
    doctor.succeeds();
    let doctor = doctor.json();
    let transports = doctor["transports"].as_array().unwrap();
    let names = |available: bool| -> Vec<_> {
        transports.iter().filter(|one| one["available"] == available).map(|one| one["name"].clone()).collect()
    };
    assert_eq!(names(true), working());
    // What measures binder, where there is one: `bench/accept/ipc-binder`.
    let others = ["binder", "binder-sg"];
    assert!(
        names(false).iter().filter(|name| *name != "io-uring" && *name != "dbus").eq(&others),
        "{:?}",
        names(false)
    );
    for name in others {
        let what = format!("transport {name}");
        let gap = doctor["unavailable"].as_array().unwrap().iter().find(|gap| gap["what"] == what.as_str()).unwrap();
        assert!(
            ["reason", "remedy"].iter().all(|part| gap[part].as_str().is_some_and(|text| !text.is_empty())),
            "{gap}"
        );
        run(slowpath(["ipc", "latency", "--transport", name]))
            .fails_with(3, &[name, gap["reason"].as_str().unwrap(), "remedy"]);
    }
}

#[test]
fn without_its_daemon_dbus_is_unavailable_and_the_package_is_named() {
    let daemon = "/usr/bin/dbus-daemon";
    if !root() || !Path::new(daemon).exists() {
        println!("skipped: no root, or no {daemon} to hide");
        return;
    }
    let script = format!("mount --bind /dev/null {daemon} && exec {SLOWPATH} ipc latency --transport dbus");
    run(in_private_mounts(&script)).fails_with(3, &["transport dbus", "dbus-daemon: ", "install the package"]);
}
