//! `--json`: one object on standard output and nothing else there, from every command, also when it fails.

use crate::running::*;

#[test]
fn every_command_prints_one_object_and_says_the_rest_on_standard_error() {
    if !root() {
        return;
    }
    let place = place();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (recording, diagnosis, plan) = (path("r"), path("d"), path("p"));
    let noisy = "echo noise; echo more >&2; exec /bin/ls /usr";
    let cases: [(&[&str], &str); 11] = [
        (&["doctor", "--json"], "slowpath-doctor/1"),
        (&["explain", "--json", "timed_wait"], "slowpath-explain/1"),
        (&["artifacts", "audit", "--json", "/etc/ld.so.cache"], "slowpath-artifacts-audit/1"),
        (&["record", "--json", "-o", &recording, "--", "/bin/sh", "-c", noisy], "slowpath-record/1"),
        (&["analyze", "--json", &recording], "slowpath-analyze/1"),
        (&["lab", "run", "--json", "--runs", "2", "--", "/bin/sh", "-c", noisy], "slowpath-lab/1"),
        (&["lab", "list", "--json"], "slowpath-labs/1"),
        (
            &["diagnose", "--json", "--blocks", "1", "-o", &diagnosis, "--", "/bin/sh", "-c", noisy],
            "slowpath-diagnose/1",
        ),
        (&["preload", "plan", &diagnosis, "-o", &plan], ""),
        (&["preload", "check", "--json", &plan], "slowpath-plan-check/1"),
        (&["preload", "replay", "--json", &plan], "slowpath-replay/1"),
    ];
    for (arguments, schema) in cases {
        let done = run(slowpath(arguments));
        done.succeeds();
        if schema.is_empty() {
            assert_eq!(done.stdout, "", "{arguments:?}");
            continue;
        }
        let said = done.json();
        assert!(said["schema"].as_str().unwrap().starts_with(schema), "{arguments:?}: {}", said["schema"]);
    }
}

#[test]
fn the_output_of_a_recorded_target_goes_to_standard_error_with_json_and_through_without() {
    if !root() {
        return;
    }
    let place = place();
    let target = ["/bin/echo", "the target speaks"];
    let done = record(&place.path().join("json"), &["--json"], &target);
    assert!(done.stderr.contains("the target speaks"), "{done:?}");
    assert_eq!(done.json()["manifest"]["launch"]["outcome"], "ready");
    let plain = record(&place.path().join("plain"), &[], &target);
    assert_eq!(plain.stdout, "the target speaks\n");
    let quiet = record(&place.path().join("quiet"), &["--quiet", "--user", "65534"], &target);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("the target speaks\n", ""));
}

#[test]
fn a_failure_is_one_object_too() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out").to_str().unwrap().to_owned();
    let missing = run(slowpath(["record", "--json", "-o", &out, "--", "/no/such/program"]));
    missing.fails_with(4, &["command not found"]);
    assert_eq!(
        (missing.json()["schema"].as_str(), missing.json()["error"]["kind"].as_str()),
        (Some("slowpath-error/1"), Some("target"))
    );
    let failed = run(slowpath(["record", "--json", "-o", &out, "--", "/bin/false"]));
    failed.fails_with(4, &["exited with status 1", "is kept"]);
    let outcome = failed.json()["manifest"]["launch"]["outcome"].as_str().unwrap().to_owned();
    assert_eq!(outcome, "the command exited with status 1 before it was ready");
    for arguments in [
        vec!["lab", "run", "--json", "--", "/bin/false"],
        vec!["diagnose", "--json", "-o", "/var/tmp/slowpath-never", "--", "/bin/false"],
    ] {
        let done = run(slowpath(&arguments));
        done.fails_with(4, &["exited with status 1"]);
        assert_eq!(done.json()["schema"], "slowpath-error/1", "{arguments:?}");
    }
    let done = run(slowpath(["analyze", "--json", "/"]));
    done.fails_with(2, &["not a recording"]);
    assert_eq!(done.json()["error"]["kind"], "usage");
}

#[test]
fn wrong_usage_exits_with_2() {
    for line in ["record", "record -o x", "lab run --runs 0 -- x", "record -o x --ready never: -- x", "nonsense", ""] {
        let arguments: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let done = run(slowpath(&arguments));
        assert_eq!((done.code(), done.stdout.as_str()), (2, ""), "{line}: {done:?}");
    }
    run(slowpath(["record", "--user", "no-such-user", "-o", "/var/tmp/slowpath-never", "--", "true"]))
        .fails_with(if nix::unistd::geteuid().is_root() { 2 } else { 3 }, &[]);
}
