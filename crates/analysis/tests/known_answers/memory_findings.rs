//! What tests of the findings about memory look for, and what all of these findings must do alike.

use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpu, OffCpuReason, ProcessKey};
use std::collections::BTreeMap;

/// The row of evidence that has this column.
#[track_caller]
pub fn row<'a>(finding: &'a Finding, column: &str) -> &'a BTreeMap<String, Value> {
    let mut rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    rows.find(|row| row.contains_key(column)).unwrap_or_else(|| panic!("no {column} in {finding:#?}"))
}

/// Every fault and every call lasts 900 ns longer, in which another thread has the CPU: what comes next is a microsecond away, at
/// least.
fn displace(tables: &mut Tables) {
    let more = Nanos(900);
    let displaced = |ts: Nanos, process: ProcessKey, tid: u32| OffCpu {
        ts: ts + Nanos(50),
        duration: more,
        pid: process.pid,
        start: process.start,
        tid,
        reason: OffCpuReason::Runnable,
        runnable: more,
        woken: None,
        waker_pid: None,
        waker_tid: None,
        syscall: -1,
        stack: None,
    };
    for fault in &mut tables.faults {
        fault.duration = fault.duration.map(|duration| duration + more);
        tables.off_cpu.push(displaced(fault.ts, fault.process(), fault.tid));
    }
    for call in &mut tables.memory_calls {
        call.duration += more;
        tables.off_cpu.push(displaced(call.ts, call.process(), call.tid));
    }
}

/// What a thread did not run in its faults and calls is in the cost only where waits were not recorded, and both is said. `found` gives the finding
/// of a recording that was edited so.
#[track_caller]
pub fn assert_displaced_threads_are_no_cost(found: impl Fn(&dyn Fn(&mut Tables)) -> Finding) {
    let undisturbed = found(&|_| ());
    let recorded = found(&displace);
    let unrecorded = found(&|tables| {
        displace(tables);
        tables.off_cpu.clear();
    });
    let (cost, same, more) = (undisturbed.cost.value, recorded.cost.value, unrecorded.cost.value);
    assert!((cost - same).abs() < 1e-9, "{cost} and {same}: {recorded:#?}");
    assert!(more > cost * 1.05, "{cost} and {more}: {unrecorded:#?}");
    let says = |finding: &Finding, words: &str| finding.reasons.iter().any(|reason| reason.contains(words));
    assert!(says(&undisturbed, "record --off-cpu") && says(&unrecorded, "record --off-cpu"), "{unrecorded:#?}");
    assert!(says(&recorded, "not in the cost: ") && !says(&recorded, "record --off-cpu"), "{recorded:#?}");
    let off_cpu = row(&recorded, "faults_off_cpu_ms")["faults_off_cpu_ms"].as_f64().unwrap();
    assert!(off_cpu > 0.5, "{off_cpu} ms: {recorded:#?}");
}
