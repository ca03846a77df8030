//! A whole measurement in this process. It stays on one CPU and leaves the threads of the arms behind, so there is one test here.

use slowpath_seccomp::built_in;
use slowpath_syscall_cost::{Arm, Plan, ShownFilter, SyscallCost, Workload, calls, measure};
use std::time::Duration;

#[test]
fn every_workload_is_measured_in_every_arm_that_this_machine_has() {
    let programs = vec![built_in::checks_arguments(&calls()).unwrap(); 8];
    let plan = Plan { programs, max_time: Duration::from_secs(2), seed: 3 };
    let measured = measure(&plan, &|| false).unwrap();
    assert!(measured.blocks >= 8 && measured.workloads.len() == Workload::ALL.len(), "{measured:?}");
    for (place, entry) in measured.arms.iter().enumerate() {
        assert_eq!(entry.arm, Arm::ALL[place]);
        for workload in &measured.workloads {
            let there = workload.bursts[place].iter().flatten().count();
            let expected = if entry.missing.is_none() { measured.blocks } else { 0 };
            assert_eq!((there, workload.failed), (expected, 0), "{:?} {:?}", entry.arm, workload.workload);
        }
    }
    let base = measured.arms[0].state.as_ref().unwrap().filters;
    let filters = |place: usize| measured.arms[place].state.as_ref().unwrap().filters;
    assert_eq!((filters(1), filters(2), filters(3)), (base, base.map(|n| n + 8), base.map(|n| n + 8)));
    let form =
        ShownFilter { asked: String::new(), form: String::new(), programs: 8, instructions: 0, notes: Vec::new() };
    for workload in SyscallCost::new(&measured, form).workloads {
        let ratio = |arm| workload.of(arm).and_then(|cost| cost.change.as_ref()?.ratio);
        println!("{}: {:?} {:?}", workload.workload.name(), ratio(Arm::NoneAgain), ratio(Arm::Filter));
        // Eight filters that look at twelve words each cannot be free: the arm has them really.
        if workload.system_call && workload.workload != Workload::OpenClose {
            assert!(ratio(Arm::Filter).unwrap().value > 1.2, "{workload:?}");
        }
    }
    // Whoever asks it to stop is heard before the first block.
    assert!(measure(&plan, &|| true).is_err());
}
