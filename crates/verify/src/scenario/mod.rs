//! Pages visited in running browsers. Each round starts every browser once with a fresh profile, visits all pages in one order
//! (shuffled anew in each round, the same for all arms of it) and ends it.
//!
//! Owns the rounds, their numbers and what is said of them. Leaves lists of pages and the conversation with a browser to `browse`.

mod browsers;
mod measure;
mod measurements;
mod printed;
mod round;
mod settings;
mod summary;

pub use browsers::browsers;
pub use printed::{
    OneVisit, SCENARIO_SCHEMA, Scenario, ScenarioArm, ScenarioComparison, ScenarioMeasure, ScenarioRound,
};
pub use settings::ScenarioSettings;

use crate::benchmark::LaunchArm;
use slowpath_browse::Page;
use slowpath_session::failure::Failure;
use slowpath_session::{Progress, recorded_launch};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;

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
    let measured = measurements::measure_all(settings, arms, pages, gaps.is_empty(), progress)?;
    summary::summarize(settings, arms, pages, &measured, unavailable(gaps))
}

fn unavailable(gaps: Vec<Unavailable>) -> Vec<Unavailable> {
    let of = |gap: Unavailable| declared::CHILD_LAUNCHES.of(&[&gap.what], gap.reason, gap.remedy);
    gaps.into_iter().map(of).collect()
}
