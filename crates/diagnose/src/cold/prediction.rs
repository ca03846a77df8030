//! The predicted saving, made and written down before the first treated launch: a few untreated cold and warm launches
//! give the two ends, and the prefetcher's speed is measured with no target beside it.

use super::plans::PlanFile;
use super::training::ReadByLaunches;
use crate::case::Case;
use crate::directory::{COLD, write_json};
use crate::interruption;
use crate::plan_files::trainings;
use serde::{Deserialize, Serialize};
use slowpath_analysis::io::demand::Demand;
use slowpath_analysis::io::merge::merge;
use slowpath_analysis::io::predict::{PrefetchCosts, predict as walk};
use slowpath_fix::preload_plan::Provenance;
use slowpath_fix::preload_plan::build::build;
use slowpath_fix::preload_plan::replay::ReplayReport;
use slowpath_lab::Lab;
use slowpath_launch::{EndPolicy, ReadyWhen, StdioPolicy};
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::interrupt;
use slowpath_session::open_recording::open;
use slowpath_session::target::{Target, launcher};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::{Bytes, Quantity, Unit};
use slowpath_verify::lab_session::lab_failure;
use slowpath_verify::treated::cold::{ColdLaunches, untreated};
use slowpath_verify::{ArmResult, Comparison, Metric, Sample, cold};
use std::path::Path;
use std::time::{Duration, Instant};

/// What is predicted of the plan, written down before the first treated launch.
const PREDICTION_FILE: &str = "prediction.json";
/// Untreated launches of each kind; they do not judge the fix. The smallest and the largest of six hold the median
/// with 96.9 % (binomial, 1 - 2 / 2^6), which is where the prediction's interval comes from.
const PILOTS: usize = 6;

/// What the pilot launches gave.
#[derive(Debug)]
pub struct Pilot {
    cold: Spread,
    warm: Spread,
    costs: PrefetchCosts,
    /// The launches, as a comparison without a treated arm.
    pub launches: Comparison,
    /// How long launches take.
    pub pace: Pace,
}

/// How long a launch takes with all that is around it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    cold: Duration,
    warm: Duration,
}

impl Pace {
    /// A block of so many arms, one of which is warm. With a plan a launch takes as long as without one, at most; a sham that reads other
    /// data takes longer, and a trial for which the time is over ends after the block it is in.
    pub fn block(self, arms: usize) -> Duration {
        self.warm + self.cold * arms.saturating_sub(1) as u32
    }
}

/// Median and extremes of a few launches, ms.
#[derive(Clone, Copy, Debug)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    fn of(values: Vec<f64>) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { low, median: median(&values), high }
    }
}

/// The prediction, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Predicted {
    /// Change of the time to ready, negative is faster.
    pub change: Quantity,
    /// Median of the pilot's cold launches, ms.
    pub cold_ms: f64,
    /// Median of the pilot's warm launches, ms.
    pub warm_ms: f64,
    /// Until the prefetcher's first request, ms.
    pub prefetch_startup_ms: f64,
    /// Speed of the prefetcher alone.
    pub prefetch_bytes_per_second: f64,
}

fn median(values: &[f64]) -> f64 {
    slowpath_experiment::median::point(values).unwrap_or(0.0)
}

/// Makes the pilot launches.
pub fn pilot(case: &Case<'_>, lab: &mut Lab, plan: &PlanFile, read: &mut ReadByLaunches) -> Result<Pilot, Failure> {
    let Case { target, directory, progress, .. } = *case;
    let mut launches = ColdLaunches::new(target, &mut *lab, directory, read.at_least, &mut read.pages);
    let arms = untreated();
    let mut took = [Duration::ZERO; 2];
    let mut results = [ArmResult::default(), ArmResult::default()];
    for number in 0..PILOTS {
        for (index, treated) in arms.iter().enumerate() {
            progress.count("pilot launches", number * 2 + index, PILOTS * 2);
            results[index].launches.push(None);
            let began = Instant::now();
            let launched = launches.one(treated)?;
            took[index] += began.elapsed();
            match launched {
                Sample::Measured(measured) => results[index].launches[number] = Some(measured),
                Sample::Failed(reason) => return Err(Failure::new(Kind::Target, reason)),
                Sample::Stopped => return Err(interruption::of_cold()),
                Sample::Discarded(reason) => results[index].discarded.push(reason),
            }
        }
    }
    // What the last launch has left in memory goes with it.
    drop(launches);
    let [cold, warm] = took.map(|took| took / PILOTS as u32);
    let pace = Pace { cold, warm };
    let times = [results[0].values(Metric::Wall), results[1].values(Metric::Wall)];
    if times.iter().any(Vec::is_empty) {
        return Err(Failure::new(Kind::Machine, "no pilot launch was as cold, or as warm, as it was to be"));
    }
    let [cold, warm] = times.map(Spread::of);
    let launches = Comparison {
        arms: arms.map(|treated| treated.arm).into(),
        results: results.into(),
        order: vec![vec![0, 1]; PILOTS],
        blocks: PILOTS,
        seed: 0,
        stopped: false,
    };
    progress.step("measuring the prefetcher alone");
    Ok(Pilot { cold, warm, costs: prefetch_costs(target, lab, plan)?, launches, pace })
}

/// The prefetcher by itself in a cold lab, until all of the plan is in memory.
fn prefetch_costs(target: &Target, lab: &Lab, plan: &PlanFile) -> Result<PrefetchCosts, Failure> {
    let (mut spec, _) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    spec.wrapper = vec!["/proc/self/exe".into(), "preload".into()];
    spec.argv = vec!["replay".into(), "--json".into(), plan.path.clone().into()];
    spec.ready = ReadyWhen::Exit;
    let launched = cold(lab, &mut launcher(), spec, &mut interrupt::Interruptible, None, false).map_err(lab_failure)?;
    let total_ms = launched.outcome.require_ready().map_err(failed(Kind::Machine))? as f64 / 1e6;
    let said = launched.outcome.stdout_tail.unwrap_or_default();
    let replayed: ReplayReport = serde_json::from_str(&said).map_err(failed(Kind::Machine))?;
    let working_ms = replayed.arrived_ns.unwrap_or(replayed.elapsed_ns).as_ms().max(0.001);
    Ok(PrefetchCosts {
        startup: (total_ms - working_ms).max(0.0),
        bytes_per_second: replayed.bytes.0 as f64 / (working_ms / 1e3),
        per_request: 0.0,
        miss: 0.0,
        miss_pages: 1,
    })
}

/// What a page costs that the plan does not hold: the median latency of the recorded cold launch's reads, for the
/// readahead window around it.
fn with_misses(costs: PrefetchCosts, directory: &Path, progress: &dyn Progress) -> Result<PrefetchCosts, Failure> {
    let cold = open(&directory.join(COLD), |text| progress.warn(text))?;
    let lab = cold.manifest.devices.iter().find(|device| device.lab);
    let latencies = cold
        .block_io
        .iter()
        .filter(|io| io.read && lab.is_some_and(|lab| lab.dev == io.dev))
        .filter_map(|io| io.latency)
        .map(slowpath_tables::Nanos::as_ms)
        .collect::<Vec<_>>();
    let window = Bytes(lab.and_then(|lab| lab.read_ahead_kb).unwrap_or(0) * 1024).pages_up().0.max(1);
    Ok(PrefetchCosts { miss: median(&latencies), miss_pages: window, ..costs })
}

/// Predicts the change and stores it in the directory.
pub fn predict(
    target: &Target,
    directory: &Path,
    plan: &PlanFile,
    pilot: &Pilot,
    progress: &dyn Progress,
) -> Result<Option<Predicted>, Failure> {
    as_user(&target.identity, &Work::writing_beneath("predicting the change", directory), || {
        let (demands, _) = trainings(&[directory.to_path_buf()], |text| progress.warn(text))?;
        let costs = with_misses(pilot.costs, directory, progress)?;
        let borrowed: Vec<&Demand> = demands.iter().collect();
        let schedule = |some: &[&Demand]| build(&merge(some), &plan.options, Provenance::default()).plan.schedule();
        let Some(prediction) = walk(&borrowed, schedule, &costs, pilot.warm.median) else { return Ok(None) };
        let time = prediction.time;
        let (fastest, slowest) = (time.low.unwrap_or(time.value), time.high.unwrap_or(time.value));
        let predicted = Predicted {
            // A launch with the plan moves with the warm launch, and the change with the cold one.
            change: Quantity::interval(
                time.value - pilot.cold.median,
                fastest + (pilot.warm.low - pilot.warm.median) - pilot.cold.high,
                slowest + (pilot.warm.high - pilot.warm.median) - pilot.cold.low,
                Unit::Ms,
            ),
            cold_ms: pilot.cold.median,
            warm_ms: pilot.warm.median,
            prefetch_startup_ms: pilot.costs.startup,
            prefetch_bytes_per_second: pilot.costs.bytes_per_second,
        };
        write_json(directory, PREDICTION_FILE, &predicted)?;
        Ok(Some(predicted))
    })
}
