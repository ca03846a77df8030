//! Measures what mapping, touching and releasing memory costs here, before anything is recorded and once more when the recording has
//! ended: durations of recorded faults lack entering and leaving the kernel and what a fault displaces, and hold what recording adds.
//!
//! A child with the user's identity measures in two steps, some 140 ms and some 30 ms, on a busy machine up to 0.7 s and 0.5 s:
//!
//! 1. while no recorder is loaded: what an operation costs more than the same writes into a kept block;
//! 2. while a recorder is loaded that records nothing of it: how long the recorder takes faults of the same operations to be.
//!
//! What the first has more than the second is what durations lack. Not in it: what writing a record and walking a stack after a
//! fault displaces from caches, which makes the next fault more expensive. After the recording the two steps come in reverse order, each in a
//! child of its own, also where the recording was ended by Ctrl-C; only a recorder that is killed, or told to end a second time, leaves
//! the measurement from before alone. Within one of these measurements the speed of a machine that others use too hardly moves, between
//! two it does (by half, in five recordings of a quiet quarter of an hour): both are kept, and the recording lies between them.
//!
//! Intervals are those of `slowpath-experiment`: the centre of the differences with the interval of the signed ranks. Where two that
//! were measured apart are subtracted, the distances from centre to ends add up in squares (G. Y. Zou and A. Donner, Statistics in
//! Medicine 27 (2008), 1693-1702), which keeps the level; their worst ends would be reached by chance in one of some hundreds.
//!
//! The child has the scheduling, the cgroup and the setting of huge pages of the recorder, as a target that is launched has;
//! what a program or a running process sets for itself is not known.

mod child;

use crate::unprivileged::{Work, Worker};
use child::{DISPLACED, INTERRUPTED, MEASURE, Measured, Series, WARM, WATCHED};
use slowpath_capture::Recorder;
use slowpath_experiment::{Estimate, Level, signed_rank};
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_process::page_size;
use slowpath_recording::{BlockCost, MemoryCost};
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, Nanos, PAGE_SIZE, Quantity, Unavailable, Unit};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Operations of each kind that the recorder watches, if they are not interrupted.
const WATCHED_OPERATIONS: usize = 16;

/// How often each kind is asked for in any case.
const ATTEMPTS: usize = 8;

/// How long the recorder watches beyond that; and how long where so many were interrupted that the others have no interval yet.
const WATCHING: (Duration, Duration) = (Duration::from_millis(60), Duration::from_millis(500));

/// With fewer values, the interval of the signed ranks has no ends.
const FEWEST_OPERATIONS: usize = 6;

/// How long the child is waited for: many times what it takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The first step before a recording, done.
pub struct Before {
    calibrator: Calibrator,
    measured: Measured,
}

/// Takes the first step; to be called before a recorder is loaded.
///
/// # Errors
/// There was no process, or no answer of it; recording goes on without.
pub fn before(identity: &Identity) -> Result<Before, Unavailable> {
    let (calibrator, measured) = Calibrator::measuring(identity)?;
    Ok(Before { calibrator, measured })
}

impl Before {
    /// Takes the second step with a recorder that records nothing yet.
    ///
    /// # Errors
    /// Nothing could be measured so that it has an interval. Where only the second step fails, the result lacks what it measures.
    pub fn finish(self, recorder: &mut Recorder) -> Result<MemoryCost, Unavailable> {
        let Self { calibrator, measured } = self;
        let (watched, watching) = calibrator.watch(recorder);
        let blocks = costs(&measured, &watched, false);
        match blocks.is_empty() {
            true => Err(gap(&"the machine is too slow or too busy to measure it in time")),
            false => Ok(MemoryCost { took: Nanos(measured.took) + watching, blocks }),
        }
    }
}

/// The second step after a recording, done.
pub struct After<'a> {
    identity: &'a Identity,
    watched: Watched,
    watching: Nanos,
}

/// Takes the second step with a recorder that records nothing any more. `None` where there is no process: what was measured before
/// stands alone then.
pub fn after<'a>(identity: &'a Identity, recorder: &mut Recorder) -> Option<After<'a>> {
    let calibrator = Calibrator::start(identity).ok()?;
    let (watched, watching) = calibrator.watch(recorder);
    Some(After { identity, watched, watching })
}

impl After<'_> {
    /// Takes the first step, once no recorder is loaded any more, and adds it all to what was measured before.
    pub fn add_to(self, cost: &mut MemoryCost) {
        let Ok((_, measured)) = self.first_step() else { return };
        cost.took += Nanos(measured.took) + self.watching;
        cost.blocks.extend(costs(&measured, &self.watched, true));
    }

    /// In a child of its own, forked when no recorder is loaded any more.
    fn first_step(&self) -> Result<(Calibrator, Measured), Unavailable> {
        Calibrator::measuring(self.identity)
    }
}

/// The child, and the line to it.
struct Calibrator {
    child: Worker<()>,
    socket: UnixStream,
}

impl Calibrator {
    fn start(identity: &Identity) -> Result<Self, Unavailable> {
        let (socket, theirs) = UnixStream::pair().map_err(|error| gap(&error))?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(|error| gap(&error))?;
        let what = Work::new("measuring the cost of memory", Duty::Measure).silent().keeping(&theirs);
        let child = Worker::start(identity, &what, move || {
            // Its end is seen by the recorder, which says why.
            let _ = child::serve(theirs);
            Ok(())
        });
        Ok(Self { child: child.map_err(|failure| gap(&failure.chain()))?, socket })
    }

    /// The first step, and the child that took it.
    fn measuring(identity: &Identity) -> Result<(Self, Measured), Unavailable> {
        let calibrator = Self::start(identity)?;
        let measured = calibrator.measure().map_err(|error| gap(&error))?;
        Ok((calibrator, measured))
    }

    fn measure(&self) -> io::Result<Measured> {
        /// More than any answer has.
        const MOST: u64 = 1 << 20;
        (&self.socket).write_all(&[MEASURE])?;
        let mut line = String::new();
        // Nothing follows the line until it is asked for, so nothing is lost with the buffer.
        BufReader::new((&self.socket).take(MOST)).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// The second step, and how long it took.
    fn watch(&self, recorder: &mut Recorder) -> (Watched, Nanos) {
        let began = Instant::now();
        let watched = watch(recorder, self.child.pid(), &self.socket).unwrap_or_default();
        (watched, Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// What the two steps say of each kind of block.
fn costs(measured: &Measured, watched: &Watched, after: bool) -> Vec<BlockCost> {
    measured.series.iter().filter_map(|series| cost(series, watched, after)).collect()
}

fn gap(reason: &dyn std::fmt::Display) -> Unavailable {
    declared::MEMORY_COST.because(reason.to_string(), "savings are predicted from durations alone; record again")
}

/// Durations of faults as the recorder takes them, in ns, a mean for each operation that was not interrupted: with warm caches, and
/// with displaced ones.
#[derive(Clone, Debug, Default, PartialEq)]
struct Watched {
    warm: Vec<f64>,
    displaced: Vec<f64>,
}

/// Has the child do operations while its faults are timed. `None` where that is not possible here.
fn watch(recorder: &mut Recorder, pid: u32, mut socket: &UnixStream) -> Option<Watched> {
    let clock = recorder.time_faults(pid).ok()?;
    let mut watched = Watched::default();
    let mut operation = |kind: u8| {
        let before = clock.read()?;
        let mut answer = [0];
        socket.write_all(&[kind]).ok()?;
        socket.read_exact(&mut answer).ok()?;
        let timed = clock.read()?.since(before);
        let was_uninterrupted = answer[0] != INTERRUPTED;
        (timed.faults > 0).then(|| was_uninterrupted.then(|| timed.time.0 as f64 / timed.faults as f64))
    };
    let began = Instant::now();
    let mut attempts = 0;
    while !is_watched(watched.warm.len().min(watched.displaced.len()), attempts, began.elapsed()) {
        watched.warm.extend(operation(WARM)?);
        watched.displaced.extend(operation(DISPLACED)?);
        attempts += 1;
    }
    Some(watched)
}

/// Whether the recorder has watched enough: `fewest` operations of each kind that were not interrupted, of so many `attempts`, in this time.
fn is_watched(fewest: usize, attempts: usize, elapsed: Duration) -> bool {
    let watching = if fewest < FEWEST_OPERATIONS { WATCHING.1 } else { WATCHING.0 };
    fewest >= WATCHED_OPERATIONS || (attempts >= ATTEMPTS && elapsed >= watching)
}

/// What a series says of its blocks; `None` where it has too few operations for an interval, or nonsense.
fn cost(series: &Series, watched: &Watched, after: bool) -> Option<BlockCost> {
    let pages = (series.bytes / PAGE_SIZE).max(1) as f64;
    let operations = series.pairs.len() as u64;
    let differences: Vec<f64> = series.pairs.iter().map(|pair| pair.each as f64 - pair.kept as f64).collect();
    let cost = Interval::of(&differences)?;
    let faults = series.faults as f64 / operations.max(1) as f64;
    let durations = if series.displaced { &watched.displaced } else { &watched.warm };
    let unseen = (series.bytes == WATCHED && !series.advised && series.faults > 0).then(|| {
        let in_faults = series.pairs.iter().map(|pair| pair.each as f64 - pair.kept as f64 - pair.calls as f64);
        let (in_faults, durations) = (Interval::of(&in_faults.collect::<Vec<_>>())?, Interval::of(durations)?);
        Some(in_faults.over(faults).minus(durations).quantity())
    });
    Some(BlockCost {
        bytes: Bytes(series.bytes),
        displaced: series.displaced,
        after,
        operations,
        faults: series.faults,
        huge_pages: faults < pages * PAGE_SIZE as f64 / page_size() as f64 / 2.0,
        advised: series.advised,
        per_page: cost.over(pages).quantity(),
        unseen: unseen.flatten(),
    })
}

/// A centre with its 95 % interval, in ns.
#[derive(Clone, Copy, Debug)]
struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

impl Interval {
    /// The centre of values; `None` for too few of them.
    fn of(values: &[f64]) -> Option<Self> {
        let Estimate { value, low, high } = signed_rank::centre(values, Level::P95)?;
        Some(Self { value, low: low?, high: high? })
    }

    fn over(self, divisor: f64) -> Self {
        Self { value: self.value / divisor, low: self.low / divisor, high: self.high / divisor }
    }

    /// Less another one that was measured apart.
    fn minus(self, other: Self) -> Self {
        let value = self.value - other.value;
        let below = (self.value - self.low).hypot(other.high - other.value);
        let above = (self.high - self.value).hypot(other.value - other.low);
        Self { value, low: value - below, high: value + above }
    }

    fn quantity(self) -> Quantity {
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        Quantity::interval(rounded(self.value), rounded(self.low), rounded(self.high), Unit::Ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use child::Pair;
    use slowpath_capture::Options;

    fn series(bytes: u64, pairs: usize, faults: u64) -> Series {
        // Each page costs 2000 ns more than in the kept block; 300 of them in the calls.
        let pages = bytes / PAGE_SIZE;
        let pair = Pair { each: pages * 2100, kept: pages * 100, calls: pages * 300 };
        Series { bytes, displaced: false, advised: false, pairs: vec![pair; pairs], faults: faults * pairs as u64 }
    }

    #[test]
    fn what_durations_lack_is_what_is_left_of_the_cost() {
        let watched = Watched { warm: vec![1200.0; 8], displaced: vec![7.0; 8] };
        let cost = cost(&series(WATCHED, 10, 338), &watched, false).unwrap();
        assert_eq!((cost.bytes, cost.operations, cost.faults, cost.huge_pages), (Bytes(WATCHED), 10, 3380, false));
        assert_eq!(cost.per_page, Quantity::interval(2000.0, 2000.0, 2000.0, Unit::Ns));
        // 2000 - 300 - 1200.
        assert_eq!(cost.unseen, Some(Quantity::interval(500.0, 500.0, 500.0, Unit::Ns)));
    }

    #[test]
    fn what_was_measured_apart_is_uncertain_by_the_root_of_the_squares() {
        let one = Interval { value: 10.0, low: 7.0, high: 15.0 };
        let other = Interval { value: 4.0, low: -8.0, high: 8.0 };
        assert_eq!(one.minus(other).quantity(), Quantity::interval(6.0, 1.0, 19.0, Unit::Ns));
        let one = Interval { value: 10.0, low: 8.0, high: 13.0 };
        assert_eq!(one.over(2.0).quantity(), Quantity::interval(5.0, 4.0, 6.5, Unit::Ns));
    }

    #[test]
    fn too_few_operations_other_sizes_and_no_recorder_leave_out_what_they_do_not_tell() {
        let watched = Watched { warm: vec![1200.0; 8], displaced: vec![1200.0; 8] };
        let cost = |series, watched: &Watched| cost(&series, watched, true);
        assert_eq!(cost(series(WATCHED, 5, 338), &watched), None);
        assert_eq!(cost(Series::default(), &watched), None);
        assert!(cost(series(WATCHED, 6, 338), &Watched::default()).unwrap().unseen.is_none());
        assert!(cost(series(4 << 20, 6, 1024), &watched).unwrap().unseen.is_none());
        assert!(cost(series(4 << 20, 6, 2), &watched).unwrap().huge_pages);
    }

    #[test]
    fn it_is_watched_longer_where_too_few_are_left_for_an_interval() {
        let at = |fewest, attempts, ms| is_watched(fewest, attempts, Duration::from_millis(ms));
        assert!(!at(15, 15, 10) && at(16, 16, 10));
        assert!(at(6, 40, 60) && !at(5, 40, 60) && !at(0, 1000, 499));
        assert!(at(5, 40, 500) && at(0, 8, 500));
        assert!(!at(6, 7, 100) && !at(0, 7, 600));
    }

    fn me() -> Identity {
        let variables = std::env::vars_os().collect::<Vec<_>>();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        Identity::for_invocation(None, borrowed).unwrap().0
    }

    #[test]
    fn the_child_measures_within_its_time_and_works_on_when_asked() {
        let me = me();
        let Before { calibrator, measured } = before(&me).unwrap();
        assert!(measured.series.iter().any(|series| !series.pairs.is_empty()), "{measured:?}");
        let mut socket = &calibrator.socket;
        for kind in [WARM, DISPLACED] {
            socket.write_all(&[kind]).unwrap();
            let mut answer = [0];
            socket.read_exact(&mut answer).unwrap();
            assert!([kind, INTERRUPTED].contains(&answer[0]), "{answer:?}");
        }
    }

    #[test]
    fn nothing_of_a_recorder_is_loaded_when_the_child_measures_after_a_recording() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: recording needs root");
            return;
        }
        // What keeps programs attached: links, events of CPUs, programs and maps.
        let held = |pid: u32| -> Vec<String> {
            let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
            let names = descriptors.filter_map(|one| Some(std::fs::read_link(one.path()).ok()?.display().to_string()));
            names.filter(|name| name.contains("bpf") || name.contains("perf_event")).collect()
        };
        let me = me();
        let recorder = Recorder::load(Options::default()).unwrap();
        let mut measuring = None;
        let ended = recorder.finish_with(|recorder| {
            measuring = after(&me, recorder);
            assert!(held(std::process::id()).iter().any(|name| name == "anon_inode:bpf_link"));
        });
        drop(ended.unwrap());
        let measuring = measuring.unwrap();
        assert!(!measuring.watched.warm.is_empty());
        let (calibrator, measured) = measuring.first_step().unwrap();
        assert!(measured.series.iter().any(|series| !series.pairs.is_empty()), "{measured:?}");
        assert_eq!(held(calibrator.child.pid()), [] as [String; 0]);
    }
}
