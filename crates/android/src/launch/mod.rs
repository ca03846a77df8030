//! Scripted launches on a device, as Macrobenchmark makes them, through adb: each prepared in the same way, measured by `am start -W` and
//! by a trace of Perfetto on the device, packages in turn in blocks whose order is counterbalanced.

mod config;
mod printed;
mod script;
mod settings;
mod summary;

pub use printed::{AndroidLaunches, ChildrenOfKind, Difference, LAUNCH_SCHEMA, Launched, Measure, PackageLaunches};
pub use settings::LaunchSettings;

use crate::adb::{Adb, AdbError};
use crate::startup::StartupKind;
use crate::text::{self, AmStart};
use crate::whole_json;
use script::{Plan, Target};
use slowpath_experiment::design::schedule;
use slowpath_tables::missing::declared;
use std::io::{self, BufRead};
use std::path::Path;
use std::time::{Duration, Instant};

/// The file that keeps what is printed.
pub const LAUNCHES: &str = "launches.json";

/// Addresses of a list.
const MOST_URLS: usize = 10_000;

/// Launches in a row that may fail before the device counts as one that cannot.
const PATIENCE: u32 = 4;

/// A series of launches.
pub struct Wanted<'a> {
    /// What is launched, and how.
    pub settings: &'a LaunchSettings<'a>,
    /// Addresses, one after the other; none for the main activity. They have passed [`is_address`].
    pub urls: &'a [String],
    /// How long all launches together may take: none begins after it.
    pub longest: Duration,
    /// When it begins, RFC 3339.
    pub now: String,
    /// Called with what is done next.
    pub progress: &'a mut dyn FnMut(&str),
}

/// Whether it can be a word of a command: a compile filter, or `reset`.
pub fn is_compilation(mode: &str) -> bool {
    !mode.is_empty()
        && mode.len() < 32
        && mode.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && !mode.starts_with('-')
}

/// Whether it is an address with a scheme, without control characters and spaces.
pub fn is_address(url: &str) -> bool {
    let is_word = |scheme: &str| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    url.len() <= 8192
        && url.split_once(':').is_some_and(|(scheme, rest)| is_word(scheme) && !rest.is_empty())
        && !url.chars().any(|letter| letter.is_control() || letter.is_whitespace())
}

/// The addresses of a list, one a line; empty lines and those that begin with `#` are none. The inner error says what is wrong with it.
///
/// # Errors
/// It cannot be read.
pub fn addresses_of(list: impl BufRead) -> io::Result<Result<Vec<String>, String>> {
    let mut urls = Vec::new();
    for line in list.lines() {
        let line = line?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !is_address(line) || urls.len() >= MOST_URLS {
            return Ok(Err(format!("{line:?} is no address")));
        }
        urls.push(line.to_owned());
    }
    Ok(if urls.is_empty() { Err("it has no address".to_owned()) } else { Ok(urls) })
}

/// Launches, and keeps what was found in an empty directory after each launch. Also where the device goes away: why is
/// [`AndroidLaunches::ended`] then, and the second value.
///
/// # Errors
/// Nothing could be launched: a package has no activity, cannot be compiled, or the directory cannot be written.
pub fn launch(
    adb: &Adb<'_>,
    directory: &Path,
    wanted: Wanted<'_>,
) -> Result<(AndroidLaunches, Option<AdbError>), AdbError> {
    let mut launches = begun(adb, &wanted)?;
    keep(directory, &launches).map_err(AdbError::Unwritable)?;
    let settings = wanted.settings;
    let plan = Plan { settings, directory };
    let order = schedule(settings.packages.len(), settings.blocks as usize, settings.seed);
    let (began, most) = (Instant::now(), settings.packages.len() * settings.blocks as usize);
    let (mut number, mut failures, mut ended) = (0, 0u32, None);
    'blocks: for (block, arms) in order.iter().enumerate() {
        for arm in arms {
            let Some(package) = launches.packages.get(*arm) else { continue };
            let url = (!wanted.urls.is_empty()).then(|| &wanted.urls[block % wanted.urls.len()]);
            (wanted.progress)(&format!("block {} of {}: {}", block + 1, settings.blocks, package.package));
            let target = Target {
                number,
                block: u32::try_from(block).unwrap_or(u32::MAX),
                package: &package.package,
                activity: package.activity.as_deref(),
                url: url.map(String::as_str),
            };
            let mut launched = Launched {
                block: target.block,
                package: package.package.clone(),
                url: url.cloned(),
                reported: AmStart::default(),
                trace: None,
                startup: None,
                children: Vec::new(),
                counts: false,
                failure: None,
                remedy: None,
            };
            let result = script::launch(adb, &plan, &target, &mut launched);
            launched.counts = launched.reported.is_ok() && is_of_kind(&launched, settings.kind);
            launches.launches.push(launched);
            number += 1;
            failures = if launches.launches.last().is_some_and(|one| one.reported.is_ok()) { 0 } else { failures + 1 };
            let given_up = || AdbError::Refused(format!("{failures} launches in a row failed"));
            let result = match result {
                Ok(()) if failures >= PATIENCE => Err(given_up()),
                Ok(()) if began.elapsed() >= wanted.longest && number < most => Err(AdbError::Long(wanted.longest)),
                other => other,
            };
            if let Err(error) = result {
                launches.ended = Some(error.to_string());
                ended = Some(error);
            }
            summary::summarise(&mut launches);
            keep(directory, &launches).map_err(AdbError::Unwritable)?;
            if ended.is_some() {
                break 'blocks;
            }
        }
    }
    if ended.is_none() {
        for package in settings.packages {
            // What was started here does not stay; a device that is gone now has given everything.
            let _ = script::stop(adb, package);
        }
    }
    Ok((launches, ended))
}

/// Asks the device who it is, and prepares the packages.
fn begun(adb: &Adb<'_>, wanted: &Wanted<'_>) -> Result<AndroidLaunches, AdbError> {
    let answer = adb.shell("getprop").map_err(|broken| broken.error)?;
    let properties = text::properties(&String::from_utf8_lossy(&answer.stdout));
    let mut packages = Vec::new();
    for package in wanted.settings.packages {
        let activity = if wanted.urls.is_empty() { Some(script::main_activity(adb, package)?) } else { None };
        if let Some(mode) = wanted.settings.compilation {
            script::compile(adb, package, mode)?;
        }
        packages.push(PackageLaunches {
            package: package.clone(),
            activity,
            launches: 0,
            failed: 0,
            other_kind: 0,
            measures: Vec::new(),
            children: Vec::new(),
        });
    }
    let own = |key: &str| properties.get(key).map(str::to_owned);
    let mut unavailable = Vec::new();
    if wanted.settings.kind == StartupKind::Cold {
        unavailable.push(declared::DEVICE_STEP.of(
            &[&"emptying the page cache before a launch"],
            "it needs root on the device: files stay cached from launch to launch, so cold is a new process and not a cold disk",
            "the first launch after the device has started",
        ));
    }
    Ok(AndroidLaunches {
        schema: LAUNCH_SCHEMA.to_owned(),
        began: wanted.now.clone(),
        serial: adb.serial().to_owned(),
        model: own("ro.product.model"),
        release: own("ro.build.version.release"),
        api_level: properties.api_level(),
        kind: wanted.settings.kind,
        compilation: wanted.settings.compilation.map(str::to_owned),
        urls: wanted.urls.to_vec(),
        blocks: wanted.settings.blocks,
        packages,
        differences: Vec::new(),
        launches: Vec::new(),
        unavailable,
        ended: None,
    })
}

/// Whether the launch was of the kind that was asked for: as Android says it, else as the trace shows it, else it is taken for one.
fn is_of_kind(launched: &Launched, kind: StartupKind) -> bool {
    let said = launched.reported.launch_state.as_deref().map(str::to_ascii_lowercase);
    let said = said.filter(|said| ["cold", "warm", "hot"].contains(&said.as_str()));
    let shown = launched.startup.as_ref().and_then(|startup| startup.kind);
    match (said, shown) {
        (Some(said), _) => said == kind.name(),
        (None, Some(shown)) => shown == kind,
        (None, None) => true,
    }
}

fn keep(directory: &Path, launches: &AndroidLaunches) -> io::Result<()> {
    whole_json::replace(&directory.join(LAUNCHES), launches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_become_words_of_a_command() {
        assert!(is_compilation("speed-profile") && is_compilation("reset"));
        for wrong in ["", "-m", "speed; rm", "SPEED", "a b"] {
            assert!(!is_compilation(wrong), "{wrong}");
        }
        assert!(is_address("https://example.com/a?b=c&d=$(e)") && is_address("app:x"));
        for wrong in ["", "example.com", "https:", "https://a b", "https://a\nb", "-d:x", ":x"] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }
}
