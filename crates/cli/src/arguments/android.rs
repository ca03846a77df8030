//! The command line of `slowpath android`.

use super::seconds;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// `slowpath android`.
#[derive(Debug, Args)]
pub struct AndroidArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: AndroidCommand,
}

impl AndroidArguments {
    /// Whether standard output is to hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            AndroidCommand::Collect(arguments) => arguments.json,
            AndroidCommand::Audit(arguments) => arguments.json,
            AndroidCommand::Context(arguments) => arguments.json,
        }
    }
}

/// What can be done with a device.
#[derive(Debug, Subcommand)]
pub enum AndroidCommand {
    /// Collect through adb what an audit needs. Changes nothing on the device, and goes without what needs root there.
    Collect(AndroidCollectArguments),
    /// Say which compiled code isolated processes (renderers) cannot read, what that costs, and what repairs it; with --apply, repair it.
    Audit(AndroidAuditArguments),
    /// Say what differs between the same code in an app and in a shell, and whether a seccomp filter has switched optimisations of the
    /// processor off.
    Context(AndroidContextArguments),
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
    /// Give up a command on the device after this time (30, 30s, 10m).
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "60s")]
    pub timeout: f64,
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
    /// Audit this package alone; can be given several times.
    #[arg(long, value_name = "PACKAGE")]
    pub package: Vec<String>,
    /// Write a policy for `slowpath artifacts guard`, of the one package.
    #[arg(long, value_name = "FILE")]
    pub guard_policy: Option<PathBuf>,
    /// Run the repair of this name on the device (without a name the first one of each package that needs one), collect again and audit
    /// again.
    #[arg(long, value_name = "REPAIR", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "output")]
    pub apply: Option<String>,
    /// With --apply: directory of the evidence after it.
    #[arg(short, long, value_name = "AFTER", requires = "apply")]
    pub output: Option<PathBuf>,
    /// Client and device; without --serial the one of the evidence.
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
  slowpath android audit evidence --package com.android.chrome --guard-policy guard.toml
  slowpath android audit evidence --apply -o after
  slowpath android audit evidence --apply=compile_shared -o after

Exit codes: 0 audited, or every package that needed a repair is usable after it; 1 one is not; 2 usage; 3 no device.";

/// `slowpath android context`.
#[derive(Debug, Args)]
#[command(after_help = CONTEXT_AFTER_HELP)]
pub struct AndroidContextArguments {
    /// Of the app: a copy of `/proc/PID/status`, a directory of such files, or what `slowpath context save` wrote.
    #[arg(value_name = "APP")]
    pub app: OsString,
    /// Of the same code started from a shell.
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
