//! Processes that run already: named by pid or by an expression, or everything on the machine.

use crate::Progress;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::recorded_launch::RecordingSubject;
use crate::recording_writer::WriterProcess;
use crate::streamed_recording::StreamedRecording;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use regex::Regex;
use slowpath_capture::{Options, Running};
use slowpath_launch::Identity;
use slowpath_process::{DeadlineError, Owner, ProcessFiles, StatLine, status_field, status_of};
use slowpath_recording::Manifest;
use slowpath_tables::Bytes;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a command line that an expression is searched in: as many as the kernel takes at an exec by default (execve(2)).
const LONGEST_LINE: u64 = 2 << 20;

/// How often the ring is emptied.
const TICK: Duration = Duration::from_millis(20);

/// Processes that run, and how a recording of them calls them.
pub struct Meant {
    which: Running,
    /// Foreign text.
    pub words: String,
}

/// What is recorded of them, and for how long.
pub struct Wanted {
    /// What the recorder is asked for.
    pub options: Options,
    /// Most of the disk that the recording takes.
    pub most: Bytes,
    /// How long; until ctrl-C, or until all have ended, without it.
    pub duration: Option<Duration>,
}

/// What became of it.
pub struct Recorded {
    /// Its manifest.
    pub manifest: Manifest,
    /// Why it ended.
    pub stop: String,
}

/// Records into a directory that is prepared.
///
/// # Errors
/// The kernel refuses, or the recording cannot be written.
pub fn record(
    meant: &Meant,
    wanted: Wanted,
    directory: &Path,
    identity: &Identity,
    progress: &dyn Progress,
) -> Result<Recorded, Failure> {
    // Before anything is loaded into the kernel, which it would hold.
    let writer = WriterProcess::start(identity, directory, wanted.most)?;
    progress.step("loading the recorder");
    let subject = RecordingSubject { identity, command: vec![meant.words.clone()], launch: None };
    let mut recording = StreamedRecording::load(wanted.options, writer, subject, wanted.duration)?;
    interrupt::watch();
    recording.begin_running(&meant.which, progress)?;
    let stop = watch(&mut recording, &meant.which, wanted.duration, progress)?;
    progress.step("writing the recording");
    let manifest = recording.finish(Some(&stop))?;
    progress.done();
    for one in manifest.unavailable.iter().filter(|one| one.what.starts_with("process ")) {
        progress.warn(&format!("{} is not recorded: {}", one.what, one.reason));
    }
    Ok(Recorded { manifest, stop })
}

/// Everything on the machine.
pub fn system() -> Meant {
    Meant { which: Running::System, words: "the whole system".to_owned() }
}

/// These processes, and those that an expression fits.
///
/// # Errors
/// One of them is not there or is a thread, or the expression fits none.
pub fn named(mut pids: Vec<u32>, expression: Option<&Regex>, progress: &dyn Progress) -> Result<Meant, Failure> {
    if let Some(expression) = expression {
        let found = matching(expression, progress);
        if found.is_empty() {
            return Err(Failure::new(Kind::Usage, format!("no process matches {expression}"))
                .hint("the expression is searched in names and in command lines, arguments joined by blanks; the shells and the \
                       like that slowpath itself was started from are left out"));
        }
        pids.extend(found);
    }
    processes(pids)
}

/// These processes.
///
/// # Errors
/// One of them is not there, or is a thread.
pub fn processes(mut pids: Vec<u32>) -> Result<Meant, Failure> {
    for pid in &pids {
        match thread_of(*pid) {
            Some(process) if process != *pid => {
                return Err(Failure::new(Kind::Usage, format!("{pid} is a thread of process {process}"))
                    .hint(format!("all threads of a process are recorded: --pid {process}")));
            }
            _ if Owner::of(*pid).is_none() => {
                return Err(Failure::new(Kind::Usage, format!("there is no process {pid}")));
            }
            _ => {}
        }
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
    Ok(Meant { which: Running::Processes(pids), words })
}

/// The process that a process or thread id belongs to (`Tgid` of proc_pid_status(5)).
fn thread_of(id: u32) -> Option<u32> {
    status_field(&status_of(id).ok()?, "Tgid")?.parse().ok()
}

fn name(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Processes whose name or command line matches; never slowpath itself, whose command line holds the expression.
fn matching(expression: &Regex, progress: &dyn Progress) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = own_family();
    let mut files = ProcessFiles::default();
    let mut is_meant = |pid: &u32| {
        // Its memory holds the line, and its user may let that wait for ever.
        let line = match files.read(Path::new(&format!("/proc/{pid}/cmdline")), LONGEST_LINE) {
            Err(error @ DeadlineError::Late(_)) => {
                let known = name(*pid).unwrap_or_default();
                progress.warn(&format!("the command line of process {pid} ({known}) is unavailable: {error}"));
                Vec::new()
            }
            read => read.unwrap_or_default(),
        };
        // A line of its own for an expression: `.` matches no end of a line.
        let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace(['\0', '\n'], " ");
        expression.is_match(&line) || name(*pid).is_some_and(|name| expression.is_match(&name))
    };
    pids.filter(|pid| !own.contains(pid)).filter(&mut is_meant).collect()
}

/// This process and those that started it for this command (sudo, a shell, timeout): the expression stands in their lines too.
fn own_family() -> Vec<u32> {
    let parent = |pid: &u32| StatLine::of(*pid)?.parent().filter(|pid| *pid > 1);
    std::iter::successors(Some(std::process::id()), parent).take(64).collect()
}

/// Moves records on until something ends the recording; says what.
fn watch(
    recording: &mut StreamedRecording,
    which: &Running,
    duration: Option<Duration>,
    progress: &dyn Progress,
) -> Result<String, Failure> {
    let of = duration.map(|duration| format!(" of {} s", duration.as_secs_f64())).unwrap_or_default();
    let processes: Option<Vec<Owner>> = match which {
        Running::Processes(pids) => Some(pids.iter().filter_map(|pid| Owner::of(*pid)).collect()),
        Running::System => None,
    };
    loop {
        recording.tick()?;
        if let Some(stop) = recording.stop() {
            return Ok(stop);
        }
        if processes.as_ref().is_some_and(|processes| !processes.iter().any(|one| one.is_alive())) {
            return Ok("the processes had ended".to_owned());
        }
        progress.step(&format!("recording for {} s{of}; ctrl-C ends and keeps it", recording.elapsed().as_secs()));
        wait_for_tick(recording)?;
    }
}

/// Until the next tick; what cannot wait so long is done meanwhile.
fn wait_for_tick(recording: &mut StreamedRecording) -> Result<(), Failure> {
    let tick = Instant::now() + TICK;
    loop {
        let left = tick.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let Some(wakes) = recording.wakes() else {
            std::thread::sleep(left);
            return Ok(());
        };
        let timeout = PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        if poll(&mut [PollFd::new(wakes, PollFlags::POLLIN)], timeout).is_ok_and(|ready| ready > 0) {
            recording.wake()?;
        }
    }
}
