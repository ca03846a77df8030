//! Where time goes, on a screen: a row a part, two columns for each launch.

use super::figures::{readable, value};
use super::line::{Line, Paint, left, right};
use super::sections::Section;
use super::style::Style;
use slowpath_analysis::printed::time_spent::{Condition, TimeSpent};
use slowpath_analysis::time::time_spent::Part;
use slowpath_diagnose::printed::{ArmRole, ArmSummary, Diagnosis};
use slowpath_tables::Quantity;

const NAME: usize = 30;
const TIME: usize = 12;
/// Parts that have less of every column share a row.
const SMALLEST_SHARE: f64 = 0.01;
/// Share of the CPU time from which the cost of recording is shown.
const LEAST_RECORDING: f64 = 0.05;

/// The table; nothing without recordings. `halves` launched what was recorded without a recorder: the difference from what they took is
/// what recording costs, and that launches differ.
pub(super) fn section(recordings: &[TimeSpent], halves: &[Diagnosis], style: &Style) -> Section {
    if recordings.is_empty() {
        return Section::default();
    }
    let all = |one: &TimeSpent| cells(one, one.time_to_ready, Some(one.cpu), style);
    let unexplained = |one: &TimeSpent| cells(one, one.unexplained, None, style);
    let row = |paint, name: &str, of: &dyn Fn(&TimeSpent) -> Vec<String>| {
        let cells = recordings.iter().flat_map(of).map(|cell| right(&cell, TIME, style));
        Line::of(paint, &std::iter::once(left(name, NAME, style)).chain(cells).collect::<String>(), style)
    };
    let mut head = vec![row(Paint::Quiet, "where the time goes", &titles)];
    let (large, small): (Vec<Part>, Vec<Part>) =
        Part::ALL.into_iter().partition(|part| recordings.iter().any(|one| is_large(one, *part)));
    for part in large {
        let of = |one: &TimeSpent| {
            let (to_ready, cpu) = of_part(one, part);
            cells(one, to_ready, cpu, style)
        };
        head.push(row(Paint::Plain, part.words(), &of));
    }
    let together = |one: &TimeSpent| small.iter().map(|part| of_part(one, *part)).fold((None, None), added);
    if recordings.iter().map(together).any(|(to_ready, cpu)| is_shown(to_ready) || is_shown(cpu)) {
        let of = |one: &TimeSpent| {
            let (to_ready, cpu) = together(one);
            cells(one, to_ready, cpu, style)
        };
        head.push(row(Paint::Plain, "other parts", &of));
    }
    if recordings.iter().any(|one| one.unexplained.is_some()) {
        head.push(row(Paint::Plain, "unexplained", &unexplained));
    }
    let is_launch = recordings.iter().all(|one| one.time_to_ready.is_some());
    let total = if is_launch { "total of the recorded launch" } else { "total" };
    head.push(row(Paint::Bold, total, &all));
    let is_much = |one: &TimeSpent| one.recording.is_some_and(|time| time.value >= one.cpu.value * LEAST_RECORDING);
    if recordings.iter().any(is_much) {
        let recording = |one: &TimeSpent| cells(one, None, one.recording, style);
        head.push(row(Paint::Quiet, "  of it to record faults", &recording));
    }
    let median = |one: &TimeSpent| medians(halves, one.condition);
    if recordings.iter().map(median).any(|(to_ready, cpu)| to_ready.or(cpu).is_some()) {
        let of = |one: &TimeSpent| {
            let (to_ready, cpu) = median(one);
            cells(one, to_ready, cpu, style)
        };
        head.push(row(Paint::Plain, "median without recording", &of));
    }
    for one in recordings.iter().filter(|one| one.uncounted_threads > 0) {
        let threads = if one.uncounted_threads == 1 { "thread" } else { "threads" };
        let text = format!("  the CPU time of {} {threads} is not known and missing above", one.uncounted_threads);
        head.push(Line::of(Paint::Quiet, &text, style));
    }
    if recordings.iter().any(|one| !one.has_memory_calls) && recordings.iter().any(|one| one.has_memory_calls) {
        head.push(Line::of(
            Paint::Quiet,
            "  memory calls were not recorded in the cold launch; they are in running",
            style,
        ));
    }
    Section { head, what: "parts of the time", spaced: true, is_table: true, is_context: true, ..Section::default() }
}

/// Two columns for a launch, one for what ran already.
fn titles(one: &TimeSpent) -> Vec<String> {
    match one.condition {
        Condition::Cold => vec!["cold ready".to_owned(), "cold CPU".to_owned()],
        Condition::Warm => vec!["warm ready".to_owned(), "warm CPU".to_owned()],
        Condition::Running => vec!["CPU".to_owned()],
    }
}

fn cells(one: &TimeSpent, to_ready: Option<Quantity>, cpu: Option<Quantity>, style: &Style) -> Vec<String> {
    let cell = |time: Option<Quantity>| time.map_or_else(|| "-".to_owned(), |time| value(&readable(time), style));
    match one.condition {
        Condition::Cold | Condition::Warm => vec![cell(to_ready), cell(cpu)],
        Condition::Running => vec![cell(cpu)],
    }
}

fn of_part(one: &TimeSpent, part: Part) -> Times {
    let row = one.rows.iter().find(|row| row.part == part);
    (row.and_then(|row| row.to_ready), row.and_then(|row| row.cpu))
}

type Times = (Option<Quantity>, Option<Quantity>);

/// Medians of the untreated launches under a condition; warm ones are those of a trial, or the bound that a cold trial has.
fn medians(halves: &[Diagnosis], condition: Condition) -> Times {
    let arm = |warm: bool, role: ArmRole| -> Option<&ArmSummary> {
        let half = halves.iter().find(|half| half.warm == warm)?;
        half.launch.arms.iter().find(|arm| arm.role == role)
    };
    let arm = match condition {
        Condition::Cold => arm(false, ArmRole::Baseline),
        Condition::Warm => arm(true, ArmRole::Baseline).or_else(|| arm(false, ArmRole::Warm)),
        Condition::Running => None,
    };
    // The table has the CPU time of all processes, also of those that nobody waited for.
    arm.map_or((None, None), |arm| (arm.median, arm.cpu.filter(|_| !arm.lacks_children)))
}

fn added(a: Times, b: Times) -> Times {
    let sum = |a: Option<Quantity>, b: Option<Quantity>| match (a, b) {
        (Some(a), Some(b)) => Some(Quantity::exact(a.value + b.value, a.unit)),
        (one, other) => one.or(other),
    };
    (sum(a.0, b.0), sum(a.1, b.1))
}

/// Whether a time is more than a row of zeros.
fn is_shown(time: Option<Quantity>) -> bool {
    time.is_some_and(|time| time.value >= 0.005)
}

fn is_large(one: &TimeSpent, part: Part) -> bool {
    let (to_ready, cpu) = of_part(one, part);
    let is_large = |time: Option<Quantity>, whole: Option<Quantity>| {
        let (time, whole) = (time.map_or(0.0, |time| time.value), whole.map_or(0.0, |whole| whole.value));
        time > 0.0 && time >= whole * SMALLEST_SHARE
    };
    is_large(to_ready, one.time_to_ready) || is_large(cpu, Some(one.cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Rest, screen};
    use slowpath_analysis::printed::time_spent::TimeSpentRow;
    use slowpath_tables::Unit;

    fn ms(value: f64) -> Quantity {
        Quantity::exact(value, Unit::Ms)
    }

    fn launch(condition: Condition, reads: f64) -> TimeSpent {
        let row = |part: Part, to_ready: f64, cpu: Option<f64>| TimeSpentRow {
            part,
            title: part.words().to_owned(),
            to_ready: Some(ms(to_ready)),
            cpu: cpu.map(ms),
        };
        TimeSpent {
            condition,
            time_to_ready: Some(ms(150.0 + reads)),
            cpu: ms(2150.0),
            recording: (condition == Condition::Warm).then(|| ms(107.0)),
            rows: vec![
                row(Part::Storage, reads, Some(0.5)),
                row(Part::Waits, 40.0, None),
                row(Part::ChildStart, 0.0, Some(0.0)),
                row(Part::FaultsAndMemory, 0.25, Some(0.25)),
                row(Part::WaitsForCpu, 0.5, None),
                row(Part::Program, 108.0, Some(2149.5)),
            ],
            unexplained: Some(ms(2.0)),
            uncounted_threads: 0,
            has_memory_calls: condition != Condition::Cold,
        }
    }

    #[test]
    fn both_kinds_stand_beside_each_other_without_parts_that_have_no_time() {
        let launches = [launch(Condition::Cold, 60.0), launch(Condition::Warm, 0.0)];
        let text = screen(vec![section(&launches, &[], &Style::PLAIN)], Rest::InReport, &Style::PLAIN);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(
            lines,
            [
                "where the time goes cold ready cold CPU warm ready warm CPU",
                "storage and major faults 60.0 ms 0.50 ms 0 ms 0.50 ms",
                "waits for others 40.0 ms - 40.0 ms -",
                "running 108 ms 2.15 s 108 ms 2.15 s",
                "other parts 0.75 ms 0.25 ms 0.75 ms 0.25 ms",
                "unexplained 2.00 ms - 2.00 ms -",
                "total of the recorded launch 210 ms 2.15 s 150 ms 2.15 s",
                "memory calls were not recorded in the cold launch; they are in running",
            ],
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn the_cost_of_recording_is_shown_where_it_is_much() {
        let shown = |recording: f64| {
            let launch = TimeSpent { recording: Some(ms(recording)), ..launch(Condition::Warm, 0.0) };
            let text = screen(vec![section(&[launch], &[], &Style::PLAIN)], Rest::InReport, &Style::PLAIN);
            let line = text.lines().find(|line| line.contains("to record"))?;
            Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(shown(107.0), None);
        assert_eq!(shown(860.0).as_deref(), Some("of it to record faults - 860 ms"));
    }

    #[test]
    fn of_what_ran_already_only_the_cpu_time_is_told() {
        let mut running = launch(Condition::Running, 0.0);
        (running.time_to_ready, running.unexplained) = (None, None);
        running.rows.iter_mut().for_each(|row| row.to_ready = None);
        let text = screen(vec![section(&[running], &[], &Style::PLAIN)], Rest::InReport, &Style::PLAIN);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "where the time goes CPU running 2.15 s other parts 0.75 ms total 2.15 s",
            "{text}"
        );
    }

    #[test]
    fn without_recordings_there_is_no_table() {
        assert!(section(&[], &[], &Style::PLAIN).head.is_empty());
    }
}
