//! A table for a pull request.

use crate::markdown::sentence;
use crate::terminal::{Style, figures};
use crate::{ArmComparison, Benchmark, Outcome};
use slowpath_tables::Quantity;
use std::fmt::Write;

/// One table a compared metric, and the notes below.
pub fn table(benchmark: &Benchmark) -> String {
    let style = Style::PLAIN;
    let mut out = String::new();
    for metric in &benchmark.compared {
        // Writing into a string does not fail.
        let _ = writeln!(
            out,
            "| arm | {} median (95 %) | n | against {} | ratio | verdict |\n|---|---|---|---|---|---|",
            metric.name(),
            benchmark.arms.first().map_or_else(String::new, |arm| sentence(&arm.name))
        );
        for arm in &benchmark.arms {
            let median = arm.medians.get(metric).map_or("-".to_owned(), |m| figures::with_interval(m, &style));
            let counted = arm.launches.iter().flatten().count();
            let found = benchmark.comparisons.iter().find(|one| one.arm == arm.name && one.metric == *metric);
            let cells = found.map_or_else(|| "- | - | -".to_owned(), |one| cells(one, &style));
            let _ = writeln!(out, "| {} | {median} | {counted} | {cells} |", sentence(&arm.name));
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "{} blocks, seed {}, {}; {}.",
        benchmark.blocks,
        benchmark.seed,
        sentence(&benchmark.conditions.join(", ")),
        sentence(&benchmark.ended)
    );
    for note in &benchmark.notes {
        let _ = writeln!(out, "- {}", sentence(note));
    }
    out
}

fn cells(one: &ArmComparison, style: &Style) -> String {
    let cell = |quantity: &Option<Quantity>| {
        quantity.as_ref().map_or("-".to_owned(), |quantity| figures::with_interval(quantity, style))
    };
    let mut verdict = match one.outcome {
        Outcome::Helps => "less".to_owned(),
        Outcome::Hurts => "more".to_owned(),
        other => other.words().to_owned(),
    };
    if let Some(least) = &one.minimum_detectable_effect {
        verdict.push_str(&format!(" (detectable: {})", figures::value(least, style)));
    }
    format!("{} | {} | {verdict}", cell(&one.difference), cell(&one.ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::sample;

    #[test]
    fn a_row_an_arm_and_hostile_names_stay_in_their_cell() {
        let mut benchmark = sample::benchmark();
        benchmark.arms[0].name = "a|b\n@me\u{202e}<img>".to_owned();
        let text = table(&benchmark);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows[2].starts_with("| a&#124;b @&#8203;me&#92;u{202e}\\<img\\> |"), "{}", rows[2]);
        assert!(rows[3].contains("inconclusive"), "{}", rows[3]);
        let cells = |row: &str| row.replace("\\|", "").matches('|').count();
        assert!(rows.iter().all(|row| cells(row) == 7), "{text}");
    }
}
