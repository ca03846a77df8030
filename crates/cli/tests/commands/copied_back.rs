//! Finding `buffer_copied_back` on the real programs of `cases/copied-back` and `cases/frame-buffer`, and on their near misses.

use crate::recorded_case::{analyzed, built, rows};
use crate::running::*;
use serde_json::Value;

const FINDING: &str = "buffer_copied_back";
/// Size of the scratch block behind malloc's header: 256 KiB and a page.
const SCRATCH: u64 = (256 << 10) + 4096;

/// Records a program with samples and gives what `analyze` says of it.
fn sampled(target: &[&str]) -> Value {
    let place = place();
    let out = place.path().join("out");
    // A rate that keeps no step with 120 frames a second.
    let options = ["--quiet", "--memory-calls", "--stacks", "fault,alloc,cpu", "--sample", "997"];
    record(&out, &options, target).succeeds();
    analyzed(&out)
}

fn found(analysis: &Value) -> Vec<&Value> {
    analysis["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == FINDING).collect()
}

#[test]
fn a_scratch_block_that_tiles_are_copied_into_and_back_is_found_with_both_functions_and_what_goes_one_way_is_not() {
    if !root() {
        return;
    }
    let place = built("copied-back");
    let program = place.path().join("copied-back");
    let analysis_of = |variant: &str, images: &str| sampled(&[program.to_str().unwrap(), variant, images]);
    assert_copies_are_found(&analysis_of("scratch", "200"));
    for variant in ["in-place", "consumed", "queue", "moved", "header"] {
        let analysis = analysis_of(variant, "100");
        assert!(found(&analysis).is_empty(), "{variant}: {:#?}", found(&analysis));
        // There were samples, nevertheless.
        assert!(number(&analysis["shares"]["total"], "cpu_samples") > 10.0, "{:#}", analysis["shares"]);
    }
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap()
}

#[track_caller]
fn assert_copies_are_found(analysis: &Value) {
    let findings = found(analysis);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = findings[0];
    println!("{finding:#}");
    let subject = |name: &str| finding["subject"][name].as_str().unwrap_or_default();
    assert!(subject("function").ends_with("copy_back") && subject("copied_in_by").ends_with("copy_in"), "{finding:#}");
    assert!(subject("allocated_by").ends_with("block"), "{finding:#}");
    assert_eq!(finding["subject"]["size_bytes"], SCRATCH);
    assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
    assert_eq!(finding["fixes"], serde_json::json!(["avoid_copy"]));
    let saved = rows(finding, "saved");
    assert_eq!(saved.len(), 3, "{saved:#?}");
    assert!(saved.iter().all(|row| number(row, "samples") >= 5.0), "{saved:#?}");
    assert_eq!(number(saved[0], "samples") + number(saved[1], "samples"), number(saved[2], "samples"));
    assert!((number(saved[2], "saved_ms") - number(&finding["cost"], "value")).abs() < 0.01, "{finding:#}");
    // A part of what ran.
    assert!(
        number(&finding["cost"], "value") < number(&analysis["shares"]["total"]["cpu_time"], "value"),
        "{finding:#}"
    );
    assert!(rows(finding, "copy").iter().all(|row| row["source_line"].is_u64()), "{finding:#}");
}

#[test]
fn frames_that_are_copied_back_are_found_beside_their_blocks_and_no_fault_of_a_copy_is_in_it() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let program = place.path().join("frame-buffer");
    let analysis_of = |variant: &str| sampled(&[program.to_str().unwrap(), variant, "240", "120"]);
    for (variant, name) in [("each", "copy_frame"), ("kept", "capture")] {
        let analysis = analysis_of(variant);
        let findings = found(&analysis);
        let [total, losses] = [&analysis["shares"]["total"], &analysis["losses"]];
        assert_eq!(findings.len(), 1, "{variant}: {findings:#?} {losses:#} {total:#}");
        let finding = findings[0];
        println!("{finding:#}");
        let subject = |name: &str| finding["subject"][name].as_str().unwrap_or_default();
        assert!(subject("function").contains("deliver") && subject("copied_in_by").contains(name), "{finding:#}");
        let in_kernel: u64 =
            rows(finding, "saved")[..2].iter().filter_map(|row| row["samples_in_kernel"].as_u64()).sum();
        // A block for every frame is first touched by the copy into it.
        assert!(variant != "each" || in_kernel >= 5, "{finding:#}");
    }
    let analysis = analysis_of("recycled");
    assert!(found(&analysis).iter().all(|finding| finding["confidence"] == "low"), "{:#?}", found(&analysis));
    let analysis = analysis_of("in-place");
    assert!(found(&analysis).is_empty(), "{:#?}", found(&analysis));
}
