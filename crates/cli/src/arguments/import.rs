//! The arguments of `slowpath import`. Formats are those that `import` declares.

use super::choice::choice;
use clap::Args;
use slowpath_import::{ALL, Importer};
use std::path::PathBuf;

/// `slowpath import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// Traces from one tool with one clock, such as the files of `strace -ff`.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Directory of the recording.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// The format (default: detected from the first file).
    #[arg(long, value_name = "FORMAT", value_parser = choice(ALL.map(|one| (one.name, one.title, one))))]
    pub format: Option<&'static Importer>,
    /// Directory of files and debug files, such as perf's ~/.debug, that the trace names by build id.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Stop when the recording reaches this size on disk (K, M, G); what was read until then is kept.
    #[arg(long, value_name = "SIZE", value_parser = super::units::bytes, default_value = "4G")]
    pub max_size: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}
