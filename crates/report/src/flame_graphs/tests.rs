//! Trees of recordings as text, and of random stacks.

use super::*;
use proptest::prelude::*;

/// `main` calls `work`, which `step` is inlined into, twice at different addresses, and code without a name.
const STACKS: &str = "== execs\nts pid start filename command_line\n1 7 1 /bin/app app\n1 8 1 /bin/app app\n\
    == stacks\nid parent frame\n0 - 0\n1 0 1\n2 0 2\n3 1 3\n4 2 4\n5 77 0\n6 1 5\n7 1 6\n\
    == frames\nid kind dev ino offset address truncation\n0 file 1 5 16 - -\n1 file 1 5 32 - -\n2 file 1 5 48 - -\n\
    3 file 1 6 16 - -\n4 file 1 6 64 - -\n5 kernel - - - 99 -\n6 truncated - - - - \"no table\"\n\
    == symbols\nframe level function\n0 0 main\n1 0 step\n1 1 work\n2 0 step\n2 1 work\n\
    == files\ndev ino path size\n1 5 /bin/app 4096\n1 6 /lib/libstripped.so 4096\n";

pub(super) fn graphs(rows: &str) -> Option<FlameGraphs> {
    let tables = Tables::from_text(&format!("{STACKS}{rows}")).unwrap();
    of_tables(&tables, &CallStacks::new(&tables))
}

/// A tree as lines of depth, name, file and weight.
fn lines(graphs: &FlameGraphs, tree: &FlameTree) -> Vec<String> {
    let line = |node: usize| {
        let frame = tree.frame[node] as usize;
        let place = &graphs.places[graphs.frames.place[frame] as usize];
        let indent = "  ".repeat(tree.depth[node] as usize);
        format!("{indent}{} ({}) {}", graphs.frames.name[frame], place.name, tree.weight[node])
    };
    (0..tree.depth.len()).map(line).collect()
}

#[test]
fn places_in_one_function_are_one_node_and_so_is_code_of_a_file_without_names() {
    let samples = "== cpu_samples\nts pid start stack\n1 7 1 3\n2 7 1 4\n3 8 1 1\n4 7 1 6\n5 7 1 -\n6 7 1 5\n7 9 1 7\n";
    let found = graphs(samples).unwrap();
    let cpu = &found.graphs[0];
    assert_eq!((cpu.weight, cpu.unit, cpu.total), (FlameWeight::CpuSamples, Unit::Count, 7));
    let callees = [
        "all () 7",
        "  app () 6",
        "    main (app) 4",
        "      work (app) 4",
        "        step (app) 4",
        "          [libstripped.so] (libstripped.so) 2",
        "          [kernel] ([kernel]) 1",
        "    [no stack] () 1",
        "    [unknown] () 1",
        "  pid 9 () 1",
        "    main (app) 1",
        "      work (app) 1",
        "        step (app) 1",
        "          [truncated: no table] () 1",
    ];
    assert_eq!(lines(&found, cpu.callees.as_ref().unwrap()), callees);
    let callers = lines(&found, cpu.callers.as_ref().unwrap());
    assert_eq!(callers[0], "all () 7");
    assert_eq!(
        callers[1..6].join("\n"),
        "  [libstripped.so] (libstripped.so) 2\n    step (app) 2\n      work (app) 2\n        main (app) 2\n          app () 2"
    );
    assert!(callers.contains(&"  [no stack] () 1".to_owned()), "{callers:#?}");
    let used: std::collections::BTreeSet<u32> =
        [&cpu.callees, &cpu.callers].into_iter().flatten().flat_map(|tree| tree.frame.iter().copied()).collect();
    assert_eq!(used.len(), found.frames.name.len(), "names that no node has are not in the page");
}

#[test]
fn what_was_not_recorded_says_how_it_would_be() {
    let rows = "== off_cpu\nts duration pid start reason stack\n1 400 7 1 futex 3\n2 100 7 1 futex -\n\
        == faults\nts duration pid start kind\n1 1500 7 1 major\n\
        == manifest\n{\"probes\": [{\"name\": \"memory\", \"state\": \"attached\"}]}\n";
    let found = graphs(rows).unwrap();
    let why = |graph: &FlameGraph| graph.unavailable.as_ref().map(|gap| format!("{}: {}", gap.reason, gap.remedy));
    let shown: Vec<_> = found.graphs.iter().map(|graph| (graph.weight, graph.unit, graph.total, why(graph))).collect();
    let shown: Vec<_> =
        shown.iter().map(|(weight, unit, total, why)| (*weight, *unit, *total, why.as_deref())).collect();
    assert_eq!(
        shown,
        [
            (FlameWeight::CpuSamples, Unit::Count, 0, Some("not recorded: --stacks cpu")),
            (FlameWeight::OffCpu, Unit::Ns, 500, None),
            (FlameWeight::FaultTime, Unit::Ns, 1500, Some("recorded without call stacks: --stacks fault")),
            (FlameWeight::Allocated, Unit::Bytes, 0, Some("there was none: --stacks alloc")),
        ]
    );
    for graph in &found.graphs {
        assert_eq!(graph.callees.is_some(), graph.unavailable.is_none());
        assert_eq!(graph.callers.is_some(), graph.unavailable.is_none());
    }
}

#[test]
fn a_recording_without_stacks_has_no_flame_graphs() {
    assert_eq!(graphs(""), None);
    assert_eq!(
        graphs("== cpu_samples\nts pid start\n1 7 1\n== faults\nts duration pid start kind\n1 5 7 1 minor\n"),
        None
    );
}

#[test]
fn what_is_light_is_folded_into_its_caller_and_the_heaviest_are_kept() {
    let mut stacks = Stacks::default();
    for (leaf, weight) in [(10, 900), (11, 60), (12, 30), (13, 10)] {
        stacks.add(5, vec![6, leaf], weight);
    }
    let of = |tree: FlameTree| -> Vec<(u32, u32, u64)> {
        tree.depth
            .iter()
            .zip(&tree.frame)
            .zip(&tree.weight)
            .map(|((depth, frame), weight)| (*depth, *frame, *weight))
            .collect()
    };
    let top = [(0, names::WHOLE, 1000), (1, 5, 1000), (2, 6, 1000), (3, 10, 900)];
    let by_share = of(stacks.tree(0.025, 100).0);
    assert_eq!(by_share, [&top[..], &[(3, 11, 60), (3, 12, 30), (3, names::OTHER, 10)][..]].concat());
    let (tree, _) = stacks.tree(0.0, 4);
    assert_eq!(tree.smallest, 60);
    assert_eq!(of(tree), [&top[..], &[(3, names::OTHER, 100)][..]].concat());
}

/// A tree is well formed, adds up to `total`, and no more than `most` of its nodes are not folded ones.
fn check(tree: &FlameTree, total: u64, most: usize) -> Result<(), TestCaseError> {
    let nodes = tree.depth.len();
    prop_assert_eq!((tree.frame.len(), tree.weight.len()), (nodes, nodes));
    prop_assert_eq!((tree.depth[0], tree.weight[0]), (0, total));
    prop_assert!(tree.frame.iter().filter(|frame| **frame != names::OTHER).count() <= most);
    // Weights that are a node's own: its weight without its children's.
    let mut own: Vec<i128> = tree.weight.iter().map(|weight| i128::from(*weight)).collect();
    let mut callers: Vec<usize> = Vec::new();
    for node in 0..nodes {
        callers.truncate(tree.depth[node] as usize);
        prop_assert_eq!(callers.len(), tree.depth[node] as usize, "a level is left out");
        if let Some(caller) = callers.last() {
            prop_assert!(tree.frame[*caller] != names::OTHER, "what is folded has children");
            own[*caller] -= i128::from(tree.weight[node]);
        }
        prop_assert!(tree.weight[node] >= tree.smallest || tree.frame[node] == names::OTHER || node == 0);
        callers.push(node);
    }
    prop_assert!(own.iter().all(|weight| *weight >= 0), "children have more than their caller");
    prop_assert_eq!(own.iter().sum::<i128>(), i128::from(total));
    Ok(())
}

proptest! {
    #[test]
    fn folding_loses_nothing(
        rows in proptest::collection::vec((2u32..4, proptest::collection::vec(4u32..8, 1..9), 0u64..1000), 0..60),
        share in 0.0..0.3f64,
        most in 1usize..40,
    ) {
        let mut stacks = Stacks::default();
        let mut total = 0;
        for (process, frames, weight) in &rows {
            stacks.add(*process, frames.clone(), *weight);
            total += weight;
        }
        check(&stacks.tree(share, most).0, total, most)?;
        stacks.turn();
        check(&stacks.tree(share, most).0, total, most)?;
        stacks.turn();
        let (whole, nodes) = stacks.tree(0.0, usize::MAX);
        prop_assert_eq!(nodes.len(), rows.len());
        check(&whole, total, usize::MAX)?;
        prop_assert!(!whole.frame.contains(&names::OTHER), "something is folded where nothing must be");
    }

    #[test]
    fn the_trees_of_a_recording_add_up_to_its_rows(
        stacks in proptest::collection::vec((proptest::option::of(0u32..9), 0u64..5_000), 1..40),
    ) {
        let mut tables = Tables::from_text(STACKS).unwrap();
        let fault = "== faults\nts duration pid start kind\n1 1 7 1 minor\n";
        let fault = Tables::from_text(fault).unwrap().faults.remove(0);
        tables.faults = stacks
            .iter()
            .map(|(stack, ns)| slowpath_tables::Fault {
                stack: *stack,
                duration: Some(slowpath_tables::Nanos(*ns)),
                ..fault.clone()
            })
            .collect();
        let total: u64 = stacks.iter().map(|(_, ns)| ns).sum();
        let found = of_tables(&tables, &CallStacks::new(&tables));
        prop_assert_eq!(found.is_some(), stacks.iter().any(|(stack, _)| stack.is_some()));
        if let Some(graph) = found.as_ref().map(|found| &found.graphs[2]) {
            prop_assert_eq!(graph.total, total);
            for tree in [&graph.callees, &graph.callers].into_iter().flatten() {
                let depths = || tree.depth.iter().zip(&tree.weight);
                prop_assert_eq!(depths().filter(|(depth, _)| **depth == 0).map(|(_, weight)| weight).sum::<u64>(), total);
                // The processes: every row has one.
                let below: u64 = depths().filter(|(depth, _)| **depth == 1).map(|(_, weight)| weight).sum();
                prop_assert_eq!(below, total);
            }
        }
    }
}
