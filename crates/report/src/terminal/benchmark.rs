//! A launch benchmark on a screen: every launch as a mark on one axis, and what the comparison says.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{self, Section};
use super::style::Style;
use crate::{ArmComparison, Benchmark, BenchmarkArm, Outcome};
use slowpath_tables::{Losses, Quantity};
use slowpath_verify::Metric;

const NAME: usize = 16;

/// The summary, with a newline after every line.
pub fn benchmark(benchmark: &Benchmark, style: &Style) -> String {
    let mut parts: Vec<Section> = benchmark.compared.iter().map(|metric| arms(benchmark, *metric, style)).collect();
    parts.push(others(benchmark, style));
    parts.push(comparisons(benchmark, style));
    parts.push(outliers(benchmark, style));
    parts.push(sections::doubts(&Losses::default(), &benchmark.unavailable, &benchmark.notes, style));
    parts.push(conditions(benchmark, style));
    super::screen(parts, super::Rest::InJson, style)
}

fn name(arm: &str, style: &Style) -> String {
    left(&escape(arm, style.unicode), NAME, style)
}

fn values(arm: &BenchmarkArm, metric: Metric) -> Vec<f64> {
    arm.launches.iter().flatten().filter_map(|launch| launch.measures.get(&metric).copied()).collect()
}

/// The arms by one metric.
fn arms(benchmark: &Benchmark, metric: Metric, style: &Style) -> Section {
    const MEDIAN: usize = 10;
    const INTERVAL: usize = 16;
    const COUNT: usize = 8;
    let columns = style.columns.saturating_sub(NAME + MEDIAN + INTERVAL + COUNT + 2);
    let all: Vec<f64> = benchmark.arms.iter().flat_map(|arm| values(arm, metric)).collect();
    let from = all.iter().copied().fold(f64::INFINITY, f64::min);
    let to = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let heading = [
        left(metric.name(), NAME, style),
        right("median", MEDIAN, style),
        right("95 % interval", INTERVAL, style),
        right("n", COUNT, style),
    ];
    let mut items: Vec<Item> = Vec::new();
    for arm in &benchmark.arms {
        let values = values(arm, metric);
        let median = arm.medians.get(&metric);
        let cells = [
            name(&arm.name, style),
            right(&median.map_or("-".to_owned(), |median| figures::value(median, style)), MEDIAN, style),
            right(&median.and_then(|median| figures::interval(median, style)).unwrap_or_default(), INTERVAL, style),
            right(&format!("{}/{}", values.len(), arm.launches.len()), COUNT, style),
        ];
        let dots = median.map_or_else(String::new, |m| figures::dots(&values, m.value, from, to, columns, style));
        let line = Line::of(Paint::Plain, &cells.concat(), style);
        items.push(line.with(Paint::Plain, &format!("  {}", dots.trim_end()), style).into());
        for one in arm.quantiles.iter().filter(|one| one.metric == metric) {
            let text = format!("p{} {}", one.quantile * 100.0, figures::with_interval(&one.value, style));
            items.push(Line::of(Paint::Quiet, &format!("{}{text}", " ".repeat(NAME)), style).into());
        }
    }
    let head = vec![Line::of(Paint::Quiet, &heading.concat(), style)];
    Section { head, items, what: "arms", spaced: true, ..Section::default() }
}

/// Medians of what was not compared, one line an arm.
fn others(benchmark: &Benchmark, style: &Style) -> Section {
    const SHOWN: [(Metric, &str); 5] = [
        (Metric::Cpu, "cpu"),
        (Metric::MinorFaults, "minor"),
        (Metric::MajorFaults, "major"),
        (Metric::BytesRead, "read"),
        (Metric::PeakRss, "peak"),
    ];
    let lines = benchmark.arms.iter().filter_map(|arm| {
        let cells =
            SHOWN.iter().filter(|(metric, _)| !benchmark.compared.contains(metric)).filter_map(|(metric, word)| {
                let median = Quantity { low: None, high: None, ..*arm.medians.get(metric)? };
                Some(format!("{word} {}", figures::value(&median, style)))
            });
        let text = cells.collect::<Vec<_>>().join("  ");
        let line = || Line::of(Paint::Quiet, &format!("{}{text}", name(&arm.name, style)), style);
        (!text.is_empty()).then(|| Item::from(line()))
    });
    Section { items: lines.collect(), what: "arms", ..Section::default() }
}

/// What each further arm is against the first.
pub(super) fn comparisons(benchmark: &Benchmark, style: &Style) -> Section {
    let several = benchmark.compared.len() > 1;
    let items = benchmark.comparisons.iter().map(|one| {
        let paint = match one.outcome {
            Outcome::Helps => Paint::Good,
            Outcome::Hurts => Paint::Bad,
            _ => Paint::Plain,
        };
        let what = if several { format!(" {}", one.metric.name()) } else { String::new() };
        let prefix = Line::of(Paint::Plain, &format!("{}{what} ", escape(&one.arm, style.unicode)), style);
        Item::wrapped(prefix, paint, &sentence(one, style), Some(2), style)
    });
    Section { items: items.collect(), what: "comparisons", spaced: true, ..Section::default() }
}

fn sentence(one: &ArmComparison, style: &Style) -> String {
    let against = &one.against;
    let change = one.difference.as_ref().map_or("-".to_owned(), |change| figures::with_interval(change, style));
    let ratio = one.ratio.as_ref().map_or_else(String::new, |ratio| {
        let part = |value: f64| format!("{value:.3}");
        match (ratio.low, ratio.high) {
            (Some(low), Some(high)) => format!(", ratio {} ({} to {})", part(ratio.value), part(low), part(high)),
            _ => format!(", ratio {}", part(ratio.value)),
        }
    });
    let least = one
        .minimum_detectable_effect
        .as_ref()
        .map_or_else(String::new, |least| format!("; {} would have been seen", figures::value(least, style)));
    let [better, worse] = if one.metric == Metric::Wall { ["faster", "slower"] } else { ["less", "more"] };
    match one.outcome {
        Outcome::Helps => format!("is {better} than {against}: {change}{ratio}"),
        Outcome::Hurts => format!("is {worse} than {against}: {change}{ratio}"),
        Outcome::NoDifference => format!("shows no difference from {against} that matters: {change}{ratio}"),
        Outcome::Inconclusive => format!("against {against} is inconclusive: {change}{ratio}{least}"),
        Outcome::NotTestable => format!("against {against}: too few launches to tell ({} pairs)", one.pairs),
    }
}

fn outliers(benchmark: &Benchmark, style: &Style) -> Section {
    let items = benchmark.arms.iter().flat_map(|arm| arm.outliers.iter().map(move |outlier| (arm, outlier)));
    let items = items.map(|(arm, outlier)| {
        let value = Quantity::exact(outlier.value, outlier.metric.unit());
        let why = if outlier.reasons.is_empty() {
            "nothing that is observed explains it".into()
        } else {
            outlier.reasons.join(", ")
        };
        let text = format!(
            "{} in block {}: {} (median {}): {why}",
            arm.name,
            outlier.block + 1,
            figures::value(&value, style),
            arm.medians.get(&outlier.metric).map_or("-".to_owned(), |median| {
                figures::value(&Quantity { low: None, high: None, ..*median }, style)
            })
        );
        Item::wrapped(Line::of(Paint::Quiet, "Outlier: ", style), Paint::Quiet, &text, Some(2), style)
    });
    Section { items: items.collect(), what: "outliers", spaced: true, ..Section::default() }
}

fn conditions(benchmark: &Benchmark, style: &Style) -> Section {
    let text = format!(
        "{} blocks, seed {}, ready: {}; {}; {}.",
        benchmark.blocks,
        benchmark.seed,
        benchmark.ready,
        // What differs in a lab fills a screen; JSON and exports have all of it.
        benchmark.conditions.first().map_or("", String::as_str),
        benchmark.ended
    );
    let item = Item::wrapped(Line::of(Paint::Quiet, "", style), Paint::Quiet, &text, Some(0), style);
    Section { items: vec![item], what: "conditions", spaced: true, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::sample;

    #[test]
    fn every_launch_is_a_mark_and_the_verdict_a_sentence() {
        let text = benchmark(&sample::benchmark(), &Style::PLAIN);
        assert!(text.contains("old                15.0 ms"), "{text}");
        assert!(text.contains("1/2"), "{text}");
        assert!(text.contains("new against old is inconclusive: 2.00 ms (-1.00..5.00), ratio 1.200"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn an_outlier_is_shown_with_its_reason_and_hostile_names_are_escaped() {
        let mut sample = sample::benchmark();
        sample.arms[0].name = "\u{1b}[31mred".to_owned();
        sample.arms[0].outliers = vec![crate::Outlier {
            block: 1,
            metric: Metric::Wall,
            value: 20.0,
            sigmas: 7.3,
            reasons: vec!["180 ms used by other processes (usually 20)".to_owned()],
        }];
        let text = benchmark(&sample, &Style::PLAIN);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("in block 2: 20.0 ms (median 15.0 ms): 180 ms used by other processes"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
