//! The arguments of `slowpath export`. Formats and weights are those that `report` declares.

use super::choice::choice;
use clap::Args;
use slowpath_report::recording_exports::{self, RecordingExport};
use slowpath_report::stack_weight::Weight;
use std::path::PathBuf;

/// `slowpath export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// A recording; for markdown also the directory of a diagnosis.
    pub recording: PathBuf,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = choice(recording_exports::ALL.map(|one| (one.name, one.title, one))))]
    pub to: &'static RecordingExport,
    /// For collapsed: the weight of each stack (default: the first of these that was recorded).
    #[arg(long, alias = "what", value_parser = choice(Weight::ALL.map(|one| (one.name(), one.title(), one))))]
    pub weight: Option<Weight>,
    /// For csv: this table alone. Its call stacks are written as function names.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Where to write it (default: standard output); for csv without --table a directory that is new or empty.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}
