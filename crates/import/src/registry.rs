//! Which importers there are, and which one a trace is for. What one is, [`crate::declaration`] says.

use crate::declaration::Importer;
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

/// The importer of this name.
pub fn named(name: &str) -> Option<&'static Importer> {
    ALL.into_iter().find(|importer| importer.name == name)
}

/// The importer whose trace begins with these bytes.
pub fn detected(head: &[u8]) -> Option<&'static Importer> {
    ALL.into_iter().find(|importer| (importer.detects)(head))
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
