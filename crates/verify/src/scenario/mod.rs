//! Pages visited in running browsers. Each round starts every browser once with a fresh profile, visits all pages in one order
//! (shuffled anew in each round, the same for all arms of it) and ends it.
//!
//! Owns the rounds, their numbers and what is said of them. Leaves lists of pages and the conversation with a browser to `browse`.

mod browsers;
mod measure;
mod printed;
mod round;
mod summary;

pub use browsers::browsers;
pub use printed::{
    OneVisit, SCENARIO_SCHEMA, Scenario, ScenarioArm, ScenarioComparison, ScenarioMeasure, ScenarioRound,
};

use crate::benchmark::{self, LaunchArm};
use crate::{Comparison, HostCounters, Measured, Metric, Sample, compare_until};
use round::{Ended, Plan, Round};
use slowpath_browse::Page;
use slowpath_experiment::design;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::launcher;
use slowpath_session::{Progress, interrupt, recorded_launch};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::time::{Duration, Instant};

/// How rounds are made and compared.
#[derive(Clone, Debug)]
pub struct ScenarioSettings {
    /// Rounds; in each, every browser visits every page once.
    pub rounds: u32,
    /// The smallest difference that matters, as a share of the first browser.
    pub min_effect: f64,
    /// Time at most; the round that runs is finished.
    pub max_time: Duration,
    /// The longest that the start and each page may take.
    pub limit: Duration,
    /// Seed of all orders.
    pub seed: u64,
}

/// All that was measured.
struct Measurements {
    comparison: Comparison,
    /// By arm and round; the last attempt of each.
    rounds: Vec<Vec<Option<Round>>>,
    why: String,
}

/// Visits the pages in the browsers of `arms`, which [`browsers`] made. As root their child launches are recorded too.
///
/// # Errors
/// A browser failed in its first round, this machine cannot do it, or the user ended it before the first round.
pub fn run(
    settings: &ScenarioSettings,
    arms: &[LaunchArm],
    pages: &[Page],
    progress: &dyn Progress,
) -> Result<Scenario, Failure> {
    let gaps = recorded_launch::gaps();
    let measured = measure_all(settings, arms, pages, gaps.is_empty(), progress)?;
    summary::summarize(settings, arms, pages, &measured, unavailable(gaps))
}

fn unavailable(gaps: Vec<Unavailable>) -> Vec<Unavailable> {
    let of = |gap: Unavailable| declared::CHILD_LAUNCHES.of(&[&gap.what], gap.reason, gap.remedy);
    gaps.into_iter().map(of).collect()
}

fn measure_all(
    settings: &ScenarioSettings,
    arms: &[LaunchArm],
    pages: &[Page],
    record: bool,
    progress: &dyn Progress,
) -> Result<Measurements, Failure> {
    let most = settings.rounds as usize;
    // Permutations in which each page stands at each place equally often.
    let orders = design::schedule(pages.len(), most, settings.seed);
    let limit = settings.limit;
    let mut rounds: Vec<Vec<Option<Round>>> = arms.iter().map(|_| (0..most).map(|_| None).collect()).collect();
    let mut launcher = launcher();
    let counters = &mut HostCounters::new();
    let mut one = |arm: usize, block: usize, keep: &mut Option<Round>| -> Result<Sample, Failure> {
        let plan = Plan { pages, order: &orders[block], limit, record };
        let before = counters.look();
        let ended = round::round(&mut launcher, &arms[arm], &plan, benchmark::pad(settings.seed, block))?;
        let around = |own: f64| counters.look().since(&before, own);
        Ok(match ended {
            Ended::Stopped => Sample::Stopped,
            Ended::Failed(reason) => Sample::Failed(reason),
            Ended::Whole(round) => {
                let measures = round.measures.clone();
                let own = measures.get(&Metric::Cpu).copied().unwrap_or(0.0);
                *keep = Some(*round);
                Sample::Measured(Measured { around: around(own), measures, ..Measured::default() })
            }
        })
    };
    for (index, arm) in arms.iter().enumerate() {
        progress.step(&format!("a first round of {}, which does not count", arm.name));
        match one(index, 0, &mut None)? {
            Sample::Failed(reason) => {
                return Err(Failure::new(Kind::Target, format!("{} failed in its first round: {reason}", arm.name)));
            }
            Sample::Stopped => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            Sample::Measured(_) | Sample::Discarded(_) => {}
        }
    }
    let began = Instant::now();
    let width = arms.len().max(1);
    let comparison = compare_until(
        arms.iter().map(LaunchArm::described).collect(),
        most,
        settings.seed,
        |arm, block| one(arm, block, &mut rounds[arm][block]),
        |done, _| {
            let number = done.div_ceil(width);
            progress.step(&format!("round {number} of {most}: {done} browsers visited {} pages", pages.len()));
            !interrupt::requested()
        },
        |_, _| began.elapsed() >= settings.max_time,
    )
    .map_err(|error| benchmark::comparison_failure(error, "`--timeout SECONDS` allows the start and each page more"))?;
    let why = match (comparison.stopped, comparison.blocks) {
        (true, blocks) => format!("it was interrupted after {blocks} rounds"),
        (false, blocks) if blocks < most => format!("the time was over after {blocks} rounds"),
        (false, blocks) => format!("{blocks} rounds were asked for"),
    };
    Ok(Measurements { comparison, rounds, why })
}
