//! Recordings: their files, and what is computed and shown of their rows.

use crate::rows;
use slowpath_analysis::findings;
use slowpath_analysis::io::demand::Demand;
use slowpath_analysis::io::io_map::io_map;
use slowpath_analysis::io::merge::merge;
use slowpath_analysis::launch_facts::LaunchFacts;
use slowpath_analysis::metrics::recorded_metrics;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_analysis::starts::children::child_launches;
use slowpath_fix::preload_plan::build::build;
use slowpath_fix::preload_plan::{PlanOptions, Provenance};
use slowpath_recording::{Manifest, Recording, Segment, Tables};
use slowpath_report::collapsed;
use slowpath_report::recording_exports::{Destination, ExportOptions};
use slowpath_report::stack_weight::Weight;
use slowpath_report::terminal::{self, Style};
use slowpath_report::{ANALYZE_SCHEMA, Analysis, Compared, Launches, Machine, REPORT_SCHEMA, ReportData, html};
use slowpath_report::{
    children_of_runs, compare_recordings, critical_path_of, firefox, flame_graphs_of, ledger_of, round_trips_of,
};
use slowpath_report::{chrome_trace, markdown, pprof, speedscope};
use slowpath_report::{html_ledger_of, perfetto, siblings_of, table_csv, timeline_of, usage_of};
use slowpath_tables::Bytes;
use std::cell::OnceCell;
use std::fs;
use tempfile::TempDir;

thread_local! {
    /// One directory for all inputs of a thread: making one takes longer than reading it.
    static DIRECTORY: OnceCell<TempDir> = const { OnceCell::new() };
}

/// A recording's directory: which table, then the bytes of its only segment. The manifest claims what a stranger would: that the
/// segment has as many rows as it has.
pub fn directory(bytes: &[u8]) {
    let [table, rows_low, rows_high, segment @ ..] = bytes else { return };
    let names = Tables::default().row_counts();
    let table = names[usize::from(*table) % names.len()].0;
    let manifest = Manifest {
        segments: vec![Segment {
            table: table.to_owned(),
            file: format!("{table}/0.parquet"),
            rows: u64::from(*rows_low) | u64::from(*rows_high) << 8,
            bytes: Bytes(segment.len() as u64),
        }],
        ..Manifest::default()
    };
    DIRECTORY.with(|directory| {
        let directory = directory.get_or_init(|| TempDir::new_in(fastest()).expect("a directory for inputs")).path();
        let _ = fs::create_dir(directory.join(table));
        fs::write(directory.join(&manifest.segments[0].file), segment).expect("an input is written");
        fs::write(directory.join("manifest.json"), manifest.to_json()).expect("an input is written");
        let recording = Recording::open(directory).expect("the manifest is sound");
        // The Parquet decoder panics on some bytes; the reader takes that for damage.
        let (tables, _) = recording.tables_whole();
        examine(&tables);
    });
}

/// A file system in memory, where there is one.
fn fastest() -> &'static str {
    if fs::exists("/dev/shm").unwrap_or(false) { "/dev/shm" } else { "/tmp" }
}

/// A manifest, and what is shown of a recording that has no rows.
pub fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        // Not equal: the last digit of a fraction may differ.
        assert!(Manifest::parse(manifest.to_json().as_bytes()).is_ok(), "it can be read back");
        manifest.clock_step();
        manifest.rows("faults");
        manifest.progress(|_| false);
        examine(&Tables { manifest, ..Tables::default() });
    }
}

/// A trace of another tool: rows for the analyses, whatever the bytes are.
pub fn imported(importer: &str, bytes: &[u8]) {
    slowpath_import::detected(bytes);
    let (tables, problem) = slowpath_import::foreign::import_bytes(importer, bytes);
    assert!(problem.is_none_or(|problem| problem.starts_with("trace")), "an error names the file");
    examine(&tables);
}

/// Rows of all tables.
pub fn rows(bytes: &[u8]) {
    examine(&rows::tables(bytes));
}

/// Everything that commands make of a recording: `analyze`, `compare`, `report`, `export`, `preload plan`, `launch children`.
fn examine(tables: &Tables) {
    let analysis = analysis(tables);
    harmless(&terminal::analysis(&analysis, &Style::PLAIN));
    let facts = LaunchFacts::new(tables);
    let demand = Demand::of_training(&facts).ok();
    if let Some(demand) = &demand {
        let provenance = Provenance { created: String::new(), command: Vec::new(), recordings: Vec::new() };
        let built = build(&merge(&[demand]), &PlanOptions::default(), provenance);
        built.plan.fix_plan("");
    }
    let costs = Compared { recording: "x".to_owned(), costs: recorded_metrics(tables) };
    let comparison = compare_recordings(std::slice::from_ref(&costs), std::slice::from_ref(&costs), true);
    harmless(&terminal::recording_comparison(&comparison, &Style::PLAIN));
    harmless(&terminal::children(&children_of_runs(&[child_launches(tables)]), &Style::PLAIN));
    let mut launches = Launches::default();
    ["x", "y"].into_iter().for_each(|name| launches.add("x", name, tables));
    let report = ReportData {
        schema: REPORT_SCHEMA.to_owned(),
        title: tables.manifest.command.join(" "),
        generated: String::new(),
        machine: Machine {
            kernel: tables.manifest.host.kernel.clone(),
            cpus: tables.manifest.host.cpus,
            memory_bytes: tables.manifest.host.memory_bytes,
            page_size: tables.manifest.host.page_size,
            storage: String::new(),
        },
        unavailable: analysis.unavailable,
        findings: analysis.findings,
        diagnosis: None,
        losses: analysis.losses,
        io_map: Some(io_map(&facts, demand.as_ref())),
        ledger: analysis.ledger.map(html_ledger_of),
        flame_graphs: flame_graphs_of(tables, &CallStacks::new(tables)),
        timeline: timeline_of(tables),
        launches: launches.side_by_side(Some("x")),
        siblings: siblings_of(&facts),
    };
    html::render(&report).expect("the data of a page are JSON");
    let mut sink = std::io::sink();
    for weight in [Weight::Cpu, Weight::OffCpu, Weight::Faults, Weight::FaultTime, Weight::Allocations] {
        collapsed::write(tables, weight, &mut sink).expect("a sink takes everything");
    }
    for (name, _) in tables.row_counts() {
        table_csv::write(tables, name, true, &mut sink).expect("every table has a form as text");
    }
    for export in [&chrome_trace::EXPORT, &speedscope::EXPORT, &pprof::EXPORT, &markdown::EXPORT] {
        let to = Destination { name: "x".to_owned(), is_terminal: false };
        if let Ok(work) = (export.prepare)(tables, &ExportOptions::default()) {
            work(&mut sink, &to).expect("a sink takes everything");
        }
    }
    perfetto::export(tables);
    firefox::export(tables).write(&mut sink).expect("a profile is JSON");
}

fn analysis(tables: &Tables) -> Analysis {
    let usage = usage_of(tables);
    let training = (tables.manifest.devices.iter().any(|device| device.lab)).then_some(tables);
    Analysis {
        schema: ANALYZE_SCHEMA.to_owned(),
        command: tables.manifest.command.clone(),
        recording: String::new(),
        time_to_ready: None,
        findings: findings::of_recordings(&[tables], training),
        ledger: ledger_of(tables, &usage).ok().flatten(),
        critical_path: critical_path_of(tables, &usage),
        round_trips: round_trips_of(tables),
        usage,
        losses: tables.manifest.losses.clone(),
        unavailable: tables.manifest.unavailable.clone(),
    }
}

/// What goes to a terminal holds nothing that a terminal obeys.
pub(crate) fn harmless(shown: &str) {
    let obeyed =
        |c: &char| (c.is_control() && *c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert_eq!(shown.chars().find(obeyed), None, "{shown:?}");
}
