//! Arguments of `slowpath diagnose`.

use super::choice::choice;
use super::device::DeviceArguments;
use super::target::InvocationArguments;
use super::units::seconds;
use clap::Args;
use clap::builder::TypedValueParser;
use slowpath_diagnose::ArmSet;
use slowpath_tables::written::duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `slowpath diagnose`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo slowpath diagnose -- /usr/bin/python3 -c 'import ssl'
  sudo slowpath diagnose --ready tcp:8080 -- ./server --port 8080
  sudo slowpath diagnose --pid 4711
`slowpath explain arm` (sham, block, lab, ...) says what a word on the screen means.")]
pub struct DiagnoseArguments {
    /// Diagnose a running process instead of a command, with its threads and the children it starts from now on. Records it for
    /// --duration and reports its findings; tries no fixes. Repeatable.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = OF_TRIALS)]
    pub pid: Vec<u32>,
    /// With --pid: record for this time (30, 30s, 10m; default: 10s), or until ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "pid", conflicts_with = "command")]
    pub duration: Option<f64>,
    /// Diagnose cold starts only: waits for storage, judged by time to ready. Needs a lab. Without --cold or --warm, both are
    /// diagnosed.
    #[arg(long, conflicts_with = "warm")]
    pub cold: bool,
    /// Diagnose warm launches only: hidden memory costs with everything in the page cache, judged by CPU time. Needs no lab.
    #[arg(long, conflicts_with_all = ["arms", "readahead", "iops", "bandwidth"])]
    pub warm: bool,
    /// Blocks of the experiment, each with one launch of every arm that has not ended [default: until every fix is decided, at most 16]. One arm needs
    /// at least 6 blocks, eight arms 9. --max-time may allow fewer.
    #[arg(long, alias = "runs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub blocks: Option<u32>,
    /// Total time limit, such as 90s or 10m: runs as many blocks as fit, and skips a trial if too few would fit for a verdict. With
    /// --cold or --warm, launches are recorded however long that takes.
    #[arg(long, value_name = "T", value_parser = duration, default_value = "5m")]
    pub max_time: Duration,
    /// Cold launches: which arms to compare besides the untreated ones.
    #[arg(long, value_parser = arm_sets(), default_value = "quick")]
    pub arms: ArmSet,
    /// Seed of the order of the launches.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory for recordings, plan and report [default: slowpath-diagnosis, or slowpath-diagnosis-2, ... if it exists].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
    /// Conditions.
    #[command(flatten)]
    pub device: DeviceArguments,
    /// How the command is launched.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// The command; `{tmp}` in it (and in --env) becomes a fresh empty directory for each launch.
    #[arg(last = true, required_unless_present = "pid", value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What belongs to launches and their comparison.
const OF_TRIALS: [&str; 13] = [
    "command",
    "user",
    "ready",
    "timeout",
    "env",
    "cold",
    "warm",
    "blocks",
    "max_time",
    "arms",
    "readahead",
    "iops",
    "bandwidth",
];

fn arm_sets() -> impl TypedValueParser<Value = ArmSet> {
    choice([
        ("quick", "The plan and both shams", ArmSet::Quick),
        ("standard", "Quick, whole-file advice, and the sizes of readahead", ArmSet::Standard),
        (
            "variants",
            "Quick, whole-file advice, and variants of the plan: order, gap, cap, threads, metadata",
            ArmSet::Variants,
        ),
    ])
}
