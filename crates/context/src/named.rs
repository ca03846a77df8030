//! Whose context is meant by a word: a process, a saved context, a directory of copied files, or a command that is started for it.

use crate::Snapshot;
use slowpath_launch::{EndPolicy, Hooks, Launcher, ReadyWhen, StdioPolicy};
use slowpath_process::{status_field, status_of};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Invocation, Target, invoker, launch_failure, launcher};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{foreign_file, interrupt};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a saved context that are read at most: a browser's, of 200 threads, has 1 MB.
const MOST_BYTES: u64 = 16 << 20;

/// How long a command may take until it can be read.
const PATIENCE: Duration = Duration::from_secs(60);

/// The context that a word names.
///
/// # Errors
/// There is no such process, the file holds no context, or the command did not run.
pub fn named(word: &OsStr, invocation: &Invocation) -> Result<Snapshot, Failure> {
    if let Some(found) = existing(word)? {
        return Ok(found);
    }
    let text = word.to_string_lossy();
    let words = shlex::split(&text).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| Failure::new(Kind::Usage, format!("{text:?} is no process, file or command")))?;
    launched(invocation, words.into_iter().map(OsString::from).collect())
}

/// The context that a word names without a command: that of a process, of a saved context, or of a directory of copied files.
///
/// # Errors
/// There is no such process, or the file holds no context.
pub fn existing(word: &OsStr) -> Result<Option<Snapshot>, Failure> {
    let text = word.to_string_lossy();
    if let Ok(pid) = text.parse::<u32>() {
        return of_process(pid).map(Some);
    }
    let path = Path::new(word);
    // What it is, too, is looked at as the user: it can lie on a file system that never answers.
    as_user(&invoker()?, &Work::reading("reading a saved context"), || {
        if path.is_dir() { copied(path) } else { saved(path) }
    })
}

/// A directory of copied files.
fn copied(path: &Path) -> Result<Option<Snapshot>, Failure> {
    Snapshot::of_directory(path).map(Some).map_err(|error| {
        Failure::from_error(Kind::Usage, &error).hint(
            "copy `/proc/PID` of one process (status, stat, cgroup, ...) there, with `/sys` and `/proc/sys` beside it for the machine; \
             docs/context.md has a script for Android",
        )
    })
}

/// A context that `context save` wrote, or a copy of `/proc/PID/status`; none where the file is neither.
fn saved(path: &Path) -> Result<Option<Snapshot>, Failure> {
    let mut first = Vec::new();
    // A program, a device: what is no regular file that begins like JSON or a status is not meant.
    if foreign_file::open(path).and_then(|file| file.take(5).read_to_end(&mut first)).is_err() {
        return Ok(None);
    }
    if first == b"Name:" {
        let bytes = foreign_file::read(path, MOST_BYTES);
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let wrong =
            |why: std::io::Error| Failure::new(Kind::Usage, format!("{} cannot be read: {why}", path.display()));
        let read = Snapshot::of_status(text.map_err(wrong)?, path.display().to_string());
        return read.map(Some).map_err(|error| Failure::from_error(Kind::Usage, &error));
    }
    if !first.starts_with(b"{") {
        return Ok(None);
    }
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(Kind::Usage, format!("{} is no saved context: {why}", path.display()))
            .hint("`slowpath context save` writes contexts; a newer slowpath reads newer ones")
    };
    let bytes = foreign_file::read(path, MOST_BYTES).map_err(|error| wrong(&error))?;
    Snapshot::of_json(&bytes).map(Some).map_err(|error| wrong(&error))
}

fn of_process(pid: u32) -> Result<Snapshot, Failure> {
    let mut context = Snapshot::of_process(pid).map_err(|error| Failure::from_error(Kind::Usage, &error))?;
    context.read_filters();
    examined(context)
}

/// With what the files of its code tell, read as the user: they are foreign.
fn examined(mut context: Snapshot) -> Result<Snapshot, Failure> {
    // Whose word it is, no answer of a worker's says: it is what was seen here.
    let source = context.source;
    let what = Work::reading("examining the code of a context");
    let examined = as_user(&invoker()?, &what, move || {
        context.examine_loaded_libraries();
        Ok(context)
    })?;
    Ok(Snapshot { source, ..examined })
}

/// The context of a command that is started for it and ended after.
///
/// # Errors
/// It could not be started, or ended before it could be read.
pub fn launched(invocation: &Invocation, command: Vec<OsString>) -> Result<Snapshot, Failure> {
    let target = Target::of(invocation.clone(), command, Some(PATIENCE))?;
    let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Null)?;
    let at_ready = target.ready != ReadyWhen::Exit;
    let mut look = Look { pid: None, at_ready, program: None, context: None };
    launcher().launch(&spec, &mut look).map_err(|error| launch_failure(&error))?;
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    let words = target.words().join(" ");
    match look.context {
        Some(context) => examined(context),
        None => Err(Failure::new(Kind::Target, format!("`{words}` ended before its context could be read"))
            .hint("a program that runs 100 ms can be read; `--ready WHEN` says when it is to be read")),
    }
}

/// Looks at a program in which it must be the same: some programs (`nice`, `env`) only start others.
const LOOKS: usize = 3;

/// Reads the target once, when it is ready, or when it has executed and stays the same program for some looks.
struct Look {
    pid: Option<u32>,
    at_ready: bool,
    /// The program that the last looks showed, and how many did.
    program: Option<(PathBuf, usize)>,
    context: Option<Snapshot>,
}

impl Look {
    /// The program that runs; none until it has executed, for until then the target is a fork of this one.
    fn executed(&self) -> Option<PathBuf> {
        let image = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        image(&self.pid?.to_string()).filter(|program| Some(program) != image("self").as_ref())
    }

    fn take(&mut self) {
        if let (None, Some(_), Some(pid)) = (&self.context, self.executed(), self.pid) {
            self.context = Snapshot::of_process(traced_by(pid).unwrap_or(pid)).ok().map(Snapshot::launched);
            self.context.iter_mut().for_each(Snapshot::read_filters);
        }
    }
}

/// The first child that a process traces: what a tracer was started for (`strace CMD`), and whose context is meant.
fn traced_by(tracer: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).ok()?;
    let is_traced = |pid: &u32| {
        let status = status_of(pid).unwrap_or_default();
        status_field(&status, "TracerPid").is_some_and(|by| by == tracer.to_string())
    };
    children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).find(is_traced)
}

impl Hooks for Look {
    fn before_release(&mut self, pid: i32) -> Result<(), slowpath_launch::BoxError> {
        self.pid = u32::try_from(pid).ok();
        Ok(())
    }

    fn on_tick(&mut self) {
        if self.at_ready {
            return;
        }
        self.program = self.executed().map(|program| match self.program.take() {
            Some((same, looks)) if same == program => (same, looks + 1),
            _ => (program, 1),
        });
        if self.program.as_ref().is_some_and(|(_, looks)| *looks >= LOOKS) {
            self.take();
        }
    }

    fn on_ready(&mut self, _: u64) {
        self.take();
    }

    fn stop_requested(&self) -> bool {
        self.context.is_some() || interrupt::requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unanswered::Unanswered;

    #[test]
    fn a_word_is_looked_at_by_a_worker_of_the_users_and_not_by_root() {
        let Some(unanswered) = Unanswered::start() else { return };
        let (entry, (sender, receiver)) = (unanswered.entry(), std::sync::mpsc::channel());
        let asking = std::thread::spawn(move || {
            let word = entry();
            sender.send(nix::unistd::gettid()).unwrap();
            existing(word.as_os_str())
        });
        // While the file system does not answer, this thread waits for a child, which can be given up.
        let children = format!("/proc/self/task/{}/children", receiver.recv().unwrap());
        let has_child = || std::fs::read_to_string(&children).is_ok_and(|children| !children.trim().is_empty());
        let began = std::time::Instant::now();
        let mut was_seen = false;
        while !was_seen && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
            was_seen = has_child();
        }
        drop(unanswered);
        let found = asking.join().unwrap();
        assert!(was_seen, "it looked itself");
        assert!(matches!(found, Ok(None)), "{found:?}");
    }
}
