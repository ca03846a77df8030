//! The page of `slowpath report`: what it holds of a recording with waits and call stacks, and of one without.

use crate::running::*;
use serde_json::Value;
use slowpath_recording::Tables;
use std::fs;
use std::path::Path;

/// The data of the page of a recording.
fn data(recording: &Path) -> Value {
    let page = recording.with_extension("html");
    run(slowpath(["report"]).arg(recording).arg("-o").arg(&page)).succeeds();
    page_data(&page)
}

/// The data of a page.
pub fn page_data(page: &Path) -> Value {
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("id=\"slowpath-data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Samples, ns off the CPU, ns in faults and bytes allocated, in the order of the page.
fn sums(tables: &Tables) -> [u64; 4] {
    [
        tables.cpu_samples.len() as u64,
        tables.off_cpu.iter().map(|row| row.duration.0).sum(),
        tables.faults.iter().filter_map(|row| row.duration).map(|time| time.0).sum(),
        tables.memory_calls.iter().map(|row| row.growth().0).sum(),
    ]
}

fn numbers(column: &Value) -> Vec<u64> {
    column.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn the_page_has_the_ledger_and_flame_graphs_that_add_up_to_the_tables() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let program = "import time; b = [bytearray(4 << 20) for _ in range(8)]; sum(range(2000000)); time.sleep(0.05)";
    record(&out, &["--stacks", "fault,alloc,cpu,wait"], &["/usr/bin/python3", "-c", program]).succeeds();
    let (data, tables) = (data(&out), tables(&out));

    let graphs = data["flame_graphs"]["graphs"].as_array().unwrap();
    let names = data["flame_graphs"]["frames"]["name"].as_array().unwrap();
    assert_eq!(graphs.len(), 4);
    for (graph, sum) in graphs.iter().zip(sums(&tables)) {
        let of = &graph["weight"];
        assert!(sum > 0 && graph["unavailable"].is_null(), "{of}: {sum}, {}", graph["unavailable"]);
        assert_eq!(graph["total"], sum, "{of}");
        for tree in [&graph["callees"], &graph["callers"]] {
            let (depths, weights) = (numbers(&tree["depth"]), numbers(&tree["weight"]));
            let at = |depth: u64| {
                depths.iter().zip(&weights).filter(move |(one, _)| **one == depth).map(|(_, weight)| weight)
            };
            assert_eq!(at(0).sum::<u64>(), sum, "{of}");
            assert_eq!(at(1).sum::<u64>(), sum, "{of}: every row has a process");
            assert!(depths.iter().max() > Some(&5), "{of}: {depths:?}");
        }
        // The process is the only child of the root, or nearly: the launcher's last moments may be another.
        let heaviest = numbers(&graph["callees"]["frame"])[1] as usize;
        assert_eq!(names[heaviest], "python3", "{of}");
    }
    let named = |part: &str| names.iter().any(|name| name.as_str().unwrap().contains(part));
    assert!(named("Py_BytesMain") && named("mmap"), "{names:?}");

    let analysis = run(slowpath(["analyze", "--json"]).arg(&out)).json();
    let ledger = &data["ledger"];
    assert_eq!(ledger["busiest"], analysis["ledger"], "so few threads are all shown");
    assert!(ledger["other_threads"].is_null() && ledger["other_processes"].is_null());
    assert!(!ledger["busiest"]["threads"].as_array().unwrap().is_empty());
}

#[test]
fn a_recording_without_waits_and_stacks_has_a_page_that_says_so_and_shows_neither() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &[], &["/bin/true"]).succeeds();
    let data = data(&out);
    assert_eq!((&data["ledger"], &data["flame_graphs"]), (&Value::Null, &Value::Null));
    let gaps = data["unavailable"].as_array().unwrap();
    assert!(
        gaps.iter().any(|gap| gap["what"] == "time ledger" && gap["remedy"] == "record with --off-cpu"),
        "{gaps:?}"
    );
}
