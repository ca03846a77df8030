//! The arguments of `slowpath compare`.

use clap::Args;
use std::path::PathBuf;

/// `slowpath compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// A recording of the workload before the change, or a directory with several.
    #[arg(value_name = "BEFORE", required_unless_present_all = ["more_before", "more_after"], requires = "after")]
    pub before: Option<PathBuf>,
    /// A recording of the workload after the change, or a directory with several.
    #[arg(value_name = "AFTER")]
    pub after: Option<PathBuf>,
    /// Another recording from before the change. Repeatable.
    #[arg(long = "before", value_name = "DIR")]
    pub more_before: Vec<PathBuf>,
    /// Another recording from after the change. Repeatable.
    #[arg(long = "after", value_name = "DIR")]
    pub more_after: Vec<PathBuf>,
    /// Compare values per second. By default, launches are compared as totals, other recordings only if they are equally
    /// long.
    #[arg(long)]
    pub per_second: bool,
    /// Also write an HTML page with the comparison, both time ledgers and differential flame graphs.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print a summary in GitHub-flavoured Markdown, for a pull request.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}
