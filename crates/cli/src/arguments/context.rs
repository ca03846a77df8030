//! The arguments of `slowpath context`.

use super::target::InvocationArguments;
use clap::{Args, Subcommand};
use slowpath_tables::written::duration;
use slowpath_verify::Metric;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `slowpath context`.
#[derive(Debug, Args)]
pub struct ContextArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ContextCommand,
}

/// What can be done with contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Show everything outside of a program's code that can change its speed.
    Show {
        /// Which process.
        #[command(flatten)]
        read: ContextReadArguments,
        /// Print one JSON object, which `context diff` reads.
        #[arg(long)]
        json: bool,
    },
    /// Save a context, to compare it later or on another machine.
    Save {
        /// Which process.
        #[command(flatten)]
        read: ContextReadArguments,
        /// Output file.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Show what differs between two contexts, known costs, and which differences cause others.
    Diff(ContextDiffArguments),
    /// Measure the cost of syscalls on this machine, and what a seccomp filter adds to them and to user code, with and without
    /// speculation allowed.
    SyscallCost(SyscallCostArguments),
    /// Find which difference of two contexts makes the same command slower, by launching it with one of them at a time.
    Bisect(Box<ContextBisectArguments>),
    /// Run a command in a context: applies as much of it as this machine allows; other programs are unaffected.
    Run(ContextRunArguments),
}

/// The process to read.
#[derive(Debug, Args)]
pub struct ContextReadArguments {
    /// A pid, a saved context, or a directory with kernel files copied from another machine (`proc/PID/...`, `sys/...`, or the files of
    /// the process only).
    #[arg(value_name = "PID|FILE|DIR", required_unless_present = "command", conflicts_with = "command")]
    pub subject: Option<OsString>,
    /// How the command is started.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// A command to start, read and terminate. It is read when ready (--ready), or ~60 ms after its start with --ready exit.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// How far contexts are trusted.
#[derive(Clone, Copy, Debug, Args)]
pub struct TrustArguments {
    /// Also apply what the command's user is not permitted to set: another user and groups, capabilities, real-time policies, negative nice
    /// values, higher limits; and, from a context of somebody else's process, variables that can make it run other code (LD_*,
    /// GLIBC_TUNABLES, PATH, PYTHON*, ...) and the working directory. Use only with contexts from a source you fully trust.
    #[arg(long)]
    pub trust_context: bool,
}

/// `slowpath context diff`.
#[derive(Debug, Args)]
pub struct ContextDiffArguments {
    /// A process, a saved context, a directory of copied files, or a command with its words in quotes.
    #[arg(value_name = "A")]
    pub a: OsString,
    /// The other context.
    #[arg(value_name = "B")]
    pub b: OsString,
    /// How commands are started.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// What is applied of the contexts.
    #[command(flatten)]
    pub trust: TrustArguments,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `slowpath context syscall-cost`.
#[derive(Debug, Args)]
pub struct SyscallCostArguments {
    /// The filter: `allow-list` (the calls that are measured, by number), `arguments:N` (N stacked filters that compare arguments), `pid:PID`
    /// (those of a running process; needs root, and stops it while they are copied), or a file: a profile of a container runtime,
    /// JSON of seccompiler (FILE#NAME where it holds several), or raw instructions.
    #[arg(long, value_name = "F", default_value = "allow-list")]
    pub filter: OsString,
    /// Time limit, such as 5s or 1m; the first blocks are always finished.
    #[arg(long, value_name = "T", value_parser = duration, default_value = "10s")]
    pub max_time: Duration,
    /// Seed of the order of the arms.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object with all bursts.
    #[arg(long)]
    pub json: bool,
}

/// `slowpath context bisect`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP_OF_BISECT)]
pub struct ContextBisectArguments {
    /// The fast side: a pid, a saved context, or a wrapper command that runs the words after it
    /// (`nice -n 19`, `env MALLOC_PERTURB_=1`, a script that ends in `exec "$@"`; "" is none), quoted as in a shell.
    #[arg(long, value_name = "PID|FILE|WRAPPER")]
    pub fast: OsString,
    /// The slow side.
    #[arg(long, value_name = "PID|FILE|WRAPPER")]
    pub slow: OsString,
    /// The metric to compare, lower is better: wall, cpu, user, system, minor_faults, ...
    #[arg(long, value_name = "METRIC", default_value = "wall")]
    pub metric: Metric,
    /// Time limit, such as 30s, 3m or 1h.
    #[arg(long, value_name = "T", value_parser = duration, default_value = "180s")]
    pub max_time: Duration,
    /// Seed of the order of the launches and of the size of their environment.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
    /// How the command is launched.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// What is applied of the contexts.
    #[command(flatten)]
    pub trust: TrustArguments,
    /// The command; `{tmp}` in it (and in --env) becomes a fresh empty directory for each launch.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const AFTER_HELP_OF_BISECT: &str = "First the whole difference: where there is none, nothing is searched. Then every \
difference of the two contexts that can be applied here, in both directions: added to the fast context, and taken out of the \
slow one. A cause is named only with its effect and a counter of its mechanism; that none was found is an answer too, and the exit code is 0.";

/// `slowpath context run`.
#[derive(Debug, Args)]
#[command(
    after_help = "What could not be applied is reported on standard error, with the reason. The exit status is the command's, 128 and \
the signal's number where one ended it; processes that it leaves behind are ended."
)]
pub struct ContextRunArguments {
    /// A process, a saved context, or a directory of copied files.
    #[arg(value_name = "PID|FILE|DIR")]
    pub subject: OsString,
    /// Show what would be applied and what cannot be, without running the command.
    #[arg(long)]
    pub dry_run: bool,
    /// Who the command runs as: a name or a uid (default: the user who called sudo, else the caller).
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// What is applied of the context.
    #[command(flatten)]
    pub trust: TrustArguments,
    /// Set a variable in the command's environment, unless the context has it.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
