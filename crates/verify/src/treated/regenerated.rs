//! Regenerates artifacts for the launches of a trial: once, as the target's user, where the directories are seen as its own.
//!
//! What is launched is the target's user's own business, as the target is: it has no more rights than that, and in mounts that nobody
//! else sees. These mounts are kept; launches of the arm begin with copies of them, in which nobody writes.

use super::Tried;
use super::files::{mounts, mounts_of};
use slowpath_fix::{TreatedFile, Treatment, Word};
use slowpath_launch::{BoxError, EndPolicy, Hooks, Launcher, MountNamespace, MountStep, StdioPolicy, StopReason};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Target, launch_failure, launcher};
use slowpath_session::{Progress, interrupt};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The mounts in which artifacts were made, by the place of the treatment in the list of what is tried; or why they were not.
pub(super) type Regenerated = BTreeMap<usize, Result<MountNamespace, String>>;

/// Makes the artifacts of all treatments that have some made.
///
/// # Errors
/// The user asked to stop.
pub(super) fn regenerate(target: &Target, tried: &[Tried], progress: &dyn Progress) -> Result<Regenerated, Failure> {
    let mut all = Regenerated::new();
    for (number, one) in tried.iter().enumerate() {
        let Treatment::Regeneration { directories, commands } = &one.treatment else { continue };
        if directories.is_empty() {
            continue;
        }
        progress.step(&format!("making the artifacts of {}", one.arm.name));
        let made = made(target, directories, commands);
        if interrupt::requested() {
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        all.insert(number, made.map_err(|failure| format!("it cannot be tried here: {}", failure.chain())));
    }
    Ok(all)
}

/// The target where it sees what was made, and nobody makes more.
pub(super) fn seeing(target: &Target, directories: &[TreatedFile], made: &MountNamespace) -> Target {
    let at = |file: &TreatedFile| PathBuf::from(file.path.to_os_string());
    let closed = directories.iter().map(|file| MountStep::ReadOnly { at: at(file) });
    target.within(made).seeing(closed.collect()).gaining_nothing()
}

/// The target that sees these directories as they are, in the same mounts.
pub(super) fn sham(target: &Target, directories: &[TreatedFile]) -> Target {
    target.seeing(mounts(directories, |file| &file.before)).gaining_nothing()
}

/// By the commands of the family, as far as they can be executed, and then by the program itself, which saves what it still misses: only it
/// knows its settings (a fonts.conf of its own).
fn made(target: &Target, directories: &[TreatedFile], commands: &[Vec<Word>]) -> Result<MountNamespace, Failure> {
    let uid = target.identity.uid;
    let own = mounts_of(directories, |file| (uid, &file.after));
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
