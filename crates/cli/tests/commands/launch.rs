//! `slowpath launch` on real commands: what it measures, what it concludes, and how it fails. No test asserts on an
//! absolute time; a difference that is asserted on is made by counting, not by waiting.

use crate::running::*;
use crate::traces::processes_with;
use serde_json::Value;

fn launch(arguments: &[&str]) -> Done {
    run(slowpath(["launch", "--quiet"].iter().chain(arguments)))
}

fn values(arm: &Value, metric: &str) -> Vec<f64> {
    let launches = arm["launches"].as_array().unwrap();
    launches.iter().filter_map(|launch| launch["measures"][metric].as_f64()).collect()
}

#[test]
fn one_command_is_described_by_all_its_launches() {
    let done = launch(&["--json", "--blocks", "8", "--seed", "5", "--", "/bin/true"]);
    done.succeeds();
    let said = done.json();
    let arm = &said["arms"][0];
    assert_eq!((said["blocks"].as_u64(), said["seed"].as_u64()), (Some(8), Some(5)));
    assert_eq!((arm["name"].as_str(), arm["failed"].as_u64()), (Some("true"), Some(0)));
    for metric in ["wall", "cpu", "minor_faults", "peak_rss", "switches", "processes"] {
        assert_eq!(values(arm, metric).len(), 8, "{metric}: {arm}");
    }
    assert!(values(arm, "wall").iter().all(|ms| *ms > 0.0));
    assert!(values(arm, "processes").iter().all(|count| *count == 1.0), "{arm}");
    assert_eq!(said["units"]["peak_rss"], "bytes");
    assert_eq!(said["comparisons"].as_array().unwrap().len(), 0);
}

/// Touches so many pages more, so that the faults differ by a number that is known.
fn touching(pages: u32) -> String {
    format!(
        "/usr/bin/python3 -c 'import mmap; m = mmap.mmap(-1, {pages} << 12); [m.write_byte(1) or m.seek(4095, 1) for _ in range({pages} - 1)]'"
    )
}

#[test]
fn a_difference_in_faults_is_found_with_its_size_and_equal_arms_do_not_differ() {
    let (few, many) = (touching(10), touching(1010));
    let done = launch(&[
        "--json",
        "--metric",
        "minor_faults",
        "--max-blocks",
        "40",
        "--arm",
        &format!("few={few}"),
        "--arm",
        &format!("many={many}"),
        "--arm",
        &format!("same={few}"),
    ]);
    done.succeeds();
    let said = done.json();
    let of = |arm: &str| {
        let all = said["comparisons"].as_array().unwrap();
        all.iter().find(|one| one["arm"] == arm).unwrap_or_else(|| panic!("{arm}: {said}")).clone()
    };
    let many = of("many");
    assert_eq!(many["outcome"], "hurts", "{many}");
    let (low, high) = (many["difference"]["low"].as_f64().unwrap(), many["difference"]["high"].as_f64().unwrap());
    assert!(low <= 1000.0 && 1000.0 <= high && high - low < 100.0, "{many}");
    // Of equal arms one comparison in forty is called different by chance, and then by the few faults that launches differ by anyway.
    let end = |end: &str| of("same")["difference"][end].as_f64().unwrap();
    assert!(end("low") < 50.0 && end("high") > -50.0, "{said}");
    assert_eq!(of("same")["against"], "few");
    // Two comparisons share one error rate.
    assert!(many["level"].as_f64().unwrap() >= 0.975, "{many}");
    assert!(said["ended"].as_str().unwrap().contains("blocks"), "{said}");
}

#[test]
fn the_environment_has_one_size_in_a_block_and_another_in_the_next() {
    let place = place();
    let log = place.path().join("log");
    let script = format!("wc -c < /proc/$$/environ >> {}", log.display());
    let arm = |name: &str| format!("{name}=/bin/sh -c \"{script}\"");
    launch(&["--blocks", "6", "--arm", &arm("a"), "--arm", &arm("b")]).succeeds();
    let sizes: Vec<u64> =
        std::fs::read_to_string(&log).unwrap().lines().map(|line| line.trim().parse().unwrap()).collect();
    // Two launches to warm up, then two a block.
    assert_eq!(sizes.len(), 14, "{sizes:?}");
    let blocks: Vec<&[u64]> = sizes[2..].chunks(2).collect();
    assert!(blocks.iter().all(|block| block[0] == block[1]), "{sizes:?}");
    let different: std::collections::BTreeSet<u64> = blocks.iter().map(|block| block[0]).collect();
    assert!(different.len() >= 5, "{sizes:?}");
}

#[test]
fn the_memory_of_children_is_counted_after_their_exec() {
    // A child that is ready by a line and holds 64 MiB in a process of its own.
    let script = "import subprocess,sys; p = subprocess.Popen([sys.executable, '-c', \
                  'x = b\"1\" * (64 << 20); print(\"up\", flush=True); import time; time.sleep(60)']); p.wait()";
    let done = launch(&["--json", "--blocks", "6", "--ready", "line:^up$", "--", "/usr/bin/python3", "-c", script]);
    done.succeeds();
    let said = done.json();
    for metric in ["peak_rss", "pss"] {
        let bytes = values(&said["arms"][0], metric);
        assert_eq!(bytes.len(), 6, "{said}");
        assert!(bytes.iter().all(|bytes| (64e6..160e6).contains(bytes)), "{metric}: {bytes:?}");
    }
}

#[test]
fn a_command_that_fails_is_counted_and_never_timed() {
    let place = place();
    // Fails at every third launch.
    let count = place.path().join("count");
    let script = format!("echo >> {0}; [ $(($(wc -l < {0}) % 3)) != 0 ]", count.display());
    let done = launch(&["--json", "--blocks", "6", "--", "/bin/sh", "-c", &script]);
    assert_eq!(done.code(), 4, "{done:?}");
    let said: Value = serde_json::Deserializer::from_str(&done.stdout).into_iter().next().unwrap().unwrap();
    let arm = &said["arms"][0];
    assert!(arm["failed"].as_u64().unwrap() >= 2, "{arm}");
    assert_eq!(values(arm, "wall").len(), 6);
    assert!(arm["reasons"][0].as_str().unwrap().contains("exited with status 1"), "{arm}");
    done.fails_with(4, &["launches failed"]);
    launch(&["--", "/bin/false"]).fails_with(4, &["arm false failed in its first launch", "status 1"]);
}

#[test]
fn wrong_input_is_refused_with_a_reason_before_anything_is_launched() {
    let cases: [(&[&str], &str); 9] = [
        (&[], "there is no command"),
        (&["--arm", "a="], "the command is empty"),
        (&["--arm", "a"], "expected NAME=CMD"),
        (&["--arm", "a=ls", "--arm", "a=ls"], "two arms"),
        (&["--vs", "'ls", "--", "ls"], "does not end"),
        (&["--metric", "speed", "--", "ls"], "is not a metric"),
        (&["--min-effect", "0", "--", "ls"], "percent"),
        (&["--max-time", "soon", "--", "ls"], "expected a time"),
        (&["--cold", "--warm", "--", "ls"], "cannot be used with"),
    ];
    let export = ["--export", "csv", "-o", "/dev/null"];
    run(slowpath(["launch", "ladder", "--base", "ls", "--add", "a=-l"].iter().chain(&export)))
        .fails_with(2, &["one table"]);
    run(slowpath(["launch", "selftest", "--metric", "wall,cpu", "--", "ls"])).fails_with(2, &["one metric"]);
    for (arguments, words) in cases {
        launch(arguments).fails_with(2, &[words]);
    }
    launch(&["--", "/no/such/program"]).fails_with(4, &["/no/such/program"]);
}

#[test]
fn one_launch_is_too_few_to_compare_and_says_so() {
    let done = launch(&["--json", "--blocks", "1", "--vs", "/bin/true", "--", "/bin/true"]);
    done.succeeds();
    let one = &done.json()["comparisons"][0];
    assert_eq!(one["outcome"], "not_testable", "{one}");
}

#[test]
fn every_form_of_the_result_is_written() {
    let place = place();
    for (form, begin) in [("csv", "arm,block"), ("markdown", "| arm"), ("hyperfine", "{")] {
        let path = place.path().join(form);
        let path = path.to_str().unwrap();
        launch(&["--blocks", "2", "--export", form, "-o", path, "--vs", "/bin/true", "--", "/bin/true"]).succeeds();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with(begin), "{form}: {text}");
    }
    launch(&["--export", "csv", "--", "/bin/true"]).fails_with(2, &["--output"]);
}

#[test]
fn a_cold_launch_reads_and_a_warm_one_does_not() {
    if !root() {
        return;
    }
    // A program of this test's own: nobody else brings it back into memory. What is not on the disk yet cannot leave it.
    let place = place();
    let program = place.path().join("python3");
    copy_program("/usr/bin/python3", &program);
    std::fs::File::open(&program).unwrap().sync_all().unwrap();
    let bytes = |how: &str| {
        let done = launch(&["--json", how, "--blocks", "3", "--", program.to_str().unwrap(), "-c", "import json, csv"]);
        done.succeeds();
        let said = done.json();
        println!("{how}: {}", said["conditions"]);
        let (values, conditions) = (values(&said["arms"][0], "bytes_read"), said["conditions"][0].clone());
        (values, conditions.as_str().unwrap().to_owned())
    };
    let (lab, conditions) = bytes("--cold=lab");
    assert!(lab.iter().all(|bytes| *bytes > 3e6) && conditions.contains("proved"), "{lab:?} {conditions}");
    let (evicted, conditions) = bytes("--cold=evict");
    assert!(evicted.iter().all(|bytes| *bytes > 1e6), "{evicted:?}");
    assert!(conditions.contains("stayed in memory"), "{conditions}");
    assert!(bytes("--warm").0.iter().all(|bytes| *bytes < 1e6));
}

#[test]
fn an_interrupted_benchmark_keeps_its_whole_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let script = format!("echo >> {}", log.display());
    let arms = ["--arm", &format!("a=sh -c '{script}'"), "--arm", &format!("b=sh -c '{script}; sleep 0.05'")];
    let mut command = slowpath(["launch", "--quiet", "--json", "--blocks", "1000"].iter().chain(&arms));
    let mut running = start(&mut command);
    assert!(soon(|| std::fs::read(&log).is_ok_and(|lines| lines.len() > 12)));
    running.signal(libc::SIGINT);
    let done = running.wait();
    assert_eq!(done.status.code(), Some(130), "{done:?}");
    let said = done.json();
    let blocks = said["blocks"].as_u64().unwrap() as usize;
    assert!(
        (2..1000).contains(&blocks) && said["ended"].as_str().unwrap().contains("interrupted"),
        "{}",
        said["ended"]
    );
    assert!(said["arms"].as_array().unwrap().iter().all(|arm| values(arm, "wall").len() == blocks));
    assert_eq!(said["comparisons"][0]["pairs"].as_u64(), Some(blocks as u64));
}

#[test]
fn an_interrupted_benchmark_leaves_no_process_behind() {
    let (name, value) = mark();
    let mut command = slowpath(["launch", "--quiet", "--blocks", "1000", "--", "/bin/sleep", "0.2"]);
    let mut running = start(command.env(name, &value));
    assert!(soon(|| processes_with(&value).len() > 2));
    running.signal(libc::SIGINT);
    running.wait().fails_with(130, &["interrupted"]);
    assert!(soon(|| processes_with(&value).is_empty()), "{:?}", processes_with(&value));
}
