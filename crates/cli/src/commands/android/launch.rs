//! `slowpath android launch`: scripted launches over adb, and launches in a trace.

use crate::arguments::android::AndroidLaunchArguments;
use crate::failure::{self, Failure, Kind};
use crate::printing::show;
use slowpath_android::as_invoker::{Client, launch_packages, read_trace};
use slowpath_android::launch::LaunchSettings;
use slowpath_android::startup::StartupKind;
use slowpath_report::progress::Progress;
use slowpath_report::terminal::{android_launches, android_startups};
use slowpath_session::interrupt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &AndroidLaunchArguments) -> Result<ExitCode, Failure> {
    match (&arguments.trace, &arguments.output) {
        (Some(trace), _) => of_trace(trace, arguments.json),
        (None, Some(output)) => scripted(arguments, output),
        (None, None) => {
            Err(Failure::new(Kind::Usage, "there is no directory for the launches").hint("name one with -o"))
        }
    }
}

fn of_trace(trace: &Path, json: bool) -> Result<ExitCode, Failure> {
    let found = read_trace(trace)?;
    show(json, &found, |found, _| android_startups(found));
    let Some(problem) = found.problem else { return Ok(ExitCode::SUCCESS) };
    let kind = if interrupt::requested() { Kind::Interrupted } else { Kind::Usage };
    Ok(failure::report(&Failure::new(kind, problem).hint("what was read until then is shown"), false))
}

fn scripted(arguments: &AndroidLaunchArguments, output: &Path) -> Result<ExitCode, Failure> {
    let settings = LaunchSettings {
        packages: &arguments.packages,
        blocks: arguments.runs,
        kind: StartupKind::named(&arguments.start).unwrap_or(StartupKind::Cold),
        compilation: arguments.compilation.as_deref(),
        after: Duration::try_from_secs_f64(arguments.after).unwrap_or(Duration::from_secs(3)),
        settle: Duration::try_from_secs_f64(arguments.settle).unwrap_or(Duration::from_secs(1)),
        is_traced: !arguments.no_trace,
        seed: arguments.seed,
    };
    let progress = Progress::new(arguments.quiet || arguments.json);
    let urls = arguments.url_list.as_deref();
    let (ended, directory) = launch_packages(&Client::from(&arguments.adb), &settings, urls, output, &progress)?;
    let shown = directory.to_string_lossy();
    show(arguments.json, &ended.launches, |launches, _| android_launches(launches, &shown));
    Ok(ended.failure.map_or(ExitCode::SUCCESS, |failure| {
        failure::report(&failure.hint(format!("what was found is kept in {shown}")), false)
    }))
}
