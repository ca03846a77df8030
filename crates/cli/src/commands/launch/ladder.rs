//! `slowpath launch ladder`: what each addition to a command costs, cold and warm.

use super::arms;
use super::benchmark::{export, finish};
use crate::arguments::launch::{Coldness, LadderArguments};
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::interrupt;
use slowpath_verify::benchmark::{self, LADDER_SCHEMA, Ladder};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &LadderArguments) -> Result<ExitCode, Failure> {
    let options = &arguments.options;
    if options.export.is_some() && options.cold.is_none() && !options.warm {
        return Err(Failure::new(Kind::Usage, "an export holds one table, and this ladder has a cold and a warm one")
            .hint("add --cold or --warm"));
    }
    let arms = arms::with_warnings(arms::of_ladder(arguments)?);
    let progress = Progress::new(options.quiet);
    let one = |cold: Option<Coldness>| benchmark::run(&options.settings(), &arms, cold, &progress);
    let cold = (!options.warm).then(|| one(options.cold.or(Some(Coldness::Lab)))).transpose()?;
    // After ctrl-C what was measured cold is kept.
    let goes_on = options.cold.is_none() && !(cold.is_some() && interrupt::requested());
    let warm = goes_on.then(|| one(None)).transpose()?;
    progress.done();
    if let Some(one) = warm.as_ref().or(cold.as_ref()) {
        export(options, &arms, one)?;
    }
    let ladder = Ladder { schema: LADDER_SCHEMA, cold, warm };
    show(options.json, &ladder, |ladder, style| {
        let both = ladder.cold.iter().chain(&ladder.warm).map(|one| terminal::benchmark(one, style));
        both.collect::<Vec<_>>().join("\n")
    });
    finish(ladder.cold.iter().chain(&ladder.warm))
}
