//! Finding `heap_trim_churn` on the real program of `cases/heap-trim` and its twin.

use crate::recorded_case::{ABOUT_MEMORY, MEMORY, RecordedCase, built, row};
use crate::running::*;

const FINDING: &str = "heap_trim_churn";
const ROUNDS: &str = "40";

#[test]
fn a_heap_that_is_trimmed_for_every_document_is_found_with_its_counts_and_its_twin_is_not() {
    if !root() {
        return;
    }
    let place = built("heap-trim");
    let program = place.path().join("heap-trim");

    let recorded = |variant: &str| {
        let target = [program.to_str().unwrap(), variant, ROUNDS];
        RecordedCase::record(&place.path().join(variant), &MEMORY, &target, &ABOUT_MEMORY)
    };
    let each = recorded("each");
    let finding = each.one();
    assert_eq!((&finding["name"], &finding["subject"]["kind"]), (&FINDING.into(), &"brk_trim".into()));
    assert!(finding["subject"]["function"].as_str().unwrap().contains("drop_document"), "{finding:#}");
    let operations = row(finding, "operations");
    assert!(each.number("operations") >= 39.0, "{:?}", each.numbers);
    each.assert_counts(operations, "operations", "operations");
    each.assert_counts(operations, "faults", "pages");
    assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
    assert_eq!(finding["fixes"], serde_json::json!(["reuse_buffer", "allocator_tunables"]));
    let touching = row(finding, "fault_ms");
    assert!(touching["fault_ms"].as_f64().unwrap() > 0.0, "{touching:#}");

    recorded("kept").none();
}
