//! The parts of the screen.

use super::figures;
use super::line::{Line, Paint, cut, left, right, wrap};
use super::style::Style;
use crate::diagnosis::{Analysis, ArmRole, ArmSummary, Diagnosis, LaunchSummary, Outcome, Verdict};
use crate::terminal::escape::escape;
use slowpath_analysis::finding::Finding;
use slowpath_tables::{Losses, Quantity, Unavailable};

/// Lines that belong together.
#[derive(Default)]
pub(crate) struct Section {
    /// Lines that always stay.
    pub head: Vec<Line>,
    /// Lines that can be left out, from the last.
    pub items: Vec<Line>,
    /// How many were left out.
    pub dropped: usize,
    /// What the items are, plural.
    pub what: &'static str,
    /// An empty line stands before it.
    pub spaced: bool,
}

/// Lines of the answer at most.
const ANSWER_LINES: usize = 3;

fn program(command: &[String], style: &Style) -> String {
    let name = command.first().and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
    cut(&escape(name.unwrap_or("the program"), style.unicode), 24, style)
}

fn arm_of<'a>(diagnosis: &'a Diagnosis, name: &str) -> Option<&'a ArmSummary> {
    diagnosis.launch.arms.iter().find(|arm| arm.name == name)
}

fn is_control(diagnosis: &Diagnosis, verdict: &Verdict) -> bool {
    arm_of(diagnosis, &verdict.arm)
        .is_some_and(|arm| matches!(arm.role, ArmRole::Sham | ArmRole::Warm | ArmRole::Baseline))
}

fn median_of(launch: &LaunchSummary, role: ArmRole) -> Option<&Quantity> {
    launch.arms.iter().find(|arm| arm.role == role)?.median.as_ref()
}

/// Why it is slow and what helped, in up to three lines.
pub(crate) fn answer(diagnosis: &Diagnosis, style: &Style) -> Section {
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
    let treatments = || diagnosis.verdicts.iter().filter(|verdict| !is_control(diagnosis, verdict));
    let change = |verdict: &Verdict| verdict.measured.map_or(0.0, |measured| measured.value);
    let best = treatments().filter(|v| v.outcome == Outcome::Helps).min_by(|a, b| change(a).total_cmp(&change(b)));
    match best {
        Some(verdict) => {
            let name = verdict.fix.as_ref().unwrap_or(&verdict.arm);
            text.push_str(&format!(" {name} makes it"));
            if let Some(measured) = verdict.measured {
                let saving = Quantity { value: -measured.value, low: None, high: None, ..measured };
                text.push_str(&format!(" {} faster", figures::value(&saving, style)));
            } else {
                text.push_str(" faster");
            }
            if let Some(gap) = diagnosis.share_of_gap_removed.iter().find(|gap| gap.arm == verdict.arm) {
                let share = Quantity { low: None, high: None, ..gap.share };
                text.push_str(&format!(" and removes {} of the difference", figures::value(&share, style)));
            }
            text.push('.');
        }
        None if treatments().next().is_some() => text.push_str(" Nothing that was tried made it measurably faster."),
        None => text.push_str(" No fix was tried."),
    }
    let lines = wrap(&escape(&text, style.unicode), ANSWER_LINES, style);
    Section { head: lines.iter().map(|line| Line::of(Paint::Bold, line, style)).collect(), ..Section::default() }
}

/// What the recording holds, for a recording without compared launches.
pub(crate) fn recorded(analysis: &Analysis, style: &Style) -> Section {
    let program = program(&analysis.command, style);
    let mut text = match &analysis.time_to_ready {
        Some(time) => format!("{program} was ready after {}.", figures::value(time, style)),
        None => format!("The recording of {program} holds no launch that got ready."),
    };
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
    let ends = launch.arms.iter().filter_map(|arm| arm.median.as_ref().and_then(figures::milliseconds));
    let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
    for (value, interval) in ends {
        let (low, high) = interval.unwrap_or((value, value));
        from = from.min(low);
        to = to.max(high);
    }
    let heading = [
        left("arm", NAME, style),
        right("median", MEDIAN, style),
        right("95 % interval", INTERVAL, style),
        right("read", READ, style),
        right("n", COUNT, style),
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
        Line::of(Paint::Plain, &cells.concat(), style).with(Paint::Plain, &format!("  {sketch}"), style)
    });
    Section {
        items: items.collect(),
        head: vec![Line::of(Paint::Quiet, &heading.concat(), style)],
        what: "arms",
        spaced: true,
        dropped: 0,
    }
}

/// The costly findings, one line each.
pub(crate) fn findings(findings: &[Finding], style: &Style) -> Section {
    let items = findings.iter().map(|finding| {
        let cost = right(&figures::value(&finding.cost, style), 10, style);
        let confidence = left(finding.confidence.as_str(), 7, style);
        Line::of(Paint::Plain, &cost, style).with(Paint::Quiet, &format!("  {confidence} "), style).with(
            Paint::Plain,
            &finding.title,
            style,
        )
    });
    let head = if findings.is_empty() { "No hidden cost was found." } else { "      cost  conf.   finding" };
    Section {
        items: items.collect(),
        head: vec![Line::of(Paint::Quiet, head, style)],
        what: "findings",
        spaced: true,
        dropped: 0,
    }
}

/// Every verdict with the predicted beside the measured change.
pub(crate) fn verdicts(diagnosis: &Diagnosis, style: &Style) -> Section {
    if diagnosis.verdicts.is_empty() {
        return Section::default();
    }
    let heading = [
        left("verdict", 18, style),
        left("", 15, style),
        right("predicted", 11, style),
        right("measured (95 % interval)", 32, style),
    ];
    let items = diagnosis.verdicts.iter().map(|verdict| {
        let paint = match verdict.outcome {
            Outcome::Helps => Paint::Good,
            Outcome::Hurts => Paint::Bad,
            _ => Paint::Plain,
        };
        let predicted = verdict.predicted.map_or("-".to_owned(), |predicted| figures::value(&predicted, style));
        let line = Line::of(Paint::Plain, &left(&escape(&verdict.arm, style.unicode), 18, style), style)
            .with(paint, &left(verdict.outcome.words(), 15, style), style)
            .with(Paint::Plain, &right(&predicted, 11, style), style);
        match &verdict.measured {
            Some(measured) => {
                let measured = figures::with_interval(measured, style);
                line.with(Paint::Plain, &right(&measured, 32, style), style)
            }
            None => line.with(Paint::Quiet, &format!("  {}", verdict.reason), style),
        }
    });
    Section {
        items: items.collect(),
        head: vec![Line::of(Paint::Quiet, &heading.concat(), style)],
        what: "verdicts",
        spaced: true,
        dropped: 0,
    }
}

/// What speaks against trusting the figures: losses, what was unavailable, notes.
pub(crate) fn doubts(losses: &Losses, unavailable: &[Unavailable], notes: &[String], style: &Style) -> Section {
    let lost: Vec<String> =
        losses.0.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| format!("{kind} {count}")).collect();
    let lost = if lost.is_empty() {
        Line::of(Paint::Quiet, "Lost events: none.", style)
    } else {
        Line::of(Paint::Bad, &format!("Lost events: {}.", lost.join(", ")), style)
    };
    let unavailable = unavailable.iter().map(|item| {
        let text = format!("Unavailable: {} ({})", item.what, item.reason);
        Line::of(Paint::Quiet, &text, style)
    });
    let notes = notes.iter().map(|note| Line::of(Paint::Quiet, &format!("Note: {note}"), style));
    Section { head: vec![lost], items: unavailable.chain(notes).collect(), what: "remarks", spaced: true, dropped: 0 }
}

/// Where the evidence is.
pub(crate) fn recording(path: &str, style: &Style) -> Section {
    Section { head: vec![Line::of(Paint::Quiet, &format!("Recording: {path}"), style)], ..Section::default() }
}
