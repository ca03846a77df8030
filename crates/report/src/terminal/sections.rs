//! The parts of the screen.

use super::figures;
use super::item::Item;
use super::line::{Line, Paint, cut, left, right, width, wrap};
use super::style::Style;
use super::tried;
use crate::Analysis;
use crate::terminal::escape::escape;
use slowpath_analysis::finding::Finding;
use slowpath_analysis::time::ledger::not_asked_for;
use slowpath_diagnose::printed::{ArmRole, Decision, Diagnosis, LaunchSummary, Verdict};
use slowpath_tables::{Losses, Quantity, Unavailable};
use slowpath_verify::printed::Outcome;

/// Lines that belong together.
#[derive(Default)]
pub(crate) struct Section {
    /// Lines that always stay.
    pub head: Vec<Line>,
    /// Lines that can be left out, from the last.
    pub items: Vec<Item>,
    /// How many of them stay while other lists can lose items.
    pub needed: usize,
    /// How many were left out.
    pub dropped: usize,
    /// What the items are, plural.
    pub what: &'static str,
    /// An empty line stands before it.
    pub spaced: bool,
    /// An item of more than one line is left out as a whole where there is no room: the beginning of a remark says little.
    pub whole_or_not: bool,
    /// `head` is the heading of a table, or all of it, and means nothing where the rows are left out.
    pub is_table: bool,
    /// It is left out before what was found and what came of it.
    pub is_context: bool,
}

/// Lines of the answer at most.
pub(crate) const ANSWER_LINES: usize = 4;

pub(crate) fn program(command: &[String], style: &Style) -> String {
    let name = command.first().and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
    cut(&escape(name.unwrap_or("the program"), style.unicode), 24, style)
}

fn median_of(launch: &LaunchSummary, role: ArmRole) -> Option<&Quantity> {
    launch.arms.iter().find(|arm| arm.role == role)?.median.as_ref()
}

/// Why it is slow and what helped.
pub(crate) fn answer(diagnosis: &Diagnosis, style: &Style) -> String {
    let cold = median_of(&diagnosis.launch, ArmRole::Baseline);
    let warm = median_of(&diagnosis.launch, ArmRole::Warm);
    let program = program(&diagnosis.command, style);
    let mut text = match (cold, warm) {
        (Some(cold), Some(warm)) => format!(
            "{program} is ready {} after a cold launch, {} after a warm one.",
            figures::value(cold, style),
            figures::value(warm, style)
        ),
        (Some(cold), None) => {
            format!("{program} is ready {} after a cold launch.", figures::value(cold, style))
        }
        _ => format!("No cold launch of {program} could be measured."),
    };
    if diagnosis.findings.is_empty() {
        // A warm launch of the same screen may have shown one.
        let which = if cold.is_some() { " in a cold launch" } else { "" };
        text.push_str(&match diagnosis.shared_findings {
            0 => format!(" No hidden cost was found{which}."),
            _ => format!(" No hidden cost was found{which} but those that a warm launch has too."),
        });
    }
    text + &tried::sentences(diagnosis, style)
}

/// What the recording holds, for a recording without compared launches.
pub(crate) fn recorded(analysis: &Analysis, style: &Style) -> Section {
    let Some(time) = &analysis.time_to_ready else { return Section::default() };
    let mut text = format!("{} was ready after {}.", program(&analysis.command, style), figures::value(time, style));
    match analysis.findings.first() {
        Some(top) => text.push_str(&format!(
            " The most costly cause found: {}, {}.",
            top.title.trim_end_matches('.'),
            figures::value(&top.cost, style)
        )),
        None => text.push_str(" No hidden cost was found."),
    }
    let lines = wrap(&escape(&text, style.unicode), ANSWER_LINES, style);
    Section { head: lines.iter().map(|line| Line::of(Paint::Bold, line, style)).collect(), ..Section::default() }
}

/// The arms with medians, intervals and a sketch on one axis.
pub(crate) fn arms(launch: &LaunchSummary, style: &Style) -> Section {
    const NAME: usize = 16;
    const MEDIAN: usize = 9;
    const INTERVAL: usize = 15;
    const READ: usize = 9;
    const COUNT: usize = 7;
    if launch.arms.is_empty() {
        return Section::default();
    }
    let sketch_columns = style.columns.saturating_sub(NAME + MEDIAN + INTERVAL + READ + COUNT + 2);
    let (from, to) = figures::axis(launch.arms.iter().filter_map(|arm| arm.median.as_ref()));
    let heading = [
        left("arm", NAME, style),
        right("median", MEDIAN, style),
        right("95 % interval", INTERVAL, style),
        right("read", READ, style),
        right("n", COUNT, style),
        format!("  {}", figures::axis_ends(from, to, sketch_columns, style)),
    ];
    let items = launch.arms.iter().map(|arm| {
        let counted = arm.samples_ms.iter().flatten().count();
        let read = arm.bytes_read.map_or("-".to_owned(), |bytes| figures::value(&bytes, style));
        let cells = [
            left(&escape(&arm.name, style.unicode), NAME, style),
            right(&arm.median.map_or("-".to_owned(), |median| figures::value(&median, style)), MEDIAN, style),
            right(&arm.median.and_then(|m| figures::interval(&m, style)).unwrap_or_default(), INTERVAL, style),
            right(&read, READ, style),
            right(&format!("{counted}/{}", arm.samples_ms.len()), COUNT, style),
        ];
        let sketch =
            arm.median.map(|median| figures::sketch(&median, from, to, sketch_columns, style)).unwrap_or_default();
        Line::of(Paint::Plain, &cells.concat(), style).with(Paint::Plain, &format!("  {sketch}"), style).into()
    });
    arm_table(launch, items.collect(), Line::of(Paint::Quiet, &heading.concat(), style))
}

/// A table with one row for each arm.
pub(super) fn arm_table(launch: &LaunchSummary, items: Vec<Item>, heading: Line) -> Section {
    Section {
        items,
        // Up to the first fix: the answer and the verdicts speak of it.
        needed: launch.arms.iter().position(|arm| arm.role == ArmRole::Fix).map_or(0, |at| at + 1),
        head: vec![heading],
        what: "arms",
        spaced: true,
        is_table: true,
        is_context: true,
        ..Section::default()
    }
}

/// The title without the words that every finding of a launch shares, where it is longer than `room`.
fn short_title(title: &str, room: usize) -> &str {
    let title = title.trim_end_matches('.');
    if width(title) <= room { title } else { title.strip_suffix(" before it is ready").unwrap_or(title) }
}

/// The costly findings, one line each.
pub(crate) fn findings(findings: &[Finding], style: &Style) -> Section {
    let items = findings.iter().map(|finding| {
        let cost = right(&figures::value(&finding.cost, style), 10, style);
        let confidence = left(finding.confidence.as_str(), 7, style);
        let prefix = Line::of(Paint::Plain, &cost, style).with(Paint::Quiet, &format!("  {confidence} "), style);
        let title = short_title(&finding.title, style.columns.saturating_sub(prefix.width()));
        Item::wrapped(prefix, Paint::Plain, title, None, style)
    });
    // That there is none stands in the answer.
    if findings.is_empty() {
        return Section::default();
    }
    Section {
        items: items.collect(),
        head: vec![Line::of(Paint::Quiet, "      cost  conf.   finding", style)],
        what: "findings",
        spaced: true,
        is_table: true,
        ..Section::default()
    }
}

/// Every verdict with the predicted beside the measured change, and below it the change against the sham.
pub(crate) fn verdicts(diagnosis: &Diagnosis, style: &Style) -> Section {
    if diagnosis.verdicts.is_empty() {
        return Section::default();
    }
    let heading = [
        left("verdict", VERDICT[0], style),
        left("", VERDICT[1], style),
        right("predicted (range)", VERDICT[2], style),
        right("measured (95 %)", VERDICT[3], style),
    ];
    let (merged, shown): (Vec<&Verdict>, Vec<&Verdict>) =
        diagnosis.verdicts.iter().partition(|verdict| tried::is_silent_sham(diagnosis, verdict));
    // One sham arm is as short as a summary of one.
    let (merged, shown) =
        if merged.len() > 1 { (merged, shown) } else { (Vec::new(), diagnosis.verdicts.iter().collect()) };
    let items = shown.into_iter().map(|verdict| verdict_item(verdict, style));
    let items = items.chain(silent_shams(&merged, style).map(Item::from));
    Section {
        items: items.collect(),
        head: vec![Line::of(Paint::Quiet, &heading.concat(), style)],
        what: "verdicts",
        spaced: true,
        is_table: true,
        ..Section::default()
    }
}

/// Columns of a verdict: the arm, the outcome, what was predicted and what was measured, both with their intervals.
const VERDICT: [usize; 4] = [16, 14, 23, 26];

fn verdict_item(verdict: &Verdict, style: &Style) -> Item {
    let paint = match verdict.outcome {
        Outcome::Helps => Paint::Good,
        Outcome::Hurts => Paint::Bad,
        _ => Paint::Plain,
    };
    let words = verdict.decision.map_or(verdict.outcome.words(), Decision::words);
    let predicted = verdict.predicted.map_or("-".to_owned(), |predicted| figures::with_interval(&predicted, style));
    let [arm, outcome, before, after] = VERDICT;
    let line = Line::of(Paint::Plain, &left(&escape(&verdict.arm, style.unicode), arm, style), style)
        .with(paint, &left(words, outcome, style), style)
        .with(Paint::Plain, &right(&predicted, before, style), style);
    match &verdict.measured {
        Some(measured) => {
            let measured = right(&figures::with_interval(measured, style), after, style);
            let mut item = Item::from(line.with(Paint::Plain, &measured, style));
            item.more.extend(tried::against_sham(verdict, style));
            item
        }
        None => Item::wrapped(line.with(Paint::Quiet, "  ", style), Paint::Quiet, &verdict.reason, Some(4), style),
    }
}

/// All sham arms that changed nothing, in one line.
fn silent_shams(verdicts: &[&Verdict], style: &Style) -> Option<Line> {
    let first = verdicts.first()?;
    let outcome = if verdicts.iter().all(|verdict| verdict.outcome == first.outcome) {
        first.outcome.words()
    } else {
        "no effect seen"
    };
    let measured: Vec<String> =
        verdicts.iter().filter_map(|verdict| Some(figures::change(verdict.measured.as_ref()?, style))).collect();
    let cells = [
        left(&format!("{} shams", verdicts.len()), VERDICT[0], style),
        left(outcome, VERDICT[1], style),
        right("-", VERDICT[2], style),
        right(&measured.join(", "), VERDICT[3], style),
    ];
    Some(Line::of(Paint::Plain, &cells.concat(), style))
}

/// What every diagnosis has in this list, and no reader can change: the page and the JSON keep it.
const OUTSIDE_THE_LAB: &str = "outside the lab";

/// What a fix that could not be tried has in this list; its verdict says it on the screen.
const TRIAL: &str = "a trial of ";

/// Whether a gap is worth a line on the screen. A ledger that was not asked for is not; one that could not be made is.
fn is_shown(gap: &Unavailable) -> bool {
    !gap.what.contains(OUTSIDE_THE_LAB) && *gap != not_asked_for() && !gap.what.starts_with(TRIAL)
}

/// What speaks against trusting the figures: losses, what was unavailable, notes.
pub(crate) fn doubts(losses: &Losses, unavailable: &[Unavailable], notes: &[String], style: &Style) -> Section {
    let lost: Vec<String> =
        losses.0.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| format!("{kind} {count}")).collect();
    let lost = (!lost.is_empty()).then(|| Line::of(Paint::Bad, &format!("Lost events: {}.", lost.join(", ")), style));
    let unavailable = unavailable.iter().filter(|item| is_shown(item));
    let unavailable = unavailable.map(|item| ("Unavailable: ", format!("{} ({})", item.what, item.reason)));
    let notes = notes.iter().map(|note| ("Note: ", note.clone()));
    let items = unavailable
        .chain(notes)
        .map(|(word, text)| Item::wrapped(Line::of(Paint::Quiet, word, style), Paint::Quiet, &text, Some(2), style));
    Section {
        head: lost.into_iter().collect(),
        items: items.collect(),
        what: "remarks",
        spaced: true,
        whole_or_not: true,
        ..Section::default()
    }
}

/// Where the evidence is, and that it is whole where it is.
pub(crate) fn recording(path: &str, losses: &Losses, style: &Style) -> Section {
    let whole = losses.0.values().all(|count| *count == 0);
    let mut lines = vec![format!("Recording: {path}")];
    if whole {
        lines.insert(0, "Lost events: none.".to_owned());
    }
    let joined = lines.join(" ");
    if width(&escape(&joined, style.unicode)) <= style.columns {
        lines = vec![joined];
    }
    Section { head: lines.iter().map(|line| Line::of(Paint::Quiet, line, style)).collect(), ..Section::default() }
}
