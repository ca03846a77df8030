//! A scenario on a screen: every measure of the arms side by side, the children, and the slowest pages as a waterfall.

use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{self, Section};
use super::style::Style;
use crate::{Outcome, Scenario, ScenarioArm, ScenarioComparison};
use slowpath_tables::{Milestone, Quantity};
use std::collections::BTreeMap;

const NAME: usize = 28;
const VALUE: usize = 11;

/// The summary, with a newline after every line. Nothing is left out: who waited for minutes has a table to read.
pub fn scenario(scenario: &Scenario, style: &Style) -> String {
    let style = &Style { lines: usize::MAX, ..*style };
    let mut parts = vec![heading(scenario, style)];
    if scenario.arms.len() == 1 {
        parts.extend(scenario.arms.iter().map(|arm| alone(scenario, arm, style)));
    }
    parts.extend(scenario.arms.iter().skip(1).map(|arm| beside(scenario, arm, style)));
    parts.push(children(scenario, style));
    parts.push(pages(scenario, style));
    parts.push(sections::doubts(&scenario.losses, &scenario.unavailable, &scenario.notes, style));
    super::screen(parts, style)
}

fn heading(scenario: &Scenario, style: &Style) -> Section {
    let text = format!(
        "{} pages, {} rounds of each browser, seed {}; {}.",
        scenario.pages.len(),
        scenario.rounds,
        scenario.seed,
        scenario.ended
    );
    let failed = scenario.arms.iter().filter(|arm| arm.failed > 0).map(|arm| {
        let text = format!("{}: {} rounds failed: {}", arm.name, arm.failed, arm.reasons.join("; "));
        Item::wrapped(Line::of(Paint::Bad, "", style), Paint::Bad, &text, Some(2), style)
    });
    Section {
        head: vec![Line::of(Paint::Quiet, &text, style)],
        items: failed.collect(),
        what: "failures",
        ..Section::default()
    }
}

fn median(arm: &ScenarioArm, name: &str, style: &Style) -> String {
    right(&arm.medians.get(name).map_or("-".to_owned(), |value| figures::value(value, style)), VALUE, style)
}

/// The measures of the only arm, with their intervals.
fn alone(scenario: &Scenario, arm: &ScenarioArm, style: &Style) -> Section {
    let items = scenario.measures.iter().filter_map(|measure| {
        let value = arm.medians.get(&measure.name)?;
        let text = format!("{}{}", left(&measure.name, NAME, style), figures::with_interval(value, style));
        Some(Line::of(Paint::Plain, &text, style).into())
    });
    let head = vec![Line::of(Paint::Quiet, &format!("{}median of rounds", left(&arm.name, NAME, style)), style)];
    Section { head, items: items.collect(), what: "measures", spaced: true, dropped: 0 }
}

/// The measures of a further arm beside those of the first.
fn beside(scenario: &Scenario, arm: &ScenarioArm, style: &Style) -> Section {
    let Some(first) = scenario.arms.first() else { return Section::default() };
    let cells = [
        left("median of rounds", NAME, style),
        right(&first.name, VALUE, style),
        "  ".to_owned(),
        right(&arm.name, VALUE, style),
        "  ratio".to_owned(),
    ];
    let compared = scenario.comparisons.iter().filter(|one| one.arm == arm.name);
    let items = compared.filter(|one| one.difference.is_some()).map(|one| {
        let text = [
            left(&one.measure, NAME, style),
            median(first, &one.measure, style),
            "  ".to_owned(),
            median(arm, &one.measure, style),
        ];
        let paint = match one.outcome {
            Outcome::Helps => Paint::Good,
            Outcome::Hurts => Paint::Bad,
            _ => Paint::Plain,
        };
        Line::of(Paint::Plain, &text.concat(), style).with(paint, &format!("  {}", ratio(one)), style).into()
    });
    Section {
        head: vec![Line::of(Paint::Quiet, &cells.concat(), style)],
        items: items.collect(),
        what: "measures",
        spaced: true,
        dropped: 0,
    }
}

fn ratio(one: &ScenarioComparison) -> String {
    let numbers = match one.ratio {
        Some(Quantity { value, low: Some(low), high: Some(high), .. }) => format!("{value:.3} ({low:.3} to {high:.3})"),
        Some(Quantity { value, .. }) => format!("{value:.3}"),
        None => "-".to_owned(),
    };
    let word = match one.outcome {
        Outcome::Helps => "less",
        Outcome::Hurts => "more",
        Outcome::NoDifference => "same",
        Outcome::Inconclusive => "?",
        Outcome::NotTestable => "too few rounds",
    };
    format!("{numbers} {word}")
}

/// How many children of which kind there were, and how they began.
fn children(scenario: &Scenario, style: &Style) -> Section {
    let items = scenario.arms.iter().flat_map(|arm| {
        arm.children.iter().flatten().map(move |kind| {
            let number: usize = kind.times.iter().map(Vec::len).sum();
            let all: Vec<f64> = kind.times.iter().flatten().copied().collect();
            let (from, to) =
                (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
            let how = if kind.executed { "executed" } else { "forked" };
            let range = if number > 0 { format!(", ready after {from:.1} to {to:.1} ms") } else { String::new() };
            let never = match kind.never_ready {
                0 => String::new(),
                never => format!(", {never} not seen to get ready"),
            };
            let text = format!("{}: {number} x {} ({how}){range}{never}", arm.name, kind.kind);
            Item::from(Line::of(Paint::Quiet, &text, style))
        })
    });
    Section { items: items.collect(), what: "kinds of children", spaced: true, ..Section::default() }
}

/// The phases of a visit, each with the milestone that ends it.
const PHASES: [(Milestone, &str); 6] = [
    (Milestone::Request, "request"),
    (Milestone::FirstByte, "first byte"),
    (Milestone::LastByte, "last byte"),
    (Milestone::Interactive, "parsed"),
    (Milestone::ContentLoaded, "scripts"),
    (Milestone::Load, "loaded"),
];
const MARKS: [char; PHASES.len()] = ['.', '-', '=', '#', '%', '+'];
const PAINTED: char = '|';

/// The slowest pages first.
fn pages(scenario: &Scenario, style: &Style) -> Section {
    const PAGE: usize = 18;
    let at = |arm: &ScenarioArm, page: usize, milestone| Some(arm.pages.get(page)?.get(&milestone)?.value);
    let load = |arm: &ScenarioArm, page: usize| at(arm, page, Milestone::Load);
    let last = |arm: &ScenarioArm, page: usize| {
        let all = arm.pages.get(page).into_iter().flatten();
        all.map(|(_, ms)| ms.value).fold(0.0, f64::max)
    };
    let longest = |page: usize| scenario.arms.iter().map(|arm| last(arm, page)).fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..scenario.pages.len()).collect();
    order.sort_by(|one, other| longest(*other).total_cmp(&longest(*one)));
    let most = order.first().map_or(0.0, |page| longest(*page));
    let width = scenario.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or(0).min(14) + 1;
    let columns = style.columns.saturating_sub(PAGE + width + 10);
    let mut items = Vec::new();
    for page in order {
        let mut lines = scenario.arms.iter().enumerate().map(|(number, arm)| {
            let name = if number == 0 { scenario.pages[page].as_str() } else { "" };
            let total = load(arm, page).map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
            let cells = [left(name, PAGE, style), left(&arm.name, width, style), right(&total, 8, style)];
            let none = BTreeMap::new();
            let drawn = waterfall(arm.pages.get(page).unwrap_or(&none), most, columns);
            Line::of(Paint::Plain, &cells.concat(), style).with(Paint::Quiet, &format!("  {drawn}"), style)
        });
        let Some(first) = lines.next() else { continue };
        let mut item = Item::from(first);
        item.more = lines.collect();
        items.push(item);
    }
    let legend: Vec<String> = PHASES.iter().zip(MARKS).map(|((_, word), mark)| format!("{mark} {word}")).collect();
    let legend = format!("until: {}; {PAINTED} painted", legend.join(", "));
    let head = ["Pages by median load, slowest first", &legend].map(|text| Line::of(Paint::Quiet, text, style));
    Section { head: head.into(), items, what: "pages", spaced: true, dropped: 0 }
}

/// One visit on an axis of `columns` to `most` ms: each phase with its mark up to where its milestone stands.
fn waterfall(milestones: &BTreeMap<Milestone, Quantity>, most: f64, columns: usize) -> String {
    let column = |ms: f64| if most > 0.0 { ((ms / most) * columns as f64).round() as usize } else { 0 };
    let mut cells: Vec<char> = Vec::new();
    for ((milestone, _), mark) in PHASES.iter().zip(MARKS) {
        if let Some(ms) = milestones.get(milestone) {
            cells.resize(column(ms.value).min(columns).max(cells.len()), mark);
        }
    }
    if let Some(ms) = milestones.get(&Milestone::FirstContentfulPaint) {
        let at = column(ms.value).min(columns.saturating_sub(1));
        if cells.len() <= at {
            cells.resize(at + 1, ' ');
        }
        if let Some(cell) = cells.get_mut(at) {
            *cell = PAINTED;
        }
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SCENARIO_SCHEMA, ScenarioChildren, ScenarioMeasure};
    use slowpath_tables::{Losses, Unit};

    fn milestones(all: &[(Milestone, f64)]) -> BTreeMap<Milestone, Quantity> {
        all.iter().map(|(milestone, ms)| (*milestone, Quantity::exact(*ms, Unit::Ms))).collect()
    }

    fn arm(name: &str, load: f64) -> ScenarioArm {
        let quick = milestones(&[(Milestone::Load, 10.0)]);
        ScenarioArm {
            name: name.to_owned(),
            command: vec![name.to_owned()],
            rounds: Vec::new(),
            medians: [("load p50".to_owned(), Quantity::exact(load, Unit::Ms))].into(),
            pages: vec![quick, milestones(&[(Milestone::Request, 2.0), (Milestone::Load, load)])],
            children: Some(vec![ScenarioChildren {
                kind: "renderer".to_owned(),
                executed: false,
                times: vec![vec![20.0, 31.5], vec![]],
                never_ready: 1,
            }]),
            failed: 0,
            reasons: Vec::new(),
        }
    }

    fn sample() -> Scenario {
        Scenario {
            schema: SCENARIO_SCHEMA.to_owned(),
            conditions: Vec::new(),
            seed: 1,
            rounds: 12,
            ended: "12 rounds were asked for".to_owned(),
            pages: vec!["quick".to_owned(), "\u{1b}[31mslow".to_owned()],
            measures: vec![ScenarioMeasure { name: "load p50".to_owned(), unit: Unit::Ms, meaning: String::new() }],
            arms: vec![arm("with", 100.0), arm("without", 120.0)],
            comparisons: vec![ScenarioComparison {
                arm: "without".to_owned(),
                against: "with".to_owned(),
                measure: "load p50".to_owned(),
                outcome: Outcome::Hurts,
                difference: Some(Quantity::exact(20.0, Unit::Ms)),
                ratio: Some(Quantity { value: 1.2, low: Some(1.1), high: Some(1.3), unit: Unit::Ratio }),
                margin: None,
                minimum_detectable_effect: None,
                pairs: 12,
                p: None,
                level: 0.95,
            }],
            losses: Losses::default(),
            notes: Vec::new(),
            unavailable: Vec::new(),
        }
    }

    #[test]
    fn measures_stand_beside_each_other_and_the_slowest_page_comes_first() {
        let text = scenario(&sample(), &Style::PLAIN);
        assert!(text.contains("100 ms") && text.contains("1.200 (1.100 to 1.300) more"), "{text}");
        assert!(text.contains("with: 2 x renderer (forked), ready after 20.0 to 31.5 ms, 1 not seen"), "{text}");
        assert!(text.find("slow").unwrap() < text.find("quick").unwrap(), "{text}");
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.len() <= 80), "{text}");
        let mut alone = sample();
        alone.arms.truncate(1);
        alone.comparisons.clear();
        assert!(scenario(&alone, &Style::PLAIN).contains("load p50                    100 ms"));
    }

    #[test]
    fn every_phase_ends_where_its_milestone_stands() {
        let visit = milestones(&[
            (Milestone::Request, 10.0),
            (Milestone::FirstByte, 20.0),
            (Milestone::Interactive, 50.0),
            (Milestone::Load, 100.0),
            (Milestone::FirstContentfulPaint, 60.0),
        ]);
        assert_eq!(waterfall(&visit, 100.0, 10), ".-###+|+++");
        assert_eq!(waterfall(&milestones(&[(Milestone::FirstContentfulPaint, 9e9)]), 100.0, 4), "   |");
        assert_eq!(waterfall(&BTreeMap::new(), 0.0, 4), "");
    }
}
