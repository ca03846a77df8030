//! What is looked up, and where besides the files themselves.

use super::debuginfod::Debuginfod;
use std::path::PathBuf;

/// How much is looked up. Names cost little; debug information of large files costs seconds and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Functions, inlined functions, source lines.
    #[default]
    Inlined,
    /// Functions and source lines.
    Lines,
    /// Functions only, from symbol tables: no debug information is parsed.
    Names,
}

/// What is looked up, and where besides the files themselves.
#[derive(Debug)]
pub struct Options {
    /// How much.
    pub depth: Depth,
    /// Directories of separate debug files, the first one that has a file wins.
    pub debug_dirs: Vec<PathBuf>,
    /// Directories of copies of files and of debug files, by build-id or path: perf's cache, or what a user brought along. Nobody
    /// vouches for other files that theirs name.
    pub image_dirs: Vec<PathBuf>,
    /// Client of debuginfod; see [`Debuginfod::from_environment`].
    pub debuginfod: Option<Debuginfod>,
}

impl Default for Options {
    /// Everything, with the directory that distributions install debug files to (GDB manual, "Separate Debug Files"), without
    /// debuginfod.
    fn default() -> Self {
        Self {
            depth: Depth::Inlined,
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            image_dirs: Vec::new(),
            debuginfod: None,
        }
    }
}
