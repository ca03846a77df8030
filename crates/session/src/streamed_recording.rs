//! A recording that is written while it is made: the recorder, and the process that writes what it sees. Its length is bounded
//! by `--max-size` and the disk, not by memory.

use crate::Progress;
use crate::failure::{Failure, Kind, failed};
use crate::interrupt;
use crate::memory_cost;
use crate::recorded_launch::{RecordingSubject, clock, manifest, owner};
use crate::recording_writer::WriterProcess;
use crate::recording_writer::frames::{Begin, SoFar};
use crate::target::launch_failure;
use crate::unwind_tables::{TableMaker, UsualSlices, ask_for_short_slices};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use slowpath_capture::{Facts, Options, Recorder, Running};
use slowpath_launch::{BoxError, Hooks, LaunchError, LaunchOutcome, LaunchSpec, Launcher};
use slowpath_recording::{CPU_SAMPLE_HZ, Manifest, MemoryCost};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the records of a launch stay in memory: decoding and writing would compete with a cold start.
const LAUNCH: Duration = Duration::from_secs(10);

/// How often losses are reported, in case that the end comes without a word.
const TELLING: Duration = Duration::from_secs(5);

/// A recorder whose records are written as they come.
pub struct StreamedRecording<'a> {
    recorder: Recorder,
    writer: WriterProcess,
    /// Where stacks are recorded.
    tables: Option<TableMaker>,
    /// Readable when a file was mapped that has no table yet, or a table is made; where stacks are recorded.
    wakes: Option<Epoll>,
    subject: RecordingSubject<'a>,
    /// Where memory calls are recorded: what memory costs, or why that is not known.
    memory_cost: Option<Result<MemoryCost, Unavailable>>,
    begun: Option<Manifest>,
    last_report: Instant,
    deadline: Option<Duration>,
    since: Option<Instant>,
    audits_stacks: bool,
    /// Where short ones were asked for.
    usual_slices: Option<UsualSlices>,
}

impl<'a> StreamedRecording<'a> {
    /// Loads the recorder beside a writer that was started before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn load(
        options: Options,
        writer: WriterProcess,
        subject: RecordingSubject<'a>,
        duration: Option<Duration>,
    ) -> Result<Self, Failure> {
        let options = Options { writer: Some(writer.pid()), owner: owner(subject.identity), ..options };
        let audits_stacks = options.copy_every > 0;
        // Before anything is loaded into the kernel, which would cost time in what is measured.
        let memory_cost = options.memory_calls.then(|| memory_cost::before(subject.identity));
        // Before anything is loaded into the kernel, which its processes would hold.
        let tables = options.walks_stacks().then(|| TableMaker::start(subject.identity)).transpose()?;
        let mut recorder = Recorder::load(options).map_err(failed(Kind::Machine))?;
        let wakes =
            tables.as_ref().map(|tables| wakes(&recorder, tables)).transpose().map_err(failed(Kind::Machine))?;
        let memory_cost = memory_cost.map(|first| first?.finish(&mut recorder));
        Ok(Self {
            recorder,
            writer,
            tables,
            wakes,
            subject,
            memory_cost,
            begun: None,
            last_report: Instant::now(),
            deadline: duration,
            since: None,
            audits_stacks,
            usual_slices: None,
        })
    }

    /// Makes the unwinding tables that `program` needs from its start, where stacks are recorded.
    pub fn prepared(mut self, program: &Path) -> Self {
        if let Some(tables) = &mut self.tables {
            tables.prepare(&mut self.recorder, program);
        }
        self
    }

    /// Begins to record processes that run already, after the unwinding tables that they need are made.
    ///
    /// # Errors
    /// The kernel refuses, or the recording cannot be written.
    pub fn begin_running(&mut self, which: &Running, progress: &dyn Progress) -> Result<(), Failure> {
        if let Some(tables) = &mut self.tables {
            self.recorder.survey(which).map_err(failed(Kind::Machine))?;
            tables.settle(&mut self.recorder, |done, left| {
                progress.step(&format!("making unwinding tables: {done} of {}", done + left));
            });
        }
        self.recorder.attach_running(which).map_err(failed(Kind::Machine))?;
        self.since = Some(Instant::now());
        self.begin(Duration::ZERO)
    }

    fn begin(&mut self, hold: Duration) -> Result<(), Failure> {
        if self.tables.is_some() {
            // Not before: the target exists by now, and does not inherit it.
            self.usual_slices = ask_for_short_slices();
        }
        let facts = self.recorder.facts();
        let mut manifest = manifest(&self.subject, &facts, None);
        add_memory_cost(&mut manifest, self.memory_cost.as_ref());
        manifest.counters.extend(self.recorder.cpu_hertz().map(|hertz| (CPU_SAMPLE_HZ.to_owned(), u64::from(hertz))));
        let begin = Begin { manifest, mounts: facts.mounts, lab_dev: facts.lab_dev, audits_stacks: self.audits_stacks };
        self.writer.begin(&begin, hold)?;
        self.begun = Some(begin.manifest);
        Ok(())
    }

    /// A descriptor that becomes readable when [`Self::wake`] is to be called at once.
    pub fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.wakes.as_ref().map(|wakes| wakes.0.as_fd())
    }

    /// Sees to the tables of files that were just mapped; records stay where they are until the next tick.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn wake(&mut self) -> Result<(), Failure> {
        if let Some(wakes) = &self.wakes {
            // Edges: they are gone once they are taken, also when the other side has ended and stays readable.
            let _ = wakes.wait(&mut [EpollEvent::empty(); 4], EpollTimeout::ZERO);
        }
        self.recorder.drain().map_err(failed(Kind::Machine))?;
        if let Some(tables) = &mut self.tables {
            tables.tick(&mut self.recorder);
        }
        Ok(())
    }

    /// To be called about every 20 ms: moves records on.
    ///
    /// # Errors
    /// The ring cannot be read, or the writer is gone.
    pub fn tick(&mut self) -> Result<(), Failure> {
        self.recorder.drain().map_err(failed(Kind::Machine))?;
        if let Some(tables) = &mut self.tables {
            tables.tick(&mut self.recorder);
        }
        // A launch ticks before it has a target.
        if self.begun.is_none() {
            return Ok(());
        }
        self.writer.take(self.recorder.take());
        if self.last_report.elapsed() >= TELLING {
            self.last_report = Instant::now();
            let Facts { losses, unavailable, .. } = self.recorder.facts();
            self.writer.so_far(SoFar { losses, unavailable });
        }
        self.writer.pump()
    }

    /// Why recording is to stop now, if it is.
    pub fn stop(&self) -> Option<String> {
        if interrupt::requested() {
            return Some("interrupted".to_owned());
        }
        match (self.deadline, self.since) {
            _ if self.writer.stop().is_some() => self.writer.stop().map(str::to_owned),
            (Some(limit), Some(since)) if since.elapsed() >= limit => Some("the duration was over".to_owned()),
            _ => None,
        }
    }

    /// How long it has recorded.
    pub fn elapsed(&self) -> Duration {
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The ring cannot be read, or something could not be written; what was written before is whole.
    pub fn finish(self, stop: Option<&str>) -> Result<Manifest, Failure> {
        let Self { mut recorder, mut writer, mut tables, subject, mut memory_cost, begun, usual_slices, .. } = self;
        if let Some(usual) = usual_slices {
            usual.again();
        }
        if let Some(tables) = &mut tables {
            tables.end(&mut recorder);
        }
        let (mut handed_over, mut measuring) = (Ok(()), None);
        let raw = recorder.finish_with(|recorder| {
            // What is left takes its time, and who has asked for the end may end this process before: by then the writer has what it takes
            // at once, which is as much as there is room in its socket.
            if interrupt::requested() {
                writer.release();
            }
            writer.take(recorder.take());
            let Facts { losses, unavailable, .. } = recorder.facts();
            writer.so_far(SoFar { losses, unavailable });
            handed_over = writer.pump();
            let is_measured = matches!(memory_cost, Some(Ok(_)));
            measuring = is_measured.then(|| memory_cost::after(subject.identity, recorder)).flatten();
        });
        let raw = raw.map_err(failed(Kind::Machine))?;
        handed_over?;
        if let (Some(after), Some(Ok(cost))) = (measuring, &mut memory_cost) {
            after.add_to(cost);
        }
        let begun = begun.unwrap_or_default();
        let rate = begun.counters;
        let mut manifest = Manifest {
            created: begun.created,
            clock: begun.clock,
            clock_at_end: Some(clock()),
            ended: Some(raw.facts.ended),
            ..manifest(&subject, &raw.facts, stop)
        };
        manifest.counters.extend(rate);
        add_memory_cost(&mut manifest, memory_cost.as_ref());
        manifest.unavailable.extend(clock_gap(&manifest));
        manifest.unavailable.extend(tables.iter().flat_map(TableMaker::gaps));
        writer.finish(raw.bytes, manifest)
    }
}

fn add_memory_cost(manifest: &mut Manifest, measured: Option<&Result<MemoryCost, Unavailable>>) {
    match measured {
        Some(Ok(cost)) => manifest.memory_cost = Some(cost.clone()),
        Some(Err(gap)) => manifest.unavailable.push(gap.clone()),
        None => {}
    }
}

/// Everything that tables are to be seen to for.
fn wakes(recorder: &Recorder, tables: &TableMaker) -> nix::Result<Epoll> {
    let wakes = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    // The ring is readable nearly always; it is the edge that signals a file.
    let edge = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0);
    wakes.add(recorder.new_modules_fd(), edge)?;
    tables.answers().try_for_each(|answers| wakes.add(answers, edge))?;
    Ok(wakes)
}

/// What a change of the time of day makes unavailable.
fn clock_gap(manifest: &Manifest) -> Option<Unavailable> {
    let step = manifest.clock_step()? as f64 / 1e9;
    Some(declared::ONE_CLOCK.because(
        format!("the clock was set, or the machine slept, during the recording: {step:+.3} s"),
        "times in the tables are not affected; the manifest has both offsets, of the begin and the end",
    ))
}

/// A recorded launch that is written while it goes on.
struct StreamedHooks<'a, 'b> {
    recording: &'b mut StreamedRecording<'a>,
    problem: Option<Failure>,
    stop: Option<String>,
}

impl Hooks for StreamedHooks<'_, '_> {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.recording.recorder.attach_tree(pid)?;
        Ok(self.recording.begin(LAUNCH)?)
    }

    fn on_released(&mut self, _: u64) {
        self.recording.since = Some(Instant::now());
    }

    fn on_tick(&mut self) {
        if let Err(failure) = self.recording.tick() {
            self.problem.get_or_insert(failure);
        }
        if self.stop.is_none() {
            self.stop = self.recording.stop();
        }
    }

    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.recording.wakes()
    }

    fn on_wake(&mut self) {
        if let Err(failure) = self.recording.wake() {
            self.problem.get_or_insert(failure);
        }
    }

    fn interrupted(&mut self) -> bool {
        interrupt::of_terminal()
    }

    fn stop_requested(&self) -> bool {
        self.stop.is_some() || self.problem.is_some()
    }
}

/// Launches `spec` and writes its recording meanwhile. `launched` returns the launch for the manifest. Returns why recording
/// stopped, where it was not the end of the launch.
///
/// # Errors
/// The launch could not be made: nothing is left then. Or it was lost sight of, or the recording could not be written, and what
/// is whole is kept.
pub fn launch(
    launcher: &mut dyn Launcher,
    spec: &LaunchSpec,
    mut recording: StreamedRecording,
    launched: impl FnOnce(&LaunchOutcome) -> slowpath_recording::Launch,
) -> Result<(LaunchOutcome, Manifest, Option<String>), Failure> {
    let mut hooks = StreamedHooks { recording: &mut recording, problem: None, stop: None };
    let outcome = launcher.launch(spec, &mut hooks);
    let StreamedHooks { problem, stop, .. } = hooks;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let failure = launch_failure(&error);
            // The launcher may die late, and what was seen until then is worth its space.
            let was_executed = !matches!(error, LaunchError::Exec(_)) && recording.since.is_some();
            if was_executed {
                recording.finish(Some(&failure.chain()))?;
                return Err(failure.hint("what was recorded until then is kept"));
            }
            if recording.begun.is_some() {
                // The launch's own failure is the one that is reported.
                let _ = recording.writer.discard();
            }
            return Err(failure);
        }
    };
    if let Some(problem) = problem {
        return Err(problem);
    }
    // Ctrl-C at a terminal reaches the target too, which may die of it before the next tick.
    let is_interrupted = outcome.require_ready().is_err() && interrupt::requested();
    let stop = stop.or_else(|| is_interrupted.then(|| "interrupted".to_owned()));
    recording.subject.launch = Some(launched(&outcome));
    let manifest = recording.finish(stop.as_deref())?;
    Ok((outcome, manifest, stop))
}
