//! Imports of bytes, for tests and fuzzers.

use crate::input::Input;
use crate::local_code::LocalCode;
use crate::registry::named;
use crate::trace::Trace;
use slowpath_recording::Tables;
use std::io::Cursor;
use std::path::PathBuf;

/// What an importer makes of these bytes, and why it did not read all of them. Every importer does that for any bytes. Nothing is
/// looked up on this machine.
///
/// # Panics
/// There is no importer of this name.
pub fn import_bytes(name: &str, bytes: &[u8]) -> (Tables, Option<String>) {
    import_with(name, bytes, None)
}

/// The same with names of functions from files of this machine and from these directories.
///
/// # Panics
/// There is no importer of this name.
pub fn import_bytes_with_names(name: &str, bytes: &[u8], symbols: &[PathBuf]) -> (Tables, Option<String>) {
    import_with(name, bytes, Some(&LocalCode::new(symbols, &|| true)))
}

fn import_with(name: &str, bytes: &[u8], local: Option<&LocalCode<'_>>) -> (Tables, Option<String>) {
    let importer = named(name).unwrap_or_else(|| panic!("there is no importer {name}"));
    let mut tables = Tables::default();
    let mut manifest = slowpath_recording::Manifest::default();
    let mut reader = Cursor::new(bytes);
    let mut input = Input::of_file("trace", &mut reader, &|| true);
    let mut trace = Trace::new(&mut tables);
    let problem = (importer.import)(&mut input, &mut trace).err().map(|error| error.to_string());
    if let Err(error) = trace.finish(importer, problem.clone(), local, &mut manifest) {
        return (tables, Some(error.to_string()));
    }
    tables.manifest = manifest;
    (tables, problem)
}
