//! `slowpath export`: a recording in another tool's format.

mod output;

use crate::arguments::export::ExportArguments;
use crate::commands::analyze;
use crate::failure::{Failure, Kind};
use crate::output_directory;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use crate::whole_file::{WholeFile, unwritable};
use output::Output;
use slowpath_diagnose::directory::{DIAGNOSIS_FILE, recordings};
use slowpath_recording::Tables;
use slowpath_report::recording_exports::{self, Destination, ExportFile, ExportOptions, Exported};
use slowpath_report::terminal::escape_terminal;
use slowpath_report::{gaps, html_file};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let options = ExportOptions { weight: arguments.weight, table: arguments.table.clone() };
    if let Some((option, export)) = options.misplaced(arguments.to) {
        return Err(Failure::new(Kind::Usage, format!("{option} is for --to {} only", export.name)));
    }
    let user = super::invoker()?;
    let name = "exporting the recording";
    // A directory is made before anything in it can be written.
    let into = match (arguments.to.directory(&options), &arguments.output) {
        (Some(files), Some(path)) => Some((files, output_directory::prepare(path, &user)?)),
        _ => None,
    };
    let what = match &into {
        Some((_, directory)) => Work::writing_beneath(name, directory),
        None => Work::writing(name, arguments.output.as_deref()),
    };
    let work = || {
        let progress = Progress::new(arguments.quiet);
        progress.step("reading the recording");
        let diagnosis = arguments.recording.join(DIAGNOSIS_FILE);
        let written = if diagnosis.exists() {
            of_diagnosis(arguments, &diagnosis, &progress)
        } else {
            let tables = analyze::open(&arguments.recording)?;
            progress.step("writing the export");
            match &into {
                Some((files, directory)) => into_directory(&tables, files(&tables), directory),
                None => export(arguments, &options, &tables),
            }
        };
        progress.done();
        written
    };
    let written = output_directory::unless_empty(|| as_user(&user, &what, work))?;
    for note in written.notes {
        eprintln!("slowpath: note: {}", escape_terminal(&note));
    }
    if arguments.output.is_some() {
        eprintln!("slowpath: {}", escape_terminal(&written.next));
    }
    Ok(ExitCode::SUCCESS)
}

fn export(arguments: &ExportArguments, options: &ExportOptions, tables: &Tables) -> Result<Exported, Failure> {
    // What cannot be exported leaves no empty file.
    let work = (arguments.to.prepare)(tables, options)
        .map_err(|error| Failure::new(Kind::Usage, error.problem).hint(error.remedy))?;
    write(arguments, work)
}

/// Every file whole; where one cannot be written, none of them stays.
fn into_directory(tables: &Tables, files: Vec<ExportFile<'_>>, directory: &Path) -> Result<Exported, Failure> {
    let (mut made, count) = (Vec::new(), files.len());
    for file in files {
        let path = directory.join(&file.name);
        let to = Destination { name: file.name, is_terminal: false };
        let done = WholeFile::begin(&path, output::MODE).and_then(|out| out.write(|out| (file.work)(out, &to)));
        if let Err(error) = done {
            // One that cannot be removed stays: the error that matters is the first.
            made.iter().for_each(|path| drop(std::fs::remove_file(path)));
            return Err(unwritable(&path.to_string_lossy(), &error));
        }
        made.push(path);
    }
    let next = format!("{}: {count} tables, each a file", directory.display());
    Ok(Exported { notes: gaps::notes(&tables.manifest), next })
}

/// Of a diagnosis with the recording that explains it.
fn of_diagnosis(arguments: &ExportArguments, file: &Path, progress: &Progress) -> Result<Exported, Failure> {
    let diagnosis = html_file::saved(file)?;
    let shown = arguments.recording.join(recordings(&diagnosis).0);
    let Some(prepare) = arguments.to.of_diagnosis else {
        let problem = format!(
            "{} is a diagnosis, and --to {} is for recordings",
            arguments.recording.display(),
            arguments.to.name
        );
        return Err(Failure::new(Kind::Usage, problem).hint(format!("its recording is {}", shown.display())));
    };
    let tables = analyze::open(&shown)?;
    progress.step("writing the export");
    write(arguments, prepare(&diagnosis, &tables))
}

fn write(arguments: &ExportArguments, work: recording_exports::Work<'_>) -> Result<Exported, Failure> {
    let output = if arguments.to.is_text { Output::open(arguments)? } else { Output::for_programs(arguments)? };
    let to = Destination { name: output.name(), is_terminal: output.is_terminal() };
    Ok(output.write(|out| work(out, &to))?.unwrap_or_default())
}
