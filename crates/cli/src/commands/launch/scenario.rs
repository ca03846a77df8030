//! `slowpath launch scenario`: pages visited in running browsers.

use super::arms;
use crate::arguments::launch::ScenarioArguments;
use crate::exit_code;
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_browse::pages;
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::target::PATIENCE;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_verify::scenario::{self, ScenarioSettings};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &ScenarioArguments) -> Result<ExitCode, Failure> {
    let arms = arms::with_warnings(arms::of_scenario(arguments)?);
    let first = arms.first().ok_or_else(|| Failure::new(Kind::Usage, "there is no browser"))?;
    // The list is the user's.
    let pages = as_user(&first.target.identity, &Work::reading("reading the list of pages"), || {
        pages::read(&arguments.pages).map_err(|error| {
            Failure::from_error(Kind::Usage, &error).hint(
                "PAGES is a directory whose sub-directories hold an index.html, or a file with a URL or a path a line; the \
                 browser's user must be able to read it",
            )
        })
    })?;
    let settings = ScenarioSettings {
        rounds: arguments.rounds,
        min_effect: arguments.min_effect,
        max_time: arguments.max_time,
        limit: arguments.timeout.map_or(PATIENCE, Duration::from_secs_f64),
        seed: arguments.seed,
    };
    let progress = Progress::new(arguments.quiet);
    let scenario = scenario::run(&settings, &arms, &pages, &progress)?;
    progress.done();
    show(arguments.json, &scenario, terminal::scenario);
    Ok(exit_code::after_launches(scenario.arms.iter().map(|arm| arm.failed).sum(), "rounds"))
}
