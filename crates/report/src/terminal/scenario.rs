//! A scenario on a screen: every measure of the arms side by side, the children, and the slowest pages as a waterfall.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{self, Section};
use super::style::Style;
use crate::{Outcome, Scenario, ScenarioArm, ScenarioComparison};
use slowpath_tables::{Milestone, Quantity};
use std::collections::BTreeMap;

const NAME: usize = 26;
const VALUE: usize = 10;

/// The summary, with a newline after every line. Nothing is left out: who waited for minutes has a table to read.
pub fn scenario(scenario: &Scenario, style: &Style) -> String {
    let style = &Style { lines: usize::MAX, ..*style };
    let mut parts = vec![heading(scenario, style)];
    if scenario.arms.len() == 1 {
        parts.extend(scenario.arms.iter().map(|arm| alone(scenario, arm, style)));
    }
    parts.extend(scenario.arms.iter().skip(1).map(|arm| beside(scenario, arm, style)));
    parts.extend(scenario.arms.iter().map(|arm| children(arm, style)));
    parts.push(pages(scenario, style));
    parts.push(sections::doubts(&scenario.losses, &scenario.unavailable, &scenario.notes, style));
    super::screen(parts, super::Rest::InJson, style)
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
        let text = format!(
            "{}{}",
            left(&escape(&measure.name, style.unicode), NAME, style),
            figures::with_interval(value, style)
        );
        Some(Line::of(Paint::Plain, &text, style).into())
    });
    let head = vec![Line::of(
        Paint::Quiet,
        &format!("{}median of rounds", left(&escape(&arm.name, style.unicode), NAME, style)),
        style,
    )];
    Section { head, items: items.collect(), what: "measures", spaced: true, ..Section::default() }
}

/// The measures of a further arm beside those of the first.
fn beside(scenario: &Scenario, arm: &ScenarioArm, style: &Style) -> Section {
    let Some(first) = scenario.arms.first() else { return Section::default() };
    let cells = [
        left("median of rounds", NAME, style),
        right(&escape(&first.name, style.unicode), VALUE, style),
        "  ".to_owned(),
        right(&escape(&arm.name, style.unicode), VALUE, style),
        "  ratio".to_owned(),
    ];
    let compared = scenario.comparisons.iter().filter(|one| one.arm == arm.name);
    let items = compared.filter(|one| one.difference.is_some()).map(|one| {
        let text = [
            left(&escape(&one.measure, style.unicode), NAME, style),
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
        ..Section::default()
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

/// The launches of an arm's children.
fn children(arm: &ScenarioArm, style: &Style) -> Section {
    let Some(children) = &arm.children else { return Section::default() };
    let mut section = super::children::kinds(children, style);
    section.head.insert(0, Line::of(Paint::Quiet, &format!("Children of {}", arm.name), style));
    section
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
            let cells = [
                left(&escape(name, style.unicode), PAGE, style),
                left(&escape(&arm.name, style.unicode), width, style),
                right(&total, 8, style),
            ];
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
    let legend = format!("{}; {PAINTED} painted", legend.join(", "));
    let head = ["Pages by median load, slowest first; phases end with:", &legend]
        .map(|text| Line::of(Paint::Quiet, text, style));
    Section { head: head.into(), items, what: "pages", spaced: true, ..Section::default() }
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
    use crate::{SCENARIO_SCHEMA, ScenarioMeasure, children_of_runs};
    use slowpath_analysis::starts::children::{ChildLaunch, Origin};
    use slowpath_tables::{Losses, Nanos, ProcessKey, Unit};

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
            children: Some(children_of_runs(&[vec![renderer(Some(20)), renderer(Some(32)), renderer(None)]])),
            failed: 0,
            reasons: Vec::new(),
        }
    }

    fn renderer(ready: Option<u64>) -> ChildLaunch {
        ChildLaunch {
            process: ProcessKey { pid: 1, start: Nanos(1) },
            kind: "renderer".to_owned(),
            origin: Origin::Forked,
            forked: Nanos(0),
            ready: ready.map(|ms| Nanos(ms * 1_000_000)),
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
        assert!(text.contains("Children of with\n") && text.contains("renderer           reused first"), "{text}");
        assert!(text.find("slow").unwrap() < text.find("quick").unwrap(), "{text}");
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.len() <= 80), "{text}");
        let mut alone = sample();
        alone.arms.truncate(1);
        alone.comparisons.clear();
        assert!(scenario(&alone, &Style::PLAIN).contains("load p50                  100 ms"));
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
