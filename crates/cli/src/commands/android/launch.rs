//! `slowpath android launch`: scripted launches over adb, and launches in a trace. Done as the invoker: adb in a worker that may start
//! programs, a trace of others in one that only reads.

use super::{AndroidLaunchArguments, connect, of_adb};
use crate::commands::{invoker, now_rfc3339, print_json};
use crate::failure::{self, Failure, Kind};
use crate::foreign_file;
use crate::interrupt;
use crate::output_directory;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use serde::{Deserialize, Serialize};
use slowpath_android::launch::{AndroidLaunches, Wanted, addresses_of, is_compilation, launch};
use slowpath_android::startup::{StartupKind, TraceStartups, read};
use slowpath_android::text::is_package_name;
use slowpath_import::Input;
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_report::terminal::{android_launches, android_startups};
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Packages of a block.
const MOST_PACKAGES: usize = 8;

/// All launches: work without privilege ends after an hour.
const LONGEST: Duration = Duration::from_secs(55 * 60);

/// What launches gave, and why they ended early.
#[derive(Serialize, Deserialize)]
struct Ended {
    launches: AndroidLaunches,
    failure: Option<Failure>,
}

/// Runs the command.
pub fn run(arguments: &AndroidLaunchArguments) -> Result<ExitCode, Failure> {
    let identity = invoker()?;
    match (&arguments.trace, &arguments.output) {
        (Some(trace), _) => of_trace(&identity, trace, arguments.json),
        (None, Some(output)) => scripted(&identity, arguments, output),
        (None, None) => {
            Err(Failure::new(Kind::Usage, "there is no directory for the launches").hint("name one with -o"))
        }
    }
}

/// What a trace shows, read as the invoker.
pub(super) fn read_trace(trace: &Path) -> Result<TraceStartups, Failure> {
    let name = trace.display().to_string();
    let file = foreign_file::open(trace)
        .map_err(|error| Failure::from_error(Kind::Usage, &error).during(format!("reading {name}")))?;
    let mut reader = BufReader::new(file);
    Ok(read(&name, &mut Input::new(&name, &mut reader, &|| !interrupt::requested())))
}

fn of_trace(identity: &Identity, trace: &Path, json: bool) -> Result<ExitCode, Failure> {
    let found = as_user(identity, &Work::reading("the trace"), || read_trace(trace))?;
    if json {
        print_json(&found);
    } else {
        print!("{}", android_startups(&found));
    }
    let Some(problem) = found.problem else { return Ok(ExitCode::SUCCESS) };
    let kind = if interrupt::requested() { Kind::Interrupted } else { Kind::Usage };
    Ok(failure::report(&Failure::new(kind, problem).hint("what was read until then is shown"), false))
}

fn scripted(identity: &Identity, arguments: &AndroidLaunchArguments, output: &Path) -> Result<ExitCode, Failure> {
    let usage = |message: String, hint: &str| Failure::new(Kind::Usage, message).hint(hint);
    if let Some(wrong) = arguments.packages.iter().find(|name| !is_package_name(name)) {
        return Err(usage(format!("{wrong:?} is no name of a package"), "`adb shell pm list packages` lists them"));
    }
    let has_twice = (1..arguments.packages.len()).any(|at| arguments.packages[..at].contains(&arguments.packages[at]));
    if has_twice || arguments.packages.len() > MOST_PACKAGES {
        return Err(usage(format!("up to {MOST_PACKAGES} different packages are launched"), "name each once"));
    }
    if let Some(wrong) = arguments.compilation.as_deref().filter(|mode| !is_compilation(mode)) {
        return Err(usage(format!("{wrong:?} is no compile filter"), "speed, speed-profile, verify, or reset"));
    }
    let urls = match &arguments.url_list {
        Some(list) => as_user(identity, &Work::reading("the addresses"), || addresses(list))?,
        None => Vec::new(),
    };
    let directory = output_directory::prepare(output, identity)?;
    let quiet = arguments.quiet || arguments.json;
    let serial = arguments.adb.serial.clone().or_else(|| std::env::var("ANDROID_SERIAL").ok());
    let ended = as_user(identity, &Work::new("launching", Duty::Run), || {
        let wanted = || !interrupt::requested();
        let adb = connect(&arguments.adb, serial.as_deref(), &wanted)?;
        let progress = Progress::new(quiet);
        let asked = Wanted {
            packages: &arguments.packages,
            urls: &urls,
            blocks: arguments.runs,
            kind: StartupKind::named(&arguments.start).unwrap_or(StartupKind::Cold),
            compilation: arguments.compilation.as_deref(),
            after: Duration::try_from_secs_f64(arguments.after).unwrap_or(Duration::from_secs(3)),
            settle: Duration::try_from_secs_f64(arguments.settle).unwrap_or(Duration::from_secs(1)),
            is_traced: !arguments.no_trace,
            longest: LONGEST,
            seed: arguments.seed,
            now: now_rfc3339(),
            progress: &mut |what| progress.step(what),
        };
        let found = launch(&adb, &directory, asked).map_err(|error| of_adb(&error));
        progress.done();
        let (launches, ended) = found?;
        Ok(Ended { launches, failure: ended.map(|error| of_adb(&error)) })
    })?;
    let shown = directory.to_string_lossy();
    if arguments.json {
        print_json(&ended.launches);
    } else {
        print!("{}", android_launches(&ended.launches, &shown));
    }
    let nothing = || {
        let has_one = ended.launches.packages.iter().any(|package| package.launches > 0);
        let message = "no launch succeeded as it was asked for";
        (!has_one).then(|| Failure::new(Kind::Machine, message).hint("launches.json has what the device said of each"))
    };
    Ok(ended.failure.or_else(nothing).map_or(ExitCode::SUCCESS, |failure| {
        failure::report(&failure.hint(format!("what was found is kept in {shown}")), false)
    }))
}

/// The addresses of a list.
fn addresses(list: &Path) -> Result<Vec<String>, Failure> {
    let unread =
        |error: std::io::Error| Failure::from_error(Kind::Usage, &error).during(format!("reading {}", list.display()));
    let file = foreign_file::open(list).map_err(unread)?;
    addresses_of(BufReader::new(file)).map_err(unread)?.map_err(|wrong| {
        Failure::new(Kind::Usage, format!("{}: {wrong}", list.display()))
            .hint("one address with its scheme a line: https://example.com/")
    })
}
