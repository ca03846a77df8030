//! Finding `oversized_first_touch` on the real program of `cases/oversized-touch`, its twin and what comes near.

use crate::recorded_together::{Together, named};
use crate::running::*;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const FINDING: &str = "oversized_first_touch";
const ABOUT_MEMORY: [&str; 3] = [FINDING, "transient_large_allocation", "heap_trim_churn"];
/// 24 MiB are few enough for a short test, and each vector of it is mapped on its own.
const MIB: &str = "24";

/// Records a variant and gives the findings about memory with what the program said of itself: name and number.
fn analyzed(program: &Path, variant: &str) -> (Vec<Value>, Vec<(String, f64)>) {
    let place = place();
    let out = place.path().join("out");
    let target = [program.to_str().unwrap(), variant, MIB];
    let done = record(&out, &["--quiet", "--memory-calls", "--stacks", "fault,alloc"], &target);
    done.succeeds();
    let numbers = done.stdout.split_whitespace().filter_map(|word| word.split_once('='));
    let numbers = numbers.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect();
    let told = run(slowpath(["analyze", "--json", out.to_str().unwrap()]));
    told.succeeds();
    let mut findings = told.json()["findings"].as_array().unwrap().clone();
    findings.retain(|finding| ABOUT_MEMORY.iter().any(|name| finding["name"] == *name));
    (findings, numbers)
}

fn rows(finding: &Value) -> Vec<&Value> {
    let evidence = finding["evidence"].as_array().unwrap();
    evidence.iter().flat_map(|one| one["rows"].as_array().unwrap()).collect()
}

#[test]
fn a_table_of_which_a_tenth_is_used_is_found_with_its_pages_and_what_comes_near_is_not() {
    if !root() {
        return;
    }
    let place = place();
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/oversized-touch/make");
    let done = Command::new(make).arg(place.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let program = place.path().join("oversized-touch");

    // By themselves: what is executed while it is recorded has its unwinding tables a moment later, and these ask for memory once.
    for variant in ["kept", "returned"] {
        let (findings, numbers) = analyzed(&program, variant);
        assert_eq!(findings.len(), 1, "{variant}: {findings:#?}");
        let finding = &findings[0];
        println!("{finding:#} {numbers:?}");
        assert_eq!(finding["name"], FINDING);
        assert!(finding["subject"]["function"].as_str().unwrap().contains("make_table"), "{finding:#}");
        assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
        assert_eq!(finding["fixes"], serde_json::json!(["size_to_use"]));
        let rows = rows(finding);
        let operations = rows.iter().find(|row| row.get("operations").is_some()).unwrap();
        for (column, name) in [("operations", "operations"), ("faults", "pages"), ("unused_pages", "unused")] {
            let (_, truth) = numbers.iter().find(|(known, _)| known == name).unwrap();
            let value = operations[column].as_f64().unwrap();
            assert!((value - truth).abs() <= truth * 0.01, "{variant} {column}: {value} of {truth}: {operations:#}");
        }
        let (low, high) = (&operations["unused_pages_low"], &operations["unused_pages_high"]);
        let (_, truth) = numbers.iter().find(|(known, _)| known == "unused").unwrap();
        assert!(low.as_f64().unwrap() <= *truth && *truth <= high.as_f64().unwrap(), "{operations:#}");
        let looked_at = rows.iter().find(|row| row.get("looked_at_pages").is_some()).unwrap();
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
