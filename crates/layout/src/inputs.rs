//! What orders are made and scored from: traces, binaries and orders in files, each of limited size. Reading runs as the user whose files
//! they are, which is for the command to see to.

use crate::score::Code;
use crate::trace_file::{MOST_BYTES, Trace, page_of};
use crate::work::{self, Used, Work};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::foreign_file;
use slowpath_symbols::binary::Binary;
use std::path::{Path, PathBuf};

/// The largest binary that is read.
pub(crate) const MOST_BINARY: u64 = 2 << 30;
/// The largest order that is read: 600,000 names of Chromium have 60 MB.
pub(crate) const MOST_ORDER: u64 = 256 << 20;

pub(crate) fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Usage, format!("{} cannot be read: {why}", path.display()))
}

pub(crate) fn bytes_of(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    foreign_file::read(path, most).map_err(|error| unreadable(path, &error))
}

/// Traces by their paths.
pub(crate) fn traces(paths: &[PathBuf]) -> Result<Vec<Trace>, Failure> {
    let read = |path: &PathBuf| {
        Trace::parse(&bytes_of(path, MOST_BYTES)?)
            .map_err(|error| unreadable(path, &error).hint("`slowpath layout trace -o TRACE -- CMD` writes a trace"))
    };
    paths.iter().map(read).collect()
}

pub(crate) fn binary(path: &Path) -> Result<Binary, Failure> {
    Binary::of_elf(&bytes_of(path, MOST_BINARY)?).map_err(|error| unreadable(path, &error))
}

/// What traces used of a binary.
pub(crate) struct TracedUse {
    /// A work each.
    pub works: Vec<Work>,
    /// Bytes of a page of the kernels that they ran on.
    pub page: u64,
}

/// What traces used of a binary; at least one did.
pub(crate) fn works(path: &Path, binary: &Binary, paths: &[PathBuf]) -> Result<TracedUse, Failure> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let real = real.to_string_lossy();
    let traces = traces(paths)?;
    let of_binary = |trace: &Trace| {
        let object = trace.object(&real, binary.build_id.as_deref())?;
        Some(work::of_trace(trace, object))
    };
    let works: Vec<Work> = traces.iter().filter_map(of_binary).collect();
    if works.iter().all(Vec::is_empty) {
        let why = format!("no trace shows a use of {}", path.display());
        return Err(Failure::new(Kind::Usage, why).hint("it is found by its build-id: another build has another"));
    }
    let of_binary = |trace: &&Trace| trace.object(&real, binary.build_id.as_deref()).is_some();
    Ok(TracedUse { works, page: page_of(traces.iter().filter(of_binary)) })
}

/// The code of a binary as a kernel with pages of so many bytes maps it.
pub(crate) fn code(binary: &Binary, page: u64) -> Code {
    let functions = binary.functions.iter().map(|function| Used { address: function.address, size: function.size });
    // A linker orders sections within `.text`; without section headers the segment is all that is known.
    let text = binary.sections.iter().find(|section| section.name == ".text");
    let text = text.map(|section| section.address..section.address.saturating_add(section.size));
    let segment = || binary.code_at(binary.entry).map(|part| part.address..part.address.saturating_add(part.size));
    let names = binary.functions.iter().filter_map(|function| Some((function.name.as_deref()?, function.address)));
    Code::new(functions.collect(), text.or_else(segment)).with_names(names).on_pages_of(page)
}
