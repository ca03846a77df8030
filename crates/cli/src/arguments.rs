//! The command line, declared once: names, meaning, defaults. `-o` names the output, `--json` the machine-readable
//! form, `--user` the identity, everywhere.

pub mod android;
pub mod artifacts;
pub mod check;
mod choice;
pub mod compare;
pub mod context;
mod device;
pub mod diagnose;
pub mod documentation;
pub mod export;
pub mod fix;
pub mod fleet;
#[cfg(test)]
mod former_options;
pub mod import;
pub mod ipc;
mod later;
pub mod launch;
pub mod layout;
pub mod query;
pub mod target;
mod units;
pub mod zygote;

use android::AndroidArguments;
use artifacts::ArtifactsArguments;
use check::CheckArguments;
use compare::CompareArguments;
use context::ContextArguments;
use device::DeviceArguments;
use diagnose::DiagnoseArguments;
use documentation::{CompletionsArguments, ManArguments};
use export::ExportArguments;
use fix::FixArguments;
use fleet::FleetArguments;
use import::ImportArguments;
use ipc::{BenchmarkFormat, IpcArguments, with_two_dashes};
use later::Later;
use launch::BenchmarkArguments;
use layout::LayoutArguments;
use query::QueryArguments;
use target::{InvocationArguments, TargetArguments};
use units::{bytes, seconds};
use zygote::ZygoteArguments;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;

/// Why is this program slower at start than it should be? Finds the hidden operating-system cost, tries a fix, and
/// measures the gain in a controlled experiment.
#[derive(Debug, Parser)]
#[command(name = "slowpath", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 a check failed or an undo was refused, 2 wrong usage, 3 this machine cannot do it, \
4 the target failed, 130 interrupted."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Reads the command line: what it asks for, and whether standard output is to hold one JSON object.
///
/// # Errors
/// It asks for help, or is wrong.
pub fn read(words: impl Iterator<Item = OsString>) -> Result<(Arguments, bool), clap::Error> {
    let matches = Arguments::command().try_get_matches_from(with_two_dashes(words))?;
    let is_json = wants_json(&matches);
    Arguments::from_arg_matches(&matches).map(|arguments| (arguments, is_json))
}

/// Whether a command or one of its forms was given `--json`, or what means the same.
fn wants_json(matches: &ArgMatches) -> bool {
    let of_benchmark = matches.try_get_one::<BenchmarkFormat>("benchmark_format");
    // The words of the Python package, which parses them itself.
    let passed_on = matches.try_get_many::<OsString>("words");
    matches.try_get_one::<bool>("json").is_ok_and(|json| json == Some(&true))
        || of_benchmark.is_ok_and(|format| format == Some(&BenchmarkFormat::Json))
        || passed_on.is_ok_and(|words| words.is_some_and(|mut words| words.any(|word| word == "--json")))
        || matches.subcommand().is_some_and(|(_, form)| wants_json(form))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what can be recorded on this machine, what cannot, why, and how to change that.
    Doctor(Later<DoctorArguments>),
    /// Record a command, find its hidden costs, try the fixes, and measure what they gain.
    Diagnose(Later<DiagnoseArguments>),
    /// Time launches, cold or warm, of one command or of several against each other.
    Launch(Later<BenchmarkArguments>),
    /// Launch a command and fail if it exceeds a budget of times, faults, bytes, processes or denied opens.
    Check(Later<CheckArguments>),
    /// Record a command and its process tree from its first instruction, or running processes.
    Record(Later<RecordArguments>),
    /// Convert another tool's trace into a recording: strace, perf, ftrace, xperf, WPA, Perfetto, simpleperf.
    Import(Later<ImportArguments>),
    /// Show the findings of a recording.
    Analyze(Later<AnalyzeArguments>),
    /// Show what changed between recordings of a workload before and after a change.
    Compare(Later<CompareArguments>),
    /// Read a process's execution context (everything outside its code that affects its speed), and compare two.
    Context(Later<ContextArguments>),
    /// Measure IPC mechanisms: throughput, latency, priority inheritance, and why a deadline was missed.
    Ipc(Later<IpcArguments>),
    /// Trace which functions a launch uses and in which order, and predict what another code layout would save.
    Layout(Later<LayoutArguments>),
    /// Explain a name from a report: a finding, fix, artifact family, context factor, verdict, guard outcome, or anything
    /// unavailable.
    Explain(Later<ExplainArguments>),
    /// Write the HTML report of a recording or a diagnosis.
    Report(Later<ReportArguments>),
    /// Query a recording with SQL; needs the Python package slowpath-fleet, like `slowpath fleet`.
    Query(Later<QueryArguments>),
    /// Export a recording to another tool's format.
    Export(Later<ExportArguments>),
    /// Keep the fixes of a diagnosis: list them, show what would change, apply, undo.
    Fix(Later<FixArguments>),
    /// Find compiled and cached artifacts that a user cannot use, with cause and remedy; check and repair a product's own.
    Artifacts(Later<ArtifactsArguments>),
    /// Find compiled code on an Android device that its isolated processes (renderers) cannot read, estimate its cost, and repair it.
    Android(Later<AndroidArguments>),
    /// Make, use and check preload plans.
    Preload(Later<PreloadArguments>),
    /// Run cold starts in a private lab, without affecting other processes.
    Lab(Later<LabArguments>),
    /// Analyze field data: compare launches across machines, find the slow slice, evaluate an experiment.
    #[command(disable_help_flag = true)]
    Fleet(Later<FleetArguments>),
    /// Preload once, then fork isolated children in milliseconds: serve, spawn, and measure the saving.
    Zygote(Later<ZygoteArguments>),
    /// Print a shell completion script.
    Completions(Later<CompletionsArguments>),
    /// Write the man pages, one per command.
    Man(Later<ManArguments>),
}

/// `slowpath doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Remove leftovers of killed slowpath processes (labs, cgroups, fresh directories).
    #[arg(long)]
    pub clean: bool,
}

/// Events that can be recorded with their call stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackEvent {
    /// Page faults.
    Fault,
    /// Syscalls that change address spaces; implies --memory-calls.
    Alloc,
    /// CPU samples; implies --sample 1000 unless --sample is given.
    Cpu,
    /// Off-CPU intervals of threads; implies --off-cpu.
    Wait,
}

/// `slowpath explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// A name, such as cold_file_reads; without it, all names are listed.
    pub name: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `slowpath record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// Directory of the recording.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Stop after this time (30, 30s, 10m). Default: when the command ends, or at ctrl-C. A command that is still running keeps running.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Sample running threads with their call stacks, HZ times per second on each CPU.
    #[arg(short = 'F', long, alias = "cpu", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub sample: Option<u32>,
    /// Record call stacks of these events.
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub stacks: Vec<StackEvent>,
    /// Report the share of wrong or truncated stacks: every Nth stack (default: 64th) on each CPU is copied with up to 32 KiB of
    /// stack memory and unwound again by another library from the programs' files. Requires --stacks or --sample.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "64",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub audit_stacks: Option<u32>,
    /// Stop when the recording reaches this size on disk (K, M, G); what was recorded until then is kept.
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4G")]
    pub max_size: u64,
    /// Also record when each process finished starting (first wait for events), for `slowpath launch children`. Adds tens of ns
    /// to every context switch on the machine.
    #[arg(long, alias = "first-waits")]
    pub child_startup: bool,
    /// Also record off-CPU time of threads, its reason, and who wakes them. Adds up to ~0.2 us to every context switch on the
    /// machine.
    #[arg(long, alias = "waits")]
    pub off_cpu: bool,
    /// Also record mmap, munmap, mremap, brk and madvise with duration and result, and which pages are all zeros when they are
    /// freed or at exit. Adds ~120 ns to every syscall on the machine, and ~150 ms of calibration before start.
    #[arg(long)]
    pub memory_calls: bool,
    /// Also record opens and reads of running processes (for a command this is the default). Adds ~120 ns to every syscall on the
    /// machine, including those of processes that are not recorded.
    #[arg(long, conflicts_with = "no_files")]
    pub files: bool,
    /// Do not record opens and reads of the command, so that syscalls of other processes get no slower.
    #[arg(long)]
    pub no_files: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
    /// Record a running process instead of a command, with its threads and the children it starts from now on.
    /// Repeatable.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = NOT_RUNNING)]
    pub pid: Vec<u32>,
    /// Record all processes whose name or command line this expression matches.
    #[arg(long = "match", value_name = "REGEX", conflicts_with_all = NOT_RUNNING)]
    pub matching: Option<Regex>,
    /// Record everything on this machine except slowpath itself.
    #[arg(long, conflicts_with_all = NOT_RUNNING, conflicts_with_all = ["pid", "matching"])]
    pub system: bool,
    /// How the command is launched.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// The command; `{tmp}` in it (and in --env) becomes a fresh empty directory for each launch.
    #[arg(last = true, required_unless_present_any = ["pid", "matching", "system"], value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What belongs to a launch.
const NOT_RUNNING: [&str; 5] = ["command", "user", "ready", "timeout", "env"];

/// `slowpath analyze`.
#[derive(Debug, Args)]
pub struct AnalyzeArguments {
    /// A recording.
    pub recording: PathBuf,
    /// A recording of the same command in a lab at readahead 0, which shows which pages are needed.
    #[arg(long, alias = "needed", value_name = "DIR")]
    pub training: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `slowpath report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// A recording, a directory of recordings of one command, or the directory of a diagnosis.
    pub directory: PathBuf,
    /// Where to write the page.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
}

/// `slowpath preload`.
#[derive(Debug, Args)]
pub struct PreloadArguments {
    /// What to do with plans.
    #[command(subcommand)]
    pub command: PreloadCommand,
}

/// What can be done with plans.
#[derive(Debug, Subcommand)]
pub enum PreloadCommand {
    /// Make a plan from recordings made in a lab at readahead 0.
    Plan {
        /// The recordings, or the directory of a diagnosis.
        #[arg(required = true)]
        directories: Vec<PathBuf>,
        /// Where to write the plan.
        #[arg(short, long, value_name = "PLAN")]
        output: PathBuf,
    },
    /// Start CMD while a prefetcher reads the plan's files ahead. Needs no privilege.
    Run {
        /// The plan.
        plan: PathBuf,
        /// Write what the prefetcher did to this file.
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// Read from network file systems too.
        #[arg(long)]
        network: bool,
        /// The command.
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// Read a plan's ranges now, wait until all are in memory, and show how long it took.
    Replay {
        /// The plan.
        plan: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// List files of a plan that have changed, are missing or cannot be read. Exits with 1 if there are any.
    Check {
        /// The plan.
        plan: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// `slowpath lab`.
#[derive(Debug, Args)]
pub struct LabArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What can be done with labs.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Launch CMD cold in a lab and show how long it took and what it read.
    Run(LabRunArguments),
    /// List the labs on this machine.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Remove labs whose slowpath process no longer exists.
    Remove,
}

/// `slowpath lab run`.
#[derive(Debug, Args)]
pub struct LabRunArguments {
    /// Cold launches to make.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
    /// Conditions.
    #[command(flatten)]
    pub device: DeviceArguments,
    /// Target.
    #[command(flatten)]
    pub target: TargetArguments,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn words_after_the_dashes_belong_to_the_target() {
        assert!(!is_json("record -o d -- ls --json") && is_json("record -o d --json -- ls"));
    }

    #[test]
    fn one_json_object_is_asked_for_at_any_depth_and_in_the_words_of_other_tools() {
        for yes in ["doctor --json", "launch ladder --base ls --add a=-l --json", "ipc throughput --json"] {
            assert!(is_json(yes), "{yes}");
        }
        assert!(is_json("ipc throughput --benchmark_format json") && is_json("fleet compare --json a"));
        for no in ["doctor", "ipc throughput --benchmark_format csv", "fleet compare a", "context run 1 -- ls --json"] {
            assert!(!is_json(no), "{no}");
        }
    }

    fn is_json(words: &str) -> bool {
        read(format!("slowpath {words}").split(' ').map(OsString::from)).unwrap().1
    }
}
