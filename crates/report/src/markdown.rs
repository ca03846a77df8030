//! A summary of a recording, a diagnosis or a comparison in GitHub-flavoured Markdown, to be pasted into a pull request.
//!
//! Owns what of a result a reviewer gets: what was run, the answer, findings with cost, interval and confidence, files read, faults,
//! and what was lost or could not be observed. Leaves figures to those who made them, what is written of a diagnosis and of a
//! comparison to `diagnosis` and `comparison`, and keeping text of others literal to [`text`].

mod comparison;
mod diagnosis;
mod figures;
mod sections;
mod text;

pub use comparison::of_comparison;
pub(crate) use text::sentence;

use crate::gaps;
use crate::recording_exports::{ExportOptions, Exported, NotExported, RecordingExport, Work};
use figures::figure;
use sections::{faults, files, findings, heading, losses, machine, unavailable};
use slowpath_analysis::printed::Analysis;
use slowpath_diagnose::printed::Diagnosis;
use slowpath_recording::Tables;

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "markdown",
    title: "A summary for a pull request, of a recording or a diagnosis",
    what: "What was run, the answer, findings with cost, interval and confidence, the arms and verdicts of a diagnosis, files with \
           most bytes read, page faults by process, lost events, and what could not be observed.",
    lacks: "Events, call stacks, and what is not among the first rows; `analyze --json` and `report` have them.",
    read_by: "GitHub, GitLab and other readers of GitHub-flavoured Markdown",
    is_text: true,
    takes: None,
    of_diagnosis: Some(of_diagnosis),
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, _: &ExportOptions) -> Result<Work<'a>, NotExported> {
    Ok(Box::new(move |out, to| {
        out.write_all(of_tables(tables).as_bytes())?;
        Ok(exported(tables, &to.name))
    }))
}

/// What is written of a diagnosis whose launch `tables` explain.
fn of_diagnosis<'a>(diagnosis: &'a Diagnosis, tables: &'a Tables) -> Work<'a> {
    Box::new(move |out, to| {
        out.write_all(diagnosis::summary(diagnosis, tables).as_bytes())?;
        Ok(exported(tables, &to.name))
    })
}

fn exported(tables: &Tables, name: &str) -> Exported {
    Exported { notes: gaps::notes(&tables.manifest), next: format!("{name}: paste it into a pull request") }
}

/// The summary of a recording.
fn of_tables(tables: &Tables) -> String {
    let analysis = Analysis::of_tables(String::new(), tables, None);
    let mut out = heading("slowpath", &analysis.command);
    match (&analysis.time_to_ready, &analysis.usage.recorded_for) {
        (Some(time), _) => out.push_str(&format!("Ready after **{}**. ", figure(time))),
        (None, Some(time)) => out.push_str(&format!("Recorded for {}; no launch got ready in it. ", figure(time))),
        (None, None) => out.push_str("The recording holds no launch that got ready. "),
    }
    out.push_str(match analysis.findings.len() {
        0 => "No hidden cost was found.\n",
        1 => "One hidden cost was found.\n",
        _ => "Hidden costs were found; the most costly stands first, and several may share a part of their costs.\n",
    });
    out.push_str(&findings(&analysis.findings));
    out.push_str(&files(tables));
    out.push_str(&faults(&analysis.usage));
    out.push_str(&losses(&analysis.losses));
    out.push_str(&unavailable(&analysis.unavailable));
    out.push_str(&machine(tables));
    out
}
