//! The command line of `slowpath android`.

use super::units::seconds;
use clap::{ArgGroup, Args, Subcommand};
use slowpath_android::as_invoker::Client;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `slowpath android`.
#[derive(Debug, Args)]
pub struct AndroidArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: AndroidCommand,
}

/// What can be done with a device.
#[derive(Debug, Subcommand)]
pub enum AndroidCommand {
    /// Collect the evidence for an audit through adb. Changes nothing on the device, and skips what needs root there.
    Collect(AndroidCollectArguments),
    /// Show compiled code that isolated processes (renderers) cannot read, its cost and repairs; with --apply, repair it.
    Audit(AndroidAuditArguments),
    /// Compare the context of the same code in an app and in a shell, and whether a seccomp filter has disabled CPU
    /// speculation.
    Context(AndroidContextArguments),
    /// Launch apps over adb in counterbalanced blocks, each with a Perfetto trace of the device, or analyze the launches in a trace:
    /// startups, child process starts, class verification, waits for binder and storage.
    Launch(AndroidLaunchArguments),
}

/// The client and the device.
#[derive(Debug, Args)]
pub struct AdbArguments {
    /// The device, as `adb devices` names it (default: `ANDROID_SERIAL`, else the only one).
    #[arg(long, value_name = "SERIAL")]
    pub serial: Option<String>,
    /// The adb client.
    #[arg(long, value_name = "PROGRAM", default_value = "adb")]
    pub adb: PathBuf,
    /// Time limit of a command on the device (30, 30s, 10m).
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "60s")]
    pub timeout: f64,
}

impl From<&AdbArguments> for Client {
    fn from(arguments: &AdbArguments) -> Self {
        let timeout = Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::from_secs(60));
        Self { program: arguments.adb.clone(), serial: arguments.serial.clone(), timeout }
    }
}

/// `slowpath android collect`.
#[derive(Debug, Args)]
#[command(after_help = COLLECT_AFTER_HELP)]
pub struct AndroidCollectArguments {
    /// Packages: the app, and those that share its engine (WebView, Trichrome).
    #[arg(value_name = "PACKAGE", required = true)]
    pub packages: Vec<String>,
    /// Directory of the evidence.
    #[arg(short, long, value_name = "EVIDENCE")]
    pub output: PathBuf,
    /// Client and device.
    #[command(flatten)]
    pub adb: AdbArguments,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

const COLLECT_AFTER_HELP: &str = "Examples:
  slowpath android collect com.android.chrome -o evidence
  slowpath android collect --serial 8A1X0 com.android.chrome com.google.android.webview -o evidence

Exit codes: 0 collected; 2 usage; 3 no device, or it went away: what was collected is kept.";

/// `slowpath android audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_AFTER_HELP)]
pub struct AndroidAuditArguments {
    /// What `android collect` wrote, or a directory with dexopt.txt and listing.txt (docs/android.md).
    #[arg(value_name = "EVIDENCE")]
    pub evidence: PathBuf,
    /// Audit only this package. Repeatable.
    #[arg(long, value_name = "PACKAGE")]
    pub package: Vec<String>,
    /// A Perfetto trace of launches, to measure what unreadable code costs each process. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub trace: Vec<PathBuf>,
    /// Write a policy for `slowpath artifacts guard`; needs exactly one package.
    #[arg(long, value_name = "FILE")]
    pub guard_policy: Option<PathBuf>,
    /// Run the repair with this name on the device (default: the first repair of each package that needs one), then collect and audit
    /// again.
    #[arg(long, value_name = "REPAIR", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "output")]
    pub apply: Option<String>,
    /// With --apply: directory for the evidence collected afterwards.
    #[arg(short, long, value_name = "AFTER", requires = "apply")]
    pub output: Option<PathBuf>,
    /// Client and device (default: the device of the evidence).
    #[command(flatten)]
    pub adb: AdbArguments,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

const AUDIT_AFTER_HELP: &str = "Examples:
  slowpath android audit evidence
  slowpath android audit evidence --trace launches/launch-0.perfetto-trace
  slowpath android audit evidence --package com.android.chrome --guard-policy guard.toml
  slowpath android audit evidence --apply -o after
  slowpath android audit evidence --apply=compile_shared -o after

Exit codes: 0 audited, or every package that needed a repair is usable after it; 1 one is not; 2 usage; 3 no device.";

/// `slowpath android context`.
#[derive(Debug, Args)]
#[command(after_help = CONTEXT_AFTER_HELP)]
pub struct AndroidContextArguments {
    /// The app's context: a copy of `/proc/PID/status`, a directory of such files, or what `slowpath context save` wrote.
    #[arg(value_name = "APP")]
    pub app: OsString,
    /// The context of the same code started from a shell.
    #[arg(value_name = "SHELL")]
    pub shell: OsString,
    /// Print one JSON object, as `slowpath context diff --json`.
    #[arg(long)]
    pub json: bool,
}

const CONTEXT_AFTER_HELP: &str = "Examples:
  adb shell run-as com.example cat /proc/PID/status > app.status
  adb shell cat /proc/self/status > shell.status
  slowpath android context app.status shell.status";

/// `slowpath android launch`.
#[derive(Debug, Args)]
#[command(after_help = LAUNCH_AFTER_HELP, group(ArgGroup::new("launched").required(true).args(["packages", "trace"])))]
pub struct AndroidLaunchArguments {
    /// Packages, launched in turn in each block.
    #[arg(value_name = "PACKAGE", requires = "output")]
    pub packages: Vec<String>,
    /// Launch nothing: read this Perfetto trace of a device.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Directory of the traces and of launches.json, rewritten after each launch.
    #[arg(short, long, value_name = "DIR", conflicts_with = "trace")]
    pub output: Option<PathBuf>,
    /// Blocks: in each, every package is launched once. A confidence interval of the 95th percentile needs 73.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// How each launch is prepared: cold (app stopped), warm (process running, activity recreated), hot (activity exists).
    #[arg(long, value_name = "KIND", default_value = "cold", value_parser = ["cold", "warm", "hot"])]
    pub start: String,
    /// Open the URLs in this file, one per line, in turn, instead of the main activity.
    #[arg(long, value_name = "FILE")]
    pub url_list: Option<PathBuf>,
    /// Compile the packages first with this compiler filter (speed, speed-profile, verify), or reset.
    #[arg(long, value_name = "FILTER")]
    pub compilation: Option<String>,
    /// Keep tracing for this time after the first frame, for child starts and reportFullyDrawn.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "3s")]
    pub after: f64,
    /// Pause before each launch, and after Perfetto has started.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "1s")]
    pub settle: f64,
    /// Use `am start -W` only, without Perfetto on the device.
    #[arg(long)]
    pub no_trace: bool,
    /// Seed of the order in which packages are launched in the blocks.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Client and device.
    #[command(flatten)]
    pub adb: AdbArguments,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

const LAUNCH_AFTER_HELP: &str = "Examples:
  slowpath android launch com.android.chrome --runs 30 -o launches
  slowpath android launch com.android.chrome org.chromium.webview_shell --start warm -o launches
  slowpath android launch com.android.chrome --url-list pages.txt --compilation speed -o launches
  slowpath android launch --trace launches/launch-0.perfetto-trace

Exit codes: 0 launched, or the trace was read; 2 usage, or the trace is damaged; 3 no device, it went away, or no launch succeeded: what was
found is kept in the directory.";
