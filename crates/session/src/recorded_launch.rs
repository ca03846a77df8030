//! A launch with the recorder on it, and how what was recorded becomes a recording: the raw records are decoded and
//! written by a process that has the target user's identity and no privilege.

use crate::failure::{Failure, Kind, failed};
use crate::interrupt;
use crate::output_directory;
use crate::target::{Target, launch_failure};
use crate::unprivileged::{Work, as_user};
use slowpath_capture::machine::{self, Need};
use slowpath_capture::{Facts, Options, RawCapture, Recorder, decode, examine};
use slowpath_launch::{BoxError, Hooks, Identity, LaunchOutcome, LaunchSpec, Launcher};
use slowpath_process::Owner;
use slowpath_recording::{Clock, Host, Launch, Manifest, RecorderProcess, SCHEMA_VERSION, Writer};
use slowpath_tables::{Nanos, Unavailable};
use std::path::Path;
use std::time::Duration;

/// The recorder as hooks of a launch.
pub struct RecorderHooks {
    recorder: Recorder,
    problem: Option<String>,
    stop: Option<&'static str>,
}

impl RecorderHooks {
    /// Loads the recorder for what becomes this user's.
    pub fn load(options: Options, identity: &Identity) -> Result<Self, Failure> {
        let recorder = Recorder::load(Options { owner: owner(identity), ..options }).map_err(failed(Kind::Machine))?;
        Ok(Self { recorder, problem: None, stop: None })
    }

    fn due(&self) -> Option<&'static str> {
        if interrupt::requested() {
            return Some("interrupted");
        }
        self.recorder.is_full().then_some("the memory for raw records was full")
    }

    /// Ends the recording.
    pub fn finish(self) -> Result<(RawCapture, Option<&'static str>), Failure> {
        if let Some(problem) = self.problem {
            return Err(Failure::new(Kind::Machine, problem));
        }
        let raw = self.recorder.finish().map_err(failed(Kind::Machine))?;
        Ok((raw, self.stop))
    }
}

impl Hooks for RecorderHooks {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        Ok(self.recorder.attach_tree(pid)?)
    }

    fn on_tick(&mut self) {
        if let Err(error) = self.recorder.drain() {
            self.problem.get_or_insert_with(|| error.to_string());
        }
        self.stop = self.stop.or(self.due());
    }

    fn stop_requested(&self) -> bool {
        self.stop.is_some() || self.problem.is_some()
    }
}

/// Whose a recording is that this user gets.
pub fn owner(identity: &Identity) -> slowpath_capture::Owner {
    slowpath_capture::Owner { uid: identity.uid, gid: identity.gid }
}

/// What stands in the way of recording on this machine.
pub fn gaps() -> Vec<Unavailable> {
    machine::gaps(&machine::checks(&machine::facts()), Need::Record)
}

/// Refuses early when this machine cannot record running processes, call stacks or CPU samples.
pub fn require_profile(what: &str) -> Result<(), Failure> {
    let gaps = machine::gaps(&machine::checks(&machine::facts()), Need::Profile);
    if gaps.is_empty() { Ok(()) } else { Err(Failure::unavailable(what, &gaps)) }
}

/// Refuses early when this machine cannot record, or lacks something else that is needed.
pub fn require(what: &str, further: impl IntoIterator<Item = Unavailable>) -> Result<(), Failure> {
    let mut gaps = gaps();
    gaps.extend(further);
    if gaps.is_empty() { Ok(()) } else { Err(Failure::unavailable(what, &gaps)) }
}

/// Launches `spec` with the recorder attached.
pub fn launch(
    launcher: &mut dyn Launcher,
    spec: &LaunchSpec,
    mut hooks: RecorderHooks,
) -> Result<(LaunchOutcome, RawCapture, Option<&'static str>), Failure> {
    let outcome = launcher.launch(spec, &mut hooks).map_err(|error| launch_failure(&error))?;
    let (raw, stop) = hooks.finish()?;
    // Ctrl-C at a terminal reaches the target too, which may die of it before the next tick.
    let stop = stop.or_else(|| (outcome.require_ready().is_err() && interrupt::requested()).then_some("interrupted"));
    Ok((outcome, raw, stop))
}

/// Whose recording it is, and of what.
pub struct RecordingSubject<'a> {
    /// Who it is for.
    pub identity: &'a Identity,
    /// The command, or what was recorded instead, in words.
    pub command: Vec<String>,
    /// The launch, if it was one.
    pub launch: Option<Launch>,
}

impl<'a> RecordingSubject<'a> {
    /// A launch of a target.
    pub fn launched(target: &'a Target, outcome: &LaunchOutcome) -> Self {
        Self { launch: Some(launch_of(target, outcome)), ..Self::of(target) }
    }

    /// A target that is not launched yet.
    pub fn of(target: &'a Target) -> Self {
        Self { identity: &target.identity, command: target.words(), launch: None }
    }
}

/// A launch for the manifest.
pub fn launch_of(target: &Target, outcome: &LaunchOutcome) -> Launch {
    Launch {
        released: Nanos(outcome.released_at),
        ready: outcome.ready_at.map(Nanos),
        ready_when: target.ready.to_string(),
        outcome: stop_words(outcome),
    }
}

/// Decodes and writes the recording as the user whose it is, into `directory`, which is made.
pub fn write(
    subject: RecordingSubject,
    directory: &Path,
    raw: &RawCapture,
    stop: Option<&str>,
    counters: &[(&str, u64)],
) -> Result<Manifest, Failure> {
    output_directory::prepare(directory, subject.identity)?;
    let what = Work::writing_beneath("writing the recording", directory);
    as_user(subject.identity, &what, || {
        let mut tables = decode(raw);
        let examined = examine::examine(&mut tables.files);
        (tables.sections, tables.relocations) = (examined.sections, examined.relocations);
        let mut manifest = manifest(&subject, &raw.facts, stop);
        manifest.counters = std::mem::take(&mut tables.manifest.counters);
        manifest.counters.extend(counters.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        let failed = failed::<slowpath_recording::WriteError>;
        let mut writer = Writer::create(directory, manifest).map_err(failed(Kind::Usage))?;
        let pushed = tables.write(&mut writer);
        let finished = writer.finish(|manifest| manifest.ended = Some(raw.facts.ended));
        pushed.and(finished).map_err(|error| {
            Failure::from_error(Kind::Machine, &error)
                .hint("what was written before is intact; `slowpath analyze` reads it")
        })
    })
}

/// The manifest of a recording without its end.
pub fn manifest(subject: &RecordingSubject, facts: &Facts, stop: Option<&str>) -> Manifest {
    Manifest {
        schema_version: SCHEMA_VERSION,
        created: now_rfc3339(),
        host: host(),
        clock: clock(),
        clock_at_end: None,
        recorder: Owner::this_process().ok().map(|owner| RecorderProcess { pid: owner.pid, start: owner.start }),
        command: subject.command.clone(),
        uid: subject.identity.uid,
        cwd: std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        launch: subject.launch.clone(),
        started: facts.started,
        ended: None,
        stop_reason: Some(stop.unwrap_or("the launch ended").to_owned()),
        machine_faults: facts.machine_faults,
        memory_threads: facts.memory_threads.clone(),
        memory_cost: None,
        devices: facts.devices.clone(),
        probes: facts.probes.clone(),
        losses: facts.losses.clone(),
        unavailable: facts.unavailable.clone(),
        counters: std::collections::BTreeMap::new(),
        segments: Vec::new(),
    }
}

fn stop_words(outcome: &LaunchOutcome) -> String {
    match outcome.require_ready() {
        Ok(_) => "ready".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Facts of the machine for a manifest or report.
pub fn host() -> Host {
    let uname = nix::sys::utsname::uname();
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    let memory = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.lines().next()?.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024));
    Host {
        kernel: uname.as_ref().map(|name| text(name.release())).unwrap_or_default(),
        machine: uname.as_ref().map(|name| text(name.machine())).unwrap_or_default(),
        page_size: slowpath_process::page_size(),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_bytes: memory.unwrap_or(0),
        huge_pages: slowpath_recording::HugePages::of_this_machine(),
    }
}

/// This moment on both clocks.
pub fn clock() -> Clock {
    let read = |clock| nix::time::clock_gettime(clock).map(Duration::from).unwrap_or_default();
    let monotonic = read(nix::time::ClockId::CLOCK_MONOTONIC);
    let realtime = read(nix::time::ClockId::CLOCK_REALTIME);
    Clock {
        monotonic: Nanos(u64::try_from(monotonic.as_nanos()).unwrap_or(0)),
        realtime: i64::try_from(realtime.as_nanos()).unwrap_or(0),
    }
}

/// Now, in UTC, as RFC 3339 to the second.
pub fn now_rfc3339() -> String {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    slowpath_tables::rfc3339(seconds)
}
