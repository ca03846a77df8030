//! `slowpath launch` itself: arms side by side, their export, and how that ends.

use super::arms::{self, LaunchArm};
use crate::arguments::launch::{BenchmarkArguments, BenchmarkOptions};
use crate::exit_code;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::{Benchmark, progress::Progress, terminal};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::whole_file;
use slowpath_verify::benchmark;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &BenchmarkArguments) -> Result<ExitCode, Failure> {
    let options = &arguments.options;
    let arms = arms::with_warnings(arms::of(arguments)?);
    let progress = Progress::new(options.quiet);
    let measured = benchmark::run(&options.settings(), &arms, options.cold, &progress)?;
    progress.done();
    export(options, &arms, &measured)?;
    show(options.json, &measured, terminal::benchmark);
    finish([&measured])
}

/// Writes the export that the options ask for, as the user of the first arm.
pub fn export(options: &BenchmarkOptions, arms: &[LaunchArm], benchmark: &Benchmark) -> Result<(), Failure> {
    let (Some(form), Some(path), Some(first)) = (options.export, &options.output, arms.first()) else { return Ok(()) };
    let text = (form.text)(benchmark);
    let what = Work::writing("writing the export", path.as_path());
    as_user(&first.target.identity, &what, || whole_file::replace(path, 0o666, text.as_bytes()))
}

/// The exit code.
pub fn finish<'a>(benchmarks: impl IntoIterator<Item = &'a Benchmark>) -> Result<ExitCode, Failure> {
    let arms = benchmarks.into_iter().flat_map(|benchmark| &benchmark.arms);
    Ok(exit_code::after_launches(arms.map(|arm| arm.failed).sum(), "launches"))
}
