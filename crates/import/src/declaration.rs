//! What an importer is declared as, and which there are. The words of `--format`, the reference and the help follow from it.

use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use crate::{ftrace, perf_data, perf_script, perfetto, simpleperf, strace, wpa_csv, xperf};

/// All, in the order in which they are asked whether a trace is theirs: those that a few bytes decide first.
pub const ALL: [&Importer; 8] = [
    &perf_data::IMPORT,
    &perfetto::IMPORT,
    &simpleperf::IMPORT,
    &xperf::IMPORT,
    &wpa_csv::IMPORT,
    &ftrace::IMPORT,
    &strace::IMPORT,
    &perf_script::IMPORT,
];

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

/// The importer of this name.
pub fn named(name: &str) -> Option<&'static Importer> {
    ALL.into_iter().find(|importer| importer.name == name)
}

/// The importer whose trace begins with these bytes.
pub fn detected(head: &[u8]) -> Option<&'static Importer> {
    ALL.into_iter().find(|importer| (importer.detects)(head))
}

/// The lines of the begin of a file, for importers of text; the last one may be cut and is left out where there are others. None for
/// what is no text.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &str> {
    let text = if head.contains(&0) { &[][..] } else { head };
    let whole = if text.len() < HEAD { text.len() } else { text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0) };
    text[..whole].split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_importer_has_a_word_of_its_own_and_is_found_by_it() {
        let names: BTreeSet<&str> = ALL.iter().map(|importer| importer.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|one| named(one.name).is_some_and(|found| found.name == one.name)));
        assert!(named("gprof").is_none());
    }

    #[test]
    fn what_is_no_trace_is_nobodys() {
        for other in ["", "\n\n", "hello world\n", "{\"a\": 1}\n", "a,b,c\n1,2,3\n", "\u{7f}ELF\0\0"] {
            assert!(detected(other.as_bytes()).is_none(), "{other:?}");
        }
    }
}
