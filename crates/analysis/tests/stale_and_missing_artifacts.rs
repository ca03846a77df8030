//! Findings `stale_artifact` and `missing_artifact` on recordings with answers known by hand.

use slowpath_analysis::findings::{missing_artifact, of_recordings, stale_artifact};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;
use std::fmt::Write as _;

/// Two processes that open the artifact with `first`, its source, and 10 ms later `last` with this result; then another file.
fn found(first: &str, source: &str, last: &str) -> Vec<Finding> {
    let mut text = r#"== manifest
{"command": ["/bin/tool"], "started": 0, "ended": 900000000, "probes": [{"name": "off_cpu", "state": "attached"}]}
"#
    .to_owned();
    let mut opens = "== opens\nts pid start tid path flags result dev ino\n".to_owned();
    for pid in [20, 21] {
        write!(
            text,
            "== forks\nts pid start tid parent_pid parent_start\n10 {pid} 10 {pid} 7 1\n\
             == execs\nts pid start uid filename dev ino\n11 {pid} 10 1000 /bin/tool 1 99\n\
             == exits\nts pid start tid last run_time\n100000000 {pid} 10 {pid} true 99999990\n"
        )
        .unwrap();
        for (ts, call) in [(1_000_000, first), (1_000_001, source), (11_000_001, last), (20_000_000, "/lib/x 0 3")] {
            let call = call.replace("PID", &pid.to_string());
            let file = if call.contains('-') { "- -" } else { "1 5" };
            writeln!(opens, "{ts} {pid} 10 {pid} {call} {file}").unwrap();
        }
    }
    let mut all = of_recordings(&[&Tables::from_text(&(text + &opens)).unwrap()], None);
    all.retain(|one| [missing_artifact::NAME, stale_artifact::NAME].contains(&one.name.as_str()));
    all
}

const SOURCE: &str = "/a/m.py 0 3";
const REFUSED: &str = "/a/c/m.x.pyc.PID 193 -13";
const SAVED: &str = "/a/c/m.x.pyc.PID 193 4";
const NOT_THERE: &str = "/a/c/m.x.pyc 0 -2";
const READ: &str = "/a/c/m.x.pyc 0 3";

fn one(found: &[Finding]) -> &Finding {
    let [one] = found else { panic!("{found:#?}") };
    assert!((one.cost.value - 20.0).abs() < 0.01, "{one:#?}");
    assert_eq!((one.confidence, &one.subject["processes"]), (Confidence::Medium, &2.into()));
    one
}

#[test]
fn what_every_process_makes_again_because_it_cannot_be_saved_is_missing() {
    let refused = found(NOT_THERE, SOURCE, REFUSED);
    assert_eq!(one(&refused).name, missing_artifact::NAME);
    assert!(one(&refused).title.starts_with("2 tool processes have no m.x.pyc, and do the work again"), "{refused:#?}");
    let read_only = found(NOT_THERE, SOURCE, &REFUSED.replace("-13", "-30"));
    assert_eq!(one(&read_only).name, missing_artifact::NAME);
    let saved_by_each = found(NOT_THERE, SOURCE, SAVED);
    assert_eq!(one(&saved_by_each).name, missing_artifact::NAME);
}

#[test]
fn what_every_process_reads_in_vain_is_stale() {
    let refused = found(READ, SOURCE, REFUSED);
    assert_eq!(one(&refused).name, stale_artifact::NAME);
    assert!(one(&refused).title.starts_with("2 tool processes read m.x.pyc in vain, and do"), "{refused:#?}");
    assert_eq!(one(&found(READ, SOURCE, SAVED)).name, stale_artifact::NAME, "each throws away what the other saved");
}

#[test]
fn searches_optional_files_and_states_that_are_saved_are_neither() {
    let none = |first: &str, source: &str, last: &str| {
        let found = found(first, source, last);
        assert!(found.is_empty(), "{found:#?}");
    };
    none("/a/lib.so 0 -2", "/b/lib.so 0 3", "/c/other.so 0 -2");
    none("/etc/tool.conf 0 -2", "/usr/share/tool 0 3", "/tmp/log 65 4");
    none(NOT_THERE, SOURCE, "/lib/y 0 3");
    none(READ, SOURCE, "/lib/y 0 3");
    // A program that reads its state, and is refused to save it.
    none("/home/u/.state 0 3", "/usr/share/data 0 4", "/home/u/.state 577 -13");
}
