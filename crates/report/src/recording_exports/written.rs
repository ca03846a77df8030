//! Writing an export: of a recording or of a diagnosis, into a file, a directory of files, or to standard output. It is read and written
//! as the user who calls. Leaves what is written of a recording to the export's own file, and the file that it goes to to `output`.

use super::declaration::{Destination, ExportFile, ExportOptions, Exported, RecordingExport, Work as Writing};
use super::export_list::misplaced;
use super::output::{MODE, Output};
use crate::{gaps, html_file};
use slowpath_diagnose::directory::{DIAGNOSIS_FILE, recordings};
use slowpath_launch::Identity;
use slowpath_recording::Tables;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::whole_file::{WholeFile, unwritable};
use slowpath_session::{Progress, open_recording, output_directory};
use std::path::{Path, PathBuf};

/// What is exported, and where to.
pub struct ExportWanted<'a> {
    /// A recording, or the directory of a diagnosis.
    pub recording: &'a Path,
    /// The form.
    pub to: &'static RecordingExport,
    /// What was chosen of it.
    pub options: ExportOptions,
    /// A file, or a directory for an export of several; without one, standard output.
    pub output: Option<&'a Path>,
}

/// Writes it as `user`.
///
/// # Errors
/// An option is for another export, there is nothing to write, or it cannot be read or written.
pub fn export(wanted: &ExportWanted<'_>, user: &Identity, progress: &dyn Progress) -> Result<Exported, Failure> {
    let ExportWanted { recording, to, options, output } = wanted;
    if let Some((option, export)) = misplaced(options, to) {
        return Err(Failure::new(Kind::Usage, format!("{option} is for --to {} only", export.name)));
    }
    let name = "exporting the recording";
    // A directory is made before anything in it can be written.
    let into = match (to.directory(options), output) {
        (Some(files), Some(path)) => Some((files, output_directory::prepare(path, user)?)),
        _ => None,
    };
    let what = match &into {
        Some((_, directory)) => Work::writing_beneath(name, directory),
        None => Work::writing(name, *output),
    };
    let work = || {
        progress.step("reading the recording");
        let diagnosis = recording.join(DIAGNOSIS_FILE);
        let written = if diagnosis.exists() {
            of_diagnosis(wanted, &diagnosis, progress)
        } else {
            let tables = open(recording, progress)?;
            progress.step("writing the export");
            match &into {
                Some((files, directory)) => into_directory(&tables, files(&tables), directory),
                None => of_recording(wanted, &tables),
            }
        };
        progress.done();
        written
    };
    output_directory::unless_empty(|| as_user(user, &what, work))
}

fn open(directory: &Path, progress: &dyn Progress) -> Result<Tables, Failure> {
    open_recording::open(directory, |text| progress.warn(text))
}

fn of_recording(wanted: &ExportWanted<'_>, tables: &Tables) -> Result<Exported, Failure> {
    // What cannot be exported leaves no empty file.
    let work = (wanted.to.prepare)(tables, &wanted.options)
        .map_err(|error| Failure::new(Kind::Usage, error.problem).hint(error.remedy))?;
    write(wanted, work)
}

/// Every file whole; where one cannot be written, none of them stays.
fn into_directory(tables: &Tables, files: Vec<ExportFile<'_>>, directory: &Path) -> Result<Exported, Failure> {
    let (mut made, count): (Vec<PathBuf>, usize) = (Vec::new(), files.len());
    for file in files {
        let path = directory.join(&file.name);
        let to = Destination { name: file.name, is_terminal: false };
        let done = WholeFile::begin(&path, MODE).and_then(|out| out.write(|out| (file.work)(out, &to)));
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
fn of_diagnosis(wanted: &ExportWanted<'_>, file: &Path, progress: &dyn Progress) -> Result<Exported, Failure> {
    let diagnosis = html_file::saved(file)?;
    let shown = wanted.recording.join(recordings(&diagnosis).0);
    let Some(prepare) = wanted.to.of_diagnosis else {
        let (recording, name) = (wanted.recording.display(), wanted.to.name);
        let problem = format!("{recording} is a diagnosis, and --to {name} is for recordings");
        return Err(Failure::new(Kind::Usage, problem).hint(format!("its recording is {}", shown.display())));
    };
    let tables = open(&shown, progress)?;
    progress.step("writing the export");
    write(wanted, prepare(&diagnosis, &tables))
}

fn write(wanted: &ExportWanted<'_>, work: Writing<'_>) -> Result<Exported, Failure> {
    let output = if wanted.to.is_text { Output::open(wanted.output)? } else { Output::for_programs(wanted.output)? };
    let to = Destination { name: output.name(), is_terminal: output.is_terminal() };
    Ok(output.write(|out| work(out, &to))?.unwrap_or_default())
}
