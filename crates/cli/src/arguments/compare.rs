//! The arguments of `slowpath compare`.

use clap::Args;
use std::path::PathBuf;

/// `slowpath compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// A recording of the workload as it was before, or a directory that holds several.
    #[arg(value_name = "BEFORE", required_unless_present_all = ["more_before", "more_after"], requires = "after")]
    pub before: Option<PathBuf>,
    /// A recording of the workload as it is after, or a directory that holds several.
    #[arg(value_name = "AFTER")]
    pub after: Option<PathBuf>,
    /// One more of those before; several with --before again.
    #[arg(long = "before", value_name = "DIR")]
    pub more_before: Vec<PathBuf>,
    /// One more of those after; several with --after again.
    #[arg(long = "after", value_name = "DIR")]
    pub more_after: Vec<PathBuf>,
    /// Compare figures of a second. Without it launches are compared as they are, other recordings only where they are equally
    /// long.
    #[arg(long)]
    pub per_second: bool,
    /// Also write an HTML page with all of it, the time ledgers beside each other and the differential flame graphs.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}
