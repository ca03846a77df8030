//! Usage on a screen: processes, the machine around them, and the heaviest functions; and the answer for a recording
//! without a launch that got ready.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, cut, left, right, wrap};
use super::sections::{ANSWER_LINES, Section};
use super::style::Style;
use crate::{Analysis, FunctionUsage, ProcessUsage, Usage, Used};
use slowpath_analysis::printed::quantities::ratio;
use slowpath_tables::{Quantity, Unit};

/// Processes with a row of their own where they are what is asked for, and beside a launch.
const PROCESSES: usize = 15;
const BESIDE_A_LAUNCH: usize = 3;

const NAME: usize = 23;
const PID: usize = 8;
const FAULTS: usize = 9;
const SHARE: usize = 7;
const TIME: usize = 9;

/// Columns behind the name and the pid: faults, their share of the recording and of the machine, time in faults, CPU time,
/// its share.
struct Row<'a> {
    name: &'a str,
    pid: String,
    faults: u64,
    share: Option<Quantity>,
    of_machine: Option<Quantity>,
    fault_time: Option<Quantity>,
    cpu_time: Option<Quantity>,
    cpu_share: Option<Quantity>,
}

impl Row<'_> {
    fn line(&self, paint: Paint, style: &Style) -> Line {
        let cell = |quantity: &Option<Quantity>, columns: usize| {
            right(&quantity.as_ref().map_or_else(|| "-".to_owned(), |one| figures::value(one, style)), columns, style)
        };
        let cells = [
            right(&self.pid, PID, style),
            right(&self.faults.to_string(), FAULTS, style),
            cell(&self.share, SHARE),
            cell(&self.of_machine, SHARE + 1),
            cell(&self.fault_time, TIME),
            cell(&self.cpu_time, TIME),
            cell(&self.cpu_share, SHARE),
        ];
        let name = escape(self.name, style.unicode);
        Line::of(paint, &format!("{}{}", left(&name, NAME, style), cells.concat()), style)
    }
}

fn heading(style: &Style) -> Line {
    let cells = [
        left("process", NAME, style),
        right("pid", PID, style),
        right("faults", FAULTS, style),
        right("share", SHARE, style),
        right("machine", SHARE + 1, style),
        right("in them", TIME, style),
        right("CPU", TIME, style),
        right("share", SHARE, style),
    ];
    Line::of(Paint::Quiet, &cells.concat(), style)
}

fn faults(used: &Used) -> u64 {
    used.minor_faults.saturating_add(used.major_faults)
}

/// The first processes, and what the others have together. The share of the CPU is that of CPU time, or of samples where
/// that is not known.
fn rows(usage: &Usage, most: usize, style: &Style) -> Vec<Line> {
    let (first, rest) = usage.processes.split_at(most.min(usage.processes.len()));
    let cpu_share = |one: &ProcessUsage| one.share.cpu_time.or(one.share.cpu_samples);
    let mut lines: Vec<Line> = first
        .iter()
        .map(|one| Row {
            name: &one.process,
            pid: one.pid.to_string(),
            faults: faults(&one.used),
            share: one.share.faults,
            of_machine: one.share.machine_faults,
            fault_time: one.used.fault_time.map(figures::readable),
            cpu_time: one.used.cpu_time.map(figures::readable),
            cpu_share: cpu_share(one),
        })
        .map(|row| row.line(Paint::Plain, style))
        .collect();
    if !rest.is_empty() {
        let sum = |quantity: fn(&ProcessUsage) -> Option<Quantity>| {
            rest.iter().filter_map(quantity).reduce(|a, b| Quantity::exact(a.value + b.value, a.unit))
        };
        let row = Row {
            name: &format!("{} other processes", rest.len()),
            pid: String::new(),
            faults: rest.iter().fold(0, |sum, one| sum.saturating_add(faults(&one.used))),
            share: sum(|one| one.share.faults),
            of_machine: sum(|one| one.share.machine_faults),
            fault_time: sum(|one| one.used.fault_time).map(figures::readable),
            cpu_time: sum(|one| one.used.cpu_time).map(figures::readable),
            cpu_share: sum(|one| one.share.cpu_time.or(one.share.cpu_samples)),
        };
        lines.push(row.line(Paint::Plain, style));
    }
    lines
}

/// What the machine's faults were besides those that were recorded.
fn machine(usage: &Usage, style: &Style) -> Vec<Line> {
    let Some(machine) = &usage.machine else { return Vec::new() };
    let parts = [
        ("recorded", machine.recorded, true),
        ("lost", machine.lost, machine.lost > 0),
        ("counted only", machine.without_event, machine.without_event > 0),
        ("slowpath itself", machine.recorder, true),
        ("not recorded", machine.elsewhere, true),
        ("the machine", machine.faults, true),
    ];
    let row = |(name, faults, _): (&str, u64, bool)| {
        let of_machine = ratio(faults as f64, machine.faults).map_or("-".to_owned(), |one| figures::value(&one, style));
        let cells = [right(&faults.to_string(), PID + FAULTS, style), right(&of_machine, SHARE + SHARE + 1, style)];
        Line::of(Paint::Quiet, &format!("{}{}", left(name, NAME, style), cells.concat()), style)
    };
    parts.into_iter().filter(|(_, _, is_shown)| *is_shown).map(row).collect()
}

/// Processes as the main content: all rows stay.
pub(super) fn processes(usage: &Usage, style: &Style) -> Section {
    let mut head = vec![heading(style)];
    head.extend(rows(usage, PROCESSES, style));
    head.extend(machine(usage, style));
    Section { head, spaced: true, ..Section::default() }
}

/// Processes of a launch, where there are several.
pub(super) fn beside_a_launch(usage: &Usage, style: &Style) -> Section {
    if usage.processes.len() < 2 {
        return Section::default();
    }
    let mut head = vec![heading(style)];
    head.extend(rows(usage, BESIDE_A_LAUNCH, style));
    Section { head, spaced: true, ..Section::default() }
}

/// Functions with most weight of their own.
pub(super) fn functions(title: &str, functions: Option<&[FunctionUsage]>, style: &Style) -> Section {
    const WEIGHT: usize = 10;
    const FILE: usize = 22;
    let Some(functions) = functions.filter(|list| !list.is_empty()) else { return Section::default() };
    let columns = style.columns.saturating_sub(WEIGHT + SHARE + FILE + 3);
    let row = |one: &FunctionUsage| {
        let share = one.share.map_or("-".to_owned(), |share| figures::value(&share, style));
        let weight = match one.weight.unit {
            Unit::Count => format!("{:.0}", one.weight.value),
            _ => figures::value(&figures::readable(one.weight), style),
        };
        let file = escape(&one.file, style.unicode);
        let name = escape(one.function.as_deref().unwrap_or("(no name)"), style.unicode);
        let cells = [
            right(&weight, WEIGHT, style),
            right(&share, SHARE, style),
            format!("  {} ", left(&file, FILE, style)),
            left(&name, columns, style),
        ];
        Item::from(Line::of(Paint::Plain, &cells.concat(), style))
    };
    Section {
        head: vec![Line::of(Paint::Quiet, title, style)],
        items: functions.iter().map(row).collect(),
        what: "functions",
        spaced: true,
        ..Section::default()
    }
}

/// What a recording without a launch that got ready holds.
pub(super) fn answer(analysis: &Analysis, style: &Style) -> Section {
    let command = analysis.command.join(" ");
    let subject = cut(&escape(if command.is_empty() { "the recording" } else { &command }, style.unicode), 60, style);
    let text = format!("{subject}: {}", sentence(&analysis.usage, style));
    let lines = wrap(&text, ANSWER_LINES, style);
    Section { head: lines.iter().map(|line| Line::of(Paint::Bold, line, style)).collect(), ..Section::default() }
}

/// What was recorded, in a sentence.
fn sentence(usage: &Usage, style: &Style) -> String {
    let count = usage.processes.len();
    let processes = if count == 1 { "process" } else { "processes" };
    let long = usage.recorded_for.as_ref().map_or(String::new(), |time| format!(" in {}", figures::value(time, style)));
    let faults = faults(&usage.total);
    let mut text = format!("{count} {processes}, {faults} faults{long}");
    if let Some(share) = usage.machine.as_ref().and_then(|machine| ratio(machine.recorded as f64, machine.faults)) {
        text.push_str(&format!(", {} of the machine's", figures::value(&share, style)));
    }
    if let Some(top) = usage.processes.first().filter(|_| count > 1 && faults > 0)
        && let Some(share) = &top.share.faults
    {
        let name = cut(&escape(&top.process, style.unicode), 40, style);
        text.push_str(&format!("; the most, {}, by {name}", figures::value(share, style)));
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::analysis;
    use crate::{ANALYZE_SCHEMA, usage_of};
    use slowpath_recording::Tables;

    /// So many processes, of which the first has most faults.
    fn recorded(processes: usize, ready: bool) -> Analysis {
        let mut text = "== manifest\n{\"started\": 0, \"ended\": 10000000000, \"machine_faults\": \
                        {\"faults\": 1000, \"major\": 0, \"recorder\": 30}}\n\
                        == execs\nts present pid start filename command_line\n"
            .to_owned();
        let name = |number: usize| if number == 0 { "\"x\\u001b[31m\"".to_owned() } else { format!("p{number}") };
        text.extend((0..processes).map(|number| format!("1 true {} 1 {} a\n", number + 10, name(number))));
        text.push_str("== faults\nts duration pid start kind stack\n");
        for number in 0..processes {
            let row = format!("5 2000000 {} 1 minor 0\n", number + 10);
            text.push_str(&row.repeat(if number == 0 { 30 } else { 1 }));
        }
        text.push_str("== stacks\nid parent frame\n0 - 0\n== frames\nid kind dev ino offset\n0 file 1 1 16\n");
        text.push_str("== symbols\nframe level function\n0 0 \"f\u{202e}(int)\"\n");
        Analysis {
            schema: ANALYZE_SCHEMA.to_owned(),
            command: vec!["the whole system".to_owned()],
            recording: "r".to_owned(),
            time_to_ready: ready.then(|| Quantity::exact(5.0, Unit::Ms)),
            findings: Vec::new(),
            usage: usage_of(&Tables::from_text(&text).unwrap()),
            ledger: None,
            critical_path: None,
            round_trips: Vec::new(),
            losses: Default::default(),
            unavailable: Vec::new(),
        }
    }

    #[test]
    fn a_ledger_that_could_not_be_made_is_told_and_one_that_nobody_asked_for_is_not() {
        let mut found = recorded(1, false);
        found.unavailable = vec![slowpath_analysis::time::ledger::not_asked_for()];
        assert!(!analysis(&found, &Style::PLAIN).contains("time ledger"));
        let killed = "== manifest\n{\"probes\": [{\"name\": \"off_cpu\", \"state\": \"attached\"}]}\n";
        let tables = Tables::from_text(killed).unwrap();
        found.unavailable.extend(crate::ledger_of(&tables, &usage_of(&tables)).err());
        let text = analysis(&found, &Style::PLAIN);
        assert!(text.contains("time ledger (no thread has both a begin and an end)"), "{text}");
    }

    #[test]
    fn fifteen_processes_have_rows_and_the_others_one() {
        let text = analysis(&recorded(20, false), &Style::PLAIN);
        let line = |start: &str| {
            text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"))
        };
        assert!(text.starts_with("the whole system: 20 processes, 49 faults in 10.0 s, 4.90 % of the"), "{text}");
        let words: Vec<_> = line("5 other").split_whitespace().collect();
        assert_eq!(words[3..], ["5", "10.2", "%", "0.50", "%", "10.0", "ms", "-", "-"], "{text}");
        assert_eq!(line("the machine").split_whitespace().collect::<Vec<_>>(), ["the", "machine", "1000", "100", "%"]);
        let parts: u64 = ["recorded", "slowpath itself", "not recorded"]
            .iter()
            .map(|part| line(part)[NAME..].split_whitespace().next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(parts, 1000);
        assert!(text.contains("holds no launch that got ready"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80) && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert!(line("   98.0 ms  100 %").contains("[file 0:1/1]"), "{text}");
    }

    #[test]
    fn beside_a_launch_stand_three_and_a_single_process_needs_no_table() {
        let text = analysis(&recorded(20, true), &Style::PLAIN);
        assert!(text.contains("17 other processes") && text.lines().count() <= Style::PLAIN.lines, "{text}");
        assert!(!text.contains("the machine"), "{text}");
        assert!(!analysis(&recorded(1, true), &Style::PLAIN).contains("faults"));
    }
}
