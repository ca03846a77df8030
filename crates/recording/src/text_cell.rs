//! One value of the text form: splitting a line into cells, and a cell to and from an Arrow column of one row.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// A cell of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// As it stands.
    Bare(String),
    /// Written as a JSON string.
    Quoted(String),
}

/// Splits a line at white space, outside JSON strings.
pub(crate) fn split(line: &str) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (cell, after) = if rest.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let text = values.next().and_then(Result::ok).ok_or_else(|| format!("not a JSON string: {rest}"))?;
            let (_, after) = rest.split_at(values.byte_offset());
            if after.starts_with(|c: char| !c.is_whitespace()) {
                return Err(format!("no space after a string: {rest}"));
            }
            (Cell::Quoted(text), after)
        } else {
            let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            (Cell::Bare(word.to_owned()), after)
        };
        cells.push(cell);
        rest = after.trim_start();
    }
    Ok(cells)
}

/// The column of one row that a cell stands for; no cell stands for the empty value of the column.
pub(crate) fn parse(field: &Field, cell: Option<&Cell>) -> Result<ArrayRef, String> {
    let bare = match cell {
        Some(Cell::Quoted(text)) => return text_array(field, text),
        Some(Cell::Bare(word)) if word == "-" => None,
        Some(Cell::Bare(word)) => Some(word.as_str()),
        None if field.is_nullable() => None,
        None if *field.data_type() == DataType::Utf8 => Some(""),
        None if *field.data_type() == DataType::Boolean => Some("false"),
        None => Some("0"),
    };
    if bare.is_none() && !field.is_nullable() {
        return Err("must not be null".to_owned());
    }
    Ok(match field.data_type() {
        DataType::Utf8 => Arc::new(StringArray::from(vec![bare])),
        DataType::Boolean => Arc::new(BooleanArray::from(vec![
            bare.map(|word| word.parse::<bool>().map_err(|_| format!("{word:?} is neither true nor false")))
                .transpose()?,
        ])),
        DataType::UInt64 => Arc::new(UInt64Array::from(vec![bare.map(integer).transpose()?])),
        DataType::UInt32 => Arc::new(UInt32Array::from(vec![bare.map(integer).transpose()?])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![bare.map(integer).transpose()?])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![bare.map(integer).transpose()?])),
        other => return Err(format!("the text form has no {other}")),
    })
}

fn text_array(field: &Field, text: &str) -> Result<ArrayRef, String> {
    match field.data_type() {
        DataType::Utf8 => Ok(Arc::new(StringArray::from(vec![text]))),
        other => Err(format!("a string stands where {other} is expected")),
    }
}

/// An integer: decimal or `0x` hexadecimal, with `_` between digits for the reader's eyes.
fn integer<I: TryFrom<i128>>(word: &str) -> Result<I, String> {
    let digits: String = word.chars().filter(|c| *c != '_').collect();
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => i128::from_str_radix(hexadecimal, 16),
        None => digits.parse(),
    };
    value
        .map_err(|_| format!("{word:?} is not an integer"))
        .and_then(|value| I::try_from(value).map_err(|_| format!("{word:?} does not fit")))
}

/// The cell for the value of `row`.
pub(crate) fn print(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return "-".to_owned();
    }
    match column.data_type() {
        DataType::Utf8 => print_string(column.as_string::<i32>().value(row)),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        // The trait `Column` has no other type; a new one shows up as a cell that cannot be read back.
        other => format!("<{other}>"),
    }
}

fn print_string(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && c != '"';
    let bare = !text.is_empty() && text != "-" && !text.starts_with(['#', '=']) && text.chars().all(plain);
    if bare { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
