//! What `record --audit-stacks` says at its end, from the counters of the manifest.

use slowpath_experiment::{Level, proportion};
use slowpath_session::recording_writer::stack_audit::{COPIES, EVENTS};
use std::collections::BTreeMap;

/// A share of all, in percent, with its exact interval.
fn share(hits: u64, all: u64) -> String {
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    match proportion::interval(hits, all, Level::P95) {
        Some((low, high)) => {
            format!("{} ({} to {})", percent(hits as f64 / all as f64), percent(low), percent(high))
        }
        None => "none".to_owned(),
    }
}

/// How a walk ended, in words.
fn words(end: &str) -> &str {
    match end {
        "no_table" => "end at code without an unwinding table and without a frame pointer",
        "bad_rule" => "end at an unwinding rule that cannot be followed",
        "unreadable" => "end at memory that could not be read",
        "too_deep" => "are deeper than what is recorded",
        "changed" => "were walked while the process changed its mappings",
        "hands_over" => "end where the exception unwinder handed over to a handler",
        other => other,
    }
}

/// The lines; none where nothing was audited.
pub fn stack_audit(counters: &BTreeMap<String, u64>) -> Vec<String> {
    let Some(same) = counters.get(&format!("{COPIES}same")) else { return Vec::new() };
    let count = |word: &str| counters.get(&format!("{COPIES}{word}")).copied().unwrap_or(0);
    let compared = same + count("truncated") + count("wrong");
    let mut lines = Vec::new();
    lines.push(if compared == 0 {
        "stack audit: no stack could be compared with full unwinding".to_owned()
    } else {
        format!(
            "stack audit: {compared} stacks compared with full unwinding: {} wrong, {} truncated (95 % intervals)",
            share(count("wrong"), compared),
            share(count("truncated"), compared),
        )
    });
    if count("unknown") > 0 {
        lines.push(format!(
            "stack audit: {} more agree as far as full unwinding could follow them, which is not to their end: code without \
             .eh_frame, generated code, or more than 32 KiB of stack",
            count("unknown")
        ));
    }
    if count("left_out") > 0 {
        lines.push(format!(
            "stack audit: {} copies were left out: they came too fast, or their stack was lost",
            count("left_out")
        ));
    }
    let ends: Vec<(&str, u64)> =
        counters.iter().filter_map(|(name, events)| Some((name.strip_prefix(EVENTS)?, *events))).collect();
    let all: u64 = ends.iter().map(|(_, events)| events).sum();
    if all > 0 {
        let mut cut: Vec<_> = ends.iter().filter(|(end, _)| *end != "whole").collect();
        cut.sort_by_key(|(_, events)| std::cmp::Reverse(*events));
        let total: u64 = cut.iter().map(|(_, events)| events).sum();
        let percent = |events: u64| format!("{:.2} %", events as f64 / all as f64 * 100.0);
        let reasons: Vec<String> =
            cut.iter().map(|(end, events)| format!("{} {}", percent(*events), words(end))).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
        lines.push(format!("stacks of {all} events: {} are cut off{reasons}", percent(total)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn shares_have_intervals_and_what_could_not_be_compared_is_no_part_of_them() {
        let audited = counters(&[
            ("stack_audit.same", 995),
            ("stack_audit.truncated", 4),
            ("stack_audit.wrong", 1),
            ("stack_audit.unknown", 35),
            ("stack_ends.whole", 3000),
            ("stack_ends.no_table", 900),
            ("stack_ends.too_deep", 100),
        ]);
        let said = stack_audit(&audited).join("\n");
        // binom.test(1, 1000) and binom.test(4, 1000) of R.
        assert!(said.contains("1000 stacks compared with full unwinding: 0.10 % (0.00 % to 0.56 %) wrong, 0.40 % (0.11 % to 1.02 %) truncated"), "{said}");
        assert!(said.contains("35 more agree"), "{said}");
        assert!(!said.contains("left out"), "{said}");
        assert!(said.contains("stacks of 4000 events: 25.00 % are cut off: 22.50 % end at code without"), "{said}");
    }

    #[test]
    fn nothing_is_said_without_an_audit_and_no_share_of_none() {
        assert!(stack_audit(&counters(&[("unreadable_bytes", 0)])).is_empty());
        let said = stack_audit(&counters(&[("stack_audit.same", 0), ("stack_audit.unknown", 7)]));
        assert!(said[0].contains("no stack could be compared") && said.len() == 2, "{said:?}");
    }
}
