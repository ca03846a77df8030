//! What is diagnosed, under which conditions, and where that is written: what every part of a diagnosis is given.

use slowpath_lab::Settings;
use slowpath_session::Progress;
use slowpath_session::target::Target;
use std::path::Path;

/// What is diagnosed, and where that is written.
pub struct Case<'a> {
    /// What is launched.
    pub target: &'a Target,
    /// Where recordings, plans and predictions go: there, and the target's user's.
    pub directory: &'a Path,
    /// Who waits for it.
    pub progress: &'a dyn Progress,
    /// The device of a lab.
    pub settings: Settings,
    /// Which arms cold launches have.
    pub set: ArmSet,
    /// Blocks that were asked for; without a number, as many as it takes to decide.
    pub blocks: Option<u32>,
    /// Seed of the order of the launches.
    pub seed: u64,
}

/// Which arms a cold diagnosis compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmSet {
    /// The plan and both shams.
    Quick,
    /// Quick, whole-file advice, and the sizes of readahead.
    Standard,
    /// Quick, whole-file advice, and variants of the plan: order, gap, cap, threads, metadata.
    Variants,
}
