//! Two sides written as text, and random ones.

use super::*;
use crate::flame_graphs::names;
use proptest::prelude::*;
use slowpath_analysis::metrics::recorded_metrics;

/// `main` calls `copy` and `log`; of another build, so that addresses and numbers differ.
fn recording(build: u64, rows: &str) -> Tables {
    let at = |offset: u64| offset + 16 * build;
    let text = format!(
        "== manifest\n{{\"started\": 0, \"ended\": 2000000000, \"counters\": {{\"cpu_sample_hz\": 1000}}, \"probes\": \
         [{{\"name\": \"cpu_sample\", \"state\": \"attached\"}}, {{\"name\": \"memory\", \"state\": \"attached\"}}]}}\n\
         == execs\nts pid start filename command_line\n1 7 1 /bin/app app\n\
         == stacks\nid parent frame\n{a} - 0\n{b} {a} 1\n{c} {a} 2\n\
         == frames\nid kind dev ino offset\n0 file {build} 5 {}\n1 file {build} 5 {}\n2 file {build} 6 {}\n\
         == symbols\nframe level function\n0 0 main\n1 0 copy\n2 0 log\n\
         == files\ndev ino path size\n{build} 5 /bin/app 4096\n{build} 6 /lib/libc.so.6 4096\n{rows}",
        at(16),
        at(32),
        at(48),
        a = build,
        b = build + 1,
        c = build + 2,
    );
    Tables::from_text(&text).unwrap()
}

/// So many samples in `copy`, in `log`, and in `main` itself.
fn samples(build: u64, copy: usize, log: usize, own: usize) -> Tables {
    let mut rows = "== cpu_samples\nts pid start stack\n".to_owned();
    for (count, stack) in [(copy, build + 1), (log, build + 2), (own, build)] {
        for _ in 0..count {
            rows.push_str(&format!("1000 7 1 {stack}\n"));
        }
    }
    recording(build, &rows)
}

fn compared(before: &[Tables], after: &[Tables], per: Basis) -> Option<DifferentialFlames> {
    let mut flames = FlameRecordings::default();
    let costs = |one: &Tables| Compared { recording: String::new(), costs: recorded_metrics(one) };
    before.iter().for_each(|one| flames.add_before(one));
    after.iter().for_each(|one| flames.add_after(one));
    let (before, after): (Vec<_>, Vec<_>) = (before.iter().map(costs).collect(), after.iter().map(costs).collect());
    flames.compared(&before, &after, per)
}

/// A tree as lines of depth, name, before and after.
fn lines(flames: &DifferentialFlames, tree: &DifferentialTree) -> Vec<String> {
    let line = |node: usize| {
        let name = &flames.frames.name[tree.frame[node] as usize];
        format!("{}{name} {} {}", "  ".repeat(tree.depth[node] as usize), tree.before[node], tree.after[node])
    };
    (0..tree.depth.len()).map(line).collect()
}

#[test]
fn the_same_functions_are_one_node_whatever_their_addresses_and_what_is_gone_keeps_its_place() {
    let flames = compared(&[samples(1, 6, 3, 1)], &[samples(2, 0, 3, 2)], Basis::Recording).unwrap();
    let cpu = &flames.graphs[0];
    assert_eq!((cpu.weight, cpu.unit, cpu.before_of, cpu.after_of), (FlameWeight::CpuSamples, Unit::Ns, 1.0, 1.0));
    // A sample at 1000 Hz stands for a millisecond.
    let callees = cpu.callees.as_ref().unwrap();
    assert_eq!(
        lines(&flames, callees),
        [
            "all 10000000 5000000",
            "  app 10000000 5000000",
            "    main 10000000 5000000",
            "      log 3000000 3000000",
            "      copy 6000000 0",
        ]
    );
    assert_eq!(callees.chance, None, "one recording each says nothing of chance");
    let callers = lines(&flames, cpu.callers.as_ref().unwrap());
    assert_eq!(callers[0], "all 10000000 5000000");
    for line in ["  log 3000000 3000000", "  copy 6000000 0", "  main 1000000 2000000"] {
        assert!(callers.iter().any(|one| one == line), "{line}: {callers:#?}");
    }
    let why: Vec<_> = flames.graphs.iter().map(|one| one.unavailable.as_ref().map(|gap| gap.reason.as_str())).collect();
    let neither = Some("recorded on neither side");
    assert_eq!(why, [None, neither, neither, Some("there was none on either side")]);
}

#[test]
fn what_one_side_did_not_record_is_no_tree_and_never_zero() {
    let without_stacks = recording(2, "== cpu_samples\nts pid start\n1 7 1\n2 7 1\n");
    assert_eq!(compared(&[samples(1, 6, 3, 1)], &[without_stacks], Basis::Recording), None);
    assert_eq!(compared(&[recording(1, "")], &[recording(2, "")], Basis::Recording), None);
}

#[test]
fn sums_of_sets_are_divided_by_their_recordings_or_their_seconds_and_chance_is_told() {
    let side = |copy: [usize; 4]| copy.map(|copy| samples(1, copy, 5, 0));
    let (before, after) = (side([20, 21, 22, 23]), side([10, 11, 12, 13]));
    let flames = compared(&before, &after, Basis::Recording).unwrap();
    let cpu = &flames.graphs[0];
    assert_eq!((cpu.before_of, cpu.after_of), (4.0, 4.0));
    let tree = cpu.callees.as_ref().unwrap();
    assert_eq!((tree.before[0], tree.after[0]), (106_000_000, 66_000_000));
    let node = |name: &str| {
        let is_it = |node: &usize| flames.frames.name[tree.frame[*node] as usize] == name;
        (0..tree.frame.len()).find(is_it).unwrap() as u32
    };
    let chance = tree.chance.as_ref().unwrap();
    assert_eq!(chance.all, [node("log")], "only what did not change may be chance");
    let own = [0, node("app"), node("main"), node("log")];
    assert!(own.iter().all(|node| chance.own.contains(node)) && !chance.own.contains(&node("copy")), "{chance:?}");
    let each_second = compared(&before, &after, Basis::Second).unwrap();
    assert_eq!((each_second.graphs[0].before_of, each_second.graphs[0].after_of), (8.0, 8.0));
}

#[test]
fn reserved_address_space_is_no_memory() {
    let calls = "== memory_calls\nts duration pid start tid call address length argument stack\n\
        1 1 7 1 7 mmap 0x100000 4096 0x22 1\n2 1 7 1 7 mmap 0x800000 1048576 0x4022 2\n";
    let flames = compared(&[recording(1, calls)], &[recording(1, "")], Basis::Recording).unwrap();
    let allocated = flames.graphs[3].callees.as_ref().unwrap();
    assert_eq!((allocated.before[0], allocated.after[0]), (4096, 0));
}

proptest! {
    #[test]
    fn each_side_adds_up_to_its_rows_whatever_is_folded(
        sides in proptest::collection::vec(proptest::collection::vec((0usize..5, 0usize..5, 0usize..5), 1..4), 2),
    ) {
        let tables = |side: &[(usize, usize, usize)]| -> Vec<Tables> {
            side.iter().enumerate().map(|(build, (copy, log, own))| samples(build as u64 + 1, *copy, *log, *own)).collect()
        };
        let rows = |side: &[(usize, usize, usize)]| -> u64 {
            side.iter().map(|(copy, log, own)| (copy + log + own) as u64 * 1_000_000).sum()
        };
        let found = compared(&tables(&sides[0]), &tables(&sides[1]), Basis::Recording);
        prop_assert_eq!(found.is_some(), rows(&sides[0]) + rows(&sides[1]) > 0);
        if let Some(found) = found {
            for tree in [&found.graphs[0].callees, &found.graphs[0].callers].into_iter().flatten() {
                for (column, side) in [(&tree.before, &sides[0]), (&tree.after, &sides[1])] {
                    let at = |depth: u32| -> u64 {
                        tree.depth.iter().zip(column).filter(|(one, _)| **one == depth).map(|(_, sum)| sum).sum()
                    };
                    prop_assert_eq!(column[0], rows(side));
                    prop_assert_eq!(at(1), rows(side), "every row has a process, or an innermost function");
                }
            }
        }
    }

    #[test]
    fn what_is_folded_stands_at_its_caller_on_both_sides(
        stacks in proptest::collection::vec((proptest::collection::vec(4u32..8, 1..7), 1u64..1000, 0u64..1000), 1..50),
        share in 0.0..0.3f64,
        most in 1usize..30,
    ) {
        let mut found = Stacks::default();
        for (frames, before, _) in &stacks {
            found.add(2, frames.clone(), *before);
        }
        for _ in 0..2 {
            let shape = found.shape(share, most);
            let (all, own) = (shape.sums(|stack| stacks[stack].2), shape.own_sums(|stack| stacks[stack].2));
            let total: u64 = stacks.iter().map(|(_, _, after)| after).sum();
            prop_assert_eq!(all[0], total);
            prop_assert_eq!(own.iter().sum::<u64>(), total);
            for (node, one) in shape.nodes.iter().enumerate() {
                let below = (node + 1..shape.nodes.len()).take_while(|next| shape.nodes[*next].depth > one.depth);
                let children: u64 = below.filter(|next| shape.nodes[*next].depth == one.depth + 1).map(|next| all[next]).sum();
                prop_assert_eq!(all[node], own[node] + children);
                prop_assert!(one.frame != names::OTHER || children == 0);
            }
            found.turn();
        }
    }
}
