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
    assert_eq!(one.fixes, ["regenerate_artifact", "share_artifact"]);
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

/// A process that imports these modules of 1000 bytes, 10 ms each: the open of the artifact, of the source, and of the next one.
fn imports(modules: &[(&str, &str)], used: &str) -> Vec<Finding> {
    let mut text = r#"== manifest
{"command": ["/bin/tool"], "started": 0, "ended": 900000000, "probes": [{"name": "off_cpu", "state": "attached"}]}
== execs
ts pid start uid filename dev ino
1 7 1 1000 /bin/tool 1 99
== exits
ts pid start tid last run_time
200000000 7 1 7 true 199000000
"#
    .to_owned();
    let mut opens = format!("== opens\nts pid start tid path flags result dev ino\n1000 7 1 7 {used} 0 3 1 900\n");
    text += "== files\ndev ino path size\n";
    for (number, (artifact, source)) in (1u64..).zip(modules) {
        let at = number * 10_000_000;
        writeln!(text, "1 {number} {source} 1000").unwrap();
        writeln!(opens, "{at} 7 1 7 {artifact} 0 -2 - -\n{} 7 1 7 {source} 0 3 1 {number}", at + 1).unwrap();
    }
    writeln!(opens, "{} 7 1 7 /lib/x 0 3 1 800", (modules.len() as u64 + 1) * 10_000_000).unwrap();
    let mut all = of_recordings(&[&Tables::from_text(&(text + &opens)).unwrap()], None);
    all.retain(|one| [missing_artifact::NAME, stale_artifact::NAME].contains(&one.name.as_str()));
    all
}

#[test]
fn a_directory_of_compiled_files_that_was_never_made_is_missing() {
    let compiled = |name: &str| (format!("/a/__pycache__/{name}.x.pyc"), format!("/a/{name}.py"));
    let modules = ["m", "n", "o"].map(compiled);
    let modules: Vec<(&str, &str)> =
        modules.iter().map(|(artifact, source)| (artifact.as_str(), source.as_str())).collect();
    let found = imports(&modules, "/etc/x");
    let [one] = &found[..] else { panic!("{found:#?}") };
    // Where the work ends is not seen: an upper estimate from nothing on.
    assert_eq!((one.name.as_str(), one.confidence, one.cost.low), (missing_artifact::NAME, Confidence::Low, Some(0.0)));
    assert!((one.cost.value - 30.0).abs() < 0.01 && one.subject["artifacts"] == 3, "{one:#?}");
    assert!(imports(&modules[..2], "/etc/x").is_empty(), "two do not say what one takes");
    assert!(imports(&modules, "/a/__pycache__/other.x.pyc").is_empty(), "the directory is there");
}

#[test]
fn places_of_a_search_are_no_directories_that_were_never_made() {
    let none = |at: [(&str, &str); 3]| {
        let found = imports(&at, "/etc/x");
        assert!(found.is_empty(), "{found:#?}");
    };
    none([("/b/m.pmc", "/c/m.pm"), ("/b/n.pmc", "/c/n.pm"), ("/b/o.pmc", "/c/o.pm")]);
    none([("/c/arch/m.so", "/c/m.rb"), ("/c/arch/n.so", "/c/x.rb"), ("/c/arch/o.so", "/d/o.rb")]);
    none([("/c/d/m.conf", "/c/m.conf"), ("/c/d/n.conf", "/c/n.conf"), ("/c/d/o.conf", "/c/o.conf")]);
}
