//! Tables of a recording as comma-separated values (RFC 4180), for spreadsheets, R, pandas and shell tools: all of them, a file each
//! in a directory, or one.
//!
//! Owns the text of cells. A null is an empty field. In one table alone the column `stack` holds the names of the frames, outermost
//! first, with semicolons between them and escaped as [`crate::collapsed`] does; beside the others it is the number of the row in
//! `stacks`. Text that a spreadsheet would take for a formula has a `'` before it ([`harmless`]).

use crate::collapsed::escape;
use crate::exports::csv::harmless;
use crate::gaps;
use crate::recording_exports::{ExportFile, ExportOptions, Exported, NotExported, OwnOption, RecordingExport, Work};
use crate::terminal::escape_terminal;
use arrow_array::{
    Array, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array, cast::AsArray,
};
use arrow_schema::DataType;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;
use std::io::{self, Write};

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "csv",
    title: "Tables for spreadsheets, R and pandas, a file each, or one",
    what: "Every table as a file of its name in the directory that `-o` names, with the columns of the recording format. With \
           `--table` that table alone, in which call stacks become names.",
    lacks: "The manifest: what was recorded, lost and not observed. DuckDB, pandas and polars read the tables of a recording as \
            they are.",
    read_by: "spreadsheets, R, pandas",
    is_text: true,
    takes: Some(OwnOption::Table),
    of_diagnosis: None,
    files: Some(files),
    prepare,
};

fn prepare<'a>(tables: &'a Tables, options: &ExportOptions) -> Result<Work<'a>, NotExported> {
    let counts = tables.row_counts();
    let problem = match &options.table {
        Some(name) if counts.iter().any(|(table, _)| table == name) => {
            let name = name.clone();
            return Ok(Box::new(move |mut out, to| {
                let rows = written(write(tables, &name, to.is_terminal, &mut out))?;
                let next = format!("{}: {rows} rows of table {name}", to.name);
                Ok(Exported { notes: gaps::notes(&tables.manifest), next })
            }));
        }
        Some(name) => format!("there is no table {name:?}"),
        None => "--to csv needs a directory for all tables, or the name of one".to_owned(),
    };
    let list: Vec<String> = counts.iter().map(|(table, rows)| format!("{table} ({rows} rows)")).collect();
    Err(NotExported { problem, remedy: format!("-o DIRECTORY, or --table with one of: {}", list.join(", ")) })
}

fn files(tables: &Tables) -> Vec<ExportFile<'_>> {
    let file = |name: &'static str| {
        let work: Work<'_> = Box::new(move |mut out, to| {
            let rows = written(write_table(tables, name, to.is_terminal, Stacks::Numbers, &mut out))?;
            Ok(Exported { notes: Vec::new(), next: format!("{}: {rows} rows", to.name) })
        });
        ExportFile { name: format!("{name}.csv"), work }
    };
    tables.row_counts().into_iter().map(|(name, _)| file(name)).collect()
}

fn written(rows: Result<u64, TableError>) -> io::Result<u64> {
    rows.map_err(|error| match error {
        TableError::Io(error) => error,
        other => io::Error::other(other),
    })
}

/// Rows that are columns at the same time: memory for the cells of these, not of all.
const BATCH: usize = 65_536;

/// Name of the column that numbers a call stack.
const STACK: &str = "stack";

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// There is no such table.
    #[error("there is no table {0:?}")]
    NoTable(String),
    /// A column has a type that no declared one has.
    #[error("column {0} has no form as text")]
    Column(String),
    /// What it was written to failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes the table `name` with a header and returns its number of rows. For a terminal (`is_shown`), what one obeys is
/// shown as a code in all text.
///
/// # Errors
/// There is no such table, or `out` failed.
pub fn write(tables: &Tables, name: &str, is_shown: bool, out: &mut impl Write) -> Result<u64, TableError> {
    write_table(tables, name, is_shown, Stacks::Names, out)
}

/// What the column of call stacks holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stacks {
    /// The names of the frames.
    Names,
    /// The number of the row in the table of stacks.
    Numbers,
}

fn write_table(
    tables: &Tables,
    name: &str,
    is_shown: bool,
    stacks: Stacks,
    out: &mut impl Write,
) -> Result<u64, TableError> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out);
    let io = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => TableError::Io(error),
        other => TableError::Io(io::Error::other(format!("{other:?}"))),
    };
    let mut folded = None;
    let mut from = 0;
    let mut text = Vec::new();
    loop {
        let batch = tables.batch(name, from..from + BATCH).ok_or_else(|| TableError::NoTable(name.to_owned()))?;
        if from == 0 {
            writer.write_record(batch.schema().fields().iter().map(|field| field.name())).map_err(io)?;
        }
        let cells = cells(&batch, tables, stacks, &mut folded)?;
        for row in 0..batch.num_rows() {
            for cell in &cells {
                text.clear();
                cell.write(row, folded.as_ref(), is_shown, &mut text)?;
                writer.write_field(&text).map_err(io)?;
            }
            writer.write_record(None::<&[u8]>).map_err(io)?;
        }
        from += batch.num_rows();
        if batch.num_rows() < BATCH {
            writer.flush()?;
            return Ok(from as u64);
        }
    }
}

/// A column whose type is known.
enum Cells<'a> {
    U64(&'a UInt64Array),
    U32(&'a UInt32Array),
    I64(&'a Int64Array),
    I32(&'a Int32Array),
    Bool(&'a BooleanArray),
    Text(&'a StringArray),
    Stack(&'a UInt32Array),
}

fn cells<'a, 't>(
    batch: &'a RecordBatch,
    tables: &'t Tables,
    stacks: Stacks,
    folded: &mut Option<Folded<'t>>,
) -> Result<Vec<Cells<'a>>, TableError> {
    let schema = batch.schema();
    let cell = |(field, column): (&arrow_schema::FieldRef, &'a arrow_array::ArrayRef)| {
        Ok(match column.data_type() {
            DataType::UInt64 => Cells::U64(column.as_primitive()),
            DataType::UInt32 if field.name() == STACK && stacks == Stacks::Names => {
                folded.get_or_insert_with(|| Folded::new(tables));
                Cells::Stack(column.as_primitive())
            }
            DataType::UInt32 => Cells::U32(column.as_primitive()),
            DataType::Int64 => Cells::I64(column.as_primitive()),
            DataType::Int32 => Cells::I32(column.as_primitive()),
            DataType::Boolean => Cells::Bool(column.as_boolean()),
            DataType::Utf8 => Cells::Text(column.as_string()),
            _ => return Err(TableError::Column(field.name().clone())),
        })
    };
    schema.fields().iter().zip(batch.columns()).map(cell).collect()
}

impl Cells<'_> {
    fn write(&self, row: usize, folded: Option<&Folded>, is_shown: bool, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::U64(array) if array.is_valid(row) => write!(out, "{}", array.value(row)),
            Self::U32(array) if array.is_valid(row) => write!(out, "{}", array.value(row)),
            Self::I64(array) if array.is_valid(row) => write!(out, "{}", array.value(row)),
            Self::I32(array) if array.is_valid(row) => write!(out, "{}", array.value(row)),
            Self::Bool(array) if array.is_valid(row) => write!(out, "{}", array.value(row)),
            Self::Text(array) if array.is_valid(row) && is_shown => {
                out.write_all(escape_terminal(&harmless(array.value(row))).as_bytes())
            }
            Self::Text(array) if array.is_valid(row) => out.write_all(harmless(array.value(row)).as_bytes()),
            Self::Stack(array) if array.is_valid(row) => {
                let text = folded.map(|folded| folded.text(array.value(row))).unwrap_or_default();
                out.write_all(harmless(&text).as_bytes())
            }
            _ => Ok(()),
        }
    }
}

/// Call stacks with the text of each frame.
struct Folded<'a> {
    stacks: CallStacks<'a>,
    frames: Vec<String>,
}

impl<'a> Folded<'a> {
    fn new(tables: &'a Tables) -> Self {
        let stacks = CallStacks::new(tables);
        let frames = stacks.frames().iter();
        let frames = frames
            .map(|frame| {
                frame.functions.iter().rev().map(|function| escape(&function.name)).collect::<Vec<_>>().join(";")
            })
            .collect();
        Self { stacks, frames }
    }

    fn text(&self, stack: u32) -> String {
        let Some(path) = self.stacks.path(Some(stack)) else { return String::new() };
        let frames = self.stacks.outermost_first(path);
        frames.into_iter().map(|frame| self.frames[frame as usize].as_str()).collect::<Vec<_>>().join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv_of(tables: &Tables, name: &str) -> String {
        let mut out = Vec::new();
        write(tables, name, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_stack_is_its_names_and_a_null_is_empty() {
        let tables = Tables::from_text(
            "== faults\nts duration pid start tid address ip kind kernel stack\n\
             20 -    8 11 8 0x7f0000001000 0x400000 minor false -\n21 1500 8 11 8 1 2 major true 1\n22 1 8 11 8 1 2 major true 9\n\
             == stacks\nid parent frame\n0 - 0\n1 0 1\n\
             == frames\nid kind address\n0 kernel 1\n1 kernel 2\n\
             == symbols\nframe level function\n0 0 \"a, \\\"b\\\"\"\n1 0 c;d\n1 1 around\n",
        )
        .unwrap();
        assert_eq!(
            csv_of(&tables, "faults"),
            "ts,duration,pid,start,tid,address,ip,kind,kernel,stack,recording\n\
             20,,8,11,8,139637976731648,4194304,minor,false,,\n\
             21,1500,8,11,8,1,2,major,true,\"a, \"\"b\"\";around;c\\u{3b}d\",\n\
             22,1,8,11,8,1,2,major,true,[unknown],\n"
        );
    }

    #[test]
    fn text_is_no_formula_and_numbers_stay_numbers() {
        let tables = Tables::from_text(
            "== opens\nts pid start tid path flags result dev ino\n15 8 11 8 \"=1+1\\n\" 0 -2 - -\n\
             == stacks\nid frame\n0 0\n== frames\nid kind\n0 kernel\n== symbols\nframe function\n0 -cmd\n\
             == cpu_samples\nts stack\n1 0\n",
        )
        .unwrap();
        assert_eq!(csv_of(&tables, "opens").lines().nth(1), Some("15,8,11,8,\"'=1+1"));
        assert!(csv_of(&tables, "opens").ends_with("\",0,,-2,,\n"));
        let mut shown = Vec::new();
        write(&tables, "opens", true, &mut shown).unwrap();
        assert!(String::from_utf8(shown).unwrap().ends_with("\n15,8,11,8,'=1+1\\u{a},0,,-2,,\n"));
        assert!(csv_of(&tables, "cpu_samples").ends_with(",'-cmd,,,\n"));
    }

    #[test]
    fn all_tables_are_files_whose_stacks_are_numbers() {
        let tables = Tables::from_text("== cpu_samples\nts stack\n1 0\n== stacks\nid frame\n0 0\n").unwrap();
        let to = crate::recording_exports::Destination { name: "x".to_owned(), is_terminal: false };
        let mut texts = std::collections::BTreeMap::new();
        for file in files(&tables) {
            let mut out = Vec::new();
            (file.work)(&mut out, &to).unwrap();
            texts.insert(file.name, String::from_utf8(out).unwrap());
        }
        assert_eq!(texts.len(), tables.row_counts().len());
        assert!(texts["cpu_samples.csv"].ends_with("\n1,0,0,0,0,false,0,,,\n"), "{}", texts["cpu_samples.csv"]);
        assert_eq!(texts["opens.csv"].lines().count(), 1);
    }

    #[test]
    fn every_table_has_a_form_and_others_are_named() {
        let tables = Tables::default();
        for (name, rows) in tables.row_counts() {
            assert_eq!((csv_of(&tables, name).lines().count(), rows), (1, 0), "{name}");
        }
        let error = write(&tables, "nothing", false, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "there is no table \"nothing\"");
    }

    #[test]
    fn rows_beyond_a_batch_follow() {
        let sample = Tables::from_text("== cpu_samples\nts pid start\n1 7 1\n").unwrap().cpu_samples.remove(0);
        for count in [BATCH - 1, BATCH, BATCH + 1] {
            let tables = Tables { cpu_samples: vec![sample.clone(); count], ..Tables::default() };
            assert_eq!(csv_of(&tables, "cpu_samples").lines().count(), count + 1);
        }
    }
}
