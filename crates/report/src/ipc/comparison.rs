//! `slowpath ipc compare` in a terminal.

use super::figure;
use slowpath_ipc::comparison::Comparison;

/// The whole result.
pub fn text(comparison: &Comparison) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let first = comparison.arms.first().map_or("", |arm| arm.transport);
    let _ = writeln!(
        text,
        "Round trips of {} bytes, {} blocks, 95 % intervals, joint for all ratios\n",
        comparison.size, comparison.blocks
    );
    let _ = writeln!(text, "{:<16} {:<28} {}", "transport", "round trip in us", format_args!("ratio to {first}"));
    for arm in &comparison.arms {
        let round_trip = arm.round_trip.as_ref().map(figure).unwrap_or_default();
        let ratio = comparison.comparisons.iter().find(|one| one.b == arm.transport).and_then(|one| one.ratio);
        let ratio = ratio.as_ref().map(figure).unwrap_or_default();
        let _ = writeln!(text, "{}", format!("{:<16} {round_trip:<28} {ratio}", arm.transport).trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_ipc::comparison::{Arm, Compared};
    use slowpath_tables::{Quantity, Unit};

    #[test]
    fn ratios_stand_under_the_transport_they_are_to_and_their_intervals_hold_together() {
        let arm = |transport| Arm {
            transport,
            round_trip: Some(Quantity::exact(1.0, Unit::Us)),
            iterations: 1,
            samples_us: Vec::new(),
        };
        let compared = Compared {
            a: "pipe",
            b: "tcp-loopback",
            difference: None,
            ratio: Some(Quantity::interval(2.0, 1.5, 2.5, Unit::Ratio)),
            level: 0.95,
            pairs: 12,
            minimum_detectable_effect: None,
        };
        let text = text(&Comparison {
            schema: "",
            size: 4,
            blocks: 12,
            complete: true,
            seed: 1,
            arms: vec![arm("pipe"), arm("tcp-loopback")],
            comparisons: vec![compared],
            unavailable: Vec::new(),
        });
        assert!(
            text.starts_with("Round trips of 4 bytes, 12 blocks, 95 % intervals, joint for all ratios\n"),
            "{text}"
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2].find("ratio to pipe"), lines[4].find("2.00 (1.50 to 2.50)"), "{text}");
        assert_eq!(lines[3].trim_end(), "pipe             1.00", "{text}");
    }
}
