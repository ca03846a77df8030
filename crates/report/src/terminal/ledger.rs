//! The time ledger on a screen: the busiest threads, each with what it did, and what is unexplained.
//!
//! Every thread has the same columns: wall time, what is unexplained of it, and then its categories from the largest on, because a
//! thread has few of the many that there are. Which threads come first is `analysis::time::ledger`'s choice: a thread that only waited
//! for something to do is as long as any other, and shows nothing.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::Section;
use super::style::Style;
use crate::{Ledger, LedgerRow};
use slowpath_tables::Quantity;

/// Threads with rows of their own where the ledger stands among all that there is, and beside a launch.
const THREADS: usize = 12;
const BESIDE_A_LAUNCH: usize = 3;
/// Processes with a row of their own, where there are several.
const PROCESSES: usize = 5;
/// Shares below are reported together: `other`.
const SMALLEST_SHARE: f64 = 0.01;
/// Unexplained time that is no more than this is no reason for doubt.
const SMALL_DOUBT: f64 = 0.03;

const NAME: usize = 16;
const ID: usize = 8;
const TIME: usize = 8;
const UNEXPLAINED: usize = 8;

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent.abs() >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") };
    // "-0.0" is nothing.
    if text == "-0.0 %" { "0.0 %".to_owned() } else { text }
}

/// The categories from the largest on, the small ones together.
pub(super) fn categories(rows: &[LedgerRow]) -> String {
    let share = |row: &LedgerRow| row.share.map_or(0.0, |share| share.value);
    let (large, small): (Vec<&LedgerRow>, Vec<&LedgerRow>) = rows.iter().partition(|row| share(row) >= SMALLEST_SHARE);
    let mut words: Vec<String> =
        large.iter().map(|row| format!("{} {}", row.category.words(), percent(share(row)))).collect();
    let other: f64 = small.iter().map(|row| share(row)).sum();
    if other >= 0.0005 {
        words.push(format!("other {}", percent(other)));
    }
    words.join(", ")
}

/// One thread or process.
pub(super) struct Row<'a> {
    pub name: &'a str,
    /// None for several together.
    pub id: Option<u32>,
    pub time: &'a Quantity,
    pub unexplained: Option<f64>,
    pub rows: &'a [LedgerRow],
}

impl Row<'_> {
    pub(super) fn item(&self, style: &Style) -> Item {
        let name = left(&escape(self.name, style.unicode), NAME - 1, style);
        let id = self.id.map_or_else(String::new, |id| id.to_string());
        let start = [
            format!("{name} "),
            right(&id, ID, style),
            right(&figures::value(&figures::readable(*self.time), style), TIME, style),
        ];
        let doubt =
            if self.unexplained.is_some_and(|share| share.abs() > SMALL_DOUBT) { Paint::Bad } else { Paint::Plain };
        let unexplained = self.unexplained.map_or_else(|| "-".to_owned(), percent);
        let prefix = Line::of(Paint::Plain, &start.concat(), style)
            .with(doubt, &right(&unexplained, UNEXPLAINED, style), style)
            .with(Paint::Plain, "  ", style);
        Item::wrapped(prefix, Paint::Plain, &categories(self.rows), None, style)
    }
}

pub(super) fn heading(what: &str, id: &str, length: &str, style: &Style) -> Line {
    let cells = [
        left(what, NAME, style),
        right(id, ID, style),
        right(length, TIME, style),
        right("unexpl.", UNEXPLAINED, style),
        "  where its time went".to_owned(),
    ];
    Line::of(Paint::Quiet, &cells.concat(), style)
}

/// Says that not all are shown, where that is so.
fn first_of(most: usize, all: usize, what: &str, style: &Style) -> Option<Line> {
    (all > most).then(|| {
        let text = format!("time of the {most} busiest of {all} {what}; --json has all");
        Line::of(Paint::Quiet, &text, style)
    })
}

/// The threads; what is left out is counted.
fn of_threads(ledger: &Ledger, most: usize, style: &Style) -> Section {
    if ledger.threads.is_empty() {
        return Section::default();
    }
    let row = |one: &crate::LedgerThread| {
        let name = one.thread.as_deref().unwrap_or(&one.process);
        let unexplained = one.unexplained_share.map(|share| share.value);
        Row { name, id: Some(one.tid), time: &one.wall, unexplained, rows: &one.rows }.item(style)
    };
    let heading = heading("thread", "tid", "wall", style);
    let head = first_of(most, ledger.threads.len(), "threads", style).into_iter().chain([heading]).collect();
    let items = ledger.threads.iter().take(most).map(row).collect();
    Section { head, items, what: "threads", spaced: true, ..Section::default() }
}

/// Processes and threads as part of the main content.
pub(super) fn sections(ledger: Option<&Ledger>, style: &Style) -> Vec<Section> {
    let Some(ledger) = ledger else { return Vec::new() };
    let mut sections = Vec::new();
    if ledger.processes.len() > 1 {
        let row = |one: &crate::LedgerProcess| {
            let unexplained = one.unexplained_share.map(|share| share.value);
            Row { name: &one.process, id: Some(one.pid), time: &one.thread_time, unexplained, rows: &one.rows }
                .item(style)
        };
        let heading = heading("process", "pid", "threads", style);
        let first = first_of(PROCESSES, ledger.processes.len(), "processes", style);
        sections.push(Section {
            head: first.into_iter().chain([heading]).collect(),
            items: ledger.processes.iter().take(PROCESSES).map(row).collect(),
            what: "processes",
            spaced: true,
            ..Section::default()
        });
    }
    sections.push(of_threads(ledger, THREADS, style));
    sections
}

/// The busiest threads of a launch.
pub(super) fn beside_a_launch(ledger: Option<&Ledger>, style: &Style) -> Section {
    ledger.map(|ledger| of_threads(ledger, BESIDE_A_LAUNCH, style)).unwrap_or_default()
}

/// What the ledger leaves out.
pub(super) fn notes(ledger: Option<&Ledger>) -> Vec<String> {
    let Some(ledger) = ledger else { return Vec::new() };
    let mut notes = Vec::new();
    match ledger.incomplete_threads {
        0 => {}
        1 => notes.push("1 thread is not in the time ledger: its begin or end was not recorded".to_owned()),
        left_out => {
            notes.push(format!("{left_out} threads are not in the time ledger: their begin or end was not recorded"));
        }
    }
    match ledger.lost_intervals {
        0 => {}
        1 => notes.push("1 interval off the CPU was lost: its time is unexplained".to_owned()),
        lost => notes.push(format!("{lost} intervals off the CPU were lost: their time is unexplained")),
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Rest, screen};
    use crate::usage_of;
    use slowpath_recording::Tables;

    /// So many threads of one process, and one of another. Each ran a tenth of its time and waited on a futex; the first had to
    /// wait for the CPU, and something is missing of it.
    fn recorded(threads: u32) -> Ledger {
        let mut text = "== execs\nts pid start filename run_time\n1 7 1 a 0\n1 8 1 \"b\\u001b[31m\" 0\n\
                        == forks\nts pid start tid thread\n"
            .to_owned();
        text.extend((10..10 + threads).map(|tid| format!("1 7 1 {tid} true\n")));
        text.push_str("== thread_counters\nts pid start tid end run_time name\n10001 8 1 8 true 1000 \"x\\u202e\"\n");
        text.extend((10..10 + threads).map(|tid| format!("10001 7 1 {tid} true 1000 t{tid}\n")));
        text.push_str(
            "== off_cpu\nts duration pid start tid reason runnable\n2 9000 8 1 8 poll 0\n5 4000 7 1 10 futex 3000\n",
        );
        text.extend((11..10 + threads).map(|tid| format!("5 9000 7 1 {tid} futex 50\n")));
        let tables = Tables::from_text(&text).unwrap();
        crate::ledger_of(&tables, &usage_of(&tables)).unwrap().unwrap()
    }

    fn printed(ledger: &Ledger) -> String {
        let style = Style { lines: usize::MAX, ..Style::PLAIN };
        screen(sections(Some(ledger), &style), Rest::InJson, &style)
    }

    #[test]
    fn a_thread_has_its_wall_time_what_is_unexplained_and_its_categories_from_the_largest_on() {
        let text = printed(&recorded(2));
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("thread")).unwrap();
        assert!(lines[at].ends_with("where its time went"), "{text}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lines[at + 1]), "t10 10 0.01 ms 50 % runnable 30 %, user or kernel 10 %,", "{text}");
        assert_eq!(words(lines[at + 2]), "locks 10 %");
        assert_eq!(words(lines[at + 3]), "t11 11 0.01 ms 0.0 % locks 90 %, user or kernel 10 %, other");
        assert_eq!(words(lines[at + 4]), "0.5 %");
        assert!(lines.iter().any(|line| line.starts_with("process ")), "{text}");
        assert!(lines.iter().all(|line| line.len() <= 80) && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let many = recorded(40);
        let text = printed(&many);
        assert!(text.contains("time of the 12 busiest of 41 threads; --json has all"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with('t') && line.contains(" ms ")).count(), 12, "{text}");
        let beside = screen(vec![beside_a_launch(Some(&many), &Style::PLAIN)], Rest::InJson, &Style::PLAIN);
        assert_eq!(beside.lines().filter(|line| line.contains(" ms ")).count(), 3, "{beside}");
        assert!(sections(None, &Style::PLAIN).is_empty() && notes(None).is_empty());
        assert!(notes(Some(&many)).iter().any(|note| note.starts_with("1 thread is not")), "{:?}", notes(Some(&many)));
    }
}
