//! The recording behind a check: one that exists, or that of one more launch under the same conditions, which is not timed
//! and not kept. It is read as the user, without privilege.

use crate::commands::{analyze, invoker};
use crate::failure::{Failure, Kind};
use crate::fresh_directory::FreshDirectory;
use crate::interrupt;
use crate::progress::Progress;
use crate::recorded_launch::{self, RecorderHooks, Subject};
use crate::target::{Target, launcher, not_ready};
use crate::unprivileged::{Work, as_user};
use slowpath_budget::Limit;
use slowpath_budget::responsible::{Seen, examine};
use slowpath_capture::Options;
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use slowpath_verify::conditions::Conditions;
use std::path::Path;

/// Launches to get one that was as cold as it was to be.
const ATTEMPTS: usize = 3;

/// What a recording told.
pub enum Looked {
    /// No limit needed one.
    NotNeeded,
    /// There is one.
    Seen(Seen),
    /// This machine could not make one.
    Impossible(Vec<Unavailable>),
}

/// Reads a recording that exists.
///
/// # Errors
/// It is none, or cannot be read by the caller.
pub fn of_directory(directory: &Path, limits: &[Limit]) -> Result<Seen, Failure> {
    as_user(&invoker()?, &Work::reading("analysing the recording"), || Ok(examine(&analyze::open(directory)?, limits)))
}

/// Records one more launch.
///
/// # Errors
/// The target failed in it, or the user interrupted it. What the machine cannot do is no error.
pub fn of_launch(
    target: &Target,
    conditions: &mut Conditions,
    limits: &[Limit],
    progress: &Progress,
) -> Result<Looked, Failure> {
    let gaps = recorded_launch::gaps();
    if !gaps.is_empty() {
        return Ok(Looked::Impossible(gaps));
    }
    progress.step("recording one more launch: who is responsible?");
    match recorded(target, conditions, limits) {
        Ok(seen) => Ok(Looked::Seen(seen)),
        Err(failure) if failure.kind() == Kind::Machine && !interrupt::requested() => {
            let gap = declared::RECORDING.because(failure.chain(), "`slowpath doctor` lists everything");
            Ok(Looked::Impossible(vec![gap]))
        }
        Err(failure) => Err(failure),
    }
}

fn recorded(target: &Target, conditions: &mut Conditions, limits: &[Limit]) -> Result<Seen, Failure> {
    let machine = |problem: &str| Failure::new(Kind::Machine, problem);
    for _ in 0..ATTEMPTS {
        let options = Options { lab: conditions.lab_device(), ..Options::default() };
        let mut hooks = RecorderHooks::load(options, &target.identity)?;
        let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let launched = conditions.launch_with(&mut launcher(), spec, &mut hooks)?;
        let (raw, stop) = hooks.finish()?;
        if interrupt::requested() {
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        if let Some(stop) = stop {
            return Err(machine(stop));
        }
        if let Some(failure) = not_ready(&launched.outcome) {
            return Err(failure);
        }
        if launched.not_as_meant.is_some() {
            continue;
        }
        let place = FreshDirectory::new(&target.identity).map_err(|error| machine(&error.to_string()))?;
        let directory = place.path().join("recording");
        recorded_launch::write(Subject::launched(target, &launched.outcome), &directory, &raw, None, &[])?;
        let what = Work::reading("analysing the recording");
        return as_user(&target.identity, &what, || Ok(examine(&analyze::open(&directory)?, limits)));
    }
    Err(machine("no launch was cold while it was recorded"))
}
