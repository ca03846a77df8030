//! Finding `slow_ipc_reply` on real programs that talk over a unix socket: what the server says that it slept is the truth.

use crate::running::*;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const CASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/ipc/replies.py");
const REQUESTS: usize = 20;

fn program(words: &[&str]) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(CASE).args(words);
    command
}

/// Ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn analyzed(recording: &Path) -> Value {
    let done = run(slowpath(["analyze", "--json"]).arg(recording));
    done.succeeds();
    done.json()
}

fn found(analysis: &Value) -> Option<&Value> {
    analysis["findings"].as_array().unwrap().iter().find(|finding| finding["name"] == "slow_ipc_reply")
}

/// The finding holds what the server slept, as the server itself saw it: without run queues, or with them where it had to wait for a CPU.
fn holds(found: &Value, slept_ms: f64) {
    let cost = |end: &str| found["cost"][end].as_f64().unwrap();
    let is_near = cost("low") <= 1.05 * slept_ms && cost("high") >= 0.95 * slept_ms;
    assert!(is_near && cost("low") >= 0.5 * slept_ms, "slept {slept_ms} ms: {found:#}");
    assert!(cost("value") >= cost("low") && cost("high") >= cost("value"), "{found:#}");
    // One of them may come before the server first waited: it is part of its start.
    let replies = &found["evidence"][0]["rows"][0];
    assert!(replies["slow_replies"].as_u64().is_some_and(|slow| slow + 1 >= REQUESTS as u64), "{found:#}");
    // On a busy machine the client may begin to wait when the server sleeps already: not each time.
    assert!(replies["p99_ms"].as_f64().is_some_and(|longest| longest >= 25.0), "{found:#}");
    assert_eq!(found["evidence"][1]["rows"][0]["wait"], "timers", "{found:#}");
}

/// How often the process that was started first waited in a socket, by the table of waits.
fn waits_of_client(recording: &Path) -> u64 {
    let done = run(slowpath(["export", "--to", "csv", "--table", "off_cpu"]).arg(recording));
    done.succeeds();
    let mut rows = done.stdout.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let (start, reason) = (column("start"), column("reason"));
    let rows: Vec<_> = rows.map(|row| (row[start].parse::<u64>().unwrap(), row[reason] == "pipe_or_socket")).collect();
    let first = rows.iter().map(|(start, _)| *start).min();
    rows.iter().filter(|(start, in_socket)| *in_socket && Some(*start) == first).count() as u64
}

/// Records a launch of client and server in `place`; what it found, and what the server slept in ms.
fn launched(place: &Path, delay_ms: &str) -> (Value, f64) {
    let (socket, out) = (place.join("socket"), place.join("out"));
    let words = ["/usr/bin/python3", CASE, "both", socket.to_str().unwrap(), &REQUESTS.to_string(), delay_ms];
    let mut command = slowpath(["record", "--off-cpu", "--stacks", "wait", "--user", "root", "-o"]);
    let done = run(command.arg(&out).arg("--").args(words));
    done.succeeds();
    let slept = done.stdout.lines().find_map(|line| line.trim().parse::<u64>().ok());
    (analyzed(&out), slept.unwrap_or_else(|| panic!("{done:?}")) as f64 / 1e6)
}

#[test]
fn a_launch_that_waits_for_its_server_says_for_whom_and_how_long() {
    if !root() {
        return;
    }
    let place = place();
    let (analysis, slept) = launched(place.path(), "25");
    let finding = found(&analysis).unwrap_or_else(|| panic!("{analysis:#}"));
    holds(finding, slept);
    // So short a sleep can be meant.
    let lost = analysis["losses"]["off_cpu"].as_u64().unwrap();
    assert!(lost > 0 || finding["confidence"] == "medium", "{finding:#}");
    let pair = &analysis["round_trips"][0];
    let server = &finding["subject"]["server_pid"];
    assert_eq!((&pair["direction_from"], &pair["server_pid"]), (&"critical_path".into(), server));
    assert!(pair["longest"]["value"].as_f64().is_some_and(|longest| longest >= 25.0), "{pair:#}");
}

#[test]
fn a_server_that_answers_at_once_is_not_slow() {
    if !root() {
        return;
    }
    let place = place();
    let (analysis, _) = launched(place.path(), "0");
    // On a busy machine it may stand in a run queue for long, which is no doing of its own.
    let certain = found(&analysis).map_or(0.0, |finding| finding["cost"]["low"].as_f64().unwrap());
    assert!(certain < 5.0, "{analysis:#}");
    // It was looked at: what the client waited for is a reply, whose request one may miss. A client whose server takes its CPU as soon as
    // it asks has the reply before it would wait, in some launches each time.
    let (seen, waits) =
        (analysis["round_trips"][0]["round_trips"].as_u64(), waits_of_client(&place.path().join("out")));
    assert!(2 * seen.unwrap_or(0) >= waits, "{waits} waits: {analysis:#}");
}

#[test]
fn of_programs_that_run_the_one_that_asks_is_distinguished_from_the_one_that_answers() {
    if !root() {
        return;
    }
    let place = place();
    let name = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (socket, go, out) = (name("socket"), name("go"), name("out"));
    let server = Program(program(&["server", &socket, "25"]).spawn().unwrap());
    // The ages of both show who asks.
    let client = program(&["client", &socket, &REQUESTS.to_string(), &go]).stdout(Stdio::piped()).spawn().unwrap();
    let mut client = Program(client);
    let pids = [server.0.id().to_string(), client.0.id().to_string()];
    let mut command = slowpath(["diagnose", "--json", "--quiet", "--duration", "100", "-o", &out]);
    let mut running = start(command.args(["--pid", &pids[0], "--pid", &pids[1]]));
    // The first rows are written: everything is attached.
    let has_begun = soon(|| Path::new(&out).join("running/mappings").exists());
    fs::write(&go, "").unwrap();
    let mut slept = String::new();
    client.0.stdout.take().unwrap().read_to_string(&mut slept).unwrap();
    running.signal(libc::SIGINT);
    let done = running.wait();
    done.succeeds();
    assert!(has_begun);
    let analysis = done.json();
    let finding = found(&analysis).unwrap_or_else(|| panic!("{analysis:#}"));
    holds(finding, slept.trim().parse::<u64>().unwrap() as f64 / 1e6);
    let subject = |name: &str| finding["subject"][name].to_string();
    assert_eq!([subject("server_pid"), subject("pid")], pids, "{finding:#}");
    assert_eq!(analysis["round_trips"].as_array().unwrap().len(), 1, "{analysis:#}");
    assert!(
        ["age", "one_way"].contains(&analysis["round_trips"][0]["direction_from"].as_str().unwrap()),
        "{analysis:#}"
    );
}
