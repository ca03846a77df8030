//! The critical path of `slowpath analyze`, of a launch whose cause is known.

use crate::recorded_case::analyzed;
use crate::running::*;

#[test]
fn a_shell_that_waits_for_its_child_is_late_because_of_what_the_child_sleeps() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &["--quiet", "--off-cpu"], &["/bin/sh", "-c", "/bin/sleep 0.5; :"]).succeeds();
    let found = analyzed(&out);
    let path = &found["critical_path"];
    let number = |value: &serde_json::Value| value["value"].as_f64().unwrap_or_else(|| panic!("{value}"));
    assert_eq!((&path["ready"], &path["ends_with"]), (&true.into(), &"exit".into()));
    assert_eq!(number(&path["time"]), number(&found["time_to_ready"]));

    let rows = path["rows"].as_array().unwrap();
    let time =
        |category: &str| rows.iter().find(|row| row["category"] == category).map_or(0.0, |row| number(&row["time"]));
    let sum: f64 = rows.iter().map(|row| number(&row["time"])).sum();
    assert!((sum + number(&path["unexplained"]) - number(&path["time"])).abs() < 0.001, "{path:#}");
    // Not the shell's waiting for its child, but what that did: the shell waits alone until the child runs for the first time.
    assert!(time("timer") >= 499.0 && time("child") < 50.0, "{path:#}");
    let sleeps = path["threads"].as_array().unwrap().iter().find(|one| one["process"] == "sleep").unwrap();
    assert!(number(&sleeps["time"]) >= time("timer"), "{path:#}");

    let steps = path["steps"].as_array().unwrap();
    assert_eq!(path["step_count"].as_u64(), Some(steps.len() as u64));
    assert!(steps.windows(2).all(|pair| pair[0]["to"] == pair[1]["from"]), "{path:#}");
    assert_eq!((&steps[0]["from"], &steps[steps.len() - 1]["to"]), (&path["from"], &path["to"]));
    // It begins and ends in the shell.
    assert!(steps[0]["tid"] == steps[steps.len() - 1]["tid"] && steps[0]["tid"] != sleeps["tid"], "{path:#}");

    let printed = run(slowpath(["analyze", out.to_str().unwrap()]));
    assert!(printed.stdout.contains("critical path to ready"), "{}", printed.stdout);
}
