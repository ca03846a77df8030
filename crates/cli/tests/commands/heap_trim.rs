//! Finding `heap_trim_churn` on the real program of `cases/heap-trim` and its twin.

use crate::running::*;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const FINDING: &str = "heap_trim_churn";
const ROUNDS: &str = "40";

/// Records a variant and gives the findings about memory with what the program said of itself: name and number.
fn analyzed(program: &Path, variant: &str) -> (Vec<Value>, Vec<(String, f64)>) {
    let place = place();
    let out = place.path().join("out");
    let target = [program.to_str().unwrap(), variant, ROUNDS];
    let done = record(&out, &["--quiet", "--memory-calls", "--stacks", "fault,alloc"], &target);
    done.succeeds();
    let numbers = done.stdout.split_whitespace().filter_map(|word| word.split_once('='));
    let numbers = numbers.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect();
    let told = run(slowpath(["analyze", "--json", out.to_str().unwrap()]));
    told.succeeds();
    let mut findings = told.json()["findings"].as_array().unwrap().clone();
    findings.retain(|finding| finding["name"] == FINDING || finding["name"] == "transient_large_allocation");
    (findings, numbers)
}

#[test]
fn a_heap_that_is_trimmed_for_every_document_is_found_with_its_counts_and_its_twin_is_not() {
    if !root() {
        return;
    }
    let place = place();
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/heap-trim/make");
    let done = Command::new(make).arg(place.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let program = place.path().join("heap-trim");

    let (findings, numbers) = analyzed(&program, "each");
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = &findings[0];
    println!("{finding:#} {numbers:?}");
    assert_eq!((&finding["name"], &finding["subject"]["kind"]), (&FINDING.into(), &"brk_trim".into()));
    assert!(finding["subject"]["function"].as_str().unwrap().contains("drop_document"), "{finding:#}");
    let evidence = finding["evidence"].as_array().unwrap();
    let rows: Vec<&Value> = evidence.iter().flat_map(|one| one["rows"].as_array().unwrap()).collect();
    let operations = rows.iter().find(|row| row.get("operations").is_some()).unwrap();
    for (column, name) in [("operations", "operations"), ("faults", "pages")] {
        let (_, truth) = numbers.iter().find(|(known, _)| known == name).unwrap();
        let value = operations[column].as_f64().unwrap();
        assert!(
            *truth >= 39.0 && (value - truth).abs() <= truth * 0.01,
            "{column}: {value} of {truth}: {operations:#}"
        );
    }
    assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
    assert_eq!(finding["fixes"], serde_json::json!(["keep_buffer", "allocator_tunables"]));
    let touching = rows.iter().find(|row| row.get("fault_ms").is_some()).unwrap();
    assert!(touching["fault_ms"].as_f64().unwrap() > 0.0, "{touching:#}");

    let (findings, _) = analyzed(&program, "kept");
    assert!(findings.is_empty(), "{findings:#?}");
}
