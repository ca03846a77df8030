//! The command line of `slowpath check`.

use super::device::DeviceArguments;
use super::target::InvocationArguments;
use super::units::seconds;
use clap::Args;
use slowpath_launch::ReadyWhen;
use slowpath_tables::written::duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `slowpath check`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct CheckArguments {
    /// The budget: a TOML file with a table [limits] and, if wanted, [launch].
    #[arg(value_name = "BUDGET.toml")]
    pub budget: PathBuf,
    /// Exit with 1 also when a limit is undecided.
    #[arg(long)]
    pub strict: bool,
    /// Use this recording instead of recording another launch.
    #[arg(long, value_name = "DIR")]
    pub recording: Option<PathBuf>,
    /// Time limit, such as 30s, 10m or 1h; the current launch is finished.
    #[arg(long, value_name = "T", value_parser = duration, default_value = "10m")]
    pub max_time: Duration,
    /// Seed of the size of the environment, which differs from launch to launch.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object with all launches.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
    /// Who the target runs as: a name or a uid (default: the user who called sudo, else the caller).
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// When the target counts as ready, overriding the budget: exit, line:REGEX, file:PATH, tcp:[HOST:]PORT,
    /// http://URL, notify, or browser[:PAGE].
    #[arg(long, value_name = "WHEN")]
    pub ready: Option<ReadyWhen>,
    /// Abort a launch that is not ready after this many seconds.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Set a variable in the target's environment.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// Conditions of the lab.
    #[command(flatten)]
    pub device: DeviceArguments,
    /// The command; `{tmp}` in it (and in --env) becomes a fresh empty directory for each launch.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub target: Vec<OsString>,
}

const AFTER_HELP: &str = "Limits on counts and sizes hold for every launch. Limits on times hold for the median, or for \
the quantile that the name asks for (wall_p95), and are decided when the whole confidence interval lies on one side of the limit. \
Exits with 1 when a limit is exceeded, with 3 when one could not be measured here, with 0 otherwise.";

impl CheckArguments {
    /// How the target is launched; `ready` is what the budget says.
    pub fn invocation(&self, ready: Option<&ReadyWhen>) -> InvocationArguments {
        InvocationArguments {
            user: self.user.clone(),
            ready: self.ready.as_ref().or(ready).cloned().unwrap_or(ReadyWhen::Exit),
            timeout: self.timeout,
            env: self.env.clone(),
        }
    }
}
