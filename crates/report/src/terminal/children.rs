//! The launches of children on a screen: for each kind the first and the later ones, with bars on one logarithmic axis.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{self, Section};
use super::style::Style;
use crate::{ChildBucket, ChildKind, ChildLaunches, ChildOrigin, ChildTimes};
use slowpath_tables::{Quantity, Unit};

const KIND: usize = 19;
const IMAGE: usize = 7;
const LAUNCH: usize = 6;
const COUNT: usize = 8;
const MEDIAN: usize = 9;
const INTERVAL: usize = 12;

/// The summary, with a newline after every line.
pub fn children(children: &ChildLaunches, style: &Style) -> String {
    // Every kind stays: the table is what was asked for, and no page has what a screen would leave out.
    let style = &Style { lines: usize::MAX, ..*style };
    let parts = vec![
        kinds(children, style),
        sections::doubts(&children.losses, &children.unavailable, &children.notes, style),
        conditions(children, style),
    ];
    super::screen(parts, super::Rest::InJson, style)
}

/// Counts of the shared axis by its buckets.
type Bars = Vec<u32>;

/// The axis that all kinds share: powers of two from the lowest time to the highest.
struct Axis {
    from: u64,
    to: u64,
    buckets: usize,
    columns: usize,
}

impl Axis {
    fn of(kinds: &[ChildKind], columns: usize) -> Option<Self> {
        let buckets = || kinds.iter().flat_map(|kind| &kind.histogram);
        let from = buckets().map(|bucket| bucket.from.0).min()?;
        let to = buckets().map(|bucket| bucket.to.0).max()?;
        let mut axis = Self { from, to, buckets: 0, columns };
        axis.buckets = axis.place(to);
        Some(axis)
    }

    /// The bucket that begins at `bound`, from 0.
    fn place(&self, bound: u64) -> usize {
        let bits = |bound: u64| if bound == u64::MAX { u64::BITS } else { u64::BITS - bound.leading_zeros() };
        bits(bound).saturating_sub(bits(self.from)) as usize
    }

    /// A bar for each bucket, as high as its share of the highest; buckets fall together where there are more than columns.
    fn bars(&self, histogram: &[ChildBucket], count: impl Fn(&ChildBucket) -> u32, style: &Style) -> String {
        let shown = self.buckets.min(self.columns);
        let mut counts: Bars = vec![0; shown];
        for bucket in histogram {
            if let Some(sum) = counts.get_mut(self.place(bucket.from.0) * shown / self.buckets.max(1)) {
                *sum = sum.saturating_add(count(bucket));
            }
        }
        let heights: &[char] = if style.unicode {
            &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            &['.', ':', '+', '#']
        };
        let highest = counts.iter().copied().max().unwrap_or(0).max(1) as usize;
        let bar = |count: u32| match (count as usize * heights.len()).div_ceil(highest) {
            0 => ' ',
            height => heights.get(height - 1).copied().unwrap_or(' '),
        };
        let wide = self.columns / shown.max(1);
        counts.into_iter().flat_map(|count| std::iter::repeat_n(bar(count), wide)).collect()
    }

    /// Both ends in words.
    fn words(&self, style: &Style) -> String {
        let end = |ns: u64| figures::value(&Quantity::exact(ns as f64, Unit::Ns), style);
        let dots = if style.unicode { "…" } else { ".." };
        format!("{}{dots}{}", end(self.from), end(self.to))
    }
}

/// The table of the kinds.
pub(super) fn kinds(children: &ChildLaunches, style: &Style) -> Section {
    if children.kinds.is_empty() {
        let none = Line::of(Paint::Plain, "No child processes were recorded.", style);
        return Section { head: vec![none], ..Section::default() };
    }
    let columns = style.columns.saturating_sub(KIND + IMAGE + LAUNCH + COUNT + MEDIAN + INTERVAL + 2);
    let axis = Axis::of(&children.kinds, columns);
    let heading = [
        left("fork to ready", KIND, style),
        left("image", IMAGE, style),
        left("launch", LAUNCH, style),
        right("n", COUNT, style),
        right("median", MEDIAN, style),
        right("95 %", INTERVAL, style),
    ];
    let ends = axis.as_ref().map_or_else(String::new, |axis| axis.words(style));
    let heading = Line::of(Paint::Quiet, &format!("{}  {ends}", heading.concat()), style);
    let items = children.kinds.iter().flat_map(|kind| of_kind(kind, axis.as_ref(), style));
    Section { head: vec![heading], items: items.collect(), what: "kinds", spaced: true, ..Section::default() }
}

fn of_kind(kind: &ChildKind, axis: Option<&Axis>, style: &Style) -> Vec<Item> {
    let image = match kind.origin {
        ChildOrigin::Executed => "new",
        ChildOrigin::Forked => "reused",
    };
    let name = left(&escape(&kind.kind, style.unicode), KIND - 1, style);
    let label = format!("{name} {}", left(image, IMAGE, style));
    let bars =
        |count: fn(&ChildBucket) -> u32| axis.map_or_else(String::new, |axis| axis.bars(&kind.histogram, count, style));
    let mut lines = vec![row(&label, "first", &kind.first, &bars(|bucket| bucket.first), style)];
    let below = " ".repeat(KIND + IMAGE);
    if kind.later.count > 0 {
        lines.push(row(&below, "later", &kind.later, &bars(|bucket| bucket.later), style));
    }
    if let Some(all) = kind.all.as_ref().filter(|_| kind.count > 1) {
        let cell = |name: &str, quantity: &Quantity| format!("{name} {}", figures::value(quantity, style));
        let cells = [cell("p75", &all.p75), cell("p95", &all.p95), cell("p99", &all.p99), cell("max", &all.max)];
        lines.push(Line::of(Paint::Quiet, &format!("{}all: {}", " ".repeat(KIND), cells.join("  ")), style));
    }
    lines.into_iter().map(Item::from).collect()
}

fn row(label: &str, launch: &str, times: &ChildTimes, bars: &str, style: &Style) -> Line {
    let cells = [
        left(launch, LAUNCH, style),
        right(&format!("{}/{}", times.samples_ms.len(), times.count), COUNT, style),
        right(&times.median.map_or("-".to_owned(), |median| figures::value(&median, style)), MEDIAN, style),
        right(&times.median.and_then(|median| figures::interval(&median, style)).unwrap_or_default(), INTERVAL, style),
    ];
    Line::of(Paint::Plain, &format!("{label}{}  {}", cells.concat(), bars.trim_end()), style)
}

fn conditions(children: &ChildLaunches, style: &Style) -> Section {
    let recordings = if children.runs == 1 { "recording" } else { "recordings" };
    let text = format!(
        "{} {recordings}; n: ready of launched; first: the first of its kind in a recording; new: a program was executed, \
         reused: a copy of its parent. Ready: {}.",
        children.runs, children.ready
    );
    let item = Item::wrapped(Line::of(Paint::Quiet, "", style), Paint::Quiet, &text, Some(0), style);
    Section { items: vec![item], what: "conditions", spaced: true, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children_of_runs;
    use slowpath_analysis::starts::children::{ChildLaunch, Origin};
    use slowpath_tables::{Nanos, ProcessKey, Unavailable};

    fn launch(kind: &str, origin: Origin, ms: Option<u64>) -> ChildLaunch {
        ChildLaunch {
            process: ProcessKey { pid: 1, start: Nanos(1) },
            kind: kind.to_owned(),
            origin,
            forked: Nanos(0),
            ready: ms.map(|ms| Nanos(ms * 1_000_000)),
        }
    }

    fn pages() -> ChildLaunches {
        let page = |ms| launch("page", Origin::Forked, Some(ms));
        children_of_runs(&[vec![
            launch("gpu", Origin::Executed, Some(90)),
            page(40),
            page(9),
            page(10),
            launch("page", Origin::Forked, None),
            page(20),
        ]])
    }

    #[test]
    fn every_kind_has_its_first_and_its_later_launches_on_one_axis() {
        let text = children(&pages(), &Style::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("8.39 ms..134 ms"), "{text}");
        // Four buckets of four columns: 8 to 16, 33, 67 and 134 ms.
        assert_eq!(lines[1], "gpu                new    first      1/1  90.0 ms                          ####");
        assert_eq!(lines[2], "page               reused first      1/1  40.0 ms                      ####");
        assert_eq!(lines[3], "                          later      3/4  10.0 ms              ####::::");
        assert_eq!(lines[4], "                   all: p75 25.0 ms  p95 37.0 ms  p99 39.4 ms  max 40.0 ms");
        assert!(text.contains("1 recording;"), "{text}");
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn bars_are_drawn_in_blocks_where_the_terminal_has_them() {
        let text = children(&pages(), &Style { unicode: true, ..Style::PLAIN });
        assert!(text.lines().nth(3).unwrap().ends_with("████▄▄▄▄"), "{text}");
    }

    #[test]
    fn no_kind_is_left_out_however_many_there_are() {
        let run = (0..100).map(|number| launch(&format!("kind{number}"), Origin::Executed, Some(1 << (number % 30))));
        let text = children(&children_of_runs(&[run.collect()]), &Style::PLAIN);
        assert!((0..100).all(|number| text.contains(&format!("kind{number} "))), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn hostile_kinds_are_escaped_and_what_is_missing_is_said() {
        let mut found = children_of_runs(&[vec![launch("\u{1b}[31mred\u{202e}", Origin::Forked, None)]]);
        found.losses.add("first_waits", 3);
        found.unavailable.push(Unavailable {
            what: "ready".to_owned(),
            reason: "no\u{7}t recorded".to_owned(),
            remedy: String::new(),
        });
        let text = children(&found, &Style { unicode: true, ..Style::PLAIN });
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text}");
        assert!(text.contains("0/1") && text.contains("Lost events: first_waits 3."), "{text}");
        assert!(text.contains("Unavailable: ready (no\\u{7}t recorded)"), "{text}");
        let none = children(&children_of_runs(&[Vec::new()]), &Style::PLAIN);
        assert!(none.starts_with("No child processes were recorded."), "{none}");
    }
}
