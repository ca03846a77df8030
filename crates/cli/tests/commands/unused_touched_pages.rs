//! Finding `unused_touched_pages` on the real program of `cases/oversized-touch`, its twin and what comes near.

use crate::recorded_case::{ABOUT_MEMORY, MEMORY, RecordedCase, built, row};
use crate::recorded_together::{Together, named};
use crate::running::*;

const FINDING: &str = "unused_touched_pages";
/// 24 MiB are few enough for a short test, and each vector of it is mapped on its own.
const MIB: &str = "24";

#[test]
fn a_table_of_which_a_tenth_is_used_is_found_with_its_pages_and_what_comes_near_is_not() {
    if !root() {
        return;
    }
    let place = built("oversized-touch");
    let program = place.path().join("oversized-touch");

    // By themselves: what is executed while it is recorded has its unwinding tables a moment later, and these ask for memory once.
    for variant in ["kept", "returned"] {
        let target = [program.to_str().unwrap(), variant, MIB];
        let recorded = RecordedCase::record(&place.path().join(variant), &MEMORY, &target, &ABOUT_MEMORY);
        let finding = recorded.one();
        assert_eq!(finding["name"], FINDING);
        assert!(finding["subject"]["function"].as_str().unwrap().contains("make_table"), "{finding:#}");
        assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
        assert_eq!(finding["fixes"], serde_json::json!(["right_size_buffer"]));
        let operations = row(finding, "operations");
        for (column, name) in [("operations", "operations"), ("faults", "pages"), ("unused_pages", "unused")] {
            recorded.assert_counts(operations, column, name);
        }
        let (low, high) = (&operations["unused_pages_low"], &operations["unused_pages_high"]);
        let truth = recorded.number("unused");
        assert!(low.as_f64().unwrap() <= truth && truth <= high.as_f64().unwrap(), "{operations:#}");
        let looked_at = row(finding, "looked_at_pages");
        assert_eq!(looked_at["behind_the_used_percent"], 100.0, "{looked_at:#}");
    }
    let near_misses = ["sized", "sparse", "untouched", "file"];
    near_misses.iter().for_each(|variant| named(place.path(), "oversized-touch", variant));
    let commands = near_misses.map(|variant| (variant, format!("./{variant} {variant} {MIB}")));
    let together = Together::record(place.path(), &commands);
    together.assert_whole();
    for variant in near_misses {
        let findings = together.findings(variant, &ABOUT_MEMORY);
        assert!(findings.is_empty(), "{variant}: {findings:#?}");
    }
}
