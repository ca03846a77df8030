//! Regenerates artifacts for the launches of a trial: once, as the target's user, where the directories are seen as its own.
//!
//! What is launched is the target's user's own business, as the target is: it has no more rights than that, and in mounts that nobody
//! else sees. These mounts are kept; launches of the arm begin with copies of them, in which nobody writes.

use crate::file_trial::{mounts, mounts_of};
use slowpath_fix::{Proposal, Treatment, Word};
use slowpath_launch::{BoxError, EndPolicy, Hooks, Launcher, MountNamespace, MountStep, StdioPolicy, StopReason};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Target, launch_failure, launcher};
use slowpath_session::{Progress, interrupt};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The mounts in which artifacts were made, by the place of their proposal; or why they were not.
pub type Regenerated = BTreeMap<usize, Result<MountNamespace, String>>;

/// Makes the artifacts of all fixes that have them made.
///
/// # Errors
/// The user asked to stop.
pub fn regenerate(target: &Target, proposals: &[Proposal], progress: &dyn Progress) -> Result<Regenerated, Failure> {
    let mut all = Regenerated::new();
    for (number, proposal) in proposals.iter().enumerate().filter(|(_, one)| !one.regenerated().is_empty()) {
        progress.step(&format!("making the artifacts of {}", proposal.plan.name));
        let Treatment::Regeneration { commands, .. } = &proposal.plan.treatment else { continue };
        let made = made(target, proposal, commands);
        if interrupt::requested() {
            return Err(super::interrupted());
        }
        all.insert(number, made.map_err(|failure| format!("it cannot be tried here: {}", failure.chain())));
    }
    Ok(all)
}

/// The target where it sees what was made, and nobody makes more.
pub fn seeing(target: &Target, proposal: &Proposal, made: &MountNamespace) -> Target {
    let at = |file: &slowpath_fix::TreatedFile| PathBuf::from(file.path.to_os_string());
    let closed = proposal.regenerated().iter().map(|file| MountStep::ReadOnly { at: at(file) });
    target.within(made).seeing(closed.collect()).gaining_nothing()
}

/// The target that sees the directories of all these fixes as they are, in the same mounts.
pub fn sham(target: &Target, directories: &[slowpath_fix::TreatedFile]) -> Target {
    target.seeing(mounts(directories, |file| &file.before)).gaining_nothing()
}

/// By the commands of the family, as far as they can be executed, and then by the program itself, which saves what it still misses: only it
/// knows its settings (a fonts.conf of its own).
fn made(target: &Target, proposal: &Proposal, commands: &[Vec<Word>]) -> Result<MountNamespace, Failure> {
    let uid = target.identity.uid;
    let own = mounts_of(proposal.regenerated(), |file| (uid, &file.after));
    let mut kept: Option<MountNamespace> = None;
    for command in commands {
        let command = target.running(command.iter().map(Word::to_os_string).collect());
        match launched(&command, &own, kept.as_ref()) {
            Ok(made) => drop(kept.get_or_insert(made)),
            Err(failure) if failure.kind() == Kind::Target => {}
            Err(failure) => return Err(failure),
        }
    }
    let made = launched(target, &own, kept.as_ref())?;
    Ok(kept.unwrap_or(made))
}

/// Launches what makes artifacts, in new mounts or in those that are kept, and gives the mounts.
fn launched(target: &Target, own: &[MountStep], kept: Option<&MountNamespace>) -> Result<MountNamespace, Failure> {
    let target = match kept {
        None => target.seeing(own.to_vec()),
        Some(kept) => target.within(kept),
    };
    let (spec, _fresh) = target.gaining_nothing().spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    let mut keeping = Keeping(None);
    let outcome = launcher().launch(&spec, &mut keeping).map_err(|error| launch_failure(&error))?;
    // A command that could not make one of many files says so with its status.
    if !matches!(outcome.stop, StopReason::Ready | StopReason::Exited { .. }) {
        let command = target.words().join(" ");
        return Err(Failure::new(Kind::Target, format!("`{command}`, which makes them, did not come to its end")));
    }
    keeping.0.ok_or_else(|| Failure::new(Kind::Machine, "no launch has mounts of its own"))
}

/// Keeps the mounts of the launch that it accompanies.
struct Keeping(Option<MountNamespace>);

impl Hooks for Keeping {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.0 = Some(MountNamespace::of_process(pid)?);
        Ok(())
    }

    fn interrupted(&mut self) -> bool {
        interrupt::of_terminal()
    }

    fn stop_requested(&self) -> bool {
        interrupt::requested()
    }
}
