//! The target from its fork to its exec.

use std::cell::RefCell;
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, getppid, setpgid};
use serde::{Deserialize, Serialize};

use super::exec_strings::ExecStrings;
use super::tracer::Tracer;
use super::work::Work;
use super::{another_user, devtools};
use crate::wire::{self, ExecFailure, FromLauncher};
use crate::{ContextStep, EndPolicy, LaunchSpec, SetupStage, sys};

/// Where commands are looked up without a `PATH`, as `execvp(3)` does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Everything `execve` needs, made before the fork so that nothing is allocated between release and exec.
pub(super) struct Image {
    program: OsString,
    candidates: Vec<CString>,
    argv: ExecStrings,
    envp: ExecStrings,
}

/// The descriptors that the target gets from the observer.
pub(super) struct Ends {
    /// `None`: the observer's own.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    /// The process group to join: main's, which the observer has left.
    pub(super) group: Option<Pid>,
    /// One byte on it is the release; its end without a byte, the order to disappear. `None`: main does not follow the
    /// launch, and there is nothing to wait for.
    pub(super) release: Option<OwnedFd>,
    /// Signals that are ignored here and must not be by the target.
    pub(super) ignored: Vec<i32>,
    /// Where the target writes the time at which it calls `execve`.
    pub(super) released_at: &'static AtomicU64,
    /// Its end of the socket for DevTools.
    pub(super) devtools: Option<OwnedFd>,
    /// Who stops its system calls.
    pub(super) tracer: Option<Tracer>,
    /// Where an exec failure is reported.
    pub(super) failure: Report,
}

impl Ends {
    /// The descriptors above standard error that are needed until the exec.
    fn kept(&self, main: &OwnedFd) -> Vec<RawFd> {
        let failure = match &self.failure {
            Report::Pipe(pipe) => Some(pipe),
            Report::Shared(_) => None,
        };
        let tracer = self.tracer.iter().flat_map(Tracer::descriptors);
        let own = [Some(main), self.release.as_ref(), self.devtools.as_ref(), failure].into_iter().flatten();
        own.map(AsRawFd::as_raw_fd).chain(tracer).collect()
    }
}

/// How the report of a failed exec gets to the observer.
pub(super) enum Report {
    /// From a fork: a pipe, closed by a successful exec.
    Pipe(OwnedFd),
    /// From a child that shares the observer's memory.
    Shared(RefCell<Option<FailedExec>>),
}

/// The report of a failed exec.
#[derive(Serialize, Deserialize)]
pub(super) struct FailedExec {
    pub(super) failure: ExecFailure,
    pub(super) errno: i32,
    pub(super) program: String,
}

impl Image {
    pub(super) fn new(
        spec: &LaunchSpec,
        url: Option<&str>,
        variable: Option<(OsString, OsString)>,
    ) -> io::Result<Image> {
        let mut words: Vec<OsString> = spec.wrapper.clone();
        let has_place = url.is_some() && spec.argv.iter().any(|word| find(word.as_bytes(), b"{url}").is_some());
        words.extend(spec.argv.iter().map(|word| url.map_or_else(|| word.clone(), |url| with_url(word, url))));
        words.extend(url.filter(|_| !has_place).map(OsString::from));

        let mut env: Vec<&(OsString, OsString)> = spec.env.iter().collect();
        if let Some(added) = &variable {
            env.retain(|(name, _)| *name != added.0);
            env.push(added);
        }
        let path = env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
        let program = words.first().cloned().unwrap_or_default();
        let candidates = candidates(&program, path)?;
        let argv = ExecStrings::new(words.iter().map(|word| [word.as_bytes()]))?;
        let envp = ExecStrings::new(env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()]))?;
        Ok(Image { program, candidates, argv, envp })
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn with_url(word: &OsStr, url: &str) -> OsString {
    let mut rest = word.as_bytes();
    let mut replaced = Vec::new();
    while let Some(place) = find(rest, b"{url}") {
        replaced.extend_from_slice(&rest[..place]);
        replaced.extend_from_slice(url.as_bytes());
        rest = &rest[place + b"{url}".len()..];
    }
    replaced.extend_from_slice(rest);
    OsString::from_vec(replaced)
}

fn candidates(program: &OsStr, path: &OsStr) -> io::Result<Vec<CString>> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![CString::new(program.as_bytes())?]);
    }
    let in_dir = |dir: &[u8]| {
        let dir = if dir.is_empty() { b"." } else { dir };
        Ok(CString::new([dir, b"/", program.as_bytes()].concat())?)
    };
    path.as_bytes().split(|byte| *byte == b':').map(in_dir).collect()
}

/// The life of the forked child. `observer` is the pid that its parent must have (1 in a pid namespace).
pub(super) fn run(work: &Work, main: &OwnedFd, observer: i32, image: &Image, ends: &Ends) -> ! {
    let given_up = |(stage, error): (SetupStage, io::Error)| -> ! {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = wire::send(main, &FromLauncher::SetupFailed { stage, errno });
        sys::exit_now(126)
    };
    prepare(work, main, ends).unwrap_or_else(|failed| given_up(failed));
    // Asked for at the launcher's end only now, after the last change of credentials, which would undo it.
    let tied = work.order.spec.end == EndPolicy::KillTree || work.order.spec.pid_namespace;
    if tied && (sys::die_with_parent().is_err() || getppid() != Pid::from_raw(observer)) {
        sys::exit_now(126);
    }
    if let Some(release) = &ends.release {
        let sent = wire::send(main, &FromLauncher::Prepared);
        if sent.is_err() || !is_released(release) {
            sys::exit_now(126);
        }
    }
    if let Some(end) = &ends.devtools {
        devtools::take(end).unwrap_or_else(|error| given_up((SetupStage::Devtools, error)));
    }
    // Not before: a filter may forbid what the launcher itself does. Nor later: it is no part of the interval.
    let is_root = work.order.spec.identity.uid == 0;
    carry_out(&work.order.spec, |step| step.at_exec(is_root)).unwrap_or_else(|failed| given_up(failed));
    let mut errors = Vec::new();
    ends.released_at.store(sys::monotonic(), Ordering::Relaxed);
    for candidate in &image.candidates {
        let error = sys::exec(candidate, image.argv.list(), image.envp.list());
        let goes_on = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ELOOP));
        errors.push((candidate, error));
        if !goes_on {
            break;
        }
    }
    let report = explain(&image.program, &errors);
    match &ends.failure {
        // Shorter than what a pipe takes at once.
        Report::Pipe(pipe) => drop(nix::unistd::write(pipe, &wire::encoded(&report).unwrap_or_default())),
        Report::Shared(place) => drop(place.replace(Some(report))),
    }
    sys::exit_now(127);
}

/// Waits for the release; false when the observer is gone.
fn is_released(release: &OwnedFd) -> bool {
    loop {
        match nix::unistd::read(release, &mut [0]) {
            Ok(length) => return length == 1,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

fn prepare(work: &Work, main: &OwnedFd, ends: &Ends) -> Result<(), (SetupStage, io::Error)> {
    let spec = &work.order.spec;
    let at = |stage: SetupStage| move |error: io::Error| (stage, error);
    sys::reset_signals(&ends.ignored);
    for (path, file) in &work.cgroups {
        // "0" is the writing process, whatever its pid is called in which namespace.
        let joined = (&mut &*file).write_all(b"0");
        joined.map_err(at(SetupStage::Cgroup { path: path.clone() }))?;
    }
    if let Some(group) = ends.group {
        let _ = setpgid(Pid::from_raw(0), group);
    }
    another_user::take_session(spec)?;
    let stdio = || -> nix::Result<()> {
        ends.stdin.as_ref().map(dup2_stdin).transpose()?;
        ends.stdout.as_ref().map(dup2_stdout).transpose()?;
        ends.stderr.as_ref().map(dup2_stderr).transpose()?;
        Ok(())
    };
    stdio().map_err(|error| (SetupStage::Stdio, error.into()))?;
    for limit in &spec.limits {
        limit.apply().map_err(at(SetupStage::Limit { limit: *limit }))?;
    }
    another_user::take_mask(spec);
    carry_out(spec, ContextStep::before_identity)?;
    let identity = &spec.identity;
    another_user::take_identity(spec, &mut ends.kept(main))
        .map_err(at(SetupStage::Identity { uid: identity.uid, gid: identity.gid }))?;
    if !spec.context.iter().any(|step| matches!(step, ContextStep::EnterDirectory { .. })) {
        let entered = std::env::set_current_dir(&spec.cwd);
        entered.map_err(at(SetupStage::WorkingDirectory { path: spec.cwd.clone() }))?;
    }
    carry_out(spec, ContextStep::after_identity)?;
    match &ends.tracer {
        Some(tracer) => tracer.attach().map_err(at(SetupStage::Context { step: ContextStep::Traced.to_string() })),
        None => Ok(()),
    }
}

fn carry_out(spec: &LaunchSpec, part: impl Fn(&ContextStep) -> io::Result<()>) -> Result<(), (SetupStage, io::Error)> {
    spec.context
        .iter()
        .try_for_each(|step| part(step).map_err(|error| (SetupStage::Context { step: step.to_string() }, error)))
}

/// The most telling of the failures: the first file that is there, or else "not found".
fn explain(program: &OsStr, errors: &[(&CString, io::Error)]) -> FailedExec {
    let by_path = !program.as_bytes().contains(&b'/');
    let classes =
        errors.iter().map(|(file, error)| (classify(Path::new(OsStr::from_bytes(file.to_bytes())), error), error));
    // A directory of PATH that this user may not enter does not hide the answer: the command is not there for him.
    let mut telling =
        classes.filter(|((failure, is_there), _)| *failure != ExecFailure::NotFound && (*is_there || !by_path));
    let (failure, errno) = match telling.next() {
        Some(((failure, _), error)) => (failure, error.raw_os_error().unwrap_or(libc::EIO)),
        None => (ExecFailure::NotFound, libc::ENOENT),
    };
    FailedExec { failure, errno, program: program.to_string_lossy().into_owned() }
}

/// The kind of a failure, and whether the file could be seen.
fn classify(file: &Path, error: &io::Error) -> (ExecFailure, bool) {
    let metadata = std::fs::metadata(file);
    let failure = match (error.raw_os_error(), &metadata) {
        (Some(libc::ENOENT | libc::ENOTDIR), Ok(_)) => ExecFailure::MissingInterpreter,
        (Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP), _) => ExecFailure::NotFound,
        (Some(libc::EACCES), Ok(there)) if !there.is_file() || there.permissions().mode() & 0o111 == 0 => {
            ExecFailure::NotExecutable
        }
        (Some(libc::EACCES | libc::EPERM), _) => ExecFailure::PermissionDenied,
        (Some(libc::ENOEXEC | libc::EISDIR | libc::ELIBBAD), _) => ExecFailure::NotExecutable,
        _ => ExecFailure::Other,
    };
    (failure, metadata.is_ok())
}

/// Reads the report of a failed exec.
pub(super) fn failure_report(bytes: &[u8]) -> Option<FailedExec> {
    wire::decoded(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_the_url_is_replaced_and_nothing_else() {
        assert_eq!(with_url(OsStr::new("--app={url}x{url}"), "U"), OsString::from("--app=UxU"));
        assert_eq!(with_url(OsStr::new("{ur}"), "U"), OsString::from("{ur}"));
    }

    #[test]
    fn a_name_is_looked_up_in_every_directory_and_a_path_in_none() {
        let names = |program: &str, path: &str| -> Vec<String> {
            let found = candidates(OsStr::new(program), OsStr::new(path)).unwrap();
            found.into_iter().map(|name| name.into_string().unwrap()).collect()
        };
        assert_eq!(names("x", "/a::/b"), ["/a/x", "./x", "/b/x"]);
        assert_eq!(names("./x", "/a"), ["./x"]);
    }
}
