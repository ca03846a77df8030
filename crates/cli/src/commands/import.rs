//! `slowpath import`: traces of other tools as a recording. They are parsed and written as the user, in a sandbox.

use crate::arguments::import::ImportArguments;
use crate::failure::{self, Failure, Kind};
use crate::printing::show;
use slowpath_import::{HEAD, Imported, NotImported, Wanted, import};
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{foreign_file, interrupt, output_directory};
use slowpath_tables::Bytes;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let user = invoker()?;
    let directory = output_directory::prepare(&arguments.output, &user)?;
    interrupt::watch();
    let imported = as_user(&user, &Work::writing_beneath("importing the trace", &directory), || {
        let progress = Progress::new(arguments.quiet);
        progress.step("importing the trace");
        let imported = imported(arguments, &directory);
        progress.done();
        imported
    })?;
    show(arguments.json, &imported, |imported, _| terminal::imported(imported));
    let Some(problem) = imported.problem else { return Ok(ExitCode::SUCCESS) };
    let failure = match interrupt::requested() {
        true => Failure::new(Kind::Interrupted, "interrupted"),
        false => Failure::new(Kind::Usage, problem),
    };
    Ok(failure::report(&failure.hint("what was read until then is in the recording"), false))
}

fn imported(arguments: &ImportArguments, directory: &Path) -> Result<Imported, Failure> {
    let opened = |path: &std::path::PathBuf| match (path.display().to_string(), foreign_file::open(path)) {
        (name, Ok(file)) => Ok((name, BufReader::with_capacity(HEAD, file))),
        (name, Err(source)) => Err(of(&NotImported::Unread { name, source })),
    };
    // All of them are opened before anything is written.
    let traces = arguments.files.iter().map(opened).collect::<Result<Vec<_>, _>>()?;
    let wanted = Wanted {
        format: arguments.format,
        created: now_rfc3339(),
        most: Bytes(arguments.max_size),
        symbols: &arguments.symbols,
        is_wanted: &|| !interrupt::requested(),
    };
    import(traces, directory, wanted).map_err(|error| of(&error))
}

fn of(error: &NotImported) -> Failure {
    Failure::from_error(Kind::Usage, error).hint_if_any(error.remedy())
}
