//! A recording as readable text, so that a test shows the rows it is about.
//!
//! ```text
//! # comments and empty lines are skipped
//! == manifest
//! {"launch": {"released": 0, "ready": 900, "ready_when": "exit", "outcome": "ready"}}
//! == faults
//! ts  duration pid kind  address
//! 1   -        7   minor 0x7f00_0000
//! 2   1_000    7   major 4096
//! ```
//!
//! The second line of a table names its columns, in any order. A column that is left out is null, zero, false or
//! empty; a word (`kind`, `op`, `asker`) has no such value and must be given. `-` is null; a string with spaces or
//! other marks is written as a JSON string. Of the manifest only the fields that matter need be given.

use crate::manifest::Manifest;
use crate::tables::{Tables, each_table};
use crate::text_cell;
use arrow_array::RecordBatch;
use slowpath_tables::Table;

/// A line of the text form that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

struct Section<'a> {
    /// Line of its heading.
    line: usize,
    name: &'a str,
    /// Lines with content, numbered.
    lines: Vec<(usize, &'a str)>,
}

macro_rules! parse_tables {
    ([$tables:ident, $part:ident] $($field:ident: $row:ty),*) => {
        match $part.name {
            "manifest" => $tables.manifest = parse_manifest(&$part)?,
            $(<$row>::NAME => $tables.$field.append(&mut parse_table::<$row>(&$part)?),)*
            other => return Err(TextError { line: $part.line, problem: format!("there is no table {other:?}") }),
        }
    };
}

macro_rules! print_tables {
    ([$tables:ident, $text:ident] $($field:ident: $row:ty),*) => { $(print_table(&$tables.$field, &mut $text);)* };
}

impl Tables {
    /// Reads tables from their text form; rows keep the order of the text.
    ///
    /// # Errors
    /// The first line that cannot be understood, with its number.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let mut tables = Tables::default();
        for part in parts(text)? {
            each_table!(parse_tables!(tables, part));
        }
        Ok(tables)
    }

    /// The tables in their text form; empty tables and an untouched manifest are left out.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let tables = self;
        if tables.manifest != Manifest::default() {
            text.push_str("== manifest\n");
            text.push_str(&tables.manifest.to_json());
        }
        each_table!(print_tables!(tables, text));
        text
    }
}

fn parts(text: &str) -> Result<Vec<Section<'_>>, TextError> {
    let mut parts: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("==") {
            parts.push(Section { line: number, name: name.trim(), lines: Vec::new() });
        } else if let Some(part) = parts.last_mut() {
            part.lines.push((number, line));
        } else {
            return Err(TextError { line: number, problem: "stands before the first \"== table\"".to_owned() });
        }
    }
    Ok(parts)
}

/// Fields that are given replace those of an empty manifest.
fn parse_manifest(part: &Section) -> Result<Manifest, TextError> {
    let fail = |problem: String| TextError { line: part.line, problem };
    let json: Vec<&str> = part.lines.iter().map(|(_, line)| *line).collect();
    let given: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&json.join("\n")).map_err(|e| fail(e.to_string()))?;
    let mut whole = serde_json::to_value(Manifest::default()).map_err(|e| fail(e.to_string()))?;
    for (key, value) in given {
        match whole.get_mut(&key) {
            Some(field) => *field = value,
            None => return Err(fail(format!("the manifest has no field {key:?}"))),
        }
    }
    serde_json::from_value(whole).map_err(|e| fail(e.to_string()))
}

fn parse_table<T: Table>(part: &Section) -> Result<Vec<T>, TextError> {
    let Some(((heading_line, heading), lines)) = part.lines.split_first() else {
        return Err(TextError { line: part.line, problem: "has no line that names the columns".to_owned() });
    };
    let schema = T::schema();
    let names: Vec<&str> = heading.split_whitespace().collect();
    for (index, name) in names.iter().enumerate() {
        let problem = if schema.index_of(name).is_err() {
            format!("table {} has no column {name:?}", T::NAME)
        } else if names[..index].contains(name) {
            format!("column {name:?} stands twice")
        } else {
            continue;
        };
        return Err(TextError { line: *heading_line, problem });
    }
    let mut rows = Vec::with_capacity(lines.len());
    for (line, text) in lines {
        let fail = |problem: String| TextError { line: *line, problem };
        let cells = text_cell::split(text).map_err(fail)?;
        if cells.len() != names.len() {
            return Err(fail(format!("{} values for {} columns", cells.len(), names.len())));
        }
        let columns = schema
            .fields()
            .iter()
            .map(|field| {
                let cell = names.iter().position(|name| name == field.name()).map(|index| &cells[index]);
                text_cell::parse(field, cell).map_err(|problem| fail(format!("column {}: {problem}", field.name())))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|e| fail(e.to_string()))?;
        rows.append(&mut T::from_batch(&batch).map_err(|e| fail(e.to_string()))?);
    }
    Ok(rows)
}

fn print_table<T: Table>(rows: &[T], text: &mut String) {
    if rows.is_empty() {
        return;
    }
    let schema = T::schema();
    let batch = T::to_batch(rows);
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    text.push_str(&format!("== {}\n{}\n", T::NAME, names.join(" ")));
    for row in 0..batch.num_rows() {
        let cells: Vec<String> = batch.columns().iter().map(|column| text_cell::print(column.as_ref(), row)).collect();
        text.push_str(&cells.join(" "));
        text.push('\n');
    }
}
