//! The rounds of all browsers, one after another in shuffled order, until there are enough.
//!
//! Owns how many rounds are made, the order of the pages in each, and the first one, which does not count. Leaves one round to
//! `round`, the order of the browsers to [`crate::compare_until`], and what is said of the figures to `summary`.

use super::round::{self, Ended, Plan, Round};
use super::settings::ScenarioSettings;
use crate::benchmark::{self, LaunchArm};
use crate::{Comparison, HostCounters, Made, Measured, Metric, NextBlock, Sample, compare_until};
use slowpath_browse::Page;
use slowpath_experiment::design;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::launcher;
use slowpath_session::{Progress, interrupt};
use std::time::Instant;

/// All that was measured.
pub(super) struct Measurements {
    pub comparison: Comparison,
    /// By arm and round; the last attempt of each.
    pub rounds: Vec<Vec<Option<Round>>>,
    /// Why there are no more rounds.
    pub why: String,
}

/// Launches every browser once without counting it, then makes rounds until there are as many as asked for or the time is over.
///
/// # Errors
/// A browser failed in its first round, or one never got through a round, or the user ended it before the first round.
pub(super) fn measure_all(
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
    let comparison = compare_until(
        arms.iter().map(LaunchArm::described).collect(),
        most,
        settings.seed,
        |arm, block| one(arm, block, &mut rounds[arm][block]),
        |Made { block, launches, .. }| {
            progress.step(&format!("round {block} of {most}: {launches} browsers visited {} pages", pages.len()));
            !interrupt::requested()
        },
        |_, _| NextBlock::unless(began.elapsed() >= settings.max_time),
    )
    .map_err(|error| benchmark::comparison_failure(error, "`--timeout SECONDS` allows the start and each page more"))?;
    let why = match (comparison.stopped, comparison.blocks) {
        (true, blocks) => format!("it was interrupted after {blocks} rounds"),
        (false, blocks) if blocks < most => format!("the time was over after {blocks} rounds"),
        (false, blocks) => format!("{blocks} rounds were asked for"),
    };
    Ok(Measurements { comparison, rounds, why })
}
