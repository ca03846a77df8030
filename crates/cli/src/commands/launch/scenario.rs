//! `slowpath launch scenario`: pages visited in running browsers.

use super::arms::{self, LaunchArm};
use super::begin;
use crate::arguments::ScenarioArguments;
use crate::commands::show;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use slowpath_browse::pages;
use slowpath_report::terminal;
use slowpath_verify::scenario::{self, ADDED, ScenarioSettings};
use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

/// A page or a start that takes longer is given up, unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command.
pub fn run(arguments: &ScenarioArguments) -> Result<ExitCode, Failure> {
    let arms = begin(browsers(arguments)?);
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
    match scenario.arms.iter().map(|arm| arm.failed).sum::<u32>() {
        0 if interrupt::requested() => Ok(ExitCode::from(Kind::Interrupted as u8)),
        0 => Ok(ExitCode::SUCCESS),
        failures => {
            eprintln!("slowpath: {failures} rounds failed; they are counted and not timed");
            Ok(ExitCode::from(Kind::Target as u8))
        }
    }
}

/// The arms, with what lets them be driven.
fn browsers(arguments: &ScenarioArguments) -> Result<Vec<LaunchArm>, Failure> {
    let given =
        std::iter::once(&arguments.browser).chain(&arguments.vs).chain(arguments.arm.iter().map(|(_, words)| words));
    for words in given {
        for word in &words.0 {
            let text = word.to_string_lossy();
            if text.starts_with("--user-data-dir") || text.starts_with("--remote-debugging") {
                return Err(Failure::new(
                    Kind::Usage,
                    format!("{text}: the profile and the port are chosen for each round"),
                )
                .hint("leave it out; every round begins with a fresh profile"));
            }
        }
        let program = words.0.first().map(|word| base(word)).unwrap_or_default();
        if program.contains("firefox") {
            return Err(Failure::new(
                Kind::Machine,
                format!("{program}: unavailable: this version drives browsers through DevTools, which Firefox no longer has (removed in 129)"),
            )
            .hint("`slowpath launch --ready browser` compares its start with that of others"));
        }
    }
    arms::of_scenario(arguments, &ADDED.map(Into::into))
}

fn base(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}
