//! Cold launches of a command in a lab of its own, one after the other; and which labs there are.

use crate::{cold, lab_session};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_lab::{Settings, leftovers};
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::{Target, launcher, not_ready};
use slowpath_session::{Progress, interrupt};
use slowpath_tables::{Quantity, Unit};

/// Version of what `slowpath lab list --json` prints.
const LABS_SCHEMA: &str = "slowpath-labs/1";
/// Version of what `slowpath lab run --json` prints.
const LAUNCHES_SCHEMA: &str = "slowpath-lab/1";

/// What `slowpath lab list --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Labs {
    /// `slowpath-labs/1`.
    #[schemars(extend("const" = LABS_SCHEMA))]
    pub schema: &'static str,
    /// The labs.
    pub labs: Vec<OneLab>,
}

/// A lab on this machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OneLab {
    /// Its directory or cgroup.
    pub path: String,
    /// Pid of the slowpath that made it.
    pub pid: u32,
    /// Whether that process lives.
    pub owner_alive: bool,
    /// Bytes of the image on disk, while its owner lives.
    pub bytes: Option<u64>,
}

impl Labs {
    /// Those on this machine.
    pub fn here() -> Self {
        let lab = |trace: leftovers::Trace| OneLab {
            path: trace.path.display().to_string(),
            pid: trace.pid,
            owner_alive: trace.owner_alive,
            bytes: trace.size.map(|size| size.0),
        };
        Self { schema: LABS_SCHEMA, labs: leftovers::list().into_iter().map(lab).collect() }
    }
}

/// What `slowpath lab run --json` prints: launches of a command in a lab.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LabLaunches {
    /// `slowpath-lab/1`.
    #[schemars(extend("const" = LAUNCHES_SCHEMA))]
    pub schema: &'static str,
    /// Command line.
    pub command: Vec<String>,
    /// What differs from a launch on the host.
    pub conditions: Vec<String>,
    /// The launches in order.
    pub launches: Vec<OneLabLaunch>,
}

/// One launch in a lab.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OneLabLaunch {
    /// From release of exec to ready.
    pub time_to_ready: Quantity,
    /// Delivered by the lab's device.
    pub bytes_read: Quantity,
    /// Whether it was proved cold.
    pub cold: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Files of the lab that were not mounted, and why: the launch saw the host's.
    pub left_out: Vec<String>,
}

/// Builds a lab for the target and launches it there so many times.
///
/// # Errors
/// It was not ready, this machine cannot have a lab, or the user ended it.
pub fn run(target: &Target, settings: Settings, runs: u32, progress: &dyn Progress) -> Result<LabLaunches, Failure> {
    let files = lab_session::first_look(target, progress)?;
    let lab = lab_session::build(&files, settings, false, progress)?;
    let mut launches = Vec::new();
    for number in 0..runs as usize {
        if interrupt::requested() {
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        progress.count("cold launches", number, runs as usize);
        let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let launched = cold(&lab, &mut launcher(), spec, &mut interrupt::Interruptible, None, false)
            .map_err(failed(Kind::Machine))?;
        if let Some(failure) = not_ready(&launched.outcome) {
            return Err(failure);
        }
        let ms = launched.outcome.time_to_ready().unwrap_or(0) as f64 / 1e6;
        launches.push(OneLabLaunch {
            time_to_ready: Quantity::exact(ms, Unit::Ms),
            bytes_read: Quantity::exact(launched.io.bytes.0 as f64, Unit::Bytes),
            cold: launched.not_as_meant.is_none(),
            reason: launched.not_as_meant,
            left_out: launched.outcome.left_out.iter().map(ToString::to_string).collect(),
        });
    }
    Ok(LabLaunches { schema: LAUNCHES_SCHEMA, command: target.words(), conditions: lab.options_in_force(), launches })
}
