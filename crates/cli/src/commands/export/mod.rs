//! `slowpath export`: a recording in another tool's format.

mod output;

use crate::arguments::{CollapsedWeight, ExportArguments, Format};
use crate::commands::analyze;
use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use output::Output;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_report::collapsed::Weight;
use slowpath_report::table_csv::TableError;
use slowpath_report::terminal::escape_terminal;
use slowpath_report::{collapsed, firefox, gaps, perfetto, table_csv};
use std::fmt::Write as _;
use std::process::ExitCode;

/// What there is to say about an export. It crosses a process border.
#[derive(Serialize, Deserialize)]
struct Written {
    notes: Vec<String>,
    /// What reads it.
    next: String,
}

/// Runs the command.
pub fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    check(arguments)?;
    let what = Work::writing("exporting the recording", arguments.output.as_deref());
    let written = as_user(&super::invoker()?, &what, || {
        let progress = Progress::new(arguments.quiet);
        progress.step("reading the recording");
        let tables = analyze::open(&arguments.recording)?;
        progress.step("writing the export");
        let written = export(arguments, &tables);
        progress.done();
        written
    })?;
    for note in written.notes {
        eprintln!("slowpath: note: {}", escape_terminal(&note));
    }
    if arguments.output.is_some() {
        eprintln!("slowpath: {}", escape_terminal(&written.next));
    }
    Ok(ExitCode::SUCCESS)
}

/// Options of one format that were given to another.
fn check(arguments: &ExportArguments) -> Result<(), Failure> {
    let misplaced = |option, format| Err(Failure::new(Kind::Usage, format!("{option} is for --to {format} only")));
    if arguments.weight.is_some() && arguments.to != Format::Collapsed {
        return misplaced("--weight", "collapsed");
    }
    if arguments.table.is_some() && arguments.to != Format::Csv {
        return misplaced("--table", "csv");
    }
    Ok(())
}

fn export(arguments: &ExportArguments, tables: &Tables) -> Result<Written, Failure> {
    // What cannot be exported leaves no empty file.
    match arguments.to {
        Format::Perfetto => {
            let export = perfetto::export(tables);
            let output = Output::for_programs(arguments)?;
            let next = format!("open {} in https://ui.perfetto.dev", output.name());
            output.write(|out| out.write_all(&export.trace))?;
            Ok(Written { notes: export.notes, next })
        }
        Format::Firefox => {
            let mut export = firefox::export(tables);
            let output = Output::for_programs(arguments)?;
            let next = format!(
                "open {} in https://profiler.firefox.com (it stays in the browser unless you upload it)",
                output.name()
            );
            output.write(|out| export.write(out))?;
            if tables.cpu_samples.is_empty() {
                export.notes.push(format!("this recording holds no CPU samples: {CPU_REMEDY}."));
            }
            Ok(Written { notes: export.notes, next })
        }
        Format::Collapsed => {
            let weight = weight(arguments.weight, tables)?;
            let output = Output::open(arguments)?;
            let name = output.name();
            let written = output.write(|mut out| collapsed::write(tables, weight, &mut out))?.unwrap_or_default();
            let next = format!(
                "{name}: {} stacks with {}; flamegraph.pl, inferno-flamegraph and speedscope read it",
                written.lines,
                weight.unit()
            );
            Ok(Written { notes: written.notes, next })
        }
        Format::Csv => {
            let table = table(arguments.table.as_deref(), tables)?;
            let output = Output::open(arguments)?;
            let (name, is_shown) = (output.name(), output.is_terminal());
            let rows = output.write(|mut out| {
                table_csv::write(tables, table, is_shown, &mut out).map_err(|error| match error {
                    TableError::Io(error) => error,
                    other => std::io::Error::other(other),
                })
            })?;
            let next = format!("{name}: {} rows of table {table}", rows.unwrap_or_default());
            Ok(Written { notes: gaps::notes(&tables.manifest), next })
        }
    }
}

/// What to add up: what was asked for and is there, or the first that is there.
fn weight(asked: Option<CollapsedWeight>, tables: &Tables) -> Result<Weight, Failure> {
    let nothing = |what: &str, remedy: &str| {
        Err(Failure::new(Kind::Usage, format!("this recording holds no {what}")).hint(remedy.to_owned()))
    };
    let Some(asked) = asked else {
        return match Weight::first_of(tables) {
            Some(weight) => Ok(weight),
            None => nothing("samples, waits, faults or memory calls", CPU_REMEDY),
        };
    };
    let (weight, what, remedy) = match asked {
        CollapsedWeight::Cpu => (Weight::Cpu, "CPU samples", CPU_REMEDY),
        CollapsedWeight::OffCpu => (Weight::OffCpu, "intervals off the CPU", "record with --off-cpu, or --stacks wait"),
        CollapsedWeight::Faults => {
            (Weight::Faults, "page faults", "`slowpath doctor` says what stops the recording of faults")
        }
        CollapsedWeight::FaultTime => (
            Weight::FaultTime,
            "page faults with a duration",
            "`slowpath doctor` says what stops the recording of faults",
        ),
        CollapsedWeight::Allocations => (
            Weight::Allocations,
            "calls that let an address space grow",
            "record with --memory-calls, or --stacks alloc",
        ),
    };
    if weight.has_rows(tables) { Ok(weight) } else { nothing(what, remedy) }
}

const CPU_REMEDY: &str = "record with --sample 1000";

/// The table that was asked for.
fn table<'a>(asked: Option<&'a str>, tables: &Tables) -> Result<&'a str, Failure> {
    let counts = tables.row_counts();
    let problem = match asked {
        Some(name) if counts.iter().any(|(table, _)| *table == name) => return Ok(name),
        Some(name) => format!("there is no table {name:?}"),
        None => "--to csv needs the name of a table".to_owned(),
    };
    let mut list = "--table with one of: ".to_owned();
    for (index, (table, rows)) in counts.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing into a string does not fail.
        let _ = write!(list, "{comma}{table} ({rows} rows)");
    }
    Err(Failure::new(Kind::Usage, problem).hint(list))
}
