//! `slowpath layout`: the order of a binary's code.
//!
//! Traces, orders and binaries are read as the invoker, without privilege; a command is traced as its user.

pub mod order;
pub mod score;
pub mod trace;
mod trial;
pub mod why;

use crate::arguments::{LayoutArguments, LayoutCommand};
use crate::failure::{Failure, Kind};
use crate::foreign_file;
use slowpath_layout::order::{Used, Work, work};
use slowpath_layout::score::Code;
use slowpath_layout::trace_file::{MOST_BYTES, Trace};
use slowpath_report::terminal::escape_terminal;
use slowpath_symbols::binary::Binary;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The largest binary that is read.
const MOST_BINARY: u64 = 2 << 30;
/// The largest order that is read: 600,000 names of Chromium have 60 MB.
const MOST_ORDER: u64 = 256 << 20;

/// Runs the command.
pub fn run(arguments: &LayoutArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        LayoutCommand::Trace(arguments) => trace::run(arguments),
        LayoutCommand::Order(arguments) => order::run(arguments),
        LayoutCommand::Score(arguments) => score::run(arguments),
        LayoutCommand::Why(arguments) => why::run(arguments),
        LayoutCommand::Try(arguments) => trial::run(arguments),
    }
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Usage, format!("{} cannot be read: {why}", escape_terminal(&path.to_string_lossy())))
}

fn bytes_of(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    foreign_file::read(path, most).map_err(|error| unreadable(path, &error))
}

/// Traces by their paths.
fn traces(paths: &[PathBuf]) -> Result<Vec<Trace>, Failure> {
    let read = |path: &PathBuf| {
        Trace::parse(&bytes_of(path, MOST_BYTES)?)
            .map_err(|error| unreadable(path, &error).hint("`slowpath layout trace -o TRACE -- CMD` writes a trace"))
    };
    paths.iter().map(read).collect()
}

fn binary(path: &Path) -> Result<Binary, Failure> {
    Binary::of_elf(&bytes_of(path, MOST_BINARY)?).map_err(|error| unreadable(path, &error))
}

/// What traces used of a binary; at least one did.
fn works(path: &Path, binary: &Binary, paths: &[PathBuf]) -> Result<Vec<Work>, Failure> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let real = real.to_string_lossy();
    let traces = traces(paths)?;
    let of_binary = |trace: &Trace| {
        let object = trace.object(&real, binary.build_id.as_deref())?;
        Some(work(trace, object))
    };
    let works: Vec<Work> = traces.iter().filter_map(of_binary).collect();
    if works.iter().all(Vec::is_empty) {
        let why = format!("no trace shows a use of {}", escape_terminal(&path.to_string_lossy()));
        return Err(Failure::new(Kind::Usage, why).hint("it is found by its build-id: another build has another"));
    }
    Ok(works)
}

/// The code of a binary.
fn code(binary: &Binary) -> Code {
    let functions = binary.functions.iter().map(|function| Used { address: function.address, size: function.size });
    // A linker orders sections within `.text`; without section headers the segment is all that is known.
    let text = binary.sections.iter().find(|section| section.name == ".text");
    let text = text.map(|section| section.address..section.address.saturating_add(section.size));
    let segment = || binary.code_at(binary.entry).map(|part| part.address..part.address.saturating_add(part.size));
    Code::new(functions.collect(), text.or_else(segment))
}
