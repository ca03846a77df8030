//! Scripted launches over adb, and launches in a trace.

use super::{Client, check_names, of_adb, usual_device};
use crate::launch::{AndroidLaunches, LaunchSettings, Wanted, addresses_of, is_compilation, launch};
use crate::startup::{TraceStartups, read};
use serde::{Deserialize, Serialize};
use slowpath_import::Input;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, foreign_file, interrupt, output_directory};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Packages of a block.
const MOST_PACKAGES: usize = 8;

/// All launches: work without privilege ends after an hour.
const LONGEST: Duration = Duration::from_secs(55 * 60);

/// What launches gave, and why they ended early.
#[derive(Debug, Serialize, Deserialize)]
pub struct LaunchesEnded {
    /// What was found.
    pub launches: AndroidLaunches,
    /// Why no more were made, or why those that were are worth nothing.
    pub failure: Option<Failure>,
}

/// Launches packages in blocks, each with the addresses of a list or, without one, by its main activity, and keeps what was found in a
/// directory that is new or empty; the second value is its whole name.
///
/// # Errors
/// A word is none of its kind, there is no device, nothing could be launched, or nothing can be written.
pub fn launch_packages(
    client: &Client,
    settings: &LaunchSettings<'_>,
    url_list: Option<&Path>,
    output: &Path,
    progress: &dyn Progress,
) -> Result<(LaunchesEnded, PathBuf), Failure> {
    let identity = invoker()?;
    check(settings)?;
    let urls = match url_list {
        Some(list) => as_user(&identity, &Work::reading("the addresses"), || addresses(list))?,
        None => Vec::new(),
    };
    let directory = output_directory::prepare(output, &identity)?;
    let ended = as_user(&identity, &Work::starting_programs("launching"), || {
        let is_wanted = || !interrupt::requested();
        let adb = client.connect(usual_device(), &is_wanted)?;
        let asked = Wanted {
            settings,
            urls: &urls,
            longest: LONGEST,
            now: now_rfc3339(),
            progress: &mut |what: &str| progress.step(what),
        };
        let found = launch(&adb, &directory, asked).map_err(|error| of_adb(&error));
        progress.done();
        let (launches, ended) = found?;
        let failure = ended.map(|error| of_adb(&error)).or_else(|| none_succeeded(&launches));
        Ok(LaunchesEnded { launches, failure })
    })?;
    Ok((ended, directory))
}

fn check(settings: &LaunchSettings<'_>) -> Result<(), Failure> {
    check_names(settings.packages)?;
    let usage = |message: String, hint: &str| Err(Failure::new(Kind::Usage, message).hint(hint));
    let packages = settings.packages;
    let has_twice = (1..packages.len()).any(|at| packages[..at].contains(&packages[at]));
    if has_twice || packages.len() > MOST_PACKAGES {
        return usage(format!("up to {MOST_PACKAGES} different packages are launched"), "name each once");
    }
    if let Some(wrong) = settings.compilation.filter(|mode| !is_compilation(mode)) {
        return usage(format!("{wrong:?} is no compile filter"), "speed, speed-profile, verify, or reset");
    }
    Ok(())
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

fn none_succeeded(launches: &AndroidLaunches) -> Option<Failure> {
    let has_one = launches.packages.iter().any(|package| package.launches > 0);
    let message = "no launch succeeded as it was asked for";
    (!has_one).then(|| Failure::new(Kind::Machine, message).hint("launches.json has what the device said of each"))
}

/// What a trace shows.
///
/// # Errors
/// It cannot be opened.
pub fn read_trace(trace: &Path) -> Result<TraceStartups, Failure> {
    as_user(&invoker()?, &Work::reading("the trace"), || trace_here(trace))
}

/// The same, by whoever this process is.
pub(super) fn trace_here(trace: &Path) -> Result<TraceStartups, Failure> {
    let name = trace.display().to_string();
    let file = foreign_file::open(trace)
        .map_err(|error| Failure::from_error(Kind::Usage, &error).during(format!("reading {name}")))?;
    let mut reader = BufReader::new(file);
    Ok(read(&name, &mut Input::new(&name, &mut reader, &|| !interrupt::requested())))
}
