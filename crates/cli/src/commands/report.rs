//! `slowpath report`: one self-contained HTML page of a recording or a diagnosis.

use crate::arguments::ReportArguments;
use crate::commands::analyze;
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::unprivileged::{Work, as_user};
use crate::whole_file;
use slowpath_analysis::call_stacks::CallStacks;
use slowpath_analysis::demand::{Demand, NeededUnknown};
use slowpath_analysis::findings::{Observation, of_observation};
use slowpath_analysis::io_map::io_map;
use slowpath_analysis::launch_facts::LaunchFacts;
use slowpath_analysis::ledger::not_asked_for;
use slowpath_diagnose::directory::{COLD, DIAGNOSIS_FILE, NEEDED, RUNNING, WARM};
use slowpath_recording::Tables;
use slowpath_report::html;
use slowpath_report::terminal::{escape_terminal, sentences};
use slowpath_report::{Diagnosis, MOST_DIAGNOSIS_BYTES, Machine, REPORT_SCHEMA, ReportData};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice::from_ref;

/// Everything the page of a diagnosis shows; its recordings are in `directory`.
pub fn of_diagnosis(directory: &Path, diagnosis: &Diagnosis) -> Result<ReportData, Failure> {
    let mut leading = diagnosis.leading();
    // The page draws the launches of one kind; what the others say stands below, and all of it in the file.
    if let Some(half) = diagnosis.following() {
        let kind = if half.warm { "warm" } else { "cold" };
        leading.notes.insert(0, format!("{kind} launches too were diagnosed: {}", sentences(&half)));
    }
    let diagnosis = leading;
    let (shown, needed) = match (&diagnosis.running, diagnosis.warm) {
        (Some(_), _) => (RUNNING, None),
        (None, true) => (WARM, None),
        (None, false) => (COLD, Some(NEEDED)),
    };
    let needed = needed.map(|needed| analyze::open(&directory.join(needed))).transpose()?;
    Ok(data(&analyze::open(&directory.join(shown))?, needed.as_ref(), Some(diagnosis)))
}

/// Everything the page shows.
fn data(tables: &Tables, needed: Option<&Tables>, diagnosis: Option<Diagnosis>) -> ReportData {
    let manifest = &tables.manifest;
    let facts = LaunchFacts::new(tables);
    let demand = needed.and_then(|needed| Demand::of_training(&LaunchFacts::new(needed)).ok());
    let map = io_map(&facts, demand.as_ref());
    let (ledger, no_ledger) = match slowpath_report::ledger_of(tables, &slowpath_report::shares_of(tables)) {
        // A diagnosis asks for none.
        Ok(None) if diagnosis.is_none() => (None, Some(not_asked_for())),
        Ok(ledger) => (ledger, None),
        Err(gap) => (None, Some(gap)),
    };
    // A diagnosis has its findings, which say what was predicted.
    let findings = match &diagnosis {
        Some(diagnosis) => diagnosis.findings.clone(),
        None => of_observation(&Observation { launches: from_ref(&facts), needed: Err(NeededUnknown::NoTraining) }),
    };
    let lab = manifest.devices.iter().find(|device| device.lab);
    let storage = match lab {
        Some(lab) => format!("{} image in a lab, readahead {} KiB", lab.fs, lab.read_ahead_kb.unwrap_or(0)),
        None => manifest
            .devices
            .iter()
            .find(|device| device.mount_point == "/")
            .map(|root| format!("{} on {}", root.fs, root.name))
            .unwrap_or_default(),
    };
    ReportData {
        schema: REPORT_SCHEMA.to_owned(),
        title: manifest.command.join(" "),
        generated: super::now_rfc3339(),
        machine: Machine {
            kernel: manifest.host.kernel.clone(),
            cpus: manifest.host.cpus,
            memory_bytes: manifest.host.memory_bytes,
            page_size: manifest.host.page_size,
            storage,
        },
        unavailable: manifest.unavailable.iter().cloned().chain(no_ledger).collect(),
        findings,
        diagnosis,
        losses: manifest.losses.clone(),
        io_map: Some(map),
        ledger: ledger.map(slowpath_report::page_ledger_of),
        flame_graphs: slowpath_report::flame_graphs_of(tables, &CallStacks::new(tables)),
    }
}

/// Writes a page; the file is made new or replaced as a whole, and never through a link.
pub fn write_page(data: &impl html::PageData, to: &Path) -> Result<(), Failure> {
    let page = html::render(data).map_err(failed(Kind::Machine))?;
    whole_file::replace(to, 0o600, page.as_bytes())
}

/// A diagnosis that `diagnose` wrote.
fn saved(path: &Path) -> Result<Diagnosis, Failure> {
    let wrong = |why: String| {
        Failure::new(Kind::Usage, format!("{} is no diagnosis: {why}", path.display()))
            .hint("`slowpath diagnose` writes it; the recordings beside it can be read with `slowpath analyze DIR/cold` or DIR/warm")
    };
    let text = foreign_file::read(path, MOST_DIAGNOSIS_BYTES).map_err(|error| wrong(error.to_string()))?;
    Diagnosis::of_json(&text).map_err(|error| wrong(error.to_string()))
}

/// Runs the command.
pub fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let what = Work::writing("writing the report", arguments.output.as_path());
    let written: PathBuf = as_user(&super::invoker()?, &what, || {
        let directory = &arguments.directory;
        let diagnosis_file = directory.join(DIAGNOSIS_FILE);
        let data = if diagnosis_file.exists() {
            of_diagnosis(directory, &saved(&diagnosis_file)?)?
        } else {
            data(&analyze::open(directory)?, None, None)
        };
        write_page(&data, &arguments.output)?;
        Ok(arguments.output.clone())
    })?;
    eprintln!("slowpath: the report is {}", escape_terminal(&written.to_string_lossy()));
    Ok(ExitCode::SUCCESS)
}
