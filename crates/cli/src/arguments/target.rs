//! Options that say how a target is launched, and the target.

use super::units::seconds;
use clap::Args;
use slowpath_launch::ReadyWhen;
use slowpath_session::target::Invocation;
use std::ffi::OsString;

/// How a target is launched.
#[derive(Debug, Args)]
pub struct InvocationArguments {
    /// Who the target runs as: a name or a uid (default: the user who called sudo, else the caller).
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// When the target counts as ready: exit, line:REGEX, file:PATH, tcp:[HOST:]PORT, http://URL, notify, or browser[:PAGE]
    /// (a page is served on loopback, `{url}` in the command is its address, its first script calls back).
    #[arg(long, value_name = "WHEN", default_value = "exit")]
    pub ready: ReadyWhen,
    /// Abort a launch that is not ready after this many seconds.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Set a variable in the target's environment.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
}

impl InvocationArguments {
    /// Those of a command that is ready when it has ended.
    pub fn until_exit(user: &Option<String>, env: &[OsString]) -> Self {
        Self { user: user.clone(), ready: ReadyWhen::Exit, timeout: None, env: env.to_vec() }
    }
}

impl From<&InvocationArguments> for Invocation {
    fn from(arguments: &InvocationArguments) -> Self {
        let InvocationArguments { user, ready, timeout, env } = arguments;
        Self { user: user.clone(), ready: ready.clone(), timeout: *timeout, env: env.clone() }
    }
}

/// The target and how it is launched.
#[derive(Debug, Args)]
pub struct TargetArguments {
    /// How.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// The command; `{tmp}` in it (and in --env) becomes a fresh empty directory for each launch.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
