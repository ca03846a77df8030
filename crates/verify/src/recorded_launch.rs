//! One more launch under the conditions of a comparison, recorded: it explains, and is not timed.

use crate::conditions::Conditions;
use slowpath_capture::Options;
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::fresh_directory::FreshDirectory;
use slowpath_session::interrupt;
use slowpath_session::recorded_launch::{self, RecorderHooks, RecordingSubject};
use slowpath_session::target::{Target, launcher, not_ready};
use std::path::PathBuf;

/// Launches to get one that was as cold as it was to be.
const ATTEMPTS: usize = 3;

/// A recording that is removed with this value.
pub struct Recorded {
    place: FreshDirectory,
}

impl Recorded {
    /// Its directory, which belongs to the target's user.
    pub fn directory(&self) -> PathBuf {
        self.place.path().join("recording")
    }
}

/// Records one launch.
///
/// # Errors
/// The target failed, the user ended it, or this machine cannot record it or make it as cold as it is to be.
pub fn record(target: &Target, conditions: &mut Conditions) -> Result<Recorded, Failure> {
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
        let recorded = Recorded { place };
        let subject = RecordingSubject::launched(target, &launched.outcome);
        recorded_launch::write(subject, &recorded.directory(), &raw, None, &[])?;
        return Ok(recorded);
    }
    Err(machine("no launch was cold while it was recorded"))
}
