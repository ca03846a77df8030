//! Two sets of recordings in directories, compared. They are read, and the page is written, as the user whose they are, which is for the
//! command to see to.

use crate::html_file;
use crate::{
    Compared, FlameRecordings, HTML_COMPARISON_SCHEMA, HtmlComparison, Launches, RecordingComparison,
    compare_recordings,
};
use slowpath_analysis::metrics::recorded_metrics;
use slowpath_diagnose::recording_sets as sets;
use slowpath_recording::Tables;
use slowpath_session::failure::Failure;
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::{Progress, open_recording};
use std::path::{Path, PathBuf};

/// Compares two sets of recordings, and writes the page of the comparison where it is to be written. `per_second`: whether costs are divided
/// by how long was recorded.
///
/// # Errors
/// A recording cannot be read, is on both sides, or the page cannot be written.
pub fn compare_directories(
    [before, after]: [&[PathBuf]; 2],
    per_second: bool,
    page: Option<&Path>,
    progress: &dyn Progress,
) -> Result<RecordingComparison, Failure> {
    let before = sets::recordings(before)?;
    let after = sets::recordings(after)?;
    sets::each_once(&before, &after)?;
    // Only the page shows stacks and spans.
    let mut drawn = page.map(|_| Drawn::default());
    let of_all = before.len() + after.len();
    let mut read = |directories: &[PathBuf], done: usize, side: Side| {
        let one = |(index, directory): (usize, &PathBuf)| {
            progress.count("reading the recordings", done + index, of_all);
            recording(directory, drawn.as_mut(), side, progress)
        };
        // One after the other: what is kept of a recording is small beside its tables.
        directories.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()
    };
    let costs_before = read(&before, 0, Side::Before)?;
    let costs_after = read(&after, before.len(), Side::After)?;
    let comparison = compare_recordings(&costs_before, &costs_after, per_second);
    if let (Some(drawn), Some(output)) = (drawn, page) {
        progress.step("writing the page");
        let page = HtmlComparison {
            schema: HTML_COMPARISON_SCHEMA.to_owned(),
            generated: now_rfc3339(),
            flame_graphs: drawn.flames.compared(&costs_before, &costs_after, comparison.per),
            launches: drawn.launches.side_by_side(None),
            comparison,
        };
        html_file::write(&page, output)?;
        return Ok(page.comparison);
    }
    Ok(comparison)
}

/// What the page draws of the recordings.
#[derive(Default)]
struct Drawn {
    flames: FlameRecordings,
    launches: Launches,
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Drawn {
    fn add(&mut self, side: Side, recording: &str, tables: &Tables) {
        let group = match side {
            Side::Before => {
                self.flames.add_before(tables);
                "before"
            }
            Side::After => {
                self.flames.add_after(tables);
                "after"
            }
        };
        self.launches.add(group, recording, tables);
    }
}

fn recording(
    directory: &Path,
    drawn: Option<&mut Drawn>,
    side: Side,
    progress: &dyn Progress,
) -> Result<Compared, Failure> {
    let tables = open_recording::open(directory, |text| progress.warn(text))?;
    let recording = directory.to_string_lossy().into_owned();
    if let Some(drawn) = drawn {
        drawn.add(side, &recording, &tables);
    }
    Ok(Compared { recording, costs: recorded_metrics(&tables) })
}
