//! Every export of a recording, and what is asked of all of them: which is meant by a name, and which an option is for.
//!
//! Leaves what an export says of itself, and its work, to its own file (`perfetto`, ...), and writing one to `written`.

use super::declaration::{ExportOptions, OwnOption, RecordingExport};
use crate::{chrome_trace, collapsed, firefox, markdown, perfetto, pprof, speedscope, table_csv};

/// All, in the order in which they are listed.
pub const ALL: [&RecordingExport; 8] = [
    &perfetto::EXPORT,
    &firefox::EXPORT,
    &collapsed::EXPORT,
    &speedscope::EXPORT,
    &pprof::EXPORT,
    &chrome_trace::EXPORT,
    &table_csv::EXPORT,
    &markdown::EXPORT,
];

/// The export of this name.
pub fn named(name: &str) -> Option<&'static RecordingExport> {
    ALL.into_iter().find(|one| one.name == name)
}

/// An option that was chosen and is for another export than this one, as it is written.
pub fn misplaced(options: &ExportOptions, to: &RecordingExport) -> Option<(&'static str, &'static RecordingExport)> {
    let chosen = [
        (OwnOption::Weight, "--weight", options.weight.is_some()),
        (OwnOption::Table, "--table", options.table.is_some()),
    ];
    let (option, word, _) = chosen.into_iter().find(|(option, _, is)| *is && to.takes != Some(*option))?;
    Some((word, ALL.into_iter().find(|other| other.takes == Some(option))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack_weight::Weight;
    use std::collections::BTreeSet;

    #[test]
    fn each_export_has_a_word_of_its_own_and_is_found_by_it() {
        let names: BTreeSet<&str> = ALL.iter().map(|export| export.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|export| named(export.name).is_some_and(|found| found.name == export.name)));
        assert!(named("csvs").is_none());
    }

    #[test]
    fn an_export_is_a_directory_unless_one_file_of_it_is_asked_for() {
        let table = ExportOptions { table: Some("opens".to_owned()), ..ExportOptions::default() };
        assert!(table_csv::EXPORT.directory(&table).is_none() && perfetto::EXPORT.directory(&table).is_none());
        assert!(table_csv::EXPORT.directory(&ExportOptions::default()).is_some());
        assert!(perfetto::EXPORT.directory(&ExportOptions::default()).is_none());
    }

    #[test]
    fn an_option_of_another_export_is_named_with_whose_it_is() {
        let table = ExportOptions { table: Some("opens".to_owned()), ..ExportOptions::default() };
        assert!(misplaced(&table, &table_csv::EXPORT).is_none());
        let (option, export) = misplaced(&table, &collapsed::EXPORT).unwrap();
        assert_eq!((option, export.name), ("--table", "csv"));
        let weight = ExportOptions { weight: Some(Weight::Cpu), ..ExportOptions::default() };
        assert_eq!(
            misplaced(&weight, &perfetto::EXPORT).map(|(option, export)| (option, export.name)),
            Some(("--weight", "collapsed"))
        );
        assert!(misplaced(&ExportOptions::default(), &perfetto::EXPORT).is_none());
    }
}
