//! How warm or cold the launches of a benchmark are: what is done before each of them, and what is known of it.

use crate::cold;
use crate::lab_session::{self, lab_failure};
use serde::{Deserialize, Serialize};
use slowpath_capture::LabDevice;
use slowpath_lab::evict::{Evicted, evict, resident};
use slowpath_lab::{Lab, Settings};
use slowpath_launch::{Hooks, LaunchOutcome, LaunchSpec, Launcher, ProcessLauncher};
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::interrupt::Interruptible;
use slowpath_session::target::{Target, launch_failure};
use slowpath_tables::{Bytes, Pages};
use std::path::PathBuf;

/// How a launch is made cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coldness {
    /// In a private lab.
    Lab,
    /// The command's files are evicted from the page cache, as far as nobody else maps them.
    Evict,
    /// All caches of the machine are dropped.
    Drop,
}

/// The conditions of all launches of a benchmark.
pub enum Conditions {
    /// Nothing is done before a launch.
    Warm,
    /// In a lab, proved cold.
    Lab(Box<Lab>),
    /// The files that the arms use are evicted from the page cache.
    Evicted {
        /// The files.
        files: Vec<PathBuf>,
        /// Whether all caches of the machine go.
        drop_all: bool,
        /// Most pages of the files that stayed before any launch.
        stayed: Pages,
        /// Most of their pages that there were to evict.
        most: Pages,
    },
}

/// A launch under the conditions.
pub struct Conditioned {
    /// What the launch gave.
    pub outcome: LaunchOutcome,
    /// Bytes that the lab's device delivered; `None` outside a lab.
    pub device: Option<Bytes>,
    /// Why it does not count as what it was to be.
    pub not_as_meant: Option<String>,
}

impl Conditions {
    /// Prepares them for all arms.
    pub fn prepare<'a>(
        settings: Settings,
        cold: Option<Coldness>,
        targets: impl Iterator<Item = &'a Target>,
        progress: &dyn Progress,
    ) -> Result<Self, Failure> {
        let Some(coldness) = cold else { return Ok(Self::Warm) };
        lab_session::require("launch cold", coldness == Coldness::Lab)?;
        let mut files = std::collections::BTreeSet::new();
        for target in targets {
            files.extend(lab_session::first_look(target, progress)?);
        }
        if coldness == Coldness::Lab {
            return Ok(Self::Lab(Box::new(lab_session::build(&files, settings, false, progress)?)));
        }
        let files = files.into_iter().map(PathBuf::from).collect();
        let drop_all = coldness == Coldness::Drop;
        Ok(Self::Evicted { files, drop_all, stayed: Pages(0), most: Pages(0) })
    }

    /// Makes one launch.
    pub fn launch(&mut self, launcher: &mut ProcessLauncher, spec: LaunchSpec) -> Result<Conditioned, Failure> {
        self.launch_with(launcher, spec, &mut Interruptible)
    }

    /// Makes one launch that `hooks` accompany: a recorder's.
    pub fn launch_with(
        &mut self,
        launcher: &mut ProcessLauncher,
        spec: LaunchSpec,
        hooks: &mut dyn Hooks,
    ) -> Result<Conditioned, Failure> {
        match self {
            Self::Warm => {}
            Self::Lab(lab) => {
                let launched = cold(lab, launcher, spec, hooks, None, false).map_err(lab_failure)?;
                let device = Some(launched.io.bytes);
                return Ok(Conditioned { outcome: launched.outcome, device, not_as_meant: launched.not_as_meant });
            }
            Self::Evicted { files, drop_all, stayed, most } => {
                let found = put_out(files, *drop_all)?;
                *stayed = (*stayed).max(found.stayed);
                *most = (*most).max(found.before);
            }
        }
        let outcome = launcher.launch(&spec, hooks).map_err(|error| launch_failure(&error))?;
        Ok(Conditioned { outcome, device: None, not_as_meant: None })
    }

    /// What a reader must know of them, after the last launch.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Warm => vec!["warm: one launch of each arm before the first that counts".to_owned()],
            Self::Lab(lab) => {
                let first = "cold: in a private lab, proved page by page before each launch".to_owned();
                std::iter::once(first).chain(lab.options_in_force()).collect()
            }
            Self::Evicted { files, drop_all, stayed, most } => {
                let how = if *drop_all { "all caches of this machine dropped" } else { "their files evicted" };
                vec![format!(
                    "cold: {how} before each launch; of {} pages in {} files at most {} stayed in memory (mapped by \
                     other processes, or not written yet)",
                    most.0,
                    files.len(),
                    stayed.0
                )]
            }
        }
    }

    /// The lab's device, which a recorder must know of.
    pub fn lab_device(&self) -> Option<LabDevice> {
        match self {
            Self::Lab(lab) => Some(LabDevice { dev: lab.device().dev() }),
            Self::Warm | Self::Evicted { .. } => None,
        }
    }

    /// Whether nothing is to be read from storage.
    pub fn is_warm(&self) -> bool {
        matches!(self, Self::Warm)
    }
}

/// Puts the files out of memory, and all else too where that was asked for.
fn put_out(files: &[PathBuf], drop_all: bool) -> Result<Evicted, Failure> {
    let paths = || files.iter().map(PathBuf::as_path);
    if !drop_all {
        return Ok(evict(paths()));
    }
    let before = resident(paths()).before;
    // Pages that are not written yet cannot be dropped; whoever asks for this by name accepts the wait.
    nix::unistd::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(failed(Kind::Machine))?;
    Ok(Evicted { before, ..resident(paths()) })
}
