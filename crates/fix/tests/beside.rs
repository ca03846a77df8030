//! `run_beside` in processes of its own: those of `slowpath-preload`, which does nothing else.

mod support;

use slowpath_fix::preload_plan::beside::{BesideError, run_beside};
use slowpath_fix::preload_plan::replay::{ReplayLimits, ReplayReport};
use slowpath_fix::preload_plan::{PreloadPlan, file};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{cold_file, directory, plan, planned, wait_for_resident};

/// Many times what anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The command goes on until it is told to end, or for longer than [`PATIENCE`] where nobody does.
const UNTIL_TOLD: &str = "n=0; while [ ! -e \"$PLACE/end\" ] && [ $n -lt 7000 ]; do n=$((n + 1)); sleep 0.01; done";

fn command(plan: &Path, report: &Path, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowpath-preload"));
    command.arg("--report").arg(report).arg(plan).args(["--", "/bin/sh", "-c", script]).stdin(Stdio::null());
    command.env("PLACE", plan.parent().unwrap());
    command
}

/// Waits until it is so.
fn soon(is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn write_plan(path: &Path, plan: &PreloadPlan) {
    file::write(plan, fs::File::create(path).unwrap()).unwrap();
}

/// The script's own lines, which begin with `> `.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split_once("> ").map(|(_, line)| line.to_owned())).collect()
}

fn wait_for_report(path: &Path) -> Option<ReplayReport> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Ok(report) = serde_json::from_slice(&fs::read(path).unwrap_or_default()) {
            return Some(report);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

#[test]
fn the_command_keeps_the_pid_and_finds_no_child_no_descriptor_and_the_default_sigpipe() {
    let (_guard, directory) = directory();
    let [plan_path, report, data] = ["plan", "report", "data"].map(|name| directory.join(name));
    cold_file(&data, 64);
    write_plan(&plan_path, &plan(vec![planned(&data)], &[(0, 0, 64)]));
    let script = "echo \"> $$\"; echo \"> $(cat /proc/$$/task/*/children | wc -w)\"; \
                  for fd in /proc/$$/fd/*; do case $(readlink $fd) in *report*|*plan|*pidfd*) echo \"> leaked\";; esac; done; \
                  echo \"> $(grep SigIgn /proc/$$/status)\"; ";
    let script = format!("{script}{UNTIL_TOLD}");
    let child = command(&plan_path, &report, &script).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let result = wait_for_report(&report).expect("the prefetcher reports while the command runs");
    assert_eq!((result.ranges, result.bytes.0), (1, 64 * 4096));
    assert!(wait_for_resident(&data, 64).iter().all(|page| *page));
    fs::write(directory.join("end"), "").unwrap();
    let lines = lines(&child.wait_with_output().unwrap());
    assert_eq!(lines[0], pid.to_string());
    // The substitution's own subshell is the only child.
    assert_eq!(lines[1], "1");
    let ignored = u64::from_str_radix(lines[2].rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(ignored & (1 << (libc::SIGPIPE - 1)), 0, "{}", lines[2]);
}

#[test]
fn the_prefetcher_holds_no_pipe_of_the_command_open_and_ends_with_it() {
    let (_guard, directory) = directory();
    let [plan_path, report] = ["plan", "report"].map(|name| directory.join(name));
    // Reading the plan from a FIFO that nobody fills keeps the prefetcher alive for as long as it is allowed to.
    nix::unistd::mkfifo(&plan_path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let writer = fs::File::options().read(true).write(true).open(&plan_path).unwrap();
    let mut child = command(&plan_path, &report, UNTIL_TOLD).stdout(Stdio::piped()).spawn().unwrap();
    let find = || {
        let holders = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let fds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
            let holds = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok()).any(|target| target == plan_path);
            (holds && pid != std::process::id()).then_some(pid)
        });
        holders.collect::<Vec<_>>()
    };
    // The command itself has it open until it is executed.
    let is_executed = || fs::read_to_string(format!("/proc/{}/comm", child.id())).is_ok_and(|name| name == "sh\n");
    assert!(soon(|| is_executed() && !find().contains(&child.id())), "{:?}", find());
    let prefetchers = find();
    assert_eq!(prefetchers.len(), 1, "the prefetcher alone holds the plan open: {prefetchers:?}");
    let status = fs::read_to_string(format!("/proc/{}/stat", prefetchers[0])).unwrap();
    let fields: Vec<&str> = status.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_ne!(fields[1], child.id().to_string(), "the prefetcher is a child of the command");
    // The command does not wait until it has let the pipe go.
    let output = format!("/proc/{}/fd/1", prefetchers[0]);
    let lets_go = || fs::read_link(&output).is_ok_and(|target| target == Path::new("/dev/null"));
    assert!(soon(lets_go), "{:?}", fs::read_link(&output));
    fs::write(directory.join("end"), "").unwrap();
    child.wait().unwrap();
    // By itself it would wait for the FIFO for ever.
    assert!(soon(|| find().is_empty()), "the prefetcher outlives the command");
    drop(writer);
}

/// What the prefetcher says of a plan, while the command runs.
fn said_of(plan: &str) -> String {
    let (_guard, directory) = directory();
    let [plan_path, report] = ["plan", "report"].map(|name| directory.join(name));
    fs::write(&plan_path, plan).unwrap();
    let errors = directory.join("errors");
    // The line comes while the command runs: who prints it ends with that.
    let child = command(&plan_path, &report, &format!("{UNTIL_TOLD}; echo '> ran'"))
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    let errors = || fs::read_to_string(&errors).unwrap();
    soon(|| errors().contains('\n'));
    fs::write(directory.join("end"), "").unwrap();
    assert_eq!(lines(&child.wait_with_output().unwrap()), ["ran"]);
    errors()
}

#[test]
fn a_plan_that_cannot_be_parsed_costs_one_line_and_not_the_launch() {
    let errors = said_of("no plan\n");
    assert!(errors.contains("slowpath: the preload plan is not used: this is not a preload plan"), "{errors}");
}

#[test]
fn no_terminal_obeys_a_plan_that_cannot_be_parsed() {
    let mut plan = Vec::new();
    file::write(&PreloadPlan::default(), &mut plan).unwrap();
    let errors = said_of(&String::from_utf8(plan).unwrap().replace("\"first_use\"", "\"\\u001b[2J\""));
    assert!(errors.contains("is not used: ") && errors.contains("\\u{1b}[2J"), "{errors:?}");
    assert!(!errors.contains('\u{1b}') && errors.lines().count() == 1, "{errors:?}");
}

#[test]
fn a_missing_plan_and_a_missing_command_are_errors() {
    let limits = ReplayLimits::default();
    let Err(error) = run_beside(Path::new("/does/not/exist"), &limits, None, &["true".into()]);
    assert!(matches!(error, BesideError::Open { .. }), "{error}");
    let Err(error) = run_beside(Path::new("/does/not/exist"), &limits, None, &[]);
    assert!(matches!(error, BesideError::NoCommand));
}

#[test]
fn the_commands_exit_code_is_the_programs_and_what_cannot_be_run_has_one_of_its_own() {
    let (_guard, directory) = directory();
    let [plan_path, report] = ["plan", "report"].map(|name| directory.join(name));
    write_plan(&plan_path, &PreloadPlan::default());
    assert_eq!(command(&plan_path, &report, "exit 7").status().unwrap().code(), Some(7));
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_slowpath-preload")).args(words).output().unwrap();
        let [out, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        (output.status.code(), out, errors)
    };
    let (code, out, errors) = run(&[plan_path.to_str().unwrap(), "--", "/no/such\u{1b}[2J"]);
    assert_eq!((code, out.as_str()), (Some(4), ""));
    assert!(errors.starts_with("slowpath-preload: /no/such\\u{1b}[2J could not be executed: "), "{errors}");
    let (code, _, errors) = run(&["plan"]);
    assert!(code == Some(2) && errors.contains("Usage: slowpath-preload"), "{errors}");
    let (code, out, errors) = run(&["--help"]);
    assert!(code == Some(0) && out.contains("Usage: slowpath-preload") && errors.is_empty(), "{out}{errors}");
}
