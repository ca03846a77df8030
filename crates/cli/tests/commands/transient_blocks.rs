//! Finding `transient_large_allocation` on the real program of `cases/frame-buffer`, its twins and its near misses.

use crate::recorded_case::{MEMORY, analyzed, built, row};
use crate::running::*;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const FINDING: &str = "transient_large_allocation";
/// Frames of a run, and how many a second.
const FRAMES: u64 = 120;
const PER_SECOND: u64 = 120;
/// Pages of a frame's block: 1280 x 720 pixels of 12 bits behind malloc's header.
const PAGES: u64 = 338;

/// Records a variant and gives what `analyze` says of it, as JSON and on the screen; and the CPU time that the program used
/// itself, in ms.
fn measured(program: &Path, variant: &str) -> (Value, String, f64) {
    let place = place();
    let out = place.path().join("out");
    let (frames, per_second) = (FRAMES.to_string(), PER_SECOND.to_string());
    let target = [program.to_str().unwrap(), variant, &frames, &per_second];
    let done = record(&out, &MEMORY, &target);
    done.succeeds();
    let said = format!("{}{}", done.stdout, done.stderr);
    let cpu = said.split("cpu_ms=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let cpu = cpu.unwrap_or_else(|| panic!("{done:?}")).parse().unwrap();
    let analysis = analyzed(&out);
    let shown = run(slowpath(["analyze", out.to_str().unwrap()]));
    shown.succeeds();
    (analysis, shown.stdout, cpu)
}

fn found(analysis: &Value) -> Vec<&Value> {
    analysis["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == FINDING).collect()
}

#[test]
fn a_block_for_every_frame_is_found_with_its_function_and_cost_and_its_twins_are_not() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let program = place.path().join("frame-buffer");
    let (analysis, shown, cpu_each) = measured(&program, "each");
    let findings = found(&analysis);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = findings[0];
    println!("{finding:#}");
    assert_eq!(finding["subject"]["process"], "frame-buffer");
    assert_eq!(finding["subject"]["file"], "frame-buffer");
    assert!(finding["subject"]["function"].as_str().unwrap().contains("copy_frame"), "{finding:#}");
    assert!(finding["subject"]["stack"].as_str().unwrap().contains("malloc"), "{finding:#}");
    let asked = finding["evidence"].as_array().unwrap().iter().flat_map(|one| one["rows"].as_array().unwrap());
    let asked: Vec<&Value> = asked.filter(|row| row["asked"] == true).collect();
    assert!(asked.len() == 1 && asked[0]["source_line"].is_u64(), "{asked:?}");

    let operations = row(finding, "operations");
    let number = |column: &str| operations[column].as_u64().unwrap_or_else(|| panic!("{column}: {operations:#}"));
    assert!(number("operations").abs_diff(FRAMES) <= 2, "{operations:#}");
    assert!(number("across_threads").abs_diff(FRAMES) <= 2, "{operations:#}");
    let faults = number("faults").abs_diff(FRAMES * PAGES);
    assert!(faults as f64 <= (FRAMES * PAGES) as f64 * 0.01, "{operations:#}");
    assert_eq!((number("size_bytes"), number("at_the_same_time"), number("not_released")), (PAGES << 12, 1, 0));
    let touching = row(finding, "fault_ms");
    assert!(touching["fault_ms"].as_f64().unwrap() > 0.0);
    let total = row(finding, "total_ms")["total_ms"].as_f64().unwrap();
    assert!(total > 0.0 && total <= finding["cost"]["value"].as_f64().unwrap());
    assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
    let fixes = ["reuse_buffer", "allocator_tunables", "replace_allocator", "populate_at_map"];
    assert_eq!(finding["fixes"], serde_json::json!(fixes));
    assert!(shown.contains("in copy_frame, "), "{shown}");

    let (analysis, _, cpu_kept) = measured(&program, "kept");
    assert!(found(&analysis).is_empty(), "{:#?}", found(&analysis));
    let predicted = &finding["predicted_saving"];
    let ends = ["low", "value", "high"].map(|end| predicted[end].as_f64().unwrap());
    assert!(0.0 <= ends[0] && ends[0] <= ends[1] && ends[1] <= ends[2], "{predicted:#}");
    // Where the machine had no time to measure, the manifest says so and durations alone predict.
    if finding["evidence"].to_string().contains("ns_per_page") {
        let pages = row(finding, "ns_per_page")["pages"].as_u64().unwrap();
        assert!(pages.abs_diff((FRAMES - 1) * PAGES) <= FRAMES * PAGES / 50, "{finding:#}");
    }
    println!(
        "predicted saving: {} ({} to {}) ms; while it is recorded, the twin saves {:.1} of {cpu_each:.1} ms",
        ends[1],
        ends[0],
        ends[2],
        cpu_each - cpu_kept
    );
}

#[test]
fn what_memory_costs_is_measured_where_its_calls_are_recorded_and_else_not() {
    if !root() {
        return;
    }
    let place = place();
    let recorded = |name: &str, options: &[&str]| {
        let out = place.path().join(name);
        record(&out, options, &["/bin/true"]).succeeds();
        let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        // The child that measures is no part of what is recorded.
        let exits = run(slowpath(["export", "--to", "csv", "--table", "exits", out.to_str().unwrap()]));
        exits.succeeds();
        assert_eq!(exits.stdout.lines().count(), 2, "{}", exits.stdout);
        manifest
    };
    assert_eq!(recorded("without", &["--quiet"])["memory_cost"], Value::Null);
    let manifest = recorded("with", &MEMORY);
    let cost = &manifest["memory_cost"];
    println!("{cost:#}");
    if cost.is_null() {
        let gaps = manifest["unavailable"].as_array().unwrap();
        assert!(gaps.iter().any(|gap| gap["what"] == "the measured cost of memory"), "{gaps:?}");
        return;
    }
    assert!(cost["took"].as_u64().unwrap() > 0);
    let blocks = cost["blocks"].as_array().unwrap();
    assert!(!blocks.is_empty());
    for block in blocks {
        let number = |column: &str| block[column].as_u64().unwrap();
        assert!(number("operations") >= 6 && number("faults") > 0, "{block:#}");
        for quantity in [&block["per_page"], &block["unseen"]].into_iter().filter(|quantity| !quantity.is_null()) {
            let end = |end: &str| quantity[end].as_f64().unwrap();
            assert!(end("low") <= end("value") && end("value") <= end("high"), "{block:#}");
        }
    }
    assert!(blocks.iter().any(|block| block["unseen"].is_object()), "{blocks:#?}");
}

#[test]
fn blocks_that_malloc_keeps_one_large_block_small_ones_and_no_copies_are_no_finding() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let program = place.path().join("frame-buffer");
    for variant in ["recycled", "once", "small", "in-place"] {
        let (analysis, _, _) = measured(&program, variant);
        assert!(found(&analysis).is_empty(), "{variant}: {:#?}", found(&analysis));
        // It was recorded, nevertheless.
        assert!(analysis["shares"]["total"]["allocated"]["value"].as_f64().unwrap() > 0.0, "{:#}", analysis["shares"]);
    }
}

#[test]
fn a_process_that_runs_already_has_the_finding_too() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let out = place.path().join("out");
    let mut target = Command::new(place.path().join("frame-buffer"));
    let target = start(target.args(["each", "100000", "100"]));
    let pid = target.child.id().to_string();
    let options = ["--quiet", "--duration", "3", "--memory-calls", "--stacks", "fault,alloc", "--pid", &pid];
    let done = run(slowpath(["record"]).args(options).args(["-o", out.to_str().unwrap()]));
    let mut target = target;
    target.child.kill().unwrap();
    target.wait();
    done.succeeds();
    let analyzed = run(slowpath(["analyze", "--json", out.to_str().unwrap()]));
    analyzed.succeeds();
    let analysis = analyzed.json();
    let findings = found(&analysis);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(findings[0]["subject"]["function"].as_str().unwrap().contains("copy_frame"), "{:#}", findings[0]);
    assert!(row(findings[0], "operations")["operations"].as_u64().unwrap() >= 50, "{:#}", findings[0]);
    assert!(run(slowpath(["analyze", out.to_str().unwrap()])).stdout.contains("in copy_frame, "));
}
