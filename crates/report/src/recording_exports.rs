//! Recordings in the forms of other tools: what an export is declared as, and which there are.
//!
//! An export is one file with one declaration, `EXPORT`, listed in [`ALL`]. The words of `--to`, `explain` and the reference follow from
//! it. [`export()`] writes one. Leaves to the command whose words these are, and what is said of it afterwards.

mod output;
mod written;

pub use written::{ExportWanted, export};

use crate::collapsed::{self, Weight};
use crate::{Diagnosis, chrome_trace, firefox, markdown, perfetto, pprof, speedscope, table_csv};
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use std::io::{self, Write};

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

/// A form of a recording that other tools read.
#[derive(Debug)]
pub struct RecordingExport {
    /// The word for `--to`.
    pub name: &'static str,
    /// One line: what it is for.
    pub title: &'static str,
    /// What is in it.
    pub what: &'static str,
    /// What of a recording it has no place for, or leaves out.
    pub lacks: &'static str,
    /// What reads it.
    pub read_by: &'static str,
    /// Whether it is text that a terminal can show.
    pub is_text: bool,
    /// The option that is for this one only.
    pub takes: Option<OwnOption>,
    /// What is written of a diagnosis, whose launch the recording explains; null for an export that is of recordings only.
    pub of_diagnosis: Option<OfDiagnosis>,
    /// The files of a directory, where its own option does not ask for one of them; null for an export that is one file.
    pub files: Option<Files>,
    /// What is written of a recording. Nothing is opened before it has said that there is something to write.
    pub prepare: for<'a> fn(&'a Tables, &ExportOptions) -> Result<Work<'a>, NotExported>,
}

/// An option of one export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnOption {
    /// [`ExportOptions::weight`].
    Weight,
    /// [`ExportOptions::table`].
    Table,
}

/// What can be chosen.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// What the numbers of call stacks add up.
    pub weight: Option<Weight>,
    /// The table.
    pub table: Option<String>,
}

impl ExportOptions {
    /// An option that was chosen and is for another export than this one, as it is written.
    pub fn misplaced(&self, export: &RecordingExport) -> Option<(&'static str, &'static RecordingExport)> {
        let chosen = [
            (OwnOption::Weight, "--weight", self.weight.is_some()),
            (OwnOption::Table, "--table", self.table.is_some()),
        ];
        let (option, word, _) = chosen.into_iter().find(|(option, _, is)| *is && export.takes != Some(*option))?;
        Some((word, ALL.into_iter().find(|other| other.takes == Some(option))?))
    }
}

/// Where an export goes.
#[derive(Clone, Debug)]
pub struct Destination {
    /// What it is called.
    pub name: String,
    /// Whether somebody looks at it.
    pub is_terminal: bool,
}

/// What there is to say about an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
    /// What reads it.
    pub next: String,
}

/// Writes an export.
pub type Work<'a> = Box<dyn FnOnce(&mut dyn Write, &Destination) -> io::Result<Exported> + 'a>;

impl RecordingExport {
    /// The files of the directory that it is, unless its own option asks for one of them.
    pub fn directory(&self, options: &ExportOptions) -> Option<Files> {
        let asks_for_one = match self.takes {
            Some(OwnOption::Weight) => options.weight.is_some(),
            Some(OwnOption::Table) => options.table.is_some(),
            None => false,
        };
        self.files.filter(|_| !asks_for_one)
    }
}

/// What an export writes of a diagnosis and the recording that explains it.
pub type OfDiagnosis = for<'a> fn(&'a Diagnosis, &'a Tables) -> Work<'a>;

/// A file of an export that is a directory.
pub struct ExportFile<'a> {
    /// Its name in the directory.
    pub name: String,
    /// Writes it.
    pub work: Work<'a>,
}

/// The files of an export that is a directory.
pub type Files = for<'a> fn(&'a Tables) -> Vec<ExportFile<'a>>;

/// Why there is nothing to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct NotExported {
    /// What is missing.
    pub problem: String,
    /// What helps.
    pub remedy: String,
}

/// The export of this name.
pub fn named(name: &str) -> Option<&'static RecordingExport> {
    ALL.into_iter().find(|export| export.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(table.misplaced(&table_csv::EXPORT).is_none());
        let (option, export) = table.misplaced(&collapsed::EXPORT).unwrap();
        assert_eq!((option, export.name), ("--table", "csv"));
        let weight = ExportOptions { weight: Some(Weight::Cpu), ..ExportOptions::default() };
        assert_eq!(
            weight.misplaced(&perfetto::EXPORT).map(|(option, export)| (option, export.name)),
            Some(("--weight", "collapsed"))
        );
        assert!(ExportOptions::default().misplaced(&perfetto::EXPORT).is_none());
    }
}
