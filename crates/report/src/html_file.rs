//! HTML pages as files: of a recording, of several launches of one command, and of a diagnosis with the recordings beside it. Files are
//! read and written as the user whose they are, which is for the command to see to.

use crate::html::{self, PageData};
use crate::{Diagnosis, Launches, MOST_DIAGNOSIS_BYTES, ReportData, SideBySide};
use slowpath_diagnose::directory::{DIAGNOSIS_FILE, json_text, recordings, write_text};
use slowpath_diagnose::kept::remember;
use slowpath_diagnose::recording_sets::groups;
use slowpath_launch::Identity;
use slowpath_recording::Tables;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, foreign_file, open_recording, whole_file};
use std::path::{Path, PathBuf};

/// Writes the page of a directory, which is a recording, or holds a diagnosis or recordings of launches.
///
/// # Errors
/// It is and holds none of these, or the page cannot be written.
pub fn of_directory(directory: &Path, to: &Path, progress: &dyn Progress) -> Result<(), Failure> {
    let diagnosis = directory.join(DIAGNOSIS_FILE);
    if diagnosis.exists() {
        return of_diagnosis(directory, &saved(&diagnosis)?, to, progress);
    }
    let groups = groups(directory);
    if groups.is_empty() {
        return write(&ReportData::of_tables(&open(directory, progress)?, None, None, now_rfc3339()), to);
    }
    of_launches(&groups, to, progress)
}

/// The page of the launch that stands for all, with the others beside it.
fn of_launches(groups: &[(String, Vec<PathBuf>)], to: &Path, progress: &dyn Progress) -> Result<(), Failure> {
    let all: Vec<(&str, &PathBuf)> =
        groups.iter().flat_map(|(group, all)| all.iter().map(|one| (group.as_str(), one))).collect();
    let mut launches = Launches::default();
    for (done, (group, directory)) in all.iter().enumerate() {
        progress.count("reading the recordings", done, all.len());
        launches.add(group, &directory.to_string_lossy(), &open(directory, progress)?);
    }
    progress.step("writing the page");
    let is_middle = |directory: &Path| launches.middle().is_some_and(|middle| middle == directory.to_string_lossy());
    let shown = all.iter().find(|(_, directory)| is_middle(directory)).or(all.first());
    // There is one: groups are not empty.
    let Some((_, shown)) = shown else { return Ok(()) };
    let mut data = ReportData::of_tables(&open(shown, progress)?, None, None, now_rfc3339());
    data.launches = launches.side_by_side(Some(&shown.to_string_lossy()));
    progress.done();
    write(&data, to)
}

/// Writes the page of a diagnosis; its recordings are in `directory`.
///
/// # Errors
/// A recording cannot be read, or the page cannot be written.
pub fn of_diagnosis(
    directory: &Path,
    diagnosis: &Diagnosis,
    to: &Path,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let (shown, needed) = recordings(diagnosis);
    let needed = needed.map(|needed| open(&directory.join(needed), progress)).transpose()?;
    let shown = open(&directory.join(shown), progress)?;
    let mut data = ReportData::of_diagnosis(diagnosis, &shown, needed.as_ref(), now_rfc3339());
    data.launches = both_launches(directory, diagnosis, &shown, progress);
    write(&data, to)
}

/// The recorded cold launch beside the warm one, where a diagnosis has both.
fn both_launches(
    directory: &Path,
    diagnosis: &Diagnosis,
    shown: &Tables,
    progress: &dyn Progress,
) -> Option<SideBySide> {
    let other = diagnosis.following()?;
    let (shown_name, other_name) = (recordings(diagnosis).0, recordings(&other).0);
    // The page is whole without it.
    let others = open(&directory.join(other_name), progress)
        .inspect_err(|failure| progress.warn(&format!("{failure}; the page lacks this launch")))
        .ok()?;
    let mut launches = Launches::default();
    let mut both = [(diagnosis.warm, shown_name, shown), (other.warm, other_name, &others)];
    // The difference is cold minus warm.
    both.sort_by_key(|(warm, _, _)| !*warm);
    for (warm, name, tables) in both {
        launches.add(if warm { "warm" } else { "cold" }, name, tables);
    }
    launches.side_by_side(Some(shown_name))
}

/// Writes a diagnosis and its page into its directory, as its user; the page's name is returned. Root notes first what is written there.
///
/// # Errors
/// As [`of_diagnosis`], or the diagnosis cannot be written.
pub fn with_diagnosis(
    directory: &Path,
    identity: &Identity,
    diagnosis: &Diagnosis,
    progress: &dyn Progress,
) -> Result<PathBuf, Failure> {
    let page = directory.join("report.html");
    let text = json_text(diagnosis)?;
    // The diagnosis is whole without it.
    if let Err(failure) = remember(directory, &text) {
        progress.warn(&format!("{failure}; as root, `slowpath fix apply` will take it with --trust-diagnosis only"));
    }
    as_user(identity, &Work::writing_beneath("writing the report", directory), || {
        write_text(directory, DIAGNOSIS_FILE, &text)?;
        of_diagnosis(directory, diagnosis, &page, progress)
    })?;
    Ok(page)
}

/// Writes a page; the file is made new or replaced as a whole, and never through a link.
///
/// # Errors
/// It cannot be written.
pub fn write(data: &impl PageData, to: &Path) -> Result<(), Failure> {
    let page = html::render(data).map_err(failed(Kind::Machine))?;
    whole_file::replace(to, 0o600, page.as_bytes())
}

fn open(directory: &Path, progress: &dyn Progress) -> Result<Tables, Failure> {
    open_recording::open(directory, |text| progress.warn(text))
}

/// A diagnosis that `diagnose` wrote.
///
/// # Errors
/// The file is none.
pub fn saved(path: &Path) -> Result<Diagnosis, Failure> {
    let wrong = |why: String| {
        Failure::new(Kind::Usage, format!("{} is no diagnosis: {why}", path.display()))
            .hint("`slowpath diagnose` writes it; the recordings beside it can be read with `slowpath analyze DIR/cold` or DIR/warm")
    };
    let text = foreign_file::read(path, MOST_DIAGNOSIS_BYTES).map_err(|error| wrong(error.to_string()))?;
    Diagnosis::of_json(&text).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Writer;
    use slowpath_tables::Nanos;

    struct Silent;

    impl Progress for Silent {
        fn step(&self, _: &str) {}
        fn count(&self, _: &str, _: usize, _: usize) {}
        fn warn(&self, _: &str) {}
        fn done(&self) {}
    }

    /// Writes the recording of a launch that computes for 1,000 ns and then waits for storage for `read` ns.
    fn record(path: &Path, read: u64) {
        let ended = 1100 + read;
        let text = format!(
            "== manifest\n{{\"started\": 90, \"command\": [\"/bin/a\"], \
             \"probes\": [{{\"name\": \"off_cpu\", \"state\": \"attached\"}}], \
             \"launch\": {{\"released\": 100, \"ready\": {ended}, \"ready_when\": \"exit\", \"outcome\": \"ready\"}}}}\n\
             == execs\nts pid start filename\n100 7 1 /bin/a\n\
             == thread_counters\nts pid start tid end run_time name\n100 7 1 7 false 0 a\n{ended} 7 1 7 true 1000 a\n\
             == exits\nts pid start tid last running\n{ended} 7 1 7 true false\n\
             == off_cpu\nts duration pid start tid reason\n1100 {read} 7 1 7 other_io\n"
        );
        let tables = Tables::from_text(&text).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = Writer::create(path, tables.manifest.clone()).unwrap();
        tables.write(&mut writer).unwrap();
        writer.finish(|manifest| manifest.ended = Some(Nanos(ended))).unwrap();
    }

    fn page_of(directory: &Path, to: &Path) -> ReportData {
        of_directory(directory, to, &Silent).unwrap();
        let page = std::fs::read_to_string(to).unwrap();
        let (_, data) = page.split_once("id=\"slowpath-data\">").unwrap();
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn a_directory_of_recordings_is_a_page_of_its_middle_launch_with_the_others_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        let launches = [("cold/1", 900), ("cold/2", 1500), ("cold/3", 700), ("warm/1", 10), ("warm/2", 12)];
        launches.iter().for_each(|(name, read)| record(&runs.join(name), *read));
        let page = page_of(&runs, &place.path().join("page.html"));
        let beside = page.launches.unwrap();
        assert_eq!(beside.groups, ["warm", "cold"]);
        assert_eq!(beside.launches.iter().map(|one| one.time_ns.0).collect::<Vec<_>>(), [1010, 1012, 1900, 2500, 1700]);
        let shown: Vec<&str> =
            beside.launches.iter().filter(|one| one.is_shown).map(|one| one.recording.as_str()).collect();
        assert_eq!(shown, [runs.join("cold/1").to_str().unwrap()]);
        assert_eq!(page.timeline.unwrap().path.unwrap().to_ns, 1900, "the rest of the page is about it");
        // A recording by itself has nothing beside it.
        assert_eq!(page_of(&runs.join("cold/2"), &place.path().join("one.html")).launches, None);
    }
}
