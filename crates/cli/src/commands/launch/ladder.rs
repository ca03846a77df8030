//! `slowpath launch ladder`: what each addition to a command costs, cold and warm.

use super::{arms, begin, benchmark, export, finish, show};
use crate::arguments::{Coldness, LadderArguments};
use crate::commands::print_json;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::progress::Progress;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_report::Benchmark;
use std::process::ExitCode;

/// What `slowpath launch ladder --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Ladder {
    /// `slowpath-launch-ladder/1`.
    schema: &'static str,
    /// Cold launches; null with `--warm`.
    cold: Option<Benchmark>,
    /// Warm launches; null with `--cold`, and when it was interrupted before.
    warm: Option<Benchmark>,
}

/// Runs the command.
pub fn run(arguments: &LadderArguments) -> Result<ExitCode, Failure> {
    let options = &arguments.options;
    if options.export.is_some() && options.cold.is_none() && !options.warm {
        return Err(Failure::new(Kind::Usage, "an export holds one table, and this ladder has a cold and a warm one")
            .hint("add --cold or --warm"));
    }
    let arms = begin(arms::of_ladder(arguments)?);
    let progress = Progress::new(options.quiet);
    let one = |cold: Option<Coldness>| benchmark::run(options, &arms, cold, &progress);
    let cold = (!options.warm).then(|| one(options.cold.or(Some(Coldness::Lab)))).transpose()?;
    // After ctrl-C what was measured cold is kept.
    let goes_on = options.cold.is_none() && !(cold.is_some() && interrupt::requested());
    let warm = goes_on.then(|| one(None)).transpose()?;
    progress.done();
    if let Some(one) = warm.as_ref().or(cold.as_ref()) {
        export(options, &arms, one)?;
    }
    let ladder = Ladder { schema: "slowpath-launch-ladder/1", cold, warm };
    if options.json {
        print_json(&ladder);
    } else {
        for (number, benchmark) in ladder.cold.iter().chain(&ladder.warm).enumerate() {
            if number > 0 {
                println!();
            }
            show(benchmark);
        }
    }
    finish(ladder.cold.iter().chain(&ladder.warm))
}
