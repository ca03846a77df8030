//! Were all faults recorded?
//!
//! Owns the comparison of recorded faults with the kernel's own counters (`task_struct.min_flt` and `maj_flt`), per
//! process. `rusage` is no oracle: it leaves out children that were never reaped. Both sides are counted from the
//! process's first exec on, or from its fork where it never called exec: before its program image a process runs the
//! launcher's code, of which nothing is recorded.
//!
//! The kernel also counts faults that raise no event: pages it touches itself for a system call through
//! `get_user_pages` (`mm_account_fault` has no registers then). What remains after known losses is taken for them.

use crate::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, ProcessKey};
use std::collections::BTreeMap;

/// Faults of one process, recorded and counted by the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessFaults {
    /// Pid and start.
    pub process: ProcessKey,
    /// Name of the program.
    pub name: String,
    /// Minor faults in the recording.
    pub recorded_minor: u64,
    /// Major faults in the recording.
    pub recorded_major: u64,
    /// Minor faults by the kernel's count.
    pub kernel_minor: u64,
    /// Major faults by the kernel's count.
    pub kernel_major: u64,
}

impl ProcessFaults {
    /// Recorded faults.
    pub fn recorded(&self) -> u64 {
        self.recorded_minor + self.recorded_major
    }

    /// Faults by the kernel's count.
    pub fn kernel(&self) -> u64 {
        self.kernel_minor + self.kernel_major
    }

    /// Faults the kernel counted and the recording lacks; negative when the recording holds more.
    pub fn unexplained(&self) -> i64 {
        difference(self.kernel(), self.recorded())
    }

    /// Unexplained faults as a share of the kernel's count; `None` when the kernel counted none.
    pub fn unexplained_share(&self) -> Option<f64> {
        (self.kernel() > 0).then(|| self.unexplained() as f64 / self.kernel() as f64)
    }
}

/// Completeness of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completeness {
    /// Processes with kernel counters, most unexplained first.
    pub processes: Vec<ProcessFaults>,
    /// Recorded faults of these processes.
    pub recorded: u64,
    /// Faults by the kernel's count.
    pub kernel: u64,
    /// Fault events known to be lost.
    pub lost: u64,
    /// Estimate of faults without an event (`get_user_pages`): what the kernel counted less what was recorded or lost.
    pub without_event: u64,
    /// Processes of the tree for which no counters were recorded.
    pub without_counters: u64,
}

impl Completeness {
    /// Recorded faults as a share of the kernel's count; `None` when there is no count.
    pub fn share(&self) -> Option<f64> {
        (self.kernel > 0).then(|| self.recorded as f64 / self.kernel as f64)
    }
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(i64::MAX)
}

/// Compares recorded faults with the kernel's counters.
pub fn completeness(tables: &Tables, processes: &Processes) -> Completeness {
    let mut counted: BTreeMap<ProcessKey, (u64, u64)> = BTreeMap::new();
    for exit in &tables.exits {
        let sums = counted.entry(exit.process()).or_default();
        sums.0 += exit.min_flt;
        sums.1 += exit.maj_flt;
    }
    // The first exec of a process: rows are sorted by time.
    let mut at_exec: BTreeMap<ProcessKey, (u64, u64)> = BTreeMap::new();
    for exec in &tables.execs {
        at_exec.entry(exec.process()).or_insert((exec.min_flt, exec.maj_flt));
    }
    let mut recorded: BTreeMap<ProcessKey, (u64, u64)> = BTreeMap::new();
    for fault in &tables.faults {
        let first_exec = processes.get(fault.process()).and_then(|process| process.first_exec);
        if first_exec.is_some_and(|exec| fault.ts < exec) {
            continue;
        }
        let sums = recorded.entry(fault.process()).or_default();
        match fault.kind {
            FaultKind::Minor => sums.0 += 1,
            FaultKind::Major => sums.1 += 1,
        }
    }
    let mut result = Completeness {
        lost: tables.manifest.losses.of("faults"),
        without_counters: processes.iter().filter(|process| !counted.contains_key(&process.key)).count() as u64,
        ..Completeness::default()
    };
    for (process, (minor, major)) in counted {
        let before = at_exec.get(&process).copied().unwrap_or_default();
        let (recorded_minor, recorded_major) = recorded.get(&process).copied().unwrap_or_default();
        let faults = ProcessFaults {
            process,
            name: processes.name(process),
            recorded_minor,
            recorded_major,
            kernel_minor: minor.saturating_sub(before.0),
            kernel_major: major.saturating_sub(before.1),
        };
        result.recorded += faults.recorded();
        result.kernel += faults.kernel();
        result.processes.push(faults);
    }
    result.without_event = result.kernel.saturating_sub(result.recorded).saturating_sub(result.lost);
    result.processes.sort_by_key(|faults| (std::cmp::Reverse(faults.unexplained()), faults.process));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch_facts::LaunchFacts;

    #[test]
    fn faults_before_the_image_and_without_an_event_are_told_apart() {
        let text = "
== manifest
{\"losses\": {\"faults\": 1}}
== execs
ts pid start filename min_flt maj_flt
10 7   1     /bin/a   50      2
20 7   1     /bin/b   60      2
== exits
ts pid start tid last min_flt maj_flt
90 7   1     7   true 54      3
80 7   1     8   false 1      0
95 9   5     9   true 2       0
== forks
ts parent_pid parent_start pid start tid thread
30 7          1            9   5     9   false
40 7          1            12  6     12  false
== faults
ts duration pid start tid address kind
5  1        7   1     7   0       minor
11 1        7   1     7   0       minor
12 1        7   1     8   0       minor
13 1        7   1     7   0       major
50 1        9   5     9   0       minor
51 1        9   5     9   0       minor
";
        let tables = Tables::from_text(text).unwrap();
        let facts = LaunchFacts::new(&tables);
        let result = completeness(&facts.tables, &facts.processes);
        // 7: kernel (54+1-50) + (3-2) = 6, recorded 3; 9: both 2; 12: no counters.
        assert_eq!((result.kernel, result.recorded, result.lost), (8, 5, 1));
        assert_eq!(result.without_event, 2);
        assert_eq!(result.without_counters, 1);
        assert_eq!(result.processes[0].name, "b");
        assert_eq!(result.processes[0].unexplained(), 3);
        assert_eq!(result.processes[1].unexplained_share(), Some(0.0));
    }
}
