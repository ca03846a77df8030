//! `slowpath record` of processes that run already.

use crate::running::*;
use crate::traces::tracepoints_of;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// Touches a thousand fresh pages for each line that it is given, and says so; the mark is in its command line only.
const PROGRAM: &str = "
import mmap, sys
print('ready', flush=True)
for line in sys.stdin:
    m = mmap.mmap(-1, 1000 << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(0, 1000 << 12, 4096): m[i] = 1
    print('done', flush=True)
";

/// A process that touches pages on request.
pub struct Toucher {
    pub child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Toucher {
    pub fn start(mark: &str) -> Self {
        let mut child = Command::new("/usr/bin/python3")
            .args(["-c", PROGRAM, mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self { child, lines }
    }

    pub fn touch(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(self.lines.next().unwrap().unwrap(), "done");
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records while `during` happens, until the process has it behind it.
fn recorded(arguments: &[&str], toucher: &mut Toucher) -> (Done, tempfile::TempDir) {
    let place = place();
    let out = place.path().join("out");
    let mut command = slowpath(["record", "--json", "--quiet", "--duration", "4", "-o", out.to_str().unwrap()]);
    let mut running = start(command.args(arguments));
    // Again and again: some lines come after the recorder has marked the process, whenever that is.
    while running.child.try_wait().unwrap().is_none() {
        toucher.touch();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    (running.wait(), place)
}

#[track_caller]
fn check(done: &Done, pid: u32) {
    done.succeeds();
    let said = done.json();
    let manifest = &said["manifest"];
    assert!(manifest["launch"].is_null(), "{manifest:#}");
    assert_eq!(manifest["stop_reason"], "the duration was over");
    let losses = manifest["losses"].as_object().unwrap();
    // What others on this machine do can be more than the ring holds; what one process does is not.
    let is_system = manifest["command"][0] == "the whole system";
    assert!(is_system || losses.values().filter_map(Value::as_u64).sum::<u64>() == 0, "{losses:?}");
    let lost =
        losses.iter().filter(|(kind, _)| kind.contains("fault")).filter_map(|(_, lost)| lost.as_u64()).sum::<u64>();
    let tables = tables(std::path::Path::new(said["recording"].as_str().unwrap()));
    let exec = tables.execs.iter().find(|exec| exec.pid == pid).unwrap();
    assert!(exec.present && exec.command_line.starts_with("/usr/bin/python3 -c"), "{exec:?}");
    let faults = tables.faults.iter().filter(|fault| fault.pid == pid).count() as u64;
    let counted: u64 = tables.exits.iter().filter(|exit| exit.pid == pid).map(|exit| exit.min_flt + exit.maj_flt).sum();
    let counted = counted - exec.min_flt - exec.maj_flt;
    assert!(counted >= 10_000, "{counted}");
    let margin = counted / 200;
    assert!(
        faults <= counted + margin && faults + lost + margin >= counted,
        "{faults} recorded, {lost} lost of all, {counted} by the kernel"
    );
}

#[test]
fn a_process_is_recorded_by_pid_and_lives_on() {
    if !root() {
        return;
    }
    let mut toucher = Toucher::start("x");
    let pid = toucher.child.id();
    let (done, place) = recorded(&["--pid", &pid.to_string()], &mut toucher);
    check(&done, pid);
    toucher.touch();
    let analyzed = run(slowpath(["analyze", place.path().join("out").to_str().unwrap()]));
    analyzed.succeeds();
    assert!(analyzed.stdout.contains("holds no launch that got ready"), "{}", analyzed.stdout);
}

#[test]
fn processes_are_found_by_what_their_command_line_says_and_in_the_whole_system() {
    if !root() {
        return;
    }
    let mark = format!("mark-{}-of-attached", std::process::id());
    let mut toucher = Toucher::start(&mark);
    let pid = toucher.child.id();
    let (done, _place) = recorded(&["--match", &format!("python3.*{mark}$")], &mut toucher);
    check(&done, pid);
    assert!(done.json()["manifest"]["command"][0].as_str().unwrap().contains(&format!("python3 ({pid})")));
    let (done, _place) = recorded(&["--system"], &mut toucher);
    check(&done, pid);
}

#[test]
fn a_recording_ends_with_its_process() {
    if !root() {
        return;
    }
    let place = place();
    let toucher = Toucher::start("y");
    let out = place.path().join("out");
    let command =
        ["record", "--json", "--quiet", "-o", out.to_str().unwrap(), "--pid", &toucher.child.id().to_string()];
    let running = start(&mut slowpath(command));
    // The manifest is written when the process is followed.
    let is_followed = soon(|| out.join("manifest.json").exists());
    drop(toucher);
    let done = running.wait();
    done.succeeds();
    assert!(is_followed, "{done:?}");
    assert_eq!(done.json()["manifest"]["stop_reason"], "the processes had ended");
}

/// A tracepoint of any system call makes all of them dearer for everybody.
#[test]
fn processes_that_run_are_recorded_without_tracepoints_of_system_calls_unless_files_are_asked_for() {
    if !root() {
        return;
    }
    let toucher = Toucher::start("z");
    let pid = toucher.child.id().to_string();
    let looked = |options: &[&str]| {
        let place = place();
        let out = place.path().join("out");
        let mut command = slowpath(["record", "--json", "--quiet", "--pid", &pid, "-o", out.to_str().unwrap()]);
        let mut running = start(command.args(options));
        let recorder = running.child.id();
        // The first rows are written: everything is attached.
        let is_ready = soon(|| out.join("mappings").exists());
        let seen = tracepoints_of(recorder);
        running.signal(libc::SIGINT);
        let done = running.wait();
        done.succeeds();
        assert!(is_ready, "{seen:?}");
        let of_calls: Vec<String> = seen.into_iter().filter(|name| name.starts_with("sys_")).collect();
        let probes = done.json()["manifest"]["probes"].to_string();
        (of_calls, probes.contains("\"open\""), tables(&out))
    };
    let (of_calls, has_opens, tables) = looked(&["--stacks", "fault", "--sample", "1000"]);
    assert_eq!((of_calls, has_opens), (Vec::new(), false));
    assert!(tables.mappings.iter().any(|row| row.ino.is_some()), "its mappings of before are recorded");
    assert_eq!(looked(&[]).0, Vec::<String>::new());
    let (of_calls, has_opens, _) = looked(&["--files"]);
    assert!(has_opens && of_calls.iter().any(|name| name == "sys_exit"), "{of_calls:?}");
}

#[test]
fn files_of_a_command_are_recorded_unless_they_are_left_out() {
    if !root() {
        return;
    }
    let opens = |options: &[&str]| {
        let place = place();
        let out = place.path().join("out");
        record(&out, options, &["/bin/cat", "/etc/hostname"]).succeeds();
        let tables = tables(&out);
        assert!(tables.mappings.iter().any(|row| row.op == slowpath_tables::MappingOp::Map && row.ino.is_some()));
        (!tables.opens.is_empty(), !tables.reads.is_empty())
    };
    assert_eq!(opens(&[]), (true, true));
    assert_eq!(opens(&["--no-files"]), (false, false));
}

#[test]
fn what_cannot_be_followed_is_reported() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let record = |arguments: &[&str]| run(slowpath(["record", "-o", out.to_str().unwrap()]).args(arguments));
    record(&["--pid", "4194304"]).fails_with(2, &["no process 4194304"]);
    // A thread that is none of its process's first.
    let threaded = "import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(threading.enumerate()[1].native_id, flush=True)
time.sleep(60)";
    let mut other = Command::new("/usr/bin/python3").args(["-c", threaded]).stdout(Stdio::piped()).spawn().unwrap();
    let thread = BufReader::new(other.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let message = format!("{thread} is a thread of process {}", other.id());
    let (thread, alive) = (record(&["--pid", &thread]), other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    thread.fails_with(2, &[&message]);
    assert!(alive);
    record(&["--match", "no-such-process-anywhere-[0-9]x"]).fails_with(2, &["no process matches"]);
    record(&["--match", "("]).fails_with(2, &["--match"]);
    record(&["--pid", "1", "--", "/bin/true"]).fails_with(2, &["cannot be used with"]);
    record(&["--system", "--pid", "1"]).fails_with(2, &["cannot be used with"]);
    record(&["--system", "--files", "--no-files"]).fails_with(2, &["cannot be used with"]);
    record(&["--system", "--user", "nobody"]).fails_with(2, &["cannot be used with"]);
    record(&[]).fails_with(2, &["required"]);
    assert!(!out.exists());
}
