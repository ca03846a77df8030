//! `slowpath launch selftest`: a command against itself, here and now. How often is a difference seen where there is none,
//! and how small a difference could be seen with so much noise?

use super::arms;
use crate::arguments::launch::SelftestArguments;
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::interrupt;
use slowpath_verify::benchmark::selftest;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &SelftestArguments) -> Result<ExitCode, Failure> {
    let options = &arguments.options;
    if options.export.is_some() || !options.quantile.is_empty() || options.metric.len() > 1 {
        return Err(Failure::new(Kind::Usage, "a selftest compares one metric, and has neither quantiles nor exports")
            .hint("`--json` prints all that it found"));
    }
    let arms = arms::with_warnings(arms::of_selftest(arguments)?);
    let progress = Progress::new(options.quiet);
    let found = selftest::run(&options.settings(), &arms, options.cold, arguments.comparisons, &progress)?;
    progress.done();
    show(options.json, &found, |shown, _| terminal::selftest(shown));
    Ok(if interrupt::requested() { ExitCode::from(Kind::Interrupted as u8) } else { ExitCode::SUCCESS })
}
