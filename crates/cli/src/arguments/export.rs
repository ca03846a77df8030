//! The arguments of `slowpath export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `slowpath export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// A recording.
    pub recording: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    pub to: Format,
    /// For collapsed: what the numbers of the stacks add up (default: the first of these that was recorded).
    #[arg(long, alias = "what", value_enum)]
    pub weight: Option<CollapsedWeight>,
    /// For csv: the table. Its call stacks become names.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Where to write it (default: standard output).
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A trace for ui.perfetto.dev: everything that happened, on tracks.
    Perfetto,
    /// A profile for profiler.firefox.com: CPU samples with their stacks, waits, faults and memory calls.
    Firefox,
    /// Call stacks with a number each, for flamegraph.pl, inferno and speedscope.
    Collapsed,
    /// One table for spreadsheets, R and pandas.
    Csv,
}

/// What collapsed stacks add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CollapsedWeight {
    /// Samples of running threads.
    Cpu,
    /// Microseconds in which threads did not run.
    OffCpu,
    /// Page faults.
    Faults,
    /// Microseconds in page faults.
    FaultTime,
    /// Bytes by which mmap, mremap and brk let address spaces grow.
    Allocations,
}
