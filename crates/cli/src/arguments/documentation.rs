//! Arguments of the commands that write what is installed beside the program.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// `slowpath completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `slowpath man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Directory for the pages, one a command; made where it is missing.
    pub directory: PathBuf,
}
