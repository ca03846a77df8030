//! What a product's own start found of its artifacts, on a terminal.

use super::escape_terminal as line;
use slowpath_guard::{Line, Outcome, RepairState, Report};
use std::fmt::Write;

/// Columns of the outcome and of the artifact.
const OUTCOME: usize = 14;
const ARTIFACT: usize = 19;

/// Rows that are printed; JSON has all.
const MOST_ROWS: usize = 60;

/// What a start found, with a newline after every line.
pub fn guarded(report: &Report, is_to_repair: bool) -> String {
    let mut text = String::new();
    let Some(first) = report.lines.first() else { return text };
    // Writing to a string does not fail.
    let _ = writeln!(text, "{} {}: checked in {:.1} ms", line(&first.policy), line(&first.version), first.value);
    // Of what nothing is to be said, only the number is.
    let is_listed = |one: &&Line| !matches!(one.outcome, Outcome::Usable | Outcome::NotNeeded);
    let rows: Vec<&Line> = report.lines.iter().filter(is_listed).collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "{:OUTCOME$} {:ARTIFACT$} file", "outcome", "artifact");
    }
    for row in rows.iter().take(MOST_ROWS) {
        write_row(&mut text, row);
    }
    if rows.len() > MOST_ROWS {
        let _ = writeln!(text, "{} more rows: --json has all", rows.len() - MOST_ROWS);
    }
    let _ = writeln!(text, "{}", summary(report));
    let could = report.lines.iter().any(|one| one.outcome.calls_for_repair());
    if could && !is_to_repair {
        text.push_str("nothing was changed: --repair runs the commands of the policy\n");
    }
    text
}

fn write_row(text: &mut String, row: &Line) {
    let who = row.needed_by.as_ref().map_or_else(String::new, |name| format!(" for {}", line(name)));
    let _ = writeln!(text, "{:OUTCOME$} {:ARTIFACT$} {}{who}", row.outcome.name(), row.artifact, row.quoted_path());
    let mut add = |name: &str, words: &str| {
        let _ = writeln!(text, "{:OUTCOME$} {name}: {}", "", line(words));
    };
    if row.found != row.outcome {
        add("found", row.found.name());
    }
    if let Some(denied_by) = &row.denied_by {
        add("denied by", &format!("{}: {}", denied_by.path, denied_by.words));
        add("change", row.change.as_deref().unwrap_or("no permission of a file would allow it"));
    }
    if let Some(reason) = &row.reason {
        add("why", reason);
    }
    if let Some(state) = row.repair {
        let status = row.repair_status.map_or_else(String::new, |status| format!(", exit status {status}"));
        let ms = row.repair_ms.map_or_else(String::new, |ms| format!(", {ms:.0} ms"));
        let why = row.repair_reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        add("repair", &format!("{}{status}{ms}{why}", words(state)));
    }
}

/// `12 files and users: 3 unreadable, 9 usable`.
fn summary(report: &Report) -> String {
    let count = |outcome: Outcome| report.lines.iter().filter(|one| one.outcome == outcome).count();
    let counts = Outcome::ALL.into_iter().map(|outcome| (outcome, count(outcome))).filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    let lines =
        if report.lines.len() == 1 { "1 file and user" } else { &format!("{} files and users", report.lines.len()) };
    format!("{lines}: {}", counts.join(", "))
}

fn words(state: RepairState) -> &'static str {
    match state {
        RepairState::Done => "done",
        RepairState::Failed => "failed",
        RepairState::TimedOut => "killed after its timeout",
        RepairState::NotStarted => "could not be started",
        RepairState::TriedBefore => "not again",
        RepairState::Interrupted => "not again",
        RepairState::Running => "another process is at it",
        RepairState::Refused => "refused",
    }
}
