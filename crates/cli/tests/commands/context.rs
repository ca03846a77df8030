//! `context show`, `save` and `diff`: of processes, commands, saved contexts and copies from other machines.

use crate::running::*;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// The factors that differ for good.
fn different(comparison: &Value) -> Vec<&str> {
    let all = comparison["differences"].as_array().unwrap().iter();
    let mut names: Vec<&str> =
        all.filter(|one| one["of_the_moment"] == false).map(|one| one["factor"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

fn copies() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../context/tests/saved")
}

#[test]
fn a_context_is_read_without_privilege_saved_and_compared_with_a_command() {
    let place = place();
    let saved = place.path().join("plain.json");
    let words = ["--", "/bin/sleep", "60"];
    let done = run(slowpath(["context", "save", "-o"]).arg(&saved).args(words));
    done.succeeds();
    assert_eq!(done.stdout, "");
    let mut nice = Command::new("/usr/bin/nice")
        .args(["-n", "5", "/bin/sleep", "60"])
        .stdin(Stdio::null())
        .current_dir("/")
        .spawn()
        .unwrap();
    let pid = nice.id().to_string();
    assert!(soon(|| sleeps(nice.id())));
    let done = run(slowpath(["context", "diff", "--json"]).arg(&saved).arg(&pid));
    nice.kill().unwrap();
    nice.wait().unwrap();
    done.succeeds();
    let comparison = done.json();
    assert_eq!(comparison["schema"], "slowpath-context-diff/1");
    assert_eq!(different(&comparison), ["scheduling"], "{comparison}");
    let nice = &comparison["differences"][0]["parts"][0];
    assert_eq!((nice["name"].as_str(), nice["a"].as_str(), nice["b"].as_str()), (Some("nice"), Some("0"), Some("5")));
}

#[test]
fn a_running_process_is_shown_for_people_and_as_json() {
    let mut sleeper =
        Command::new("/bin/sleep").arg("60").env("LD_LIBRARY_PATH", "/x\x1b[31m").stdin(Stdio::null()).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let shown = run(slowpath(["context", "show", &pid]));
    let as_json = run(slowpath(["context", "show", "--json", &pid]));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    shown.succeeds();
    for words in ["sleep", "its first thread", "the process", "the machine", "timer_slack_ns", "mitigations"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    assert!(!shown.stdout.contains('\x1b'), "text of the target is escaped: {}", shown.stdout);
    let context = as_json.json();
    assert_eq!((&context["schema"], &context["pid"]), (&"slowpath-context/1".into(), &sleeper.id().into()));
    assert_eq!(context["process"]["environment"]["value"]["LD_LIBRARY_PATH"], "/x\u{1b}[31m");
}

#[test]
fn an_app_and_its_twin_from_another_machine_are_explained_with_remedies_and_their_price() {
    let side = |name: &str| copies().join("linux-5.15").join(name);
    let done = run(slowpath(["context", "diff"]).arg(side("app")).arg(side("shell")));
    done.succeeds();
    for words in [
        "at the cost of a: a seccomp filter switches CPU optimisations off",
        "thread force mitigated against thread vulnerable",
        "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
        "Trade-off: security",
        "a difference is not a cause",
    ] {
        // Lines are wrapped.
        let text = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words}: {text}");
    }
    let difference = run(slowpath(["context", "diff", "--json"]).arg(side("app")).arg(side("shell"))).json();
    assert_eq!(difference["chains"][0]["slower"], "a");
    assert_eq!(difference["chains"][0]["links"].as_array().unwrap().len(), 4);
}

#[test]
fn what_names_no_context_is_reported_with_what_would() {
    let place = place();
    let file = place.path().join("other.json");
    std::fs::write(&file, r#"{"schema":"slowpath-context/99"}"#).unwrap();
    run(slowpath(["context", "show"]).arg(&file)).fails_with(2, &["slowpath-context/99", "context save"]);
    std::fs::write(&file, "{").unwrap();
    run(slowpath(["context", "show"]).arg(&file)).fails_with(2, &["is no saved context"]);
    run(slowpath(["context", "show"]).arg(place.path())).fails_with(2, &["holds no status", "docs/context.md"]);
    run(slowpath(["context", "show", "4194305"])).fails_with(2, &["there is no process 4194305"]);
    run(slowpath(["context", "show", "--", "/bin/true"])).fails_with(4, &["ended before", "--ready"]);
    run(slowpath(["context", "show", "--", "/no/such/program"])).fails_with(4, &["/no/such/program"]);
    run(slowpath(["context", "show"])).fails_with(2, &["PID|FILE|DIR"]);
}
