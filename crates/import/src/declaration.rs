//! What an importer is declared as. The words of `--format`, the reference and the help follow from it; which there are
//! is listed in [`crate::registry`].

use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;

/// Bytes of the begin of a file by which its format is found.
pub const HEAD: usize = 64 << 10;

/// A reader of one tool's traces.
#[derive(Debug)]
pub struct Importer {
    /// The word for `--format`.
    pub name: &'static str,
    /// One line: whose trace it reads.
    pub title: &'static str,
    /// The command that makes such a trace with everything that is read of it.
    pub made_by: &'static str,
    /// What is read.
    pub reads: &'static str,
    /// What such a trace can never hold. The names of probes that it stands for are in `probes`.
    pub lacks: &'static str,
    /// Probes of a recording whose rows such a trace may hold; all others are unavailable in it.
    pub probes: &'static [&'static str],
    /// Whether the begin of a file is one of its traces.
    pub detects: fn(&[u8]) -> bool,
    /// Reads a trace to its end.
    pub import: fn(&mut Input<'_>, &mut Trace<'_>) -> Result<(), ImportError>,
}

/// The lines of the begin of a file, for importers of text; the last one may be cut and is left out where there are others. None for
/// what is no text.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &str> {
    let text = if head.contains(&0) { &[][..] } else { head };
    let whole = if text.len() < HEAD { text.len() } else { text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0) };
    text[..whole].split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
}
