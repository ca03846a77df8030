//! Which launches of activities a trace shows, by the marks that Android's activity manager writes. They changed twice:
//!
//! | API level | Begin | End | Package |
//! |---|---|---|---|
//! | to 28 | `launching: PACKAGE` begins | it ends | its name |
//! | 29 to 32 | `MetricsLogger:...IntentStarted` | `launching: PACKAGE` ends, and `MetricsLogger:...Finished` follows | its name |
//! | 33 and later | `launchingActivity#N` begins | it ends | `launchingActivity#N:completed-TYPE:PACKAGE` |
//!
//! These are the rules of Perfetto's `android_startups`, so that its figures and these agree. Its hot starts to API level 28, which it
//! takes from frames, are left out.

use super::event::{Events, Names, Package};
use super::printed::StartupKind;
use super::timeline::{Process, Slice, Thread, Timeline, app_id};
use std::collections::HashMap;

/// The first API level with marks for the begin and the end of a launch.
const OBSERVED: u32 = 29;
/// The first one with a number for each launch.
const NUMBERED: u32 = 33;

/// Launches of a trace, and marks of them: what has more was made to take long.
const MOST_LAUNCHES: usize = 256;
const MOST_MARKS: usize = 4096;

const SYSTEM_SERVER: &str = "system_server";
const INTENT: &str = "MetricsLogger:launchObserverNotifyIntentStarted";
const FINISHED: &str = "MetricsLogger:launchObserverNotifyActivityLaunchFinished";
const LAUNCHING: &str = "launching: ";
const ACTIVITY: &str = "launchingActivity#";

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// From the intent to the first frame.
    pub range: (u64, u64),
    /// When the activity manager begins to launch the activity.
    pub manager: Option<u64>,
    /// Whose it is.
    pub package: String,
    /// What Android says of it.
    pub kind: Option<StartupKind>,
}

/// All launches, by begin.
pub fn launches(timeline: &Timeline, events: &Events) -> Vec<Launch> {
    let names = &events.names;
    let has = |begin: &str| {
        timeline.instants.iter().any(|(_, name)| names.text(*name).starts_with(begin))
            || timeline
                .threads
                .iter()
                .flat_map(|thread| &thread.slices)
                .any(|one| names.text(one.name).starts_with(begin))
    };
    let level = events.api_level.unwrap_or_else(|| {
        let is_numbered = timeline
            .instants
            .iter()
            .any(|(_, name)| names.text(*name).strip_prefix(ACTIVITY).is_some_and(|rest| rest.contains(':')));
        match (is_numbered, has("MetricsLogger:")) {
            (true, _) => NUMBERED,
            (false, true) => OBSERVED,
            (false, false) => OBSERVED - 1,
        }
    });
    let marks = managed(timeline, names);
    let mut found = match level {
        NUMBERED.. => numbered(timeline, names, &marks),
        OBSERVED.. => observed(timeline, names, &marks),
        _ => marks.iter().filter_map(|(slice, package)| launch(slice.ts, slice, package)).collect(),
    };
    found.sort_by_key(|launch| launch.range.0);
    found.truncate(MOST_LAUNCHES);
    found
}

fn launch(begin: u64, slice: &Slice, package: &str) -> Option<Launch> {
    let range = (begin, slice.end?);
    Some(Launch { range, manager: Some(slice.ts), package: package.to_owned(), kind: None })
}

/// `launching: PACKAGE` of the activity manager.
fn managed<'a>(timeline: &'a Timeline, names: &'a Names) -> Vec<(&'a Slice, &'a str)> {
    let of = |one: &'a super::timeline::AsyncSlice| {
        let process = timeline.processes.get(one.process)?;
        let is_system = process.name.is_empty() || process.name == SYSTEM_SERVER;
        let package = names.text(one.slice.name).strip_prefix(LAUNCHING).filter(|_| is_system)?;
        Some((&one.slice, package))
    };
    timeline.asyncs.iter().filter_map(of).take(MOST_MARKS).collect()
}

/// Times of slices of this name.
fn times(timeline: &Timeline, names: &Names, wanted: &str) -> Vec<u64> {
    let slices = timeline.threads.iter().flat_map(|thread| &thread.slices);
    let mut times: Vec<u64> = slices.filter(|one| names.text(one.name) == wanted).map(|one| one.ts).collect();
    times.sort_unstable();
    times.truncate(MOST_MARKS);
    times
}

fn observed(timeline: &Timeline, names: &Names, marks: &[(&Slice, &str)]) -> Vec<Launch> {
    let intents = times(timeline, names, INTENT);
    let finished = times(timeline, names, FINISHED);
    let mut found = Vec::new();
    for (at, begin) in intents.iter().enumerate() {
        let end = intents.get(at + 1).copied().unwrap_or(timeline.end);
        let within = *begin..=end;
        let mut inside = marks.iter().filter(|(slice, _)| within.contains(&slice.ts));
        // Another intent without a launch of its own, and several launches of one intent, are nobody's.
        let (Some((slice, package)), None) = (inside.next(), inside.next()) else { continue };
        let is_ended = slice.end.is_some_and(|end| within.contains(&end));
        if is_ended && finished.iter().any(|time| within.contains(time)) {
            found.extend(launch(*begin, slice, package));
        }
    }
    found
}

fn numbered(timeline: &Timeline, names: &Names, marks: &[(&Slice, &str)]) -> Vec<Launch> {
    // What was completed: number, how, package. The first mark of a number counts.
    let mut completions = HashMap::new();
    for (_, name) in &timeline.instants {
        let rest = names.text(*name).strip_prefix(ACTIVITY).and_then(|rest| rest.split_once(':'));
        let Some((number, (how, package))) = rest.and_then(|(number, rest)| Some((number, rest.split_once(':')?)))
        else {
            continue;
        };
        if how.starts_with("completed") && how != "completed-same-process" {
            completions.entry(number).or_insert((how, package));
        }
    }
    let mut found = Vec::new();
    for one in &timeline.asyncs {
        let number = names.text(one.slice.name).strip_prefix(ACTIVITY).filter(|rest| !rest.contains(':'));
        let (Some(number), Some(end)) = (number, one.slice.end) else { continue };
        let completed = completions.get(number).copied();
        let Some((how, package)) = completed.filter(|_| end > one.slice.ts) else { continue };
        let kind = match how {
            "completed-cold" => Some(StartupKind::Cold),
            "completed-warm" => Some(StartupKind::Warm),
            "completed-hot" => Some(StartupKind::Hot),
            _ => None,
        };
        let range = (one.slice.ts, end);
        let mut managers = marks.iter().map(|(slice, _)| slice.ts);
        let manager = managers.find(|ts| (range.0..=range.1).contains(ts));
        found.push(Launch { range, manager, package: package.to_owned(), kind });
    }
    found
}

/// Whether the process is one of the package.
pub fn is_of(process: &Process, package: &str, packages: &[Package]) -> bool {
    if packages.is_empty() {
        return process.name.starts_with(package);
    }
    let Some(uid) = process.uid else { return process.name.starts_with(package) };
    let mut of_user = packages.iter().filter(|one| app_id(one.uid) == app_id(uid));
    match (of_user.next(), of_user.next()) {
        (None, _) => false,
        (Some(only), None) => only.name == package,
        // Packages of one user: the process says by its name which it is of.
        (Some(_), Some(_)) => {
            process.name == package || process.name.strip_prefix(package).is_some_and(|rest| rest.starts_with(':'))
        }
    }
}

/// The processes in which an activity of the launch was resumed, and what that says of the launch.
pub fn processes<'a>(launch: &Launch, timeline: &'a Timeline, events: &Events) -> Vec<(&'a Process, StartupKind)> {
    let mut found = Vec::new();
    for process in &timeline.processes {
        if !is_of(process, &launch.package, &events.packages) {
            continue;
        }
        let Some(main) = timeline.main_thread(process) else { continue };
        let has = |wanted: &str| has_slice(main, &events.names, launch.range, wanted);
        if !has("activityResume") {
            continue;
        }
        let kind = launch.kind.unwrap_or_else(|| match (has("bindApplication"), has("activityStart")) {
            (true, true) => StartupKind::Cold,
            (false, true) => StartupKind::Warm,
            _ => StartupKind::Hot,
        });
        found.push((process, kind));
    }
    found
}

fn has_slice(thread: &Thread, names: &Names, (from, to): (u64, u64), wanted: &str) -> bool {
    thread.slices.iter().any(|one| one.ts >= from && one.ts < to && names.text(one.name) == wanted)
}
