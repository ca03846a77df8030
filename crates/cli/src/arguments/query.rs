//! The arguments of `slowpath query`, which go to the Python package `slowpath-fleet`.

use clap::Args;
use std::path::PathBuf;

/// `slowpath query`.
#[derive(Debug, Args)]
pub struct QueryArguments {
    /// A recording.
    pub recording: PathBuf,
    /// One SELECT of DuckDB's SQL; without it the views are listed, with their columns.
    pub sql: Option<String>,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    pub csv: bool,
}
