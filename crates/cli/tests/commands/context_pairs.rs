//! `context bisect` on pairs of contexts with known truth: a share of what `bench/accept/context-blind` asks.

use crate::context_bisect::{named, only_cause};
use crate::running::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Makes one pair of a kind in `cases/context`; gives its directory.
fn made(place: &Path, seed: &str, kind: &str) -> PathBuf {
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/context/make");
    let done = Command::new(make).arg(place).args([seed, kind]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    place.join(kind)
}

/// What the pair runs: a word a line.
fn command(pair: &Path) -> String {
    std::fs::read_to_string(pair.join("command")).unwrap()
}

/// What `context bisect` says of a pair that runs this command within this time. CPU time is compared: other tests run beside it.
fn bisected(pair: &Path, words: &str, most: Duration) -> Value {
    let seconds = format!("{}s", most.as_secs());
    let options = ["context", "bisect", "--json", "--quiet", "--metric", "cpu", "--seed", "1", "--max-time", &seconds];
    let mut command = slowpath(options);
    command
        .arg("--fast")
        .arg(pair.join("fast.sh"))
        .arg("--slow")
        .arg(pair.join("slow.sh"))
        .arg("--")
        .args(words.lines());
    // A launch may be under way when its time is over, and its programs are looked at before.
    let done = start(command).wait_within(most + Duration::from_secs(60));
    done.succeeds();
    done.json()
}

#[test]
fn filters_that_slow_a_program_are_named_and_no_other_difference_is() {
    if !root() {
        return;
    }
    let place = place();
    let pair = made(place.path(), "5", "filters");
    // A quarter of its calls: a hundred launches show as much of them.
    let all = command(&pair);
    let fewer = all.replace("\n400000\n", "\n100000\n");
    assert_ne!(fewer, all);
    let bisection = bisected(&pair, &fewer, Duration::from_secs(180));
    only_cause(&bisection, "seccomp");
    assert!(bisection["candidates"].as_array().unwrap().len() >= 4, "{bisection:#}");
}

#[test]
fn differences_that_cost_nothing_have_no_cause() {
    if !root() {
        return;
    }
    let place = place();
    let pair = made(place.path(), "5", "nothing");
    let bisection = bisected(&pair, &command(&pair), Duration::from_secs(10));
    assert!(named(&bisection).is_empty(), "{bisection:#}");
}
