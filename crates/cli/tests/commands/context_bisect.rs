//! `context bisect`: one cause among differences that cost nothing, two contexts without any, and what is wrong usage. CPU time is
//! compared: the tests run beside each other.

use crate::running::*;
use serde_json::Value;
use std::time::Duration;

/// Allocates and frees blocks that malloc keeps from the first time on, unless it is set otherwise.
const ALLOCATES: &str = "for _ in range(25):\n  blocks = [b'x' * count for count in range(100000, 100040)]";
const SECONDS: &str = "30s";

fn bisect(fast: &str, slow: &str, command: &[&str]) -> std::process::Command {
    let options = ["context", "bisect", "--json", "--metric", "cpu", "--max-time", SECONDS, "--seed", "7"];
    let mut all = slowpath(options);
    all.args(["--fast", fast, "--slow", slow, "--"]).args(command);
    all
}

/// Names of the causes.
pub fn named(found: &Value) -> Vec<&str> {
    let causes = found["causes"].as_array().unwrap().iter();
    causes.flat_map(|cause| cause["names"].as_array().unwrap()).map(|name| name.as_str().unwrap()).collect()
}

/// The cause of this name, which is the only one. In up to one of twenty runs a factor without any effect is named too, which then has next
/// to none.
#[track_caller]
pub fn only_cause<'a>(found: &'a Value, name: &str) -> &'a Value {
    let causes = found["causes"].as_array().unwrap();
    let cause = causes.iter().find(|cause| cause["names"] == serde_json::json!([name]));
    let cause = cause.unwrap_or_else(|| panic!("{name} is not named: {found:#}"));
    let effect = |of: &Value| of["sufficient"]["value"].as_f64().unwrap_or(0.0).abs();
    assert!(causes.iter().all(|one| one == cause || effect(one) < 0.1 * effect(cause)), "{found:#}");
    cause
}

#[test]
fn the_setting_of_malloc_is_named_among_differences_that_cost_nothing() {
    let slow = "env LANG=C.UTF-8 TZ=UTC GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4096 prlimit --nofile=512";
    let done = run(&mut bisect("env LANG=C TZ=Europe/Berlin", slow, &["/usr/bin/python3", "-ISc", ALLOCATES]));
    done.succeeds();
    let found = done.json();
    assert_eq!(found["schema"], "slowpath-context-bisect/1");
    let cause = only_cause(&found, "environment GLIBC_TUNABLES");
    assert_eq!(cause["kind"], "alone", "{cause}");
    assert!(cause["sufficient"]["value"].as_f64().unwrap() > 10.0, "{cause}");
    assert!(!cause["counters"].as_array().unwrap().is_empty() && cause["remedies"][0]["price"].is_string(), "{cause}");
    let conclusion = found["conclusion"].as_str().unwrap();
    assert!(
        conclusion.contains("because of environment GLIBC_TUNABLES") && conclusion.contains("Remedy"),
        "{conclusion}"
    );
    let candidates = found["candidates"].as_array().unwrap();
    let names: Vec<&str> = candidates.iter().map(|one| one["name"].as_str().unwrap()).collect();
    for beginning in ["environment LANG", "environment TZ", "limits"] {
        assert!(names.iter().any(|name| name.starts_with(beginning)), "{beginning} is not among {names:?}");
    }
}

#[test]
fn where_nothing_costs_time_nothing_is_named() {
    let done = run(&mut bisect("", "env LANG=C.UTF-8 TZ=UTC", &["/usr/bin/python3", "-ISc", "sum(range(300000))"]));
    done.succeeds();
    let found = done.json();
    assert_eq!(named(&found), [""; 0], "{found}");
    // A difference that is none can look like one in one of forty runs: then something is tried, and still nothing named.
    if found["total"]["answer"] != "slower" {
        let conclusion = found["conclusion"].as_str().unwrap();
        let beginnings = ["nothing to explain", "no difference was shown", "too few"];
        assert!(beginnings.iter().any(|beginning| conclusion.starts_with(beginning)), "{conclusion}");
        assert!(found["rest"].is_null() && found["reproduction"].is_null());
    }
}

/// The size of the environment alone can make a program slower: in a block all launches have the same, as given or reproduced.
#[test]
fn all_launches_of_a_block_have_an_environment_of_the_same_size() {
    let place = place();
    let file = place.path().join("sizes");
    let look = format!("wc -c < /proc/$$/environ >> {}; exec /bin/sleep 0.02", file.display());
    let command = ["/bin/sh", "-c", &look];
    let done = run(&mut bisect("env TZ=Europe/Berlin", "env MALLOC_PERTURB_=7", &command));
    done.succeeds();
    let launches = usize::try_from(done.json()["launches"].as_u64().unwrap()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let sizes: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    // The first launches read the contexts. Then come a block to warm up and six of four arms.
    let blocks: Vec<&[u32]> = sizes[sizes.len() - launches..].chunks(4).take(7).collect();
    assert!(blocks.len() == 7 && blocks.iter().all(|block| block.iter().all(|size| *size == block[0])), "{sizes:?}");
    assert!(blocks[1..].iter().any(|block| block[0] != blocks[0][0]), "{sizes:?}");
}

#[test]
fn what_is_whole_is_reported_when_it_is_interrupted() {
    let mut running = start(&mut bisect("", "env TZ=UTC", &["/bin/sleep", "0.1"]));
    std::thread::sleep(Duration::from_secs(5));
    running.signal(libc::SIGINT);
    let done = running.wait();
    assert_eq!(done.code(), 130, "{done:?}");
    let schema = done.json()["schema"].as_str().unwrap().to_owned();
    assert!(["slowpath-context-bisect/1", "slowpath-error/1"].contains(&schema.as_str()), "{done:?}");
}

#[test]
fn wrong_usage_is_reported_with_what_would_be_right() {
    let words = |line: &[&str]| run(slowpath(["context", "bisect"]).args(line));
    words(&["--fast", "", "--", "/bin/true"]).fails_with(2, &["--slow"]);
    words(&["--fast", "", "--slow", "nice"]).fails_with(2, &["CMD"]);
    words(&["--fast", "", "--slow", "nice 'x", "--", "/bin/true"]).fails_with(2, &["does not end", "context save"]);
    words(&["--fast", "4194305", "--slow", "nice", "--", "/bin/true"]).fails_with(2, &["no process 4194305"]);
    words(&["--fast", "", "--slow", "/no/such/wrapper", "--", "/bin/true"]).fails_with(4, &["/no/such/wrapper"]);
    words(&["--fast", "", "--slow", "nice", "--metric", "walls", "--", "/bin/true"]).fails_with(2, &["not a metric"]);
    words(&["--fast", "", "--slow", "nice", "--", "/bin/false"]).fails_with(4, &["was not ready in 3 launches"]);
    // A command that has ended has no memory that could be looked at.
    let without_value = ["--fast", "", "--slow", "nice", "--metric", "pss", "--", "/bin/true"];
    words(&without_value).fails_with(2, &["pss has no value", "the fast side", "--metric METRIC", "wall"]);
}
