//! `diagnose --pid`: hidden costs of a running process, and what a trial of the fixes would need.

use crate::attached::Toucher;
use crate::running::*;
use crate::traces::assert_nothing_left;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A block above glibc's largest threshold for mmap (32 MiB), mapped anew each time round.
const MAPS_ANEW: &str = "
while True:
    block = bytearray(40_000_000)
    block[::4096] = b'x' * len(block[::4096])
    del block
";
/// The same work on one block.
const KEEPS: &str = "
block = bytearray(40_000_000)
while True:
    block[::4096] = b'x' * len(block[::4096])
";

/// A program that ends with its test.
struct Program(Child);

impl Program {
    fn start(text: &str) -> Self {
        Self::start_by(&[], text)
    }

    /// By a program that becomes it. It ends with this process, however that ends.
    fn start_by(before: &[&str], text: &str) -> Self {
        let mut command = Command::new("/usr/bin/setpriv");
        let command = command.args(["--pdeathsig", "KILL"]).args(before).args(["/usr/bin/python3", "-c", text]);
        let program = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        let line = format!("/proc/{}/cmdline", program.0.id());
        while !std::fs::read_to_string(&line).unwrap().starts_with("/usr/bin/python3") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        program
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn diagnosed(pid: u32, seconds: &str) -> (Value, tempfile::TempDir) {
    let place = place();
    let out = place.path().join("out");
    let pid = pid.to_string();
    let options = ["diagnose", "--json", "--pid", &pid, "--duration", seconds, "-o", out.to_str().unwrap()];
    let done = run(&mut slowpath(options));
    done.succeeds();
    assert_nothing_left(&done);
    (done.json(), place)
}

#[test]
fn a_process_that_maps_memory_anew_is_reported_with_what_a_trial_needs() {
    if !root() {
        return;
    }
    let program = Program::start(MAPS_ANEW);
    let (diagnosis, place) = diagnosed(program.0.id(), "3");
    let first = &diagnosis["findings"][0];
    assert_eq!(first["name"], "transient_large_allocation", "{diagnosis:#}");
    let tunables =
        diagnosis["verdicts"].as_array().unwrap().iter().find(|one| one["arm"] == "allocator_tunables").unwrap();
    assert_eq!((&tunables["decision"], &tunables["measured"]), (&"not_tried".into(), &Value::Null), "{tunables:#}");
    let notes = diagnosis["notes"].to_string();
    assert!(notes.contains("slowpath diagnose --warm -- /usr/bin/python3 -c"), "{notes}");
    assert!(diagnosis["running"]["processes"].as_str().unwrap().contains(&program.0.id().to_string()));

    // One table: the CPU time of the parts is all of it, and the faults are most of what the finding costs.
    let time = &diagnosis["time"][0];
    let cpu = |row: &Value| row["cpu"]["value"].as_f64().unwrap_or(0.0);
    let rows = time["rows"].as_array().unwrap();
    let whole = time["cpu"]["value"].as_f64().unwrap();
    assert!((rows.iter().map(cpu).sum::<f64>() - whole).abs() < 1e-3 * whole, "{time:#}");
    let faults = rows.iter().find(|row| row["part"] == "faults_and_memory").map(cpu).unwrap();
    assert!(
        faults > 0.5 * first["cost"]["value"].as_f64().unwrap() && time["time_to_ready"].is_null(),
        "{diagnosis:#}"
    );

    // It is a diagnosis as any other: the page can be made again, and its fixes be listed.
    let out = place.path().join("out");
    let page = out.join("again.html");
    run(slowpath(["report", "-o", page.to_str().unwrap()]).arg(&out)).succeeds();
    assert!(std::fs::read_to_string(page).unwrap().contains("transient_large_allocation"));
    run(slowpath(["fix", "list"]).arg(&out)).succeeds();
}

#[test]
fn of_a_process_that_keeps_its_memory_nothing_is_found_and_what_was_looked_for_is_said() {
    if !root() {
        return;
    }
    let program = Program::start(KEEPS);
    let (diagnosis, _place) = diagnosed(program.0.id(), "2");
    assert_eq!(
        (&diagnosis["findings"], &diagnosis["verdicts"]),
        (&Value::Array(vec![]), &Value::Array(vec![])),
        "{diagnosis:#}"
    );
    let notes = diagnosis["notes"].to_string();
    for what in ["looked for", "large blocks mapped and unmapped", "files that may not be read"] {
        assert!(notes.contains(what) && !notes.contains("sleeps"), "{what}: {notes}");
    }
}

#[test]
fn a_process_with_other_mounts_gets_no_fix_made_from_files_of_this_machine() {
    if !root() {
        return;
    }
    let program = Program::start_by(&["/usr/bin/unshare", "--mount"], MAPS_ANEW);
    let is_elsewhere = || {
        let mounts = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
        mounts(&program.0.id().to_string()) != mounts("self")
    };
    while !is_elsewhere() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (diagnosis, _place) = diagnosed(program.0.id(), "3");
    let gaps = diagnosis["unavailable"].to_string();
    assert!(gaps.contains(&format!("files of process {}", program.0.id())), "{gaps}");
    let verdicts = diagnosis["verdicts"].as_array().unwrap();
    let allocator = verdicts.iter().find(|one| one["arm"] == "replace_allocator").unwrap();
    assert_ne!(allocator["reason"], "a trial needs launches", "{diagnosis:#}");
}

#[test]
fn ctrl_c_ends_the_recording_and_what_was_recorded_is_diagnosed() {
    if !root() {
        return;
    }
    let mut toucher = Toucher::start("diagnosed until ctrl-C");
    let place = place();
    let out = place.path().join("out");
    let pid = toucher.child.id().to_string();
    let options = ["diagnose", "--json", "--pid", &pid, "--duration", "100", "-o", out.to_str().unwrap()];
    let mut running = start(&mut slowpath(options));
    let is_recorded = || std::fs::read_dir(out.join("running")).is_ok_and(|mut files| files.next().is_some());
    while !is_recorded() {
        toucher.touch();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    running.signal(libc::SIGINT);
    let done = running.wait();
    done.succeeds();
    assert_nothing_left(&done);
    assert!(done.json()["notes"].to_string().contains("recording ended: interrupted"), "{done:?}");
}

#[test]
fn a_process_that_is_not_there_and_options_of_launches_are_refused() {
    if !root() {
        return;
    }
    run(&mut slowpath(["diagnose", "--pid", "4194303"])).fails_with(2, &["there is no process 4194303"]);
    for option in [["--blocks", "9"], ["--max-time", "9s"], ["--user", "nobody"]] {
        run(slowpath(["diagnose", "--pid", "1"]).args(option)).fails_with(2, &["cannot be used with"]);
    }
    run(&mut slowpath(["diagnose", "--duration", "3", "--", "true"])).fails_with(2, &["cannot be used with"]);
}
