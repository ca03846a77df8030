//! The parts of the screen of a warm diagnosis: what it costs, what was tried, what is proved.
//!
//! Owns what differs from a cold one: CPU time leads, time to ready and faults stand beside it, and fixes have decisions. Leaves
//! findings, doubts and the recording to [`super::sections`].

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{Section, arm_table, program};
use super::style::Style;
use super::tried::{against_sham, sham_sentences};
use slowpath_diagnose::printed::{ArmRole, ArmSummary, Decision, Diagnosis, LaunchSummary, MetricChange, Verdict};
use slowpath_tables::Quantity;
use slowpath_verify::Metric;
use slowpath_verify::printed::Outcome;

/// Columns of a name.
const NAME: usize = 20;
/// Columns of the decision, and of what was predicted and measured, with intervals.
const DECISION: usize = 14;
const PREDICTED: usize = 22;
const MEASURED: usize = 24;

fn baseline(launch: &LaunchSummary) -> Option<&ArmSummary> {
    launch.arms.iter().find(|arm| arm.role == ArmRole::Baseline)
}

/// What a launch costs and what was tried.
pub(super) fn answer(diagnosis: &Diagnosis, style: &Style) -> String {
    let program = program(&diagnosis.command, style);
    let baseline = baseline(&diagnosis.launch);
    let mut text = match baseline.and_then(|arm| Some((arm.cpu?, arm.median?))) {
        Some((cpu, ready)) => format!(
            "A warm launch of {program} uses {} of CPU time and is ready after {}.",
            figures::value(&cpu, style),
            figures::value(&ready, style)
        ),
        None => match diagnosis.findings.first() {
            None if diagnosis.shared_findings > 0 => {
                format!("A warm launch of {program} has no hidden cost but those that a cold one has too.")
            }
            None => format!("No hidden cost was found in a warm launch of {program}."),
            Some(first) => format!("{}. No fix of it can be tried by itself.", first.title),
        },
    };
    if baseline.is_some() {
        text.push_str(&tried(diagnosis, style));
    }
    text
}

/// A sentence for each decision that was made, each with a space before it.
fn tried(diagnosis: &Diagnosis, style: &Style) -> String {
    let decided = |decision| diagnosis.verdicts.iter().filter(move |verdict| verdict.decision == Some(decision));
    let mut text = String::new();
    let whole = baseline(&diagnosis.launch).and_then(|arm| arm.cpu);
    for verdict in decided(Decision::Proved) {
        let saving = verdict.measured.map(|measured| Quantity { low: None, high: None, ..-measured });
        let share = saving.zip(whole).filter(|(_, whole)| whole.value > 0.0);
        let share = share.map(|(saving, whole)| format!(" ({:.1} %)", saving.value / whole.value * 100.0));
        let saving = saving.map_or_else(String::new, |saving| format!(" {}", figures::value(&saving, style)));
        text.push_str(&format!(" Proved: {} saves{saving} of CPU time{}.", verdict.arm, share.unwrap_or_default()));
    }
    for (decision, why) in [
        (Decision::Withdrawn, "Withdrawn, it saves nothing that matters"),
        (Decision::NotShown, "Not shown, the launches do not decide it"),
    ] {
        let names: Vec<&str> = decided(decision).map(|verdict| verdict.arm.as_str()).collect();
        if !names.is_empty() {
            text.push_str(&format!(" {why}: {}.", names.join(", ")));
        }
    }
    let shams = |outcome| -> Vec<String> {
        let all = diagnosis.verdicts.iter().filter(|verdict| is_sham(diagnosis, verdict));
        all.filter(|verdict| verdict.outcome == outcome).map(|verdict| verdict.arm.clone()).collect()
    };
    text + &sham_sentences(&shams(Outcome::Helps), &shams(Outcome::Hurts))
}

fn is_sham(diagnosis: &Diagnosis, verdict: &Verdict) -> bool {
    diagnosis.launch.arms.iter().any(|arm| arm.name == verdict.arm && arm.role == ArmRole::Sham)
}

/// The arms with CPU time and its sketch, time to ready and faults.
pub(super) fn arms(launch: &LaunchSummary, style: &Style) -> Section {
    const MEDIAN: usize = 9;
    const INTERVAL: usize = 14;
    const READY: usize = 9;
    const FAULTS: usize = 9;
    const COUNT: usize = 7;
    if launch.arms.is_empty() {
        return Section::default();
    }
    let sketch_columns = style.columns.saturating_sub(NAME + MEDIAN + INTERVAL + READY + FAULTS + COUNT + 2);
    let (from, to) = figures::axis(launch.arms.iter().filter_map(|arm| arm.cpu.as_ref()));
    let heading = [
        left("arm", NAME, style),
        right("CPU", MEDIAN, style),
        right("95 % interval", INTERVAL, style),
        right("ready", READY, style),
        right("faults", FAULTS, style),
        right("n", COUNT, style),
        format!("  {}", figures::axis_ends(from, to, sketch_columns, style)),
    ];
    let cell = |quantity: Option<Quantity>| quantity.map_or("-".to_owned(), |known| figures::value(&known, style));
    let items = launch.arms.iter().map(|arm| {
        let counted = arm.samples_ms.iter().flatten().count();
        let cells = [
            left(&escape(&arm.name, style.unicode), NAME, style),
            right(&cell(arm.cpu), MEDIAN, style),
            right(&arm.cpu.and_then(|cpu| figures::interval(&cpu, style)).unwrap_or_default(), INTERVAL, style),
            right(&cell(arm.median), READY, style),
            right(&cell(arm.minor_faults), FAULTS, style),
            right(&format!("{counted}/{}", arm.samples_ms.len()), COUNT, style),
        ];
        let sketch = arm.cpu.map(|cpu| figures::sketch(&cpu, from, to, sketch_columns, style)).unwrap_or_default();
        Line::of(Paint::Plain, &cells.concat(), style).with(Paint::Plain, &format!("  {sketch}"), style).into()
    });
    arm_table(launch, items.collect(), Line::of(Paint::Quiet, &heading.concat(), style))
}

/// Every verdict: the decision, predicted beside measured, and below it the change against the sham and those by the other metrics.
pub(super) fn verdicts(diagnosis: &Diagnosis, style: &Style) -> Section {
    if diagnosis.verdicts.is_empty() {
        return Section::default();
    }
    let heading = [
        left("change of CPU time", NAME, style),
        left("", DECISION, style),
        right("predicted (range)", PREDICTED, style),
        right("measured (95 %)", MEASURED, style),
    ];
    Section {
        items: diagnosis.verdicts.iter().map(|verdict| item(verdict, style)).collect(),
        head: vec![Line::of(Paint::Quiet, &heading.concat(), style)],
        what: "verdicts",
        spaced: true,
        is_table: true,
        ..Section::default()
    }
}

fn item(verdict: &Verdict, style: &Style) -> Item {
    let (words, paint) = match verdict.decision {
        Some(decision @ Decision::Proved) => (decision.words(), Paint::Good),
        Some(decision) => (decision.words(), Paint::Plain),
        None => (verdict.outcome.words(), Paint::Plain),
    };
    let paint = if verdict.outcome == Outcome::Hurts { Paint::Bad } else { paint };
    let predicted = verdict.predicted.map_or("-".to_owned(), |predicted| figures::with_interval(&predicted, style));
    let line = Line::of(Paint::Plain, &left(&escape(&verdict.arm, style.unicode), NAME, style), style)
        .with(paint, &left(words, DECISION, style), style)
        .with(Paint::Plain, &right(&predicted, PREDICTED, style), style);
    let Some(measured) = &verdict.measured else {
        return Item::wrapped(line.with(Paint::Quiet, "  ", style), Paint::Quiet, &verdict.reason, Some(4), style);
    };
    let mut item =
        Item::from(line.with(Paint::Plain, &right(&figures::with_interval(measured, style), MEASURED, style), style));
    item.more.extend(against_sham(verdict, style));
    let beside: Vec<String> = verdict.beside.iter().filter_map(|change| beside(change, style)).collect();
    if !beside.is_empty() {
        item.more.push(Line::of(Paint::Quiet, &format!("    {}", beside.join(", ")), style));
    }
    item
}

fn beside(change: &MetricChange, style: &Style) -> Option<String> {
    let name = match change.metric {
        Metric::Wall => "ready",
        Metric::MinorFaults => "faults",
        // The price stands in the report.
        _ => return None,
    };
    Some(format!("{name} {}", figures::with_interval(change.change.as_ref()?, style)))
}
