//! The sections that summaries of a recording and of a diagnosis both have.
//!
//! Owns which columns and how many rows each shows. Leaves their order, and which a summary has, to the summaries, how a figure looks to
//! `figures`, tables and what stays literal in them to `text`, and the numbers to `analysis`.

use super::figures::{figure, interval, optional};
use super::text::{Column, Table, code, sentence};
use slowpath_analysis::finding::{Confidence, Finding};
use slowpath_analysis::io::io_map::io_map;
use slowpath_analysis::launch_facts::LaunchFacts;
use slowpath_analysis::printed::usage::Usage;
use slowpath_recording::Tables;
use slowpath_tables::{Losses, Nanos, PAGE_SIZE, Quantity, Unavailable, Unit};
use std::collections::HashMap;

/// Findings, files and processes in a table.
pub(super) const ROWS: usize = 10;
const FILES: usize = 5;

pub(super) fn heading(what: &str, command: &[String]) -> String {
    let command = command.join(" ");
    let command = if command.is_empty() { "running processes".to_owned() } else { code(&command) };
    format!("## {what}: {command}\n\n")
}

/// Findings with what they cost, and below why they are to be trusted less.
pub(super) fn findings(findings: &[Finding]) -> String {
    use Column::{Figures, Words};
    let columns =
        [Words("Finding"), Figures("Cost"), Figures("From … to"), Words("Confidence"), Words("What"), Words("Fixes")];
    let mut table = Table::new(&columns);
    for one in findings.iter().take(ROWS) {
        let fixes: Vec<String> = one.fixes.iter().map(|fix| code(fix)).collect();
        table.row(&[
            code(&one.name),
            figure(&one.cost),
            interval(&one.cost),
            one.confidence.as_str().to_owned(),
            sentence(&one.title),
            fixes.join(", "),
        ]);
    }
    let mut out = table.under("Findings");
    if let Some(more) = findings.len().checked_sub(ROWS).filter(|more| *more > 0) {
        out.push_str(&format!("\n{more} more findings are left out.\n"));
    }
    let doubted = findings.iter().take(ROWS).filter(|one| one.confidence < Confidence::High && !one.reasons.is_empty());
    let doubts: Vec<String> = doubted
        .map(|one| {
            format!(
                "- {}, {} confidence: {}\n",
                code(&one.name),
                one.confidence.as_str(),
                sentence(&one.reasons.join("; "))
            )
        })
        .collect();
    if !doubts.is_empty() {
        out.push_str(&format!("\n{}", doubts.concat()));
    }
    out
}

/// The files of which most was read: from storage where the page cache was recorded, else by read calls.
pub(super) fn files(tables: &Tables) -> String {
    let facts = LaunchFacts::new(tables);
    let map = io_map(&facts, None);
    use Column::{Figures, Words};
    if !map.files.is_empty() {
        let mut table = Table::new(&[Words("File"), Figures("Read"), Figures("Waited for it, all threads")]);
        for file in map.files.iter().take(FILES) {
            let read = Quantity::exact(file.pages_read.saturating_mul(PAGE_SIZE) as f64, Unit::Bytes);
            let waited = Quantity::exact(Nanos(file.blocked_ns).as_ms(), Unit::Ms);
            table.row(&[code(&file.path), figure(&read), figure(&waited)]);
        }
        return table.under("Files with most bytes read from storage");
    }
    let mut bytes: HashMap<String, (u64, u64)> = HashMap::new();
    for read in tables.reads.iter().filter(|read| read.result > 0) {
        let id = facts.files.find(read.file());
        let path = id.map_or_else(|| read.file().to_string(), |id| facts.files.get(id).path.clone());
        let sum = bytes.entry(path).or_default();
        *sum = (sum.0.saturating_add(read.result as u64), sum.1 + 1);
    }
    let mut bytes: Vec<_> = bytes.into_iter().collect();
    bytes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut table = Table::new(&[Words("File"), Figures("Read"), Figures("Calls")]);
    for (path, (read, calls)) in bytes.into_iter().take(FILES) {
        table.row(&[code(&path), figure(&Quantity::exact(read as f64, Unit::Bytes)), calls.to_string()]);
    }
    table.under("Files with most bytes read by calls")
}

/// Page faults of the processes that have most.
pub(super) fn faults(usage: &Usage) -> String {
    use Column::{Figures, Words};
    let columns = [
        Words("Process"),
        Figures("PID"),
        Figures("Minor faults"),
        Figures("Major faults"),
        Figures("Time in them"),
        Figures("CPU time"),
    ];
    let mut table = Table::new(&columns);
    let some = usage.processes.iter().filter(|one| one.used.minor_faults + one.used.major_faults > 0);
    for one in some.take(FILES) {
        table.row(&[
            code(&one.process),
            one.pid.to_string(),
            one.used.minor_faults.to_string(),
            one.used.major_faults.to_string(),
            optional(one.used.fault_time.as_ref()),
            optional(one.used.cpu_time.as_ref()),
        ]);
    }
    table.under("Page faults by process")
}

pub(super) fn losses(losses: &Losses) -> String {
    let mut table = Table::new(&[Column::Words("Events"), Column::Figures("Lost")]);
    for (kind, lost) in losses.0.iter().filter(|(_, lost)| **lost > 0) {
        table.row(&[code(kind), lost.to_string()]);
    }
    table.under("Lost events")
}

pub(super) fn unavailable(gaps: &[Unavailable]) -> String {
    let mut table = Table::new(&[Column::Words("What"), Column::Words("Why"), Column::Words("What would change that")]);
    for gap in gaps {
        table.row(&[sentence(&gap.what), sentence(&gap.reason), sentence(&gap.remedy)]);
    }
    table.under("Not observed")
}

/// On which machine it was recorded.
pub(super) fn machine(tables: &Tables) -> String {
    let host = &tables.manifest.host;
    let mut known = Vec::new();
    if !host.kernel.is_empty() {
        known.push(format!("kernel {}", code(&host.kernel)));
    }
    if host.cpus > 0 {
        known.push(format!("{} CPUs", host.cpus));
    }
    if host.memory_bytes > 0 {
        known.push(format!("{} of memory", figure(&Quantity::exact(host.memory_bytes as f64, Unit::Bytes))));
    }
    if known.is_empty() { String::new() } else { format!("\nRecorded on a machine with {}.\n", known.join(", ")) }
}
