//! What applying a fix would change: which files, and what would stand in them.

use super::diagnosed::Diagnosed;
use super::failures::{failure, unusable};
use super::printed::{Proposed, ProposedFile};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{getegid, geteuid};
use slowpath_fix::apply::file_version::FileVersion;
use slowpath_fix::apply::journal::{FileChange, FileContent, Journal, SCHEMA, State};
use slowpath_fix::apply::permissions::PermissionChange;
use slowpath_fix::apply::place::{self, FilePlace, There};
use slowpath_fix::apply::records::home;
use slowpath_fix::apply::{
    self, ContentKind, FileNeed, Input, Keeps, Refusal, Rendered, desktop_file, diff, environment_file, permissions,
    steps, systemd, wrapper,
};
use slowpath_fix::preload_plan::program::ReplayProgram;
use slowpath_fix::{FilePermissions, FixPlan, Treatment, Word};
use slowpath_session::failure::{Failure, Kind, failed};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where a fix is to be kept.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// A wrapper script.
    pub wrapper: Option<PathBuf>,
    /// A file of variables.
    pub environment_file: Option<PathBuf>,
    /// A drop-in of this unit.
    pub systemd_unit: Option<String>,
    /// A desktop entry.
    pub desktop_file: Option<PathBuf>,
    /// The permissions of the files that the fix names.
    pub permissions: bool,
    /// Whether the unit is one of the user's own manager.
    pub user: bool,
    /// Where a preload plan is copied to.
    pub plan: Option<PathBuf>,
    /// The command of a wrapper; empty: that of the diagnosis.
    pub command: Vec<OsString>,
}

/// A change that can be carried out.
pub struct Change {
    /// What a killed slowpath is undone from.
    pub journal: Journal,
    /// For the reader.
    pub printed: Proposed,
}

/// What the options name.
pub enum Target {
    /// A kind of file, and one of it.
    File {
        /// What it is called.
        name: &'static str,
        /// How it is written.
        kind: &'static ContentKind,
        /// The file.
        path: PathBuf,
    },
    /// The permissions of the files that the fix names.
    Permissions,
}

impl Target {
    /// What the options name; `None` where they name nothing.
    ///
    /// # Errors
    /// It is no path of a file, or no name of a unit.
    pub fn of(options: &TargetOptions, plan: &FixPlan) -> Result<Option<Self>, Failure> {
        let files = [
            (&wrapper::TARGET, &options.wrapper),
            (&environment_file::TARGET, &options.environment_file),
            (&desktop_file::TARGET, &options.desktop_file),
        ];
        let (target, path) = match files.into_iter().find_map(|(kind, path)| Some((kind, path.as_ref()?))) {
            Some((target, path)) => (target, Some(place::absolute(path).map_err(failure)?)),
            None if options.permissions => (&permissions::TARGET, None),
            None => match &options.systemd_unit {
                Some(unit) => {
                    let unit = systemd::unit_name(unit).map_err(|refusal| refused(plan, refusal))?;
                    (&systemd::TARGET, Some(units(options.user)?.join(systemd::drop_in(&unit, &plan.name))))
                }
                None => return Ok(None),
            },
        };
        if let Some(refusal) = apply::refusal(target, plan) {
            return Err(refused(plan, refusal));
        }
        Ok(Some(match (&target.keeps, path) {
            (Keeps::Content(kind), Some(path)) => Self::File { name: target.name, kind, path },
            _ => Self::Permissions,
        }))
    }
}

/// Where drop-ins of units are.
fn units(of_user: bool) -> Result<PathBuf, Failure> {
    if !of_user {
        return Ok("/etc/systemd/system".into());
    }
    if geteuid().is_root() {
        return Err(Failure::new(Kind::Usage, "--user means the units of the user's own manager, and this is root")
            .hint("run it without sudo, or without --user"));
    }
    let given = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match given {
        Some(base) => base,
        None => home().map_err(failure)?.join(".config"),
    };
    place::absolute(&base.join("systemd/user")).map_err(failure)
}

fn refused(plan: &FixPlan, refusal: Refusal) -> Failure {
    Failure::new(Kind::Usage, format!("the fix {} cannot be kept there: {}", plan.name, refusal.reason))
        .hint(refusal.remedy)
}

/// What root keeps is started by root, or by whoever trusts root.
fn not_for_root(plan: &FixPlan, error: &std::io::Error) -> Failure {
    let what = format!(
        "the fix {} names a program of slowpath's, and root keeps none that others can change: {error}",
        plan.name
    );
    Failure::new(Kind::Usage, what).hint(
        "install slowpath where only root can change it (`make install`) and run that; or keep the fix without sudo",
    )
}

/// What keeping a fix there changes.
///
/// # Errors
/// The fix cannot be kept there, or the file cannot be read.
pub fn change(
    diagnosed: &Diagnosed,
    plan: &FixPlan,
    target: Target,
    options: &TargetOptions,
) -> Result<Change, Failure> {
    match target {
        Target::File { name, kind, path } => content(diagnosed, plan, (name, kind), path, options),
        Target::Permissions => permissions_of(diagnosed, plan),
    }
}

fn content(
    diagnosed: &Diagnosed,
    plan: &FixPlan,
    (name, kind): (&'static str, &ContentKind),
    path: PathBuf,
    options: &TargetOptions,
) -> Result<Change, Failure> {
    let mut made = path.parent().map(place::missing).transpose().map_err(failure)?.unwrap_or_default();
    if !kind.makes_directories && !made.is_empty() {
        let error = std::io::ErrorKind::NotFound.into();
        return Err(unusable(made.first().map_or(path.as_path(), PathBuf::as_path), &error)
            .hint("only directories of systemd drop-ins are made"));
    }
    let before = if made.is_empty() { there(&path, kind.file)? } else { None };
    let plan_file = plan_path(options, &path)?;
    let mut files = Vec::new();
    if let Treatment::PreloadPlan { file, sha256 } = &plan.treatment {
        made.extend(plan_file.parent().map(place::missing).transpose().map_err(failure)?.unwrap_or_default());
        if !made.is_empty() {
            return Err(unusable(&plan_file, &std::io::ErrorKind::NotFound.into()));
        }
        there(&plan_file, FileNeed::New)?;
        let text = diagnosed.preload_plan(file, sha256.as_deref())?;
        files.push(file_change(&plan_file, None, new(text.into_bytes(), 0o644), files.len()));
    }
    let command: Vec<Word> = match options.command.as_slice() {
        [] => diagnosed.command.clone(),
        given => given.iter().map(|word| Word::from(word.as_os_str())).collect(),
    };
    let slowpath = std::env::current_exe().map_err(failed(Kind::Machine))?;
    let replay = match plan.treatment {
        Treatment::PreloadPlan { .. } => {
            ReplayProgram::installed_with(&slowpath).map_err(|error| not_for_root(plan, &error))?
        }
        // Nothing names it.
        _ => ReplayProgram::slowpath(&slowpath),
    };
    let rendered = (kind.render)(&Input {
        plan,
        command: &command,
        before: before.as_ref().map(|before| before.content.as_bytes()),
        plan_file: &plan_file,
        replay: &replay,
    });
    let Rendered { content, mode, remarks, then } = rendered.map_err(|refusal| refused(plan, refusal))?;
    let after = match &before {
        Some(before) => FileContent { content: content.into(), modified: None, ..before.clone() },
        None => new(content, mode),
    };
    files.push(file_change(&path, before, after, files.len()));
    let printed = Proposed { target: name.to_owned(), files: files.iter().map(printed).collect(), remarks, then };
    let made = made.iter().map(|path| path.as_os_str().into()).collect();
    Ok(Change { journal: Journal { made, files, ..journal(diagnosed, plan, name) }, printed })
}

/// The permissions of the files that a fix names, each of which is still as it was diagnosed.
fn permissions_of(diagnosed: &Diagnosed, plan: &FixPlan) -> Result<Change, Failure> {
    let name = permissions::TARGET.name;
    let changes = plan.treatment.files().iter().map(|file| PermissionChange::of(file, diagnosed.invoker));
    let mut permissions: Vec<PermissionChange> =
        changes.collect::<Result<_, _>>().map_err(|refusal| refused(plan, refusal))?;
    // A directory comes behind what lies below it.
    permissions.sort_by_key(|change| Reverse(change.path.to_os_string()));
    let journal = Journal { permissions, ..journal(diagnosed, plan, name) };
    let found = steps::found(&journal).map_err(failure)?;
    if let Some((path, _)) = journal.paths().zip(found).find(|(_, found)| *found != FileVersion::Before) {
        let path = place::path_of(path);
        let message = format!("{} is not as it was when it was diagnosed", path.display());
        return Err(Failure::new(Kind::Check, message).hint("diagnose again"));
    }
    let printed = Proposed {
        target: name.to_owned(),
        files: journal.permissions.iter().map(printed_permissions).collect(),
        remarks: vec![
            "no content and no time of it changes; the time of the last change of permissions (ctime) does, and stays"
                .to_owned(),
        ],
        then: "the program starts again".to_owned(),
    };
    Ok(Change { journal, printed })
}

/// A change that begins, of nothing yet.
fn journal(diagnosed: &Diagnosed, plan: &FixPlan, target: &str) -> Journal {
    Journal {
        schema: SCHEMA.to_owned(),
        state: State::Applying,
        directory: diagnosed.directory.as_os_str().into(),
        fix: plan.name.clone(),
        target: target.to_owned(),
        made: Vec::new(),
        files: Vec::new(),
        permissions: Vec::new(),
    }
}

/// What is at a path, where that is what a kind of file needs.
fn there(path: &Path, need: FileNeed) -> Result<Option<FileContent>, Failure> {
    let found = FilePlace::open(path).and_then(|place| place.look()).map_err(|error| unusable(path, &error))?;
    let no = |why: &str, remedy: &str| Err(Failure::new(Kind::Usage, format!("{} {why}", path.display())).hint(remedy));
    match (found, need) {
        (There::Else(why), _) => no(&why, "name another file"),
        (There::File(_), FileNeed::New) => no(
            "is there already, and is not overwritten",
            "name a new file, or `slowpath fix undo` where a fix made it",
        ),
        (There::Nothing, FileNeed::Existing) => no(
            "is not there",
            "copy the system's from /usr/share/applications to ~/.local/share/applications and name that",
        ),
        (There::File(file), _) => Ok(Some(file)),
        (There::Nothing, _) => Ok(None),
    }
}

fn plan_path(options: &TargetOptions, path: &Path) -> Result<PathBuf, Failure> {
    match &options.plan {
        Some(plan) => place::absolute(plan).map_err(failure),
        None => {
            let mut name = OsString::from(path);
            name.push(".plan");
            Ok(name.into())
        }
    }
}

/// A new file of this user's, with a mode less the mask.
fn new(content: Vec<u8>, mode: u32) -> FileContent {
    let mask = umask(Mode::empty());
    umask(mask);
    FileContent {
        content: content.into(),
        mode: mode & !mask.bits(),
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        modified: None,
    }
}

fn file_change(path: &Path, before: Option<FileContent>, after: FileContent, number: usize) -> FileChange {
    FileChange { path: path.as_os_str().into(), temporary: place::temporary_name(number), before, after }
}

fn printed(file: &FileChange) -> ProposedFile {
    let path = place::path_of(&file.path).to_string_lossy().into_owned();
    let before = file.before.as_ref().map(|before| before.content.as_bytes());
    ProposedFile {
        is_new: before.is_none(),
        mode: format!("{:04o}", file.after.mode),
        diff: diff::unified(&path, before, Some(file.after.content.as_bytes())),
        path,
    }
}

fn printed_permissions(change: &PermissionChange) -> ProposedFile {
    let path = place::path_of(&change.path).to_string_lossy().into_owned();
    let text = |seen: &FilePermissions| permissions::text(change.uid, change.gid, seen).into_bytes();
    ProposedFile {
        is_new: false,
        mode: format!("{:04o}", change.after.mode & 0o7777),
        diff: diff::unified(&path, Some(&text(&change.before)), Some(&text(&change.after))),
        path,
    }
}
