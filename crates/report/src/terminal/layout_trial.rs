//! Variants of a build on a screen: what each file holds, and what launches of it take.

use super::benchmark::comparisons;
use super::escape::escape;
use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::Section;
use super::style::Style;
use crate::{Benchmark, BenchmarkArm};
use slowpath_layout::trial::{BuiltVariant, LayoutTrial, VariantState};
use slowpath_tables::Quantity;
use slowpath_verify::Metric;

const NAME: usize = 16;
const NUMBER: usize = 12;
const TIME: usize = 26;

/// The summary, with a newline after every line.
pub fn layout_trial(trial: &LayoutTrial, style: &Style) -> String {
    let mut parts = vec![files(trial, style)];
    for (heading, launches) in [("cold launches", &trial.cold), ("warm launches", &trial.warm)] {
        if let Some(launches) = launches {
            parts.extend([table(heading, launches, style), comparisons(launches, style)]);
        }
    }
    parts.push(remarks(trial, style));
    super::screen(parts, super::Rest::InJson, style)
}

/// What launches of each variant take: no line of it is left out.
fn table(heading: &str, launches: &Benchmark, style: &Style) -> Section {
    let cells = [
        left(heading, NAME, style),
        right("to ready", TIME, style),
        right("resident", NUMBER, style),
        right("read", NUMBER, style),
        right("faults", NUMBER, style),
    ];
    let mut head = vec![Line::of(Paint::Quiet, &cells.concat(), style)];
    head.extend(launches.arms.iter().map(|arm| Line::of(Paint::Plain, &of_arm(arm, style), style)));
    Section { head, what: "arms", spaced: true, ..Section::default() }
}

fn of_arm(arm: &BenchmarkArm, style: &Style) -> String {
    let median = |metric: Metric| arm.medians.get(&metric);
    let value = |metric: Metric| {
        let text = median(metric)
            .map_or("-".to_owned(), |one| figures::value(&Quantity { low: None, high: None, ..*one }, style));
        right(&text, NUMBER, style)
    };
    let time = median(Metric::Wall).map_or("-".to_owned(), |one| figures::with_interval(one, style));
    let cells = [
        left(&escape(&arm.name, style.unicode), NAME, style),
        right(&time, TIME, style),
        value(Metric::PeakRss),
        value(Metric::BytesRead),
        value(Metric::MinorFaults),
    ];
    cells.concat()
}

fn files(trial: &LayoutTrial, style: &Style) -> Section {
    let heading = [
        left("variant", NAME, style),
        right("file KiB", NUMBER, style),
        right("relative", NUMBER, style),
        right("packed", NUMBER, style),
        right("symbolic", NUMBER, style),
        right("tables KiB", NUMBER, style),
    ];
    Section {
        head: vec![Line::of(Paint::Quiet, &heading.concat(), style)],
        items: trial.variants.iter().map(|variant| file(variant, style)).collect(),
        what: "variants",
        whole_or_not: true,
        ..Section::default()
    }
}

fn file(variant: &BuiltVariant, style: &Style) -> Item {
    let name = left(&escape(&variant.name, style.unicode), NAME, style);
    match (&variant.file, variant.state) {
        (Some(file), VariantState::Built) => {
            let cell =
                |value: Option<u64>| right(&value.map_or("-".to_owned(), |value| value.to_string()), NUMBER, style);
            let tables = file.table_bytes.map(|bytes| bytes.div_ceil(1024));
            let cells = [Some(file.bytes.div_ceil(1024)), file.relative, file.packed, file.symbolic, tables].map(cell);
            Line::of(Paint::Plain, &format!("{name}{}", cells.concat()), style).into()
        }
        _ => {
            let reason = variant.reason.as_deref().unwrap_or("not built");
            Item::wrapped(Line::of(Paint::Bad, &name, style), Paint::Plain, reason, Some(NAME), style)
        }
    }
}

fn remarks(trial: &LayoutTrial, style: &Style) -> Section {
    let mut items: Vec<Item> = Vec::new();
    for variant in trial.variants.iter().filter(|variant| variant.state == VariantState::Built) {
        let flags =
            ["SLOWPATH_CFLAGS", "SLOWPATH_LDFLAGS"].map(|name| variant.variables.get(name).map_or("", String::as_str));
        let flags = flags.join(" ");
        if !flags.trim().is_empty() {
            let prefix = Line::of(Paint::Quiet, &left(&escape(&variant.name, style.unicode), NAME, style), style);
            items.push(Item::wrapped(prefix, Paint::Quiet, flags.trim(), Some(NAME), style));
        }
    }
    let gaps = trial.unavailable.iter().map(|gap| format!("{}: {} (remedy: {})", gap.what, gap.reason, gap.remedy));
    for note in trial.notes.iter().cloned().chain(gaps) {
        items.push(Item::wrapped(Line::of(Paint::Quiet, "Note: ", style), Paint::Quiet, &note, Some(2), style));
    }
    Section { items, what: "remarks", spaced: true, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::sample;
    use slowpath_layout::trial::{BuiltFile, TRIAL_SCHEMA};

    fn variant(name: &str, state: VariantState, file: Option<BuiltFile>) -> BuiltVariant {
        let variables = [("SLOWPATH_LDFLAGS".to_owned(), "-Wl,-z,pack-relative-relocs".to_owned())];
        BuiltVariant {
            name: name.to_owned(),
            title: "title".to_owned(),
            variables: variables.into(),
            state,
            reason: (state == VariantState::Failed)
                .then(|| "the build failed: ld: \u{1b}[31munknown option".to_owned()),
            file,
        }
    }

    #[test]
    fn files_flags_failures_and_launches_stand_on_the_screen_and_foreign_text_is_escaped() {
        let file = BuiltFile {
            bytes: 4096,
            relative: Some(12),
            packed: Some(34),
            symbolic: Some(5),
            calls: Some(6),
            table_bytes: Some(1025),
        };
        let trial = LayoutTrial {
            schema: TRIAL_SCHEMA.to_owned(),
            build: "make".to_owned(),
            command: vec!["{binary}".to_owned()],
            linker: None,
            ordered_functions: None,
            variants: vec![
                variant("baseline", VariantState::Built, Some(file)),
                variant("relr", VariantState::Failed, None),
            ],
            cold: None,
            warm: Some(sample::benchmark()),
            notes: vec!["a note".to_owned()],
            unavailable: Vec::new(),
        };
        let text = layout_trial(&trial, &Style::PLAIN);
        for part in [
            "tables KiB",
            "34",
            "the build failed: ld:",
            "Note: a note",
            "-Wl,-z,pack-relative-relocs",
            "warm launches",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
