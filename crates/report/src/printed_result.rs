//! A command's result as it is printed: its one JSON object, or its screen.
//!
//! Owns that nothing is in it which a terminal obeys, and that JSON is written piece by piece: of a recording of many threads it is hundreds
//! of MB. Leaves what happens when it cannot be written to the command.

use crate::terminal::{Style, screen_of};
use serde::Serialize;
use slowpath_tables::EscapedJson;
use std::io::{self, BufWriter, IsTerminal, Write};

/// Writes the JSON object, or the screen that `text` makes.
///
/// # Errors
/// It cannot be written.
pub fn write<T: Serialize>(
    mut out: impl Write + IsTerminal,
    is_json: bool,
    value: &T,
    text: impl FnOnce(&T, &Style) -> String,
) -> io::Result<()> {
    if is_json {
        return write_json(out, value);
    }
    out.write_all(screen_of(&text(value, &Style::detect(out.is_terminal()))).as_bytes())?;
    out.flush()
}

/// Writes the JSON object.
///
/// # Errors
/// It cannot be written. What is printed has text for keys and finite numbers, which is all else that could fail.
pub fn write_json(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    // The buffer passes on what it was given as a whole, as `EscapedJson` needs it.
    let mut out = BufWriter::with_capacity(64 << 10, EscapedJson(out));
    let written = serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from);
    let written = written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    // What could not be written is not tried again when the buffer goes: a part of it may have been.
    let _ = out.into_parts();
    written
}
