//! The command line of `slowpath fix`.

use clap::{Args, Subcommand};
use slowpath_diagnose::kept::TargetOptions;
use std::ffi::OsString;
use std::path::PathBuf;

/// `slowpath fix`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct FixArguments {
    /// What to do with the fixes of a diagnosis.
    #[command(subcommand)]
    pub command: FixCommand,
}

const AFTER_HELP: &str =
    "DIR is what `slowpath diagnose -o DIR` wrote. With sudo for /etc and services, without for your own files:
  slowpath fix list DIR
  slowpath fix show DIR allocator_tunables --wrapper ~/bin/video
  slowpath fix apply DIR allocator_tunables --wrapper ~/bin/video
  sudo slowpath fix apply DIR allocator_tunables --systemd-unit nginx
  slowpath fix apply DIR preload_plan --desktop-file ~/.local/share/applications/editor.desktop
  sudo slowpath fix apply DIR grant_read --permissions
  slowpath fix undo DIR";

/// What can be done with fixes.
#[derive(Debug, Subcommand)]
pub enum FixCommand {
    /// List the fixes of a diagnosis: proved, withdrawn, not shown, or not tried; and which are applied.
    List {
        /// The directory of the diagnosis.
        directory: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Show a fix with its trade-offs, security cost and undo, and the diff that applying it would make. Changes nothing.
    Show(FixShowArguments),
    /// Apply a fix to a file named by one of the options, or to permissions. Without such an option, list the possibilities.
    Apply(FixApplyArguments),
    /// Restore every file that fixes of a diagnosis changed, byte for byte, also after a crash.
    Undo(FixUndoArguments),
}

/// Where a fix is kept.
#[derive(Debug, Args)]
pub struct FixTargetArguments {
    /// Write an executable script, a new file, that starts the diagnosed command with the fix.
    #[arg(long, value_name = "PATH", group = "where")]
    pub wrapper: Option<PathBuf>,
    /// Add the variables to a file for EnvironmentFile= of systemd, or for a shell.
    #[arg(long, value_name = "PATH", group = "where")]
    pub environment_file: Option<PathBuf>,
    /// Write a drop-in for this service: /etc/systemd/system/NAME.service.d/50-slowpath-FIX.conf.
    #[arg(long, value_name = "NAME", group = "where")]
    pub systemd_unit: Option<String>,
    /// The service belongs to the user's service manager: ~/.config/systemd/user instead of /etc/systemd/system.
    #[arg(long, requires = "systemd_unit")]
    pub user: bool,
    /// Prefix the Exec lines of a desktop file with the fix.
    #[arg(long, value_name = "PATH", group = "where")]
    pub desktop_file: Option<PathBuf>,
    /// Change the permissions of the files that the fix names.
    #[arg(long, group = "where")]
    pub permissions: bool,
    /// Where to put a preload plan (default: the path of the wrapper or desktop file plus .plan).
    #[arg(long, value_name = "PATH")]
    pub plan: Option<PathBuf>,
    /// For a wrapper: the command to start, if it is not that of the diagnosis.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `slowpath fix show`.
#[derive(Debug, Args)]
pub struct FixShowArguments {
    /// The directory of the diagnosis.
    pub directory: PathBuf,
    /// The fix, by its name in `slowpath fix list`.
    pub name: String,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where.
    #[command(flatten)]
    pub target: FixTargetArguments,
}

/// `slowpath fix apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Asks nothing: `slowpath fix show` with the same options shows the same diff first. Only a proved fix is \
applied, unless --unproved is given. Nothing is restarted. As root, writes only where nobody else can replace a part of the path."
)]
pub struct FixApplyArguments {
    /// The directory of the diagnosis.
    pub directory: PathBuf,
    /// The fix, by its name in `slowpath fix list`.
    pub name: String,
    /// Apply a fix even though the trial did not show that it helps.
    #[arg(long)]
    pub unproved: bool,
    /// As root, apply a diagnosis that root did not make: the SHA-256 that `slowpath fix show` prints with the change.
    #[arg(long, value_name = "SHA256")]
    pub trust_diagnosis: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where.
    #[command(flatten)]
    pub target: FixTargetArguments,
}

/// `slowpath fix undo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Run it as the user who applied the fix. A file that somebody changed since is not overwritten: nothing is \
restored then, unless --keep-changed is given."
)]
pub struct FixUndoArguments {
    /// The directory of the diagnosis; it need not exist any more.
    pub directory: PathBuf,
    /// Only this fix (default: all applied fixes, the latest first).
    pub name: Option<String>,
    /// Keep files that have been changed since, and restore the others.
    #[arg(long)]
    pub keep_changed: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl FixTargetArguments {
    /// As the library has them.
    pub fn options(&self) -> TargetOptions {
        TargetOptions {
            wrapper: self.wrapper.clone(),
            environment_file: self.environment_file.clone(),
            systemd_unit: self.systemd_unit.clone(),
            desktop_file: self.desktop_file.clone(),
            permissions: self.permissions,
            user: self.user,
            plan: self.plan.clone(),
            command: self.command.clone(),
        }
    }
}
