//! Traces of one tool and one clock, imported one after the other into one recording, and what came of it.

use crate::declaration::Importer;
use crate::input::Input;
use crate::local_code::LocalCode;
use crate::problem::ImportError;
use crate::registry::{ALL, detected};
use crate::trace::Trace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::{Manifest, WriteError, Writer};
use slowpath_tables::{Bytes, Losses, Unavailable};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, Seek};
use std::path::{Path, PathBuf};

/// Version of what `slowpath import --json` prints.
const SCHEMA: &str = "slowpath-import/1";

/// What `slowpath import --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// `slowpath-import/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Directory of the recording.
    pub recording: String,
    /// The format that was read.
    pub format: String,
    /// Rows of each table that has some.
    pub rows: BTreeMap<String, u64>,
    /// Events of which nothing is made, by kind.
    pub not_imported: BTreeMap<String, u64>,
    /// Events that the other tool lost, and rows that could not be written.
    pub losses: Losses,
    /// What the trace does not hold, why, and what would change that.
    pub unavailable: Vec<Unavailable>,
    /// Why the trace was not read to its end, with the place; null where it was.
    pub problem: Option<String>,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum NotImported {
    /// A trace cannot be read at all.
    #[error("{name} cannot be read")]
    Unread {
        /// What it is called.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No importer knows it.
    #[error("{name} is no trace that can be imported")]
    Unknown {
        /// What it is called.
        name: String,
    },
    /// Several traces are of several tools.
    #[error("{name} is no trace of {format}, as the files before it are")]
    OtherFormat {
        /// What it is called.
        name: String,
        /// The format of the first.
        format: &'static str,
    },
    /// There is no trace.
    #[error("no trace to import")]
    Nothing,
    /// The recording cannot be written.
    #[error(transparent)]
    Unwritten(#[from] WriteError),
    /// What is known at the end cannot be written.
    #[error(transparent)]
    Unended(#[from] ImportError),
}

impl NotImported {
    /// What the user can do; none where the error itself says it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Unknown { .. } => {
                let formats: Vec<&str> = ALL.iter().map(|importer| importer.title).collect();
                Some(format!("these are read: {}; --format names one", formats.join("; ")))
            }
            Self::OtherFormat { .. } => Some("import traces of one tool and one clock together".to_owned()),
            Self::Unread { .. } | Self::Nothing | Self::Unwritten(_) | Self::Unended(_) => None,
        }
    }
}

/// What is imported, and how.
pub struct Wanted<'a> {
    /// The format; without it each trace's begin says it, and all must be of one.
    pub format: Option<&'static Importer>,
    /// When, for the manifest (RFC 3339).
    pub created: String,
    /// Most bytes of the recording.
    pub most: Bytes,
    /// Where files may be that the traces name by build id, besides their paths, perf's cache and the system's debug files.
    pub symbols: &'a [PathBuf],
    /// Asked now and then: no more is read once it says no.
    pub is_wanted: &'a dyn Fn() -> bool,
}

/// Imports traces, each with its name, into a directory that is empty. Their buffers hold [`crate::HEAD`] bytes at least.
///
/// # Errors
/// Nothing was written, or the recording could not be. A trace that is damaged is no error: [`Imported::problem`] says where.
pub fn import(
    mut traces: Vec<(String, impl BufRead + Seek)>,
    directory: &Path,
    wanted: Wanted<'_>,
) -> Result<Imported, NotImported> {
    let importer = format_of(&mut traces, wanted.format)?;
    for directory in wanted.symbols {
        is_directory(directory)
            .map_err(|source| NotImported::Unread { name: directory.display().to_string(), source })?;
    }
    let manifest = Manifest { created: wanted.created, ..Manifest::default() };
    let mut writer = Writer::create(directory, manifest)?.with_limit(wanted.most);
    let mut problem = None;
    let mut manifest = writer.manifest().clone();
    let mut trace = Trace::new(&mut writer);
    for (name, mut from) in traces {
        let mut input = Input::of_file(&name, &mut from, wanted.is_wanted);
        if let Err(error) = (importer.import)(&mut input, &mut trace) {
            problem = Some(chain(&error));
            break;
        }
    }
    let local = LocalCode::new(wanted.symbols, wanted.is_wanted).and_cache_of_perf();
    trace.finish(importer, problem.clone(), Some(&local), &mut manifest)?;
    let written = writer.finish(|last| {
        manifest.segments = std::mem::take(&mut last.segments);
        manifest.losses.merge(&last.losses);
        *last = manifest;
    })?;
    Ok(summary(importer, directory, &written, problem))
}

fn is_directory(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// The one format of all, before anything is written: the one that was asked for, whatever the traces begin with, or that of each.
fn format_of(
    traces: &mut [(String, impl BufRead)],
    asked: Option<&'static Importer>,
) -> Result<&'static Importer, NotImported> {
    let mut importer = asked;
    for (name, from) in traces.iter_mut() {
        let begin = from.fill_buf().map_err(|source| NotImported::Unread { name: name.clone(), source })?;
        if asked.is_some() {
            continue;
        }
        let found = detected(begin).ok_or_else(|| NotImported::Unknown { name: name.clone() })?;
        let first = *importer.get_or_insert(found);
        if found.name != first.name {
            return Err(NotImported::OtherFormat { name: name.clone(), format: first.name });
        }
    }
    importer.ok_or(NotImported::Nothing)
}

/// An error and what is behind it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

fn summary(importer: &Importer, directory: &Path, manifest: &Manifest, problem: Option<String>) -> Imported {
    let mut rows = BTreeMap::new();
    for segment in &manifest.segments {
        *rows.entry(segment.table.clone()).or_default() += segment.rows;
    }
    let not_imported = manifest.counters.iter();
    let not_imported = not_imported.filter_map(|(name, n)| Some((name.strip_prefix("not_imported.")?.to_owned(), *n)));
    Imported {
        schema: SCHEMA.to_owned(),
        recording: directory.to_string_lossy().into_owned(),
        format: importer.name.to_owned(),
        rows,
        not_imported: not_imported.collect(),
        losses: manifest.losses.clone(),
        unavailable: manifest.unavailable.clone(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRACE: &str = "7 1700000000.000100 execve(\"/usr/bin/cat\", [\"cat\"], 0x7f) = 0 <0.0002>\n";

    fn imported(traces: &[&str], format: Option<&str>) -> Result<Imported, NotImported> {
        imported_with(traces, format, &[])
    }

    fn imported_with(traces: &[&str], format: Option<&str>, symbols: &[PathBuf]) -> Result<Imported, NotImported> {
        let place = tempfile::tempdir().unwrap();
        let named: Vec<_> =
            traces.iter().enumerate().map(|(at, text)| (format!("trace {at}"), io::Cursor::new(*text))).collect();
        let format = format.map(|name| *ALL.iter().find(|importer| importer.name == name).unwrap());
        let wanted = Wanted { format, created: String::new(), most: Bytes(1 << 20), symbols, is_wanted: &|| true };
        import(named, place.path(), wanted)
    }

    #[test]
    fn one_format_is_found_or_taken_as_asked_for() {
        assert_eq!(imported(&[STRACE, STRACE], None).unwrap().format, "strace");
        assert!(matches!(imported(&["?"], None), Err(NotImported::Unknown { name }) if name == "trace 0"));
        assert!(matches!(imported(&[], None), Err(NotImported::Nothing)));
        let other = "# tracer: nop\n";
        assert!(matches!(
            imported(&[STRACE, other], None),
            Err(NotImported::OtherFormat { name, format: "strace" }) if name == "trace 1"
        ));
        // What begins like nothing that is known is read all the same where its format was named.
        let named = imported(&["?"], Some("strace")).unwrap();
        assert!(named.problem.is_some_and(|problem| problem.contains("trace 0")));
    }

    #[test]
    fn a_directory_of_files_that_is_none_is_named_before_anything_is_read() {
        let place = tempfile::tempdir().unwrap();
        assert!(imported_with(&[STRACE], None, &[place.path().to_owned()]).is_ok());
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        for other in [place.path().join("none"), file] {
            let found = imported_with(&[STRACE], None, std::slice::from_ref(&other));
            assert!(matches!(found, Err(NotImported::Unread { name, .. }) if name == other.display().to_string()));
        }
    }
}
