//! The measurement itself: arms made, bursts sized, blocks run.

use crate::arm::Arm;
use crate::crew::{Member, PATIENCE, enlist};
use crate::probe::{Answers, answers};
use crate::state::ThreadState;
use crate::workload::{Bench, Workload};
use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use slowpath_experiment::design;
use slowpath_seccomp::Program;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// CPU time of a burst in the first arm, in ns: some hundred times what handing over costs, and less than a scheduler's slice.
const BURST: u64 = 1_500_000;
/// Steps of the first try.
const FIRST_STEPS: u64 = 64;
/// Tries at most until a burst is long enough: each doubles its steps.
const TRIES: u32 = 24;
/// Blocks at most: as many as have exact intervals.
const MOST_BLOCKS: usize = 100;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The filter: one program or a stack of them, the oldest first.
    pub programs: Vec<Program>,
    /// Time at most; the first period of blocks is finished.
    pub max_time: Duration,
    /// Seed of the order of the arms.
    pub seed: u64,
}

/// Nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The system refuses what the measurement itself needs.
    #[error("{0}")]
    System(&'static str, #[source] io::Error),
    /// The first arm is not there, so there is nothing to compare with.
    #[error("the arm without a filter cannot be made: {0}")]
    NoBaseline(String),
    /// A thread did not do its burst.
    #[error("arm {0} did not come back from its burst of {1} within {limit} s", limit = PATIENCE.as_secs())]
    Stalled(&'static str, &'static str),
    /// There are no more threads.
    #[error("the system gives no threads for another block, or their state is not that of the first ones")]
    NoThreads,
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// An arm, or why it is not one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasuredArm {
    /// Which.
    pub arm: Arm,
    /// What the kernel says of its thread; none where there is none.
    pub state: Option<ThreadState>,
    /// Why it is not measured, and what would change that.
    pub missing: Option<(String, String)>,
}

/// The bursts of one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasuredWorkload {
    /// Which.
    pub workload: Workload,
    /// Steps of each burst.
    pub steps: u64,
    /// CPU time in ns, by arm (in the order of [`Measured::arms`]) and block; none where a call failed or it was not measured.
    pub bursts: Vec<Vec<Option<u64>>>,
    /// Why the arms with a filter have no bursts of it.
    pub refused: Option<String>,
    /// Calls that failed in bursts, of all arms.
    pub failed: u64,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The CPU.
    pub processor: u32,
    /// All arms.
    pub arms: Vec<MeasuredArm>,
    /// All workloads.
    pub workloads: Vec<MeasuredWorkload>,
    /// Blocks that were run.
    pub blocks: usize,
    /// Seed of their order.
    pub seed: u64,
    /// How many filters were installed.
    pub programs: usize,
    /// Time that it took, in ms.
    pub took_ms: u64,
    /// What the kernel says of the machine: the vulnerabilities that speculation is restricted for, and whether filters are compiled.
    pub machine: BTreeMap<String, String>,
}

/// Measures in this process, which must have one thread, and leaves the threads of the arms behind: end it without joining them. `stop` is
/// asked between blocks.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Measured, MeasureError> {
    let began = Instant::now();
    let bench = Arc::new(Bench::new().map_err(|error| MeasureError::System("/dev/zero cannot be opened", error))?);
    let answers = answers(&plan.programs, &bench)
        .map_err(|error| MeasureError::System("no child can be started to try the filter in", error))?;
    let processor = pin().map_err(|error| MeasureError::System("this process cannot stay on its CPU", error.into()))?;
    let company = Company { programs: Arc::new(plan.programs.clone()), bench };
    let (crew, arms) = company.first(&answers)?;
    let mut workloads = sized(&crew, &answers)?;
    let blocks = run(&company, crew, &mut workloads, plan, began, stop)?;
    Ok(Measured {
        processor,
        arms,
        workloads,
        blocks,
        seed: plan.seed,
        programs: plan.programs.len(),
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        machine: machine(),
    })
}

/// What all threads are given.
struct Company {
    programs: Arc<Vec<Program>>,
    bench: Arc<Bench>,
}

impl Company {
    /// The threads of the first block: those of the arms that there are here; the others with their reasons.
    fn first(&self, answers: &Answers) -> Result<(Vec<Member>, Vec<MeasuredArm>), MeasureError> {
        let (mut crew, mut arms): (Vec<Member>, Vec<MeasuredArm>) = (Vec::new(), Vec::new());
        for arm in Arm::ALL {
            let enlisted = match answers.between.why_not().filter(|_| arm.is_filtered()) {
                Some(why) => Err((format!("a thread under the filter cannot be measured: {why}"), filter_remedy())),
                None => enlist(arm, &self.programs, &self.bench),
            };
            let entry = match enlisted {
                Err((why, _)) if arm == Arm::None => return Err(MeasureError::NoBaseline(why)),
                Err(missing) => MeasuredArm { arm, state: None, missing: Some(missing) },
                Ok(member) => {
                    let base = crew.first().map_or(&member.state, |first| &first.state);
                    let wrong = arm.judge(base, &member.state, self.programs.len()).err();
                    let missing = wrong.map(|wrong| (wrong, "see the states of the other arms".to_owned()));
                    let entry = MeasuredArm { arm, state: Some(member.state.clone()), missing };
                    match entry.missing {
                        None => crew.push(member),
                        Some(_) => member.dismiss(),
                    }
                    entry
                }
            };
            arms.push(entry);
        }
        Ok((crew, arms))
    }

    /// New threads in the place of these, with filters installed anew: where the kernel puts a filter makes a difference of its own, which
    /// would be the same in all blocks. `None`: the system has no more threads, or they are not as the first ones were.
    fn relieved(&self, crew: &[Member]) -> Option<Vec<Member>> {
        crew.iter().for_each(Member::dismiss);
        let relief = crew
            .iter()
            .map(|member| enlist(member.arm, &self.programs, &self.bench).ok().filter(|new| new.state == member.state));
        relief.collect()
    }
}

fn filter_remedy() -> String {
    "a filter that allows futex and clock_gettime, and that the kernel takes".to_owned()
}

/// Keeps this thread, and those that it starts, on the CPU that it is on.
fn pin() -> nix::Result<u32> {
    let processor = sched_getcpu()?;
    let mut set = CpuSet::new();
    set.set(processor)?;
    sched_setaffinity(Pid::from_raw(0), &set)?;
    Ok(u32::try_from(processor).unwrap_or(u32::MAX))
}

/// As many steps for each workload as make a burst long enough in the first arm.
fn sized(crew: &[Member], answers: &Answers) -> Result<Vec<MeasuredWorkload>, MeasureError> {
    let Some(first) = crew.first() else { return Err(MeasureError::NoBaseline("there is no thread".to_owned())) };
    let each = answers.workloads.iter().map(|(workload, answer)| {
        let mut steps = FIRST_STEPS;
        for _ in 0..TRIES {
            let nanos = ask(first, *workload, steps)?.0;
            if nanos >= BURST / 2 {
                let exact = u128::from(steps) * u128::from(BURST) / u128::from(nanos.max(1));
                steps = u64::try_from(exact).unwrap_or(steps).max(FIRST_STEPS);
                break;
            }
            steps *= 2;
        }
        Ok(MeasuredWorkload {
            workload: *workload,
            steps,
            bursts: vec![Vec::new(); Arm::ALL.len()],
            refused: answer.why_not(),
            failed: 0,
        })
    });
    each.collect()
}

/// A burst: its CPU time, and the calls that failed.
fn ask(member: &Member, workload: Workload, steps: u64) -> Result<(u64, u64), MeasureError> {
    let stalled = || MeasureError::Stalled(member.arm.name(), workload.name());
    let burst = member.baton.ask(workload, steps, PATIENCE).ok_or_else(stalled)?;
    Ok((burst.nanos, burst.failed))
}

/// Runs whole periods of blocks, so that each arm stands in each place equally often, while there is time for one more; the first in any case.
fn run(
    company: &Company,
    mut crew: Vec<Member>,
    workloads: &mut [MeasuredWorkload],
    plan: &Plan,
    began: Instant,
    stop: &dyn Fn() -> bool,
) -> Result<usize, MeasureError> {
    let period = design::period(crew.len());
    let orders = design::schedule(crew.len(), MOST_BLOCKS / period * period, plan.seed);
    let running = Instant::now();
    for (block, order) in orders.iter().enumerate() {
        let one = running.elapsed().checked_div(u32::try_from(block).unwrap_or(u32::MAX)).unwrap_or_default();
        let next = one.saturating_mul(u32::try_from(period).unwrap_or(u32::MAX));
        if block > 0 && block % period == 0 && began.elapsed() + next > plan.max_time {
            return Ok(block);
        }
        if stop() {
            return Err(MeasureError::Interrupted);
        }
        if block > 0 {
            match company.relieved(&crew) {
                Some(relief) => crew = relief,
                None if block >= period => return Ok(block),
                None => return Err(MeasureError::NoThreads),
            }
        }
        for measured in workloads.iter_mut() {
            measured.bursts.iter_mut().for_each(|bursts| bursts.push(None));
            for member in order.iter().filter_map(|place| crew.get(*place)) {
                if member.arm.is_filtered() && measured.refused.is_some() {
                    continue;
                }
                let (nanos, failed) = ask(member, measured.workload, measured.steps)?;
                measured.failed += failed;
                let place = Arm::ALL.iter().position(|arm| *arm == member.arm);
                if let Some(cell) = place.and_then(|place| measured.bursts.get_mut(place)?.last_mut()) {
                    *cell = (failed == 0 && nanos > 0).then_some(nanos);
                }
            }
        }
    }
    Ok(orders.len())
}

fn machine() -> BTreeMap<String, String> {
    const FILES: [(&str, &str); 3] = [
        ("spec_store_bypass", "/sys/devices/system/cpu/vulnerabilities/spec_store_bypass"),
        ("spectre_v2", "/sys/devices/system/cpu/vulnerabilities/spectre_v2"),
        ("bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable"),
    ];
    let read =
        |(name, path): (&str, &str)| Some((name.to_owned(), std::fs::read_to_string(path).ok()?.trim().to_owned()));
    FILES.into_iter().filter_map(read).collect()
}

impl Measured {
    /// What is missing, each with its reason.
    pub(crate) fn unavailable(&self) -> Vec<Unavailable> {
        let arms = self.arms.iter().filter_map(|entry| {
            let (reason, remedy) = entry.missing.clone()?;
            Some(declared::ARM.of(&[&entry.arm.name()], reason, remedy))
        });
        let workloads = self.workloads.iter().filter_map(|measured| {
            let remedy = "the other bursts are measured; a filter that allows these calls too";
            Some(declared::WORKLOAD.of(&[&measured.workload.name()], measured.refused.clone()?, remedy))
        });
        // Where the arms themselves are missing, their bursts need no reason of their own.
        let is_filtered = self.arms.iter().any(|entry| entry.arm.is_filtered() && entry.missing.is_none());
        arms.chain(workloads.filter(|_| is_filtered)).collect()
    }
}
