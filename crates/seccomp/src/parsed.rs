//! What reading a filter gives, whatever form it was in.

use crate::program::Program;

/// A filter that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Its instructions.
    pub program: Program,
    /// In what form it was.
    pub form: &'static str,
    /// What was left out of it, and why.
    pub notes: Vec<String>,
}
