//! The command line of `slowpath artifacts`.

use clap::{Args, Subcommand};
use slowpath_artifacts::audit::Limits;
use std::path::PathBuf;

/// `slowpath artifacts`.
#[derive(Debug, Args)]
pub struct ArtifactsArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ArtifactsCommand,
}

impl ArtifactsArguments {
    /// Whether standard output is to hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            ArtifactsCommand::Audit(arguments) => arguments.json,
        }
    }
}

/// What can be done with artifacts.
#[derive(Debug, Subcommand)]
pub enum ArtifactsCommand {
    /// Find artifacts below paths and say which a user cannot use: unreadable, stale or missing. Changes nothing.
    Audit(ArtifactsAuditArguments),
}

/// `slowpath artifacts audit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ArtifactsAuditArguments {
    /// Files and directories (default: where programs of a distribution keep artifacts, and the user's own caches). Symbolic links are
    /// followed in these paths and nowhere below.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Decide for this user, a name or a uid (default: the user who called sudo, else the caller; from a root shell 65534, whom nobody
    /// granted anything).
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Audit what this process has mapped and the artifacts beside these files. Without --as for the process itself, with its groups and
    /// capabilities.
    #[arg(long, value_name = "PID", conflicts_with_all = ["paths", "listing", "recording"])]
    pub pid: Option<u32>,
    /// Audit the artifacts that a recording names: what its processes opened, mapped and read, and opens that they were refused. Without
    /// --as for the user of the recorded command.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["paths", "listing"])]
    pub recording: Option<PathBuf>,
    /// Audit a listing of another machine instead of paths: the output of `ls -lanRZ DIR` (Android's too). What is denied there is certain;
    /// what is allowed stays unknown where the listing does not show all of it.
    #[arg(long, value_name = "FILE", conflicts_with = "paths", requires = "user")]
    pub listing: Option<PathBuf>,
    /// Names in directories that are looked at.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.entries)]
    pub max_entries: u64,
    /// Print one JSON object with all artifacts.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "Examples:
  slowpath artifacts audit ~/project/.venv
  sudo slowpath artifacts audit --as www-data /usr/lib/python3 /srv/app
  sudo slowpath artifacts audit --as 65534 --json
  sudo slowpath artifacts audit --pid 4242
  slowpath artifacts audit --recording recording
  adb shell ls -lanRZ /data/app > listing; slowpath artifacts audit --as 99001 --listing listing

Decides by modes, ACLs, every directory of a path, groups, capabilities and mounts, as the kernel does. `slowpath explain FAMILY` says what \
a family is and how to repair it.";
