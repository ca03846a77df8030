//! Processes that run already: named by pid or by an expression, or everything on the machine.

use super::tell;
use crate::arguments::RecordArguments;
use crate::commands::invoker;
use crate::failure::{Failure, Kind, failed};
use crate::progress::Progress;
use crate::recorded_launch::{self, Subject};
use crate::{interrupt, output_directory};
use regex::Regex;
use slowpath_capture::{Options, Recorder, Running};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often the ring is emptied.
const TICK: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    let identity = invoker()?;
    let (which, words) = which(arguments)?;
    let directory = output_directory::prepare(&arguments.output, &identity)?;
    let progress = Progress::new(arguments.quiet);
    progress.step("loading the recorder");
    let options = Options { running: true, ..super::options(arguments) };
    let mut recorder = Recorder::load(options).map_err(failed(Kind::Machine))?;
    interrupt::watch();
    recorder.attach_running(&which).map_err(failed(Kind::Machine))?;
    let stop = watch(&mut recorder, &which, arguments.duration.map(Duration::from_secs_f64), &progress)?;
    progress.step("writing the recording");
    let raw = recorder.finish().map_err(failed(Kind::Machine))?;
    let subject = Subject { identity: &identity, command: vec![words], launch: None };
    let manifest = recorded_launch::write(subject, &directory, &raw, Some(stop), &[])?;
    progress.done();
    for one in manifest.unavailable.iter().filter(|one| one.what.starts_with("process ")) {
        eprintln!("slowpath: warning: {} is not recorded: {}", one.what, one.reason);
    }
    tell(arguments, &directory, manifest);
    Ok(ExitCode::SUCCESS)
}

/// The processes that are meant, and how the recording calls them.
fn which(arguments: &RecordArguments) -> Result<(Running, String), Failure> {
    if arguments.system {
        return Ok((Running::System, "the whole system".to_owned()));
    }
    let mut pids = arguments.pid.clone();
    if let Some(gone) = pids.iter().find(|pid| !is_there(**pid)) {
        return Err(Failure::new(Kind::Usage, format!("there is no process {gone}")));
    }
    if let Some(expression) = &arguments.matching {
        let found = matching(expression);
        if found.is_empty() {
            return Err(Failure::new(Kind::Usage, format!("no process matches {expression}"))
                .hint("the expression is searched in names and in command lines, arguments joined by blanks"));
        }
        pids.extend(found);
    }
    pids.sort_unstable();
    pids.dedup();
    if pids.contains(&std::process::id()) {
        return Err(Failure::new(Kind::Usage, "slowpath does not record itself"));
    }
    let named = |pid: &u32| format!("{} ({pid})", name(*pid).unwrap_or_else(|| "?".to_owned()));
    let words = match pids.as_slice() {
        [first, others @ ..] if others.len() > 2 => format!("{} and {} other processes", named(first), others.len()),
        all => all.iter().map(named).collect::<Vec<_>>().join(", "),
    };
    Ok((Running::Processes(pids), words))
}

fn is_there(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn name(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Processes whose name or command line matches; never slowpath itself, whose command line holds the expression.
fn matching(expression: &Regex) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = own_family();
    let is_meant = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // A line of its own for an expression: `.` matches no end of a line.
        let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace(['\0', '\n'], " ");
        expression.is_match(&line) || name(*pid).is_some_and(|name| expression.is_match(&name))
    };
    pids.filter(|pid| !own.contains(pid)).filter(is_meant).collect()
}

/// This process and those that started it for this command (sudo, a shell, timeout): the expression stands in their lines too.
fn own_family() -> Vec<u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything: state, then parent (proc_pid_stat(5)).
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 1)
    };
    std::iter::successors(Some(std::process::id()), parent).take(64).collect()
}

/// Empties the ring until something ends the recording; says what.
fn watch(
    recorder: &mut Recorder,
    which: &Running,
    duration: Option<Duration>,
    progress: &Progress,
) -> Result<&'static str, Failure> {
    let began = Instant::now();
    loop {
        recorder.drain().map_err(failed(Kind::Machine))?;
        if interrupt::requested() {
            return Ok("interrupted");
        }
        if recorder.is_full() {
            return Ok("the memory for raw records was full");
        }
        if duration.is_some_and(|limit| began.elapsed() >= limit) {
            return Ok("the duration was over");
        }
        if let Running::Processes(pids) = which
            && !pids.iter().any(|pid| is_there(*pid))
        {
            return Ok("the processes had ended");
        }
        progress.step(format!("recording for {} s; ctrl-C ends and keeps it", began.elapsed().as_secs()));
        std::thread::sleep(TICK);
    }
}
