//! `slowpath import`: traces of other tools as a recording. They are parsed and written as the user, in a sandbox.

use crate::arguments::ImportArguments;
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::interrupt;
use crate::output_directory;
use crate::progress::Progress;
use crate::recorded_launch::now_rfc3339;
use crate::unprivileged::{Work, as_user};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_import::{HEAD, Importer, Input, Trace, detected};
use slowpath_recording::{Manifest, Writer};
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::{Bytes, Losses, Unavailable};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

/// What `slowpath import --json` prints.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// `slowpath-import/1`.
    schema: String,
    /// Directory of the recording.
    recording: String,
    /// The format that was read.
    format: String,
    /// Rows of each table that has some.
    rows: BTreeMap<String, u64>,
    /// Events of which nothing is made, by kind.
    not_imported: BTreeMap<String, u64>,
    /// Events that the other tool lost, and rows that could not be written.
    losses: Losses,
    /// What the trace does not hold, why, and what would change that.
    unavailable: Vec<Unavailable>,
    /// Why the trace was not read to its end, with the place; null where it was.
    problem: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let user = super::invoker()?;
    let directory = output_directory::prepare(&arguments.output, &user)?;
    interrupt::watch();
    let what = Work::writing_beneath("importing the trace", &directory);
    let imported = as_user(&user, &what, || {
        let progress = Progress::new(arguments.quiet);
        progress.step("importing the trace");
        let imported = import(arguments, &directory);
        progress.done();
        imported
    })?;
    super::show(arguments.json, &imported, |imported, _| screen(imported));
    let Some(problem) = imported.problem else { return Ok(ExitCode::SUCCESS) };
    let failure = match interrupt::requested() {
        true => Failure::new(Kind::Interrupted, "interrupted"),
        false => Failure::new(Kind::Usage, problem),
    };
    Ok(crate::failure::report(&failure.hint("what was read until then is in the recording"), false))
}

/// A trace, and its begin in memory.
fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let unread = |error| Failure::new(Kind::Usage, format!("{} cannot be read: {error}", path.display()));
    let mut file = BufReader::with_capacity(HEAD, foreign_file::open(path).map_err(unread)?);
    file.fill_buf().map_err(unread)?;
    Ok(file)
}

fn import(arguments: &ImportArguments, directory: &Path) -> Result<Imported, Failure> {
    // All of them can be opened, and are of one format, before anything is written.
    let mut files = Vec::with_capacity(arguments.files.len());
    let mut importer = arguments.format;
    for path in &arguments.files {
        let file = open(path)?;
        let found = detected(file.buffer());
        let wanted = *importer.get_or_insert(found.ok_or_else(|| unknown(path))?);
        if arguments.format.is_none() && found.is_none_or(|found| found.name != wanted.name) {
            let problem = format!("{} is no trace of {}, as the files before it are", path.display(), wanted.name);
            return Err(Failure::new(Kind::Usage, problem).hint("import traces of one tool and one clock together"));
        }
        files.push((path, file));
    }
    let Some(importer) = importer else { return Err(Failure::new(Kind::Usage, "no file to import")) };
    let manifest = Manifest { created: now_rfc3339(), ..Manifest::default() };
    let writer = Writer::create(directory, manifest).map_err(failed(Kind::Usage))?;
    let mut writer = writer.with_limit(Bytes(arguments.max_size));
    let mut problem = None;
    let mut manifest = writer.manifest().clone();
    let mut trace = Trace::new(&mut writer);
    for (path, mut file) in files {
        let is_wanted = || !interrupt::requested();
        let mut input = Input::new(&path.to_string_lossy(), &mut file, &is_wanted);
        if let Err(error) = (importer.import)(&mut input, &mut trace) {
            problem = Some(Failure::from_error(Kind::Usage, &error).chain());
            break;
        }
    }
    trace.finish(importer, problem.clone(), &mut manifest).map_err(failed(Kind::Usage))?;
    let written = writer.finish(|last| {
        manifest.segments = std::mem::take(&mut last.segments);
        manifest.losses.merge(&last.losses);
        *last = manifest;
    });
    Ok(summary(importer, directory, &written.map_err(failed(Kind::Usage))?, problem))
}

fn unknown(path: &Path) -> Failure {
    let formats: Vec<&str> = slowpath_import::ALL.iter().map(|importer| importer.title).collect();
    Failure::new(Kind::Usage, format!("{} is no trace that can be imported", path.display()))
        .hint(format!("these are read: {}; --format names one", formats.join("; ")))
}

fn summary(importer: &Importer, directory: &Path, manifest: &Manifest, problem: Option<String>) -> Imported {
    let mut rows = BTreeMap::new();
    for segment in &manifest.segments {
        *rows.entry(segment.table.clone()).or_default() += segment.rows;
    }
    let not_imported = manifest.counters.iter();
    let not_imported = not_imported.filter_map(|(name, n)| Some((name.strip_prefix("not_imported.")?.to_owned(), *n)));
    Imported {
        schema: "slowpath-import/1".to_owned(),
        recording: directory.to_string_lossy().into_owned(),
        format: importer.name.to_owned(),
        rows,
        not_imported: not_imported.collect(),
        losses: manifest.losses.clone(),
        unavailable: manifest.unavailable.clone(),
        problem,
    }
}

fn screen(imported: &Imported) -> String {
    let lines = |map: &BTreeMap<String, u64>| {
        let parts: Vec<String> =
            map.iter().filter(|(_, n)| **n > 0).map(|(name, n)| format!("{n} {}", escape_terminal(name))).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    let mut text = format!("imported {} into {}\n", imported.format, escape_terminal(&imported.recording));
    text.push_str(&format!("  rows          {}\n", lines(&imported.rows)));
    text.push_str(&format!("  not imported  {}\n", lines(&imported.not_imported)));
    text.push_str(&format!("  lost          {}\n", lines(&imported.losses.0)));
    text.push_str("not available\n");
    for gap in &imported.unavailable {
        text.push_str(&format!("  {}: {} ({})\n", gap.what, gap.reason, gap.remedy));
    }
    text
}
