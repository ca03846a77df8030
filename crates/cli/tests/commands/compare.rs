//! `slowpath compare` on real recordings of `cases/frame-buffer`, before and after its fix, and on what cannot be compared.

use crate::pages::page_data;
use crate::recorded_case::built;
use crate::running::*;
use serde_json::Value;
use std::path::Path;

/// Frames of a run, and how many a second.
const FRAMES: u64 = 60;
const PER_SECOND: u64 = 120;
/// Pages of a frame's block: 1280 x 720 pixels of 12 bits behind malloc's header.
const PAGES: u64 = 338;

fn record_variant(program: &Path, variant: &str, out: &Path) {
    let (frames, per_second) = (FRAMES.to_string(), PER_SECOND.to_string());
    let target = [program.to_str().unwrap(), variant, &frames, &per_second];
    let options = ["--quiet", "--sample", "997", "--memory-calls", "--off-cpu", "--stacks", "fault,alloc,cpu"];
    record(out, &options, &target).succeeds();
}

fn number(value: &Value) -> f64 {
    value["value"].as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Before and after of a function's figure.
#[track_caller]
fn of_function(comparison: &Value, function: &str, measure: &str) -> (f64, f64) {
    let functions = comparison["functions"].as_array().unwrap();
    let is_meant = |one: &&Value| {
        one["measure"] == measure && one["function"].as_str().is_some_and(|name| name.contains(function))
    };
    let found = functions.iter().find(is_meant).unwrap_or_else(|| panic!("no {measure} of {function}: {comparison:#}"));
    (number(&found["change"]["before"]), number(&found["change"]["after"]))
}

#[track_caller]
fn of_all(comparison: &Value, measure: &str) -> (f64, f64) {
    let totals = comparison["totals"].as_array().unwrap();
    let found = totals.iter().find(|one| one["measure"] == measure).unwrap_or_else(|| panic!("no {measure}"));
    (number(&found["change"]["before"]), number(&found["change"]["after"]))
}

/// The page has what is printed, and flame graphs that add up to the tables of both sides.
fn the_page_holds(data: &Value, printed: &Value, before: &Path, after: &Path) {
    assert_eq!(data["schema"], "slowpath-comparison-page/1");
    assert_eq!(&data["comparison"], printed, "the page is what --json prints");
    let flames = &data["flame_graphs"];
    let graphs = flames["graphs"].as_array().unwrap();
    let (before, after) = (tables(before), tables(after));
    let sums = |tables: &slowpath_recording::Tables| {
        [
            tables.cpu_samples.len() as u64 * (1_000_000_000 / 997),
            0,
            tables.faults.iter().filter_map(|row| row.duration).map(|time| time.0).sum(),
            // Reserved address space (MAP_NORESERVE) is no memory.
            tables
                .memory_calls
                .iter()
                .filter(|row| row.argument & 0x4000 == 0 || row.call != slowpath_tables::MemoryCallKind::Mmap)
                .map(|row| row.growth().0)
                .sum(),
        ]
    };
    for (((graph, before), after), is_there) in
        graphs.iter().zip(sums(&before)).zip(sums(&after)).zip([true, false, true, true])
    {
        let of = &graph["weight"];
        assert_eq!((graph["unavailable"].is_null(), graph["callees"].is_null()), (is_there, !is_there), "{of}");
        for tree in [&graph["callees"], &graph["callers"]].into_iter().filter(|tree| !tree.is_null()) {
            assert_eq!((tree["before"][0].as_u64(), tree["after"][0].as_u64()), (Some(before), Some(after)), "{of}");
        }
    }
    // What is gone keeps its place: frames of copy_frame have time before and none after.
    let tree = &graphs[2]["callees"];
    let names = flames["frames"]["name"].as_array().unwrap();
    let is_copy = |node: &usize| {
        let frame = tree["frame"][*node].as_u64().unwrap() as usize;
        names[frame].as_str().unwrap().contains("copy_frame")
    };
    let nodes: Vec<usize> = (0..tree["frame"].as_array().unwrap().len()).filter(is_copy).collect();
    assert!(!nodes.is_empty(), "{names:?}");
    for node in nodes {
        assert!(tree["before"][node].as_u64() > Some(0) && tree["after"][node] == 0, "{node}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_said_and_leaves_nothing() {
    let place = place();
    let (before, after) = (place.path().join("before"), place.path().join("after"));
    for side in [&before, &after] {
        std::fs::create_dir(side).unwrap();
        std::fs::write(
            side.join(slowpath_recording::MANIFEST_FILE),
            serde_json::to_string(&slowpath_recording::Manifest::default()).unwrap(),
        )
        .unwrap();
    }
    let compare = |page: &Path| run(slowpath(["compare"]).args([&before, &after]).arg("-o").arg(page));
    compare(&place.path().join("missing/page.html")).fails_with(2, &["cannot be written", "No such file"]);
    compare(place.path()).fails_with(2, &["cannot be written", "directory"]);
    let page = place.path().join("page.html");
    compare(&page).succeeds();
    // Nothing was recorded: a page without flame graphs, which says what lacks.
    let data = page_data(&page);
    assert!(data["flame_graphs"].is_null() && !data["comparison"]["gaps"].as_array().unwrap().is_empty());
}

#[test]
fn the_fix_of_a_block_for_every_frame_shows_in_its_function_its_allocations_and_elsewhere() {
    if !root() {
        return;
    }
    let place = built("frame-buffer");
    let program = place.path().join("frame-buffer");
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (before, after) = (path("before"), path("set/after"));
    std::fs::create_dir(path("set")).unwrap();
    record_variant(&program, "each", Path::new(&before));
    record_variant(&program, "in-place", Path::new(&after));
    // A directory that holds recordings is the set of them.
    let compared = run(slowpath(["compare", "--json", &before, &path("set")]));
    compared.succeeds();
    let comparison = compared.json();
    assert_eq!(comparison["schema"], "slowpath-compare/1");
    assert_eq!((&comparison["per"], &comparison["has_intervals"]), (&Value::from("recording"), &Value::from(false)));
    assert_eq!(comparison["after"][0]["recording"], after.as_str());

    // The three lines: CPU in the function, its allocations, what the kernel has to do for them.
    let (cpu_before, cpu_after) = of_function(&comparison, "copy_frame", "sampled_cpu_time");
    assert!(cpu_before > 0.0 && cpu_after == 0.0, "{cpu_before} ms, {cpu_after} ms");
    let (allocations, left) = of_function(&comparison, "copy_frame", "allocations");
    assert!((allocations - FRAMES as f64).abs() <= 2.0 && left == 0.0, "{allocations}, {left}");
    let (bytes, left) = of_function(&comparison, "copy_frame", "allocated_bytes");
    assert!((bytes - allocations * (PAGES << 12) as f64).abs() < 1.0 && left == 0.0, "{bytes}, {left}");
    let pages = (FRAMES * PAGES) as f64;
    let (faults, others) = of_all(&comparison, "faults");
    assert!((faults - others - pages).abs() < pages * 0.05, "{faults}, {others}");
    let (releases, others) = of_all(&comparison, "releases");
    assert!((releases - others - FRAMES as f64).abs() <= 4.0, "{releases}, {others}");
    assert!(of_all(&comparison, "release_time").0 > of_all(&comparison, "release_time").1);

    // By name: on a busy machine a reply of the camera can be slow on one side.
    let findings = comparison["findings"].as_array().unwrap();
    let state = findings.iter().find(|one| one["name"] == "transient_large_allocation").map(|one| &one["state"]);
    assert_eq!(state, Some(&"gone".into()), "{findings:#?}");
    let gaps = comparison["gaps"].as_array().unwrap();
    assert!(gaps.iter().any(|gap| gap["what"] == "the kernel's own threads"), "{gaps:#?}");
    assert!(!comparison["ledger"].as_array().unwrap().is_empty());

    let shown = run(slowpath(["compare", "--before", &before, "--after", &after]));
    shown.succeeds();
    println!("{}", shown.stdout);
    assert!(shown.stdout.contains("CPU in copy_frame: "), "{}", shown.stdout);
    assert!(shown.stdout.lines().any(|line| line.starts_with("transient_large_allocation") && line.contains("gone")));

    let page = place.path().join("page.html");
    let paged = run(slowpath(["compare", "--json", &before, &after, "-o", page.to_str().unwrap()]));
    paged.succeeds();
    assert!(paged.stderr.contains("the page of the comparison is "), "{}", paged.stderr);
    the_page_holds(&page_data(&page), &paged.json(), Path::new(&before), Path::new(&after));

    run(slowpath(["compare", &before, &before])).fails_with(2, &["is given twice", "hint:"]);
    run(slowpath(["compare", &before, &after, "--after", &path("set")])).fails_with(2, &["is given twice"]);
    std::fs::write(Path::new(&after).join("faults/000000.parquet"), "damaged").unwrap();
    let damaged = run(slowpath(["compare", "--json", &before, &after]));
    damaged.succeeds();
    assert!(damaged.stderr.contains("warning: faults/000000.parquet is damaged"), "{}", damaged.stderr);
    let gaps = damaged.json()["gaps"].to_string();
    assert!(gaps.contains("lost events: damaged.faults"), "{gaps}");
}

#[test]
fn what_is_no_recording_is_refused_and_a_side_is_not_left_out() {
    let place = place();
    let directory = place.path().to_str().unwrap();
    let done = run(slowpath(["compare", "--json", directory, "/"]));
    done.fails_with(2, &["not a recording", "slowpath record"]);
    assert_eq!(done.json()["error"]["kind"], "usage");
    for line in ["compare", "compare x", "compare --before x", "compare x y z"] {
        let done = run(slowpath(line.split(' ')));
        assert_eq!((done.code(), done.stdout.as_str()), (2, ""), "{line}: {done:?}");
    }
}
