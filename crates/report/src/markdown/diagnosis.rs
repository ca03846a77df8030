//! The summary of a diagnosis: its answer, arms and verdicts, and what its recording shows.

use super::figures::{interval, optional};
use super::sections::{ROWS, faults, files, findings, heading, losses, machine, unavailable};
use super::text::{Column, Table, code, list, sentence};
use crate::terminal::sentences;
use slowpath_analysis::printed::looked_for::{self, LookedForFinding};
use slowpath_analysis::printed::time_spent::Condition;
use slowpath_analysis::printed::usage;
use slowpath_diagnose::printed::{Diagnosis, LaunchSummary, Verdict};
use slowpath_recording::Tables;
use slowpath_tables::Quantity;
use slowpath_verify::Metric;

/// The summary of a diagnosis whose launch `tables` explain.
pub(super) fn summary(diagnosis: &Diagnosis, tables: &Tables) -> String {
    let mut out = match &diagnosis.running {
        Some(running) => format!("## slowpath diagnose: {}\n\n", code(&running.processes)),
        None => heading("slowpath diagnose", &diagnosis.command),
    };
    let halves: Vec<Diagnosis> = std::iter::once(diagnosis.leading()).chain(diagnosis.following()).collect();
    for half in &halves {
        out.push_str(&format!("{}\n\n", sentence(&sentences(half))));
    }
    if let Some(text) = looked_for::sentence(&diagnosis.looked_for) {
        out.push_str(&format!("Limits: {}.\n\n", sentence(&text)));
    }
    for half in &halves {
        let kind = if half.warm { "warm" } else { "cold" };
        out.push_str(&arms(&half.launch, kind));
        out.push_str(&verdicts(half, kind));
    }
    out.push_str(&findings(&diagnosis.findings));
    out.push_str(&searched(diagnosis));
    out.push_str(&files(tables));
    out.push_str(&faults(&usage::of_tables(tables)));
    out.push_str(&losses(&diagnosis.losses));
    out.push_str(&unavailable(&diagnosis.unavailable));
    let notes: Vec<String> = diagnosis.notes.iter().map(|note| format!("Note: {}", sentence(note))).collect();
    out.push_str(&list("Notes", &notes));
    out.push_str(&machine(tables));
    out
}

/// What was looked for, and from which cost on each would have been seen.
fn searched(diagnosis: &Diagnosis) -> String {
    use Column::{Figures, Words};
    let mut out = String::new();
    for one in &diagnosis.looked_for {
        let columns = [Words("Looked for"), Figures("Seen from"), Words("Any cost could hide")];
        let mut table = Table::new(&columns);
        for finding in &one.findings {
            table.row(&[
                format!("{}: {}{}", code(&finding.name), sentence(&finding.title), within(finding)),
                optional(finding.least_visible.as_ref()),
                sentence(&finding.hidden_by.join(", ")),
            ]);
        }
        out.push_str(&table.under(match one.condition {
            Condition::Cold => "Looked for, cold launch",
            Condition::Warm => "Looked for, warm launch",
            Condition::Running => "Looked for, while it ran",
        }));
    }
    out
}

fn within(finding: &LookedForFinding) -> String {
    finding.within.as_ref().map_or_else(String::new, |within| format!(", {within}"))
}

fn arms(launch: &LaunchSummary, kind: &str) -> String {
    use Column::{Figures, Words};
    let columns = [
        Words("Arm"),
        Figures("Time to ready"),
        Figures("95 % interval"),
        Figures("CPU time"),
        Figures("95 % interval"),
        Figures("Launches that count"),
        Figures("Read from storage"),
    ];
    let mut table = Table::new(&columns);
    let ends = |quantity: Option<&Quantity>| quantity.map(interval).unwrap_or_default();
    for arm in &launch.arms {
        table.row(&[
            code(&arm.name),
            optional(arm.median.as_ref()),
            ends(arm.median.as_ref()),
            optional(arm.cpu.as_ref()),
            ends(arm.cpu.as_ref()),
            format!("{} of {}", arm.samples_ms.iter().flatten().count(), arm.samples_ms.len()),
            optional(arm.bytes_read.as_ref()),
        ]);
    }
    let mut out = table.under(&format!("Arms, {kind} launches"));
    if !out.is_empty() {
        let conditions = if launch.conditions.is_empty() {
            String::new()
        } else {
            format!("; {}", sentence(&launch.conditions.join(", ")))
        };
        out.push_str(&format!(
            "\n{} blocks, seed {}, ready when {}{conditions}.\n",
            launch.blocks,
            launch.seed,
            sentence(&launch.ready)
        ));
    }
    out
}

fn verdicts(half: &Diagnosis, kind: &str) -> String {
    use Column::{Figures, Words};
    let columns = [
        Words("Arm"),
        Words("Verdict"),
        Words("Judged by"),
        Figures("Change"),
        Figures("95 % interval"),
        Figures("Against the sham"),
        Figures("95 % interval"),
        Figures("Predicted"),
        Figures("Detectable"),
        Figures("Pairs"),
    ];
    let mut table = Table::new(&columns);
    for one in half.verdicts.iter().take(2 * ROWS) {
        table.row(&[
            code(&one.arm),
            verdict(one),
            metric(one.judged_by.unwrap_or(half.launch.judged_by)),
            optional(one.measured.as_ref()),
            one.measured.as_ref().map(interval).unwrap_or_default(),
            optional(one.against_sham.as_ref()),
            one.against_sham.as_ref().map(interval).unwrap_or_default(),
            optional(one.predicted.as_ref()),
            optional(one.minimum_detectable_effect.as_ref()),
            one.pairs.to_string(),
        ]);
    }
    let mut out = table.under(&format!("Verdicts, {kind} launches"));
    if let (false, Some(rate)) = (out.is_empty(), half.launch.error_rate) {
        out.push_str(&format!("\nError rate of these verdicts together: {} %.\n", rate * 100.0));
    }
    out
}

fn metric(metric: Metric) -> String {
    code(metric.name())
}

/// What follows for a fix, the outcome for another arm; with the reason where nothing was shown.
fn verdict(one: &Verdict) -> String {
    let words = one.decision.map_or(one.outcome.words(), |decision| decision.words());
    if one.measured.is_none() && !one.reason.is_empty() {
        return format!("{words}: {}", sentence(&one.reason));
    }
    words.to_owned()
}
