//! What measurements say that this machine cannot make: kernels on which a filter forces a mitigation, contexts with filters of their own.

use crate::arm::Arm;
use crate::measure::{Measured, MeasuredArm, MeasuredWorkload};
use crate::outcome::{ShownFilter, SyscallCost};
use crate::state::ThreadState;
use crate::workload::Workload;
use std::collections::BTreeMap;

const BLOCKS: usize = 20;

fn state(filters: u32, store: &str, branch: &str) -> ThreadState {
    ThreadState {
        seccomp: Some(if filters > 0 { 2 } else { 0 }),
        filters: Some(filters),
        store_bypass: Some(store.to_owned()),
        indirect_branch: Some(branch.to_owned()),
    }
}

fn free(filters: u32) -> ThreadState {
    state(filters, "thread vulnerable", "conditional enabled")
}

/// Bursts of 1000 steps: the first arm takes 100 ns a step, the others so many times that, and every burst a little noise.
fn workload(workload: Workload, ratios: [f64; 4]) -> MeasuredWorkload {
    let burst = |arm: usize, block: usize| {
        let noise = ((block * 7 + arm * 5) % 11) as f64 - 5.0;
        let ratio = arm.checked_sub(1).map_or(1.0, |arm| ratios[arm]);
        Some((100_000.0 * ratio + 20.0 * noise) as u64)
    };
    let bursts = (0..5).map(|arm| (0..BLOCKS).map(|block| burst(arm, block)).collect()).collect();
    MeasuredWorkload { workload, steps: 1000, bursts, refused: None, failed: 0 }
}

fn measured(states: [Option<ThreadState>; 5], workloads: Vec<MeasuredWorkload>) -> Measured {
    let arms = Arm::ALL.into_iter().zip(states).map(|(arm, state)| {
        let missing = state.is_none().then(|| ("refused".to_owned(), "another".to_owned()));
        MeasuredArm { arm, state, missing }
    });
    Measured {
        processor: 1,
        arms: arms.collect(),
        workloads,
        blocks: BLOCKS,
        seed: 1,
        programs: 1,
        took_ms: 5000,
        machine: BTreeMap::new(),
    }
}

fn said(measured: &Measured) -> SyscallCost {
    let filter =
        ShownFilter { asked: "x".to_owned(), form: "y".to_owned(), programs: 1, instructions: 9, notes: Vec::new() };
    SyscallCost::new(measured, filter)
}

#[test]
fn a_filter_that_forces_a_mitigation_is_reported_with_what_it_costs_code_and_what_helps() {
    let forced = state(1, "thread force mitigated", "conditional force disabled");
    let restricted = state(0, "thread mitigated", "conditional disabled");
    let states = [Some(free(0)), Some(free(0)), Some(free(1)), Some(forced), Some(restricted)];
    let workloads = vec![
        workload(Workload::Getppid, [1.0, 1.1, 1.15, 1.02]),
        workload(Workload::StoresAndLoads, [1.0, 1.0, 1.3, 1.3]),
        workload(Workload::IndirectCalls, [1.0, 1.0, 1.05, 1.05]),
    ];
    let report = said(&measured(states, workloads));
    let forced = report.forced.expect("a filter forced it");
    assert_eq!(forced.factors, ["speculative_store_bypass", "indirect_branch_speculation"]);
    assert_eq!(forced.states, ["thread force mitigated", "conditional force disabled"]);
    assert_eq!(forced.against, Arm::FilterSpeculationAllowed);
    let cost = &forced.cost["stores_and_loads"];
    assert!((cost.value - 1.3).abs() < 0.002 && cost.low.unwrap() > 1.29, "{cost:?}");
    assert_eq!(forced.cost.len(), 2, "system calls are no code of the program: {:?}", forced.cost);
    let remedies: String = forced.remedies.iter().map(|one| format!("{} | {}\n", one.what, one.price)).collect();
    assert!(remedies.contains("SPEC_ALLOW") && remedies.contains("spec_store_bypass_disable=prctl"), "{remedies}");
    assert!(remedies.contains("security"), "{remedies}");
}

#[test]
fn where_the_kernel_forces_nothing_nothing_is_reported_of_it_and_the_flag_makes_no_difference() {
    let states = [Some(free(0)), Some(free(0)), Some(free(1)), Some(free(1)), None];
    let report = said(&measured(states, vec![workload(Workload::Getppid, [1.0, 1.1, 1.1, 1.0])]));
    assert!(report.forced.is_none() && report.calm);
    let getppid = &report.workloads[0];
    let ratio = |arm| getppid.of(arm).unwrap().change.as_ref().unwrap().ratio.unwrap();
    assert!((ratio(Arm::Filter).value - 1.1).abs() < 0.002);
    let flag = getppid.without_flag.as_ref().unwrap();
    assert!(flag.difference.low.unwrap() <= 0.0 && flag.difference.high.unwrap() >= 0.0, "{flag:?}");
    assert_eq!(
        report.unavailable.iter().map(|gap| gap.what.as_str()).collect::<Vec<_>>(),
        ["arm speculation_disabled"]
    );
}

#[test]
fn an_arm_that_differs_from_itself_is_reported_and_one_of_seven_by_chance_is_not() {
    let states = || [Some(free(0)), Some(free(0)), Some(free(1)), Some(free(1)), None];
    let report = said(&measured(states(), vec![workload(Workload::Getppid, [1.05, 1.1, 1.1, 1.0])]));
    assert!(!report.calm && report.notes[0].contains("differs from itself"), "{:?}", report.notes);
    assert!(report.workloads[0].sham_p.unwrap() < 0.001);
}

#[test]
fn a_context_with_filters_and_mitigations_of_its_own_says_so() {
    let own = |filters| state(filters, "thread force mitigated", "always enabled");
    let states = [Some(own(2)), Some(own(2)), Some(own(3)), Some(own(3)), None];
    let report = said(&measured(states, vec![workload(Workload::Getppid, [1.0, 1.1, 1.1, 1.0])]));
    let notes = report.notes.join("\n");
    assert!(notes.contains("Seccomp_filters: 2") && notes.contains("thread force mitigated"), "{notes}");
    assert!(report.forced.is_none(), "it was forced before");
}

#[test]
fn what_a_filter_refuses_has_no_figures_with_it_and_its_reason() {
    let mut refused = workload(Workload::OpenClose, [1.0; 4]);
    refused.refused = Some("the filter refuses it: Permission denied".to_owned());
    refused.bursts[2] = vec![None; BLOCKS];
    refused.bursts[3] = vec![None; BLOCKS];
    let states = [Some(free(0)), Some(free(0)), Some(free(1)), Some(free(1)), Some(free(0))];
    let report = said(&measured(states, vec![refused]));
    assert_eq!(
        report.workloads[0].arms.iter().map(|one| one.arm).collect::<Vec<_>>(),
        [Arm::None, Arm::NoneAgain, Arm::SpeculationDisabled]
    );
    assert!(report.workloads[0].without_flag.is_none());
    assert_eq!(report.unavailable[0].what, "open_close with the filter");
}
