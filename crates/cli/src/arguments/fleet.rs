//! Arguments of `slowpath fleet`, which are those of the Python package `slowpath-fleet`.

use clap::Args;
use std::ffi::OsString;

/// `slowpath fleet`.
#[derive(Debug, Args)]
pub struct FleetArguments {
    /// Command of the Python package slowpath-fleet and its arguments; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub words: Vec<OsString>,
}
