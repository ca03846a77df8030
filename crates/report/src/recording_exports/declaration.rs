//! What an export of recordings is declared as, and what its work is given and gives back.
//!
//! Owns the declaration, what can be chosen of an export, and why there is nothing to write. Leaves which exports there are
//! to `export_list`, what one writes to its own file, and when, as whom and where to it is written to `written` and `output`.

use crate::Diagnosis;
use crate::stack_weight::Weight;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use std::io::{self, Write};

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
    /// The weight that was chosen, or the first that was recorded where none was.
    ///
    /// # Errors
    /// There are no rows for it, or for any.
    pub(crate) fn recorded_weight(&self, tables: &Tables) -> Result<Weight, NotExported> {
        match self.weight {
            None => first_weight(tables),
            Some(weight) if weight.has_rows(tables) => Ok(weight),
            Some(weight) => Err(NotExported::not_recorded(weight.counted(), weight)),
        }
    }
}

/// The first weight that was recorded.
///
/// # Errors
/// There are no rows for any.
pub(crate) fn first_weight(tables: &Tables) -> Result<Weight, NotExported> {
    Weight::first_of(tables)
        .ok_or_else(|| NotExported::not_recorded("samples, waits, faults or memory calls", Weight::Cpu))
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

impl NotExported {
    fn not_recorded(what: &str, weight: Weight) -> Self {
        Self { problem: format!("this recording holds no {what}"), remedy: weight.remedy().to_owned() }
    }
}
