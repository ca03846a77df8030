//! `slowpath launch`: a launch benchmark. Arms run in counterbalanced blocks, the environment has another size in every
//! block (the same for all arms of it), and nothing is left out of the figures but launches that failed.

pub mod arms;
mod children;
mod ladder;
mod scenario;
mod selftest;

use crate::arguments::launch::{BenchmarkArguments, BenchmarkOptions, LaunchCommand};
use crate::commands::{launched, show, warn};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use crate::whole_file;
use arms::LaunchArm;
use slowpath_report::Benchmark;
use slowpath_report::terminal;
use slowpath_verify::benchmark;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &BenchmarkArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    match &arguments.command {
        Some(LaunchCommand::Ladder(arguments)) => ladder::run(arguments),
        Some(LaunchCommand::Selftest(arguments)) => selftest::run(arguments),
        Some(LaunchCommand::Scenario(arguments)) => scenario::run(arguments),
        Some(LaunchCommand::Children(arguments)) => children::run(arguments),
        None => {
            let options = &arguments.options;
            let arms = begin(arms::of(arguments)?);
            let progress = Progress::new(options.quiet);
            let measured = benchmark::run(&options.settings(), &arms, options.cold, &progress)?;
            progress.done();
            export(options, &arms, &measured)?;
            show(options.json, &measured, terminal::benchmark);
            finish([&measured])
        }
    }
}

/// Says what the user should know of the arms.
fn begin(arms: Vec<LaunchArm>) -> Vec<LaunchArm> {
    arms.iter().take(1).for_each(|arm| warn(&arm.target));
    arms
}

fn export(options: &BenchmarkOptions, arms: &[LaunchArm], benchmark: &Benchmark) -> Result<(), Failure> {
    let (Some(form), Some(path), Some(first)) = (options.export, &options.output, arms.first()) else { return Ok(()) };
    let text = (form.text)(benchmark);
    let what = Work::writing("writing the export", path.as_path());
    as_user(&first.target.identity, &what, || whole_file::replace(path, 0o666, text.as_bytes()))
}

/// The exit code.
fn finish<'a>(benchmarks: impl IntoIterator<Item = &'a Benchmark>) -> Result<ExitCode, Failure> {
    let arms = benchmarks.into_iter().flat_map(|benchmark| &benchmark.arms);
    Ok(launched(arms.map(|arm| arm.failed).sum(), "launches"))
}
