//! The command line of `slowpath artifacts`.

use clap::{Args, Subcommand};
use slowpath_artifacts::audit::Limits;
use std::ffi::OsString;
use std::path::PathBuf;

/// `slowpath artifacts`.
#[derive(Debug, Args)]
pub struct ArtifactsArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ArtifactsCommand,
}

/// What can be done with artifacts.
#[derive(Debug, Subcommand)]
pub enum ArtifactsCommand {
    /// Find artifacts that a user cannot use: unreadable, stale or missing. Changes nothing.
    Audit(ArtifactsAuditArguments),
    /// Run a command with artifacts unreadable, stale or missing as on another machine, in its own mount namespace; nothing outside
    /// changes. Exits with the command's status.
    Age(ArtifactsAgeArguments),
    /// Check the artifacts in a policy for the users who need them, as a product does at startup; with --repair, repair them.
    Guard(ArtifactsGuardArguments),
}

/// `slowpath artifacts age`.
#[derive(Debug, Args)]
#[command(after_help = AGE_AFTER_HELP)]
pub struct ArtifactsAgeArguments {
    /// What the command is to find: TOML (docs/artifacts.md), or what `slowpath artifacts audit --json` printed elsewhere.
    #[arg(long, value_name = "FILE")]
    pub state: PathBuf,
    /// Run the command as this user, a name or a uid (default: the user who called sudo, else the caller).
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Set a variable in the command's environment. Repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const AGE_AFTER_HELP: &str = "Examples:
  sudo slowpath artifacts age --state field.toml -- python3 app.py
  ssh server sudo slowpath artifacts audit --as app --json /srv/app > field.json
  sudo slowpath artifacts age --state field.json --user app -- /srv/app/run

Diagnose a command in that state:
  sudo slowpath artifacts age --state field.toml --user root -- slowpath diagnose --warm --user app -- /srv/app/run";

/// `slowpath artifacts audit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ArtifactsAuditArguments {
    /// Files and directories (default: where programs of a distribution keep artifacts, and the user's own caches). Symbolic links are
    /// followed in these paths and nowhere below.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Check for this user, a name or a uid (default: the user who called sudo, else the caller; from a root shell 65534,
    /// nobody).
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Audit the files that this process has mapped and the artifacts next to them. Default user: the process's own, with its groups
    /// and capabilities.
    #[arg(long, value_name = "PID", conflicts_with_all = ["paths", "listing", "recording"])]
    pub pid: Option<u32>,
    /// Audit the artifacts in a recording: files that its processes opened, mapped or read, and failed opens. Default user: that of
    /// the recorded command.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["paths", "listing"])]
    pub recording: Option<PathBuf>,
    /// Audit a listing of another machine instead of paths: the output of `ls -lanRZ DIR` (Android's too). Denials are
    /// certain; access is unknown where the listing does not show everything.
    #[arg(long, value_name = "FILE", conflicts_with = "paths", requires = "user")]
    pub listing: Option<PathBuf>,
    /// Maximum number of directory entries to examine.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.entries)]
    pub max_entries: u64,
    /// Print one JSON object with all artifacts.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

/// `slowpath artifacts guard`.
#[derive(Debug, Args)]
#[command(after_help = GUARD_AFTER_HELP)]
pub struct ArtifactsGuardArguments {
    /// What the product needs, for whom, and how it is repaired (docs/guard.md). Must belong to root or to you, and nobody else may write
    /// it; as root or with --repair that holds for every directory of its path.
    #[arg(value_name = "POLICY")]
    pub policy: PathBuf,
    /// Run the policy's repair commands for missing, unreadable or stale files, each at most once per policy version.
    #[arg(long)]
    pub repair: bool,
    /// The product's pseudonym for its user, written as `user` in each line for `slowpath fleet`.
    #[arg(long, value_name = "NAME")]
    pub pseudonym: Option<String>,
    /// Print JSON lines, one per file and user.
    #[arg(long)]
    pub json: bool,
}

const GUARD_AFTER_HELP: &str = "Examples:
  slowpath artifacts guard /etc/shop/guard.toml
  sudo slowpath artifacts guard --repair --json /etc/shop/guard.toml >> /var/log/shop/starts.jsonl
  slowpath fleet ingest /var/log/shop/starts.jsonl -o STORE

Exit codes: 0 everything is usable, repaired or not needed; 1 something cannot be used or decided; 2 the policy is wrong or refused; 3 this \
machine cannot, or a repair may not be run. `slowpath explain repair_failed` says what an outcome means.";

const AFTER_HELP: &str = "Examples:
  slowpath artifacts audit ~/project/.venv
  sudo slowpath artifacts audit --as www-data /usr/lib/python3 /srv/app
  sudo slowpath artifacts audit --as 65534 --json
  sudo slowpath artifacts audit --pid 4242
  slowpath artifacts audit --recording recording
  adb shell ls -lanRZ /data/app > listing; slowpath artifacts audit --as 99001 --listing listing

Decides by modes, ACLs, every directory of a path, groups, capabilities and mounts, as the kernel does. `slowpath explain FAMILY` says what \
a family is and how to repair it.";
