//! Two sets of recordings on a screen: figures before and after, and how much they changed.
//!
//! Every table has the same columns: what, before, after, the change with its interval or, without one, in percent. A change whose
//! interval leaves nothing out of doubt has a colour. A page is only made where it is asked for, so nothing gives way to the height of
//! the screen; long lists are cut at a number of rows, and `--json` and the page have the rest.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right, wrap};
use super::sections::Section;
use super::style::Style;
use super::{Rest, screen};
use crate::{Basis, Change, ComparedRecording, FindingChange, FindingState, FunctionChange, RecordingComparison};
use slowpath_analysis::findings::memory_evidence::short;
use slowpath_analysis::metrics::Measure;
use slowpath_tables::{Quantity, Unit};

const NAME: usize = 30;
const VALUE: usize = 11;

/// Functions, programs and rows of the ledger in a table.
const FUNCTIONS: usize = 6;
const PROGRAMS: usize = 6;
const LEDGER: usize = 12;

/// Differences of less than this, in ms, are no rows of lists.
const SMALL_MS: f64 = 0.05;

/// The comparison, with a newline after every line.
pub fn recording_comparison(comparison: &RecordingComparison, style: &Style) -> String {
    let style = &Style { lines: usize::MAX, ..*style };
    let table = Table { style, per: comparison.per, has_intervals: comparison.has_intervals };
    let mut sections = vec![answer(comparison, &table), recordings(comparison, style), totals(comparison, &table)];
    sections.push(findings(comparison, &table));
    let lists: [(&str, &[Measure]); 5] = [
        ("CPU time by function, from samples", &[Measure::SampledCpuTime]),
        ("memory allocated by function", &[Measure::AllocatedBytes, Measure::Allocations]),
        ("time in page faults by function", &[Measure::FaultTime, Measure::Faults]),
        ("time in giving memory back by function", &[Measure::ReleaseTime, Measure::Releases]),
        ("time off the CPU by function (mostly idle)", &[Measure::OffCpuTime]),
    ];
    sections.extend(lists.into_iter().map(|(title, measures)| functions(comparison, title, measures, &table)));
    sections.push(programs(comparison, &table));
    sections.push(ledger(comparison, &table));
    sections.push(remarks(comparison, style));
    screen(sections, Rest::InJson, style)
}

/// How rows are printed.
struct Table<'a> {
    style: &'a Style,
    per: Basis,
    has_intervals: bool,
}

impl Table<'_> {
    /// A figure: counts are whole numbers where they are, long times are seconds.
    fn value(&self, quantity: &Quantity) -> String {
        let text = match quantity.unit {
            Unit::Count if quantity.value.fract() == 0.0 => whole(quantity.value, self.style),
            Unit::Ms if quantity.value.abs() >= 10_000.0 => {
                figures::value(&Quantity::exact(quantity.value / 1000.0, Unit::S), self.style)
            }
            _ => figures::value(quantity, self.style),
        };
        if self.per == Basis::Second { format!("{text}/s") } else { text }
    }

    /// The 95 % interval of a difference in the scale of its value.
    fn interval(&self, quantity: &Quantity) -> Option<String> {
        let (low, high) = quantity.low.zip(quantity.high)?;
        let dots = if self.style.unicode { "…" } else { ".." };
        match quantity.unit {
            Unit::Count if low.fract() == 0.0 && high.fract() == 0.0 => {
                Some(format!("{}{dots}{}", whole(low, self.style), whole(high, self.style)))
            }
            Unit::Ms if quantity.value.abs() >= 10_000.0 => {
                let seconds = Quantity::interval(quantity.value / 1e3, low / 1e3, high / 1e3, Unit::S);
                figures::interval(&seconds, self.style)
            }
            _ => figures::interval(quantity, self.style),
        }
    }

    /// The difference, with its interval or in percent of what was before.
    fn change(&self, change: &Change) -> String {
        let difference = &change.difference;
        let value = self.value(difference);
        if let Some(interval) = self.interval(difference) {
            return format!("{value} ({interval})");
        }
        if change.before.value > 0.0 {
            let percent = difference.value / change.before.value * 100.0;
            return format!("{value} ({})", figures::value(&Quantity::exact(percent, Unit::Percent), self.style));
        }
        value
    }

    fn row(&self, name: &str, change: &Change) -> Item {
        let name = left(&escape(name, self.style.unicode), NAME - 1, self.style);
        let cells = [
            format!("{name} "),
            right(&self.value(&change.before), VALUE, self.style),
            right(&self.value(&change.after), VALUE, self.style),
            "  ".to_owned(),
        ];
        Line::of(Paint::Plain, &cells.concat(), self.style).with(paint(change), &self.change(change), self.style).into()
    }

    fn heading(&self, title: &str) -> Line {
        let change = if self.has_intervals { "change (95 % interval)" } else { "change" };
        let cells = [
            left(title, NAME, self.style),
            right("before", VALUE, self.style),
            right("after", VALUE, self.style),
            format!("  {change}"),
        ];
        Line::of(Paint::Quiet, &cells.concat(), self.style)
    }

    /// A title that needs a line of its own.
    fn titled(&self, title: &str, items: Vec<Item>) -> Section {
        if items.is_empty() {
            return Section::default();
        }
        let head = if title.len() < NAME {
            vec![self.heading(title)]
        } else {
            vec![Line::of(Paint::Quiet, title, self.style), self.heading("")]
        };
        Section { head, items, what: "rows", spaced: true, ..Section::default() }
    }
}

fn whole(value: f64, style: &Style) -> String {
    let text = format!("{value:.0}");
    if style.unicode { text.replace('-', "−") } else { text }
}

/// Less is better, and only an interval beside zero says that it is less.
fn paint(change: &Change) -> Paint {
    match (change.difference.low, change.difference.high) {
        (Some(_), Some(high)) if high < 0.0 => Paint::Good,
        (Some(low), Some(_)) if low > 0.0 => Paint::Bad,
        _ => Paint::Plain,
    }
}

/// A figure in words; those that are part of the one before begin with spaces.
pub(crate) fn words(measure: Measure) -> &'static str {
    match measure {
        Measure::TimeToReady => "time to ready",
        Measure::CpuTime => "CPU time",
        Measure::SampledCpuTime => "CPU time, from samples",
        Measure::SampledKernelTime => "  of it in the kernel",
        Measure::KernelThreadTime => "CPU of the kernel's threads",
        Measure::BackgroundReclaim => "background reclaim",
        Measure::Faults => "page faults",
        Measure::FaultsByKernel => "  by the kernel's counters",
        Measure::FaultTime => "  time in them",
        Measure::Allocations => "allocations",
        Measure::AllocatedBytes => "  bytes",
        Measure::MapTime => "  time in these calls",
        Measure::Releases => "memory given back, calls",
        Measure::ReleaseTime => "  time in them",
        Measure::OffCpuTime => "off the CPU, mostly idle",
        Measure::RunnableTime => "  waiting for a CPU",
    }
}

/// The largest changes in sentences.
fn answer(comparison: &RecordingComparison, table: &Table<'_>) -> Section {
    let total = |measure| comparison.totals.iter().find(|one| one.measure == measure).map(|one| &one.change);
    let before_after =
        |change: &Change| format!("{} before, {} after", table.value(&change.before), table.value(&change.after));
    let mut text = match total(Measure::CpuTime).or_else(|| total(Measure::SampledCpuTime)) {
        Some(change) => format!("CPU time: {}.", before_after(change)),
        None => "CPU time was not recorded on both sides.".to_owned(),
    };
    // Functions come with the largest difference first.
    let most = |measure| comparison.functions.iter().find(|one| one.measure == measure && one.function.is_some());
    let named = [(Measure::SampledCpuTime, "CPU"), (Measure::AllocatedBytes, "Allocated")];
    for (measure, what) in named {
        if let Some((function, one)) = most(measure).and_then(|one| Some((one.function.as_deref()?, one))) {
            text.push_str(&format!(" {what} in {}: {}.", short(function), before_after(&one.change)));
        }
    }
    let lines = wrap(&escape(&text, table.style.unicode), 4, table.style);
    Section { head: lines.iter().map(|line| Line::of(Paint::Bold, line, table.style)).collect(), ..Section::default() }
}

/// What was compared, and on which basis.
fn recordings(comparison: &RecordingComparison, style: &Style) -> Section {
    let side = |name: &str, recordings: &[ComparedRecording]| {
        let command = recordings.first().map(|one| one.command.join(" ")).unwrap_or_default();
        let lengths: Vec<f64> = recordings.iter().map(|one| one.length.value).collect();
        let (shortest, longest) =
            lengths.iter().fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(*one), high.max(*one)));
        let length = if longest - shortest < 0.01 {
            format!("{longest:.2} s")
        } else {
            format!("{shortest:.2}..{longest:.2} s")
        };
        let count =
            if recordings.len() == 1 { "1 recording".to_owned() } else { format!("{} recordings", recordings.len()) };
        let text = format!("{count} of {length}: {command}");
        Line::of(Paint::Plain, &left(name, 8, style), style).with(Paint::Plain, &text, style)
    };
    Section {
        head: vec![side("before", &comparison.before), side("after", &comparison.after)],
        spaced: true,
        ..Section::default()
    }
}

fn totals(comparison: &RecordingComparison, table: &Table<'_>) -> Section {
    let title = match comparison.per {
        Basis::Recording => "whole recording",
        Basis::Second => "each second",
    };
    let items = comparison.totals.iter().map(|one| {
        // A launch has one time to ready, however long.
        let table = match one.measure {
            Measure::TimeToReady => Table { per: Basis::Recording, ..*table },
            _ => Table { ..*table },
        };
        table.row(words(one.measure), &one.change)
    });
    table.titled(title, items.collect())
}

fn findings(comparison: &RecordingComparison, table: &Table<'_>) -> Section {
    let row = |one: &FindingChange| {
        let state = match one.state {
            FindingState::Gone => "gone",
            FindingState::New => "new",
            FindingState::Both => "on both sides",
            FindingState::Unknown => "on one side; the other could not show it",
        };
        let paint = match one.state {
            FindingState::Gone => Paint::Good,
            FindingState::New => Paint::Bad,
            _ => Paint::Plain,
        };
        let cost = |cost: &Option<Quantity>| {
            right(&cost.as_ref().map_or("-".to_owned(), |cost| table.value(cost)), VALUE, table.style)
        };
        let name = left(&escape(&one.name, table.style.unicode), NAME - 1, table.style);
        let start = format!("{name} {}{}  ", cost(&one.before), cost(&one.after));
        let mut item = Item::from(Line::of(Paint::Plain, &start, table.style).with(paint, state, table.style));
        let title =
            Item::wrapped(Line::of(Paint::Quiet, "  ", table.style), Paint::Quiet, &one.title, None, table.style);
        item.more.push(title.first);
        item.more.extend(title.more);
        item
    };
    table.titled("finding", comparison.findings.iter().map(row).collect())
}

/// Functions with the largest differences of the first measure; the others are lines below each.
fn functions(comparison: &RecordingComparison, title: &str, measures: &[Measure], table: &Table<'_>) -> Section {
    let Some((first, others)) = measures.split_first() else { return Section::default() };
    let of = |measure: Measure| comparison.functions.iter().filter(move |one| one.measure == measure);
    let shown = of(*first).filter(|one| !is_small(&one.change)).take(FUNCTIONS);
    let name = |one: &FunctionChange| match &one.function {
        Some(function) => short(function),
        None => one.file.clone(),
    };
    let item = |one: &FunctionChange| {
        let mut item = table.row(&name(one), &one.change);
        for measure in others {
            let same = |other: &&FunctionChange| other.function == one.function && other.file == one.file;
            if let Some(other) = of(*measure).find(same) {
                let what = match measure {
                    Measure::Allocations | Measure::Releases => "  calls",
                    _ => "  faults",
                };
                item.more.push(table.row(what, &other.change).first);
            }
        }
        item
    };
    table.titled(title, shown.map(item).collect())
}

/// Whether nothing changed, or as good as nothing.
fn is_small(change: &Change) -> bool {
    let difference = &change.difference;
    difference.value == 0.0 || (difference.unit == Unit::Ms && difference.value.abs() < SMALL_MS)
}

/// CPU time by program, where there are several.
fn programs(comparison: &RecordingComparison, table: &Table<'_>) -> Section {
    let of = |measure| comparison.programs.iter().filter(move |one| one.measure == measure && !is_small(&one.change));
    let measure = if of(Measure::CpuTime).next().is_some() { Measure::CpuTime } else { Measure::SampledCpuTime };
    if of(measure).count() < 2 {
        return Section::default();
    }
    table.titled(
        "CPU time by program",
        of(measure).take(PROGRAMS).map(|one| table.row(&one.program, &one.change)).collect(),
    )
}

/// The ledger of all threads together: what was done and what kept it from being done, then the waiting.
fn ledger(comparison: &RecordingComparison, table: &Table<'_>) -> Section {
    let mut rows: Vec<_> =
        comparison.ledger.iter().filter(|one| one.program.is_none() && !is_small(&one.change)).collect();
    rows.sort_by_key(|one| one.category.is_some_and(|category| category.is_idle()));
    let name =
        |category: Option<slowpath_analysis::time::ledger::Category>| category.map_or("unexplained", |one| one.words());
    table.titled(
        "time of all threads",
        rows.iter().take(LEDGER).map(|one| table.row(name(one.category), &one.change)).collect(),
    )
}

/// What speaks against the figures, and how to read them.
fn remarks(comparison: &RecordingComparison, style: &Style) -> Section {
    const NEITHER: &str = "recorded on neither side";
    let (neither, gaps): (Vec<_>, Vec<_>) = comparison.gaps.iter().partition(|gap| gap.reason == NEITHER);
    let gaps = gaps.into_iter().map(|gap| ("Gap: ", format!("{} ({})", gap.what, gap.reason)));
    let neither: Vec<String> = neither.iter().map(|gap| format!("{} ({})", gap.what, gap.remedy)).collect();
    let neither = (!neither.is_empty()).then(|| ("Not recorded: ", neither.join(", ")));
    let mut notes = vec![comparison.per_reason.clone()];
    notes.extend(comparison.notes.iter().cloned());
    if !comparison.functions.is_empty() {
        notes.push(
            "functions have what the kernel and the C library did for them; --json and -o FILE have more of each list"
                .to_owned(),
        );
    }
    let notes = notes.into_iter().map(|note| ("Note: ", note));
    let items = gaps
        .chain(neither)
        .chain(notes)
        .map(|(word, text)| Item::wrapped(Line::of(Paint::Quiet, word, style), Paint::Quiet, &text, Some(2), style));
    Section { items: items.collect(), what: "remarks", spaced: true, ..Section::default() }
}
