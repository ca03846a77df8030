//! What proves the finding, as rows, and what would end it.

use super::found::CopiedBuffer;
use super::round_trips::{CopySide, OtherEnd};
use crate::finding::{Evidence, Row, row};
use crate::findings::memory_evidence::{Remedy, rounded};
use crate::findings::sampled_time::sampled_time;
use crate::memory::memory_fixes::AVOID_COPY;
use serde_json::Value;

/// Call stacks of a direction, at most.
const MOST_SITES: usize = 10;

/// Names of the directions in rows.
const DIRECTIONS: [&str; 2] = ["copy in", "copy back"];

fn ways<'a>(found: &'a CopiedBuffer<'_>) -> impl Iterator<Item = (&'static str, &'a CopySide)> {
    DIRECTIONS.into_iter().zip([&found.trip.copied_in, &found.trip.copied_back])
}

/// What each direction costs and saves.
pub(super) fn copies(found: &CopiedBuffer<'_>) -> Evidence {
    let line = |name: &str, samples: u64, in_kernel: u64| {
        let time = sampled_time(samples, found.hertz);
        row([
            ("saved", Value::from(name)),
            ("samples", Value::from(samples)),
            ("saved_ms", rounded(time.value, 3)),
            ("low_ms", rounded(time.low.unwrap_or(time.value), 3)),
            ("high_ms", rounded(time.high.unwrap_or(time.value), 3)),
            ("samples_in_kernel", Value::from(in_kernel)),
        ])
    };
    let mut rows: Vec<Row> = ways(found).map(|(name, way)| line(name, way.samples, way.in_kernel)).collect();
    let sum = |of: fn(&CopySide) -> u64| ways(found).map(|(_, way)| of(way)).fold(0, u64::saturating_add);
    rows.push(line("both", sum(|way| way.samples), sum(|way| way.in_kernel)));
    let other_end = match found.trip.other_end {
        OtherEnd::Same => "Data go back to the memory that they came from.",
        OtherEnd::Unknown => "Where data came from and went to is not known: no block that was mapped while recording.",
    };
    let text = format!(
        "CPU samples of code that copied, {} a second on each CPU, with an address in the block ({} seen). {other_end} Those in \
         the kernel, faults of the copies mostly, are not in the cost.",
        found.hertz, found.trip.blocks
    );
    Evidence { text, rows }
}

/// Who copies.
pub(super) fn sites(found: &CopiedBuffer<'_>) -> Evidence {
    let rows = ways(found).flat_map(|(name, way)| {
        way.sites.iter().take(MOST_SITES).map(move |site| {
            let stack = found.memory.stacks.of_row(site.stack);
            let mut shown = row([
                ("copy", Value::from(name)),
                ("samples", Value::from(site.samples)),
                ("samples_in_kernel", Value::from(site.in_kernel)),
                ("stack", Value::from(stack.folded())),
            ]);
            if let Some(caller) = stack.who_asked() {
                shown.insert("function".to_owned(), Value::from(caller.function.as_str()));
                shown.insert("file".to_owned(), Value::from(caller.file.as_str()));
                if let Some((source, line)) = &caller.source {
                    shown.insert("source_file".to_owned(), Value::from(source.as_str()));
                    shown.insert("source_line".to_owned(), line.map_or(Value::Null, Value::from));
                }
            }
            shown
        })
    });
    Evidence {
        text: "Who copies, by samples in user code: the first function outside libraries.".to_owned(),
        rows: rows.collect(),
    }
}

/// What would end it.
pub(super) fn remedy(found: &CopiedBuffer<'_>) -> Remedy {
    let how = match found.trip.other_end {
        OtherEnd::Same => {
            "in the source: work on the data where they lie, and neither copy is needed (where others may change them meanwhile, a \
             lock, or a second buffer that is exchanged for the first by its pointer)"
        }
        OtherEnd::Unknown => {
            "in the source: read the data where they lie and write them where they go, without the block between; or hand over the \
             block itself by its pointer"
        }
    };
    Remedy::new(AVOID_COPY, how.to_owned())
}
