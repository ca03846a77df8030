//! Finding `timed_wait` on real programs: a sleep, and a name server that does not answer.

use crate::running::*;
use crate::traces::assert_nothing_left;
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};

/// An address of loopback that no other program of the machine listens on, nor this test where it runs twice.
fn silent_address() -> Ipv4Addr {
    let pid = std::process::id();
    Ipv4Addr::new(127, 91, (pid >> 8) as u8, pid as u8 | 1)
}

fn timed_wait(options: &[&str], program: &[&str]) -> (Value, Value) {
    let place = place();
    let mut command = slowpath(["diagnose", "--json", "-o"]);
    let done = run(command.arg(place.path().join("out")).args(options).arg("--").args(program));
    done.succeeds();
    assert_nothing_left(&done);
    let printed = done.json();
    let findings = printed["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["name"] == "timed_wait");
    (found.unwrap_or_else(|| panic!("{printed:#}")).clone(), printed)
}

#[test]
fn a_sleep_before_ready_is_named_with_its_length_and_no_fix_is_launched() {
    if !root() {
        return;
    }
    let (found, printed) = timed_wait(&["--warm"], &["/bin/sh", "-c", "sleep 0.4"]);
    let cost = found["cost"]["value"].as_f64().unwrap();
    assert!((400.0..500.0).contains(&cost), "{found:#}");
    assert_eq!((&found["subject"]["process"], &found["confidence"]), (&"sleep".into(), &"high".into()), "{found:#}");
    assert_eq!(printed["verdicts"].as_array().map(Vec::len), Some(0), "{printed:#}");
}

#[test]
fn a_name_server_that_does_not_answer_leads_a_diagnosis_without_a_mode() {
    if !root() {
        return;
    }
    // Takes questions and never answers: a closed port would be refused at once.
    let silent = silent_address();
    let _socket = UdpSocket::bind((silent, 53)).unwrap();
    let place = place();
    let servers = place.path().join("resolv.conf");
    fs::write(&servers, format!("nameserver {silent}\noptions timeout:1 attempts:1\n")).unwrap();
    let script = format!("mount --bind {} /etc/resolv.conf; getent ahosts host.invalid; true", servers.display());
    let options = ["--user", "root", "--max-time", "2m"];
    let (found, printed) = timed_wait(&options, &["/usr/bin/unshare", "-m", "/bin/sh", "-c", &script]);
    let cost = found["cost"]["value"].as_f64().unwrap();
    assert!((1000.0..1500.0).contains(&cost), "{found:#}");
    assert_eq!(found["subject"]["process"], "getent", "{found:#}");
    assert_eq!(printed["findings"][0]["name"], "timed_wait", "{printed:#}");
}
