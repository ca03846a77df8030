//! The recorded launch of a warm diagnosis, what it shows, and the fixes for that. The recording is read, and the program's files
//! are looked at, as the target's user.

use crate::denied_files::with_changes;
use crate::directory::{WARM, write_json};
use crate::interruption;
use crate::observed;
use serde::{Deserialize, Serialize};
use slowpath_analysis::Finding;
use slowpath_analysis::printed::looked_for::{self, LookedFor};
use slowpath_analysis::printed::round_trips::{ReplyPair, of_tables as round_trips_of};
use slowpath_analysis::printed::time_spent::{Condition, TimeSpent, of_tables as time_spent_of};
use slowpath_capture::Options;
use slowpath_fix::program::RunsAs;
use slowpath_fix::{Machine, Proposal, fixes_not_made_here, propose};
use slowpath_launch::{EndPolicy, Metric, StdioPolicy, measures};
use slowpath_process::Duty;
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::open_recording::open;
use slowpath_session::recorded_command::{self, RecordedCommand};
use slowpath_session::running::Wanted;
use slowpath_session::target::{Target, launcher, not_ready};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{interrupt, output_directory};
use slowpath_tables::{Losses, Quantity, Unavailable};
use slowpath_verify::conditions::Conditions;
use std::path::Path;

/// What is predicted of fixes of warm launches, written down before the first treated launch.
const PREDICTION_FILE: &str = "prediction-warm.json";

/// Recording does not make a launch dearer than so much, even without what its faults take, which is known: a launch that took less than
/// this was another.
const LEAST_UNRECORDED: f64 = 0.25;

/// What the recording of the launch shows.
#[derive(Serialize, Deserialize)]
pub struct ShownByRecording {
    /// Hidden costs, most costly first.
    pub findings: Vec<Finding>,
    /// What it was searched for.
    pub looked_for: LookedFor,
    /// Fixes for them.
    pub proposals: Vec<Proposal>,
    /// Fixes that findings name and that need a lab.
    pub need_lab: Vec<String>,
    /// Where the time of the launch went.
    pub time: Option<TimeSpent>,
    /// Who waited for whose replies on its critical path.
    pub round_trips: Vec<ReplyPair>,
    /// Events lost.
    pub losses: Losses,
    /// What could not be recorded.
    pub unavailable: Vec<Unavailable>,
}

/// A prediction as it is stored.
#[derive(Serialize)]
struct Predicted<'a> {
    fix: &'a str,
    change_of_cpu_time: Option<Quantity>,
}

/// Launches once, so that the recorded launch is warm, and returns the CPU time of that, in ms. A target that fails is reported before
/// anything is recorded.
pub fn warm_up(target: &Target, progress: &dyn Progress) -> Result<Option<f64>, Failure> {
    progress.step("first launch: warming up");
    let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    let launched = Conditions::Warm.launch(&mut launcher(), spec)?;
    match not_ready(&launched.outcome) {
        Some(failure) => Err(failure),
        None if interrupt::requested() => Err(Failure::new(Kind::Interrupted, "interrupted")),
        // Where children are missing in it, it says nothing of what recording took.
        None if launched.outcome.usage.is_some_and(|usage| usage.lacks_children) => Ok(None),
        None => Ok(measures(&launched.outcome).get(&Metric::Cpu).copied()),
    }
}

/// Records a launch into the directory of the diagnosis.
pub fn record(target: &Target, directory: &Path, progress: &dyn Progress) -> Result<(), Failure> {
    progress.step("recording a warm launch");
    let place = directory.join(WARM);
    output_directory::prepare(&place, &target.identity)?;
    let options = Options { first_waits: true, ..observed::options() };
    let wanted = Wanted { options, most: observed::MOST, duration: None };
    let RecordedCommand { outcome, stop, .. } =
        recorded_command::record(target, wanted, &place, EndPolicy::KillTree, StdioPolicy::Capture, progress)?;
    if interrupt::requested() {
        return Err(interruption::of_warm());
    }
    if let Some(stop) = stop {
        return Err(Failure::new(Kind::Machine, format!("the recorded launch was ended early: {stop}")));
    }
    match not_ready(&outcome) {
        Some(failure) => Err(failure.hint("what was recorded until then is kept")),
        None => Ok(()),
    }
}

/// CPU time of a launch that nobody records, as a share of what the recorded launch took beside the recording of its faults: findings
/// have taken that off.
fn unrecorded_share(unrecorded: f64, cpu: Quantity, recording: Option<Quantity>) -> f64 {
    let share = unrecorded / (cpu.value - recording.map_or(0.0, |recording| recording.value));
    // A first launch that took more was not warm.
    if share.is_finite() && share > 0.0 { share.clamp(LEAST_UNRECORDED, 1.0) } else { 1.0 }
}

/// Reads the recording, makes the fixes, and writes down what is predicted of them. `unrecorded` is the CPU time of a launch that was not
/// recorded, in ms.
pub fn found(
    target: &Target,
    directory: &Path,
    unrecorded: Option<f64>,
    progress: &dyn Progress,
) -> Result<ShownByRecording, Failure> {
    progress.step("looking for hidden costs");
    let environment = target.variables();
    let who = RunsAs { uid: target.identity.uid, gid: target.identity.gid };
    // Asks a program of the system, which who reads the recording may not start.
    let machine = as_user(&target.identity, &Work::new("looking at the machine", Duty::Run), || Ok(Machine::look()))?;
    let mut found = as_user(&target.identity, &Work::writing_beneath("looking for hidden costs", directory), || {
        let tables = open(&directory.join(WARM), |text| progress.warn(text))?;
        let (findings, looked_for) = looked_for::search(&tables, None, Condition::Warm);
        let mut unavailable = tables.manifest.unavailable.clone();
        let time = time_spent_of(&tables, Condition::Warm, &mut unavailable);
        let program = |finding: &Finding| observed::program(&tables, finding, Some(who));
        let share = unrecorded
            .zip(time.as_ref())
            .map_or(1.0, |(unrecorded, time)| unrecorded_share(unrecorded, time.cpu, time.recording));
        let proposals = propose(&findings, program, &environment, &machine, share);
        let predicted: Vec<Predicted<'_>> = proposals
            .iter()
            .map(|proposal| Predicted { fix: &proposal.plan.name, change_of_cpu_time: proposal.predicted })
            .collect();
        write_json(directory, PREDICTION_FILE, &predicted)?;
        Ok(ShownByRecording {
            need_lab: fixes_not_made_here(&findings),
            findings,
            looked_for,
            proposals,
            time,
            round_trips: round_trips_of(&tables),
            losses: tables.manifest.losses,
            unavailable,
        })
    })?;
    found.proposals = with_changes(found.proposals, &found.findings, Some(target.identity.uid))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::Unit;

    #[test]
    fn a_share_is_of_what_the_launch_took_beside_the_recording_of_its_faults_and_never_more_than_all() {
        let ms = |value| Quantity::exact(value, Unit::Ms);
        let share = |unrecorded, recording| unrecorded_share(unrecorded, ms(1000.0), recording);
        assert_eq!([share(500.0, None), share(500.0, Some(ms(200.0)))], [0.5, 0.625]);
        // A first launch that was not warm; one that took next to nothing; recording that is said to be all.
        assert_eq!([share(2000.0, None), share(1.0, None)], [1.0, LEAST_UNRECORDED]);
        assert_eq!([share(500.0, Some(ms(1000.0))), share(500.0, Some(ms(2000.0))), share(0.0, None)], [1.0; 3]);
    }
}
