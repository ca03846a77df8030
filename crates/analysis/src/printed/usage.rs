//! The JSON of usage (under the name `shares`): every process of a recording, the machine, and the heaviest functions.
//!
//! Owns names and units. Leaves sums and what they mean to `analysis`.

use super::quantities::{milliseconds, ratio};
use crate::stacks::call_stacks::CallStacks;
use crate::stacks::function_weights::{FunctionWeights, heaviest};
use crate::time::usage as analysis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey, Quantity, Unit};
use std::collections::HashMap;

/// Functions that are listed.
const FUNCTIONS: usize = 10;

/// What processes and functions have of a recording, and the recording of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Every process that was seen, most faults first, then most CPU time.
    pub processes: Vec<ProcessUsage>,
    /// Sum of all.
    pub total: Used,
    /// Processes of which the kernel's counters are not known; `faults_by_kernel` and `cpu_time` of `total` lack them.
    pub without_counters: u64,
    /// Where the faults of the machine went; null where they were not counted.
    pub machine: Option<analysis::MachineUsage>,
    /// From the begin of recording to its end; null where it has no end.
    pub recorded_for: Option<Quantity>,
    /// Functions in which faults took most time; null where no stacks of faults were recorded.
    pub functions_by_fault_time: Option<Vec<FunctionUsage>>,
    /// Functions with most CPU samples; null where no CPU samples were recorded.
    pub functions_by_cpu_samples: Option<Vec<FunctionUsage>>,
}

/// What was used. What was not recorded is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// Recorded minor faults.
    pub minor_faults: u64,
    /// Recorded major faults.
    pub major_faults: u64,
    /// Time in recorded faults, where their duration is known.
    pub fault_time: Option<Quantity>,
    /// Recorded faults of unknown duration.
    pub untimed_faults: u64,
    /// Faults meanwhile by the kernel's counters of its threads.
    pub faults_by_kernel: Option<u64>,
    /// Time that its threads ran meanwhile, by the scheduler's clock.
    pub cpu_time: Option<Quantity>,
    /// CPU samples.
    pub cpu_samples: Option<u64>,
    /// Time off the CPU, all threads together: mostly waiting for work.
    pub off_cpu: Option<Quantity>,
    /// The part of it in which threads could have run and waited for a CPU.
    pub runnable: Option<Quantity>,
    /// Bytes by which mmap, mremap and brk let address spaces grow.
    pub allocated: Option<Quantity>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUsage {
    /// Its program, with its role where the program starts its own image in several.
    pub process: String,
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns.
    pub start: Nanos,
    /// Kind of child.
    pub kind: String,
    /// Command line; cut as in the recording.
    pub command_line: String,
    /// What it used.
    pub used: Used,
    /// Its share of the recording, and of the machine.
    pub share: Share,
}

/// Shares of one process, as ratios. Null where the whole is not known or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Of the recorded faults.
    pub faults: Option<Quantity>,
    /// Of the time in recorded faults.
    pub fault_time: Option<Quantity>,
    /// Of the CPU time of all recorded processes.
    pub cpu_time: Option<Quantity>,
    /// Of the CPU samples.
    pub cpu_samples: Option<Quantity>,
    /// Its recorded faults, of the machine's.
    pub machine_faults: Option<Quantity>,
}

/// One function: its own rows, not those of what it called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionUsage {
    /// Its name; null for all of `file` together whose names are not known.
    pub function: Option<String>,
    /// Name of the file, `[kernel]`, `[generated]`, or why there is none.
    pub file: String,
    /// Time in faults, or CPU samples.
    pub weight: Quantity,
    /// Of all rows, also those without a stack.
    pub share: Option<Quantity>,
}

impl Usage {
    /// What processes are called here; those that are not listed, by their pid.
    pub fn namer(&self) -> impl Fn(ProcessKey) -> String {
        let key = |one: &ProcessUsage| ProcessKey { pid: one.pid, start: one.start };
        let names: HashMap<ProcessKey, &str> =
            self.processes.iter().map(|one| (key(one), one.process.as_str())).collect();
        move |key| names.get(&key).map_or_else(|| format!("pid {}", key.pid), |name| (*name).to_owned())
    }
}

fn used(sums: &analysis::Sums) -> Used {
    Used {
        minor_faults: sums.minor,
        major_faults: sums.major,
        fault_time: (sums.untimed < sums.faults()).then(|| milliseconds(sums.fault_time)),
        untimed_faults: sums.untimed,
        faults_by_kernel: sums.counted,
        cpu_time: sums.cpu_time.map(milliseconds),
        cpu_samples: sums.cpu_samples,
        off_cpu: sums.off_cpu.map(milliseconds),
        runnable: sums.runnable.map(milliseconds),
        allocated: sums.allocated.map(|bytes| Quantity::exact(bytes.0 as f64, Unit::Bytes)),
    }
}

fn functions(found: Option<FunctionWeights>, weight: impl Fn(u64) -> Quantity) -> Option<Vec<FunctionUsage>> {
    let found = found?;
    let share = |one: crate::stacks::function_weights::FunctionWeight| FunctionUsage {
        function: one.function,
        file: one.place,
        weight: weight(one.weight),
        share: ratio(one.weight as f64, found.total),
    };
    Some(found.functions.into_iter().map(share).collect())
}

/// The usage of a recording.
pub fn of_tables(tables: &Tables) -> Usage {
    let found = analysis::usage(tables);
    let (total, machine) = (found.total, found.machine);
    let share = |sums: &analysis::Sums| Share {
        faults: ratio(sums.faults() as f64, total.faults()),
        fault_time: ratio(sums.fault_time.0 as f64, total.fault_time.0),
        cpu_time: sums.cpu_time.zip(total.cpu_time).and_then(|(part, whole)| ratio(part.0 as f64, whole.0)),
        cpu_samples: sums.cpu_samples.zip(total.cpu_samples).and_then(|(part, whole)| ratio(part as f64, whole)),
        machine_faults: machine.and_then(|machine| ratio(sums.faults() as f64, machine.faults)),
    };
    let stacks = CallStacks::new(tables);
    let timed = tables.faults.iter().filter_map(|row| Some((row.stack, row.duration?.0)));
    let samples = tables.cpu_samples.iter().map(|row| (row.stack, 1));
    Usage {
        processes: found
            .processes
            .into_iter()
            .map(|one| ProcessUsage {
                used: used(&one.sums),
                share: share(&one.sums),
                process: one.name,
                pid: one.process.pid,
                start: one.process.start,
                kind: one.kind,
                command_line: one.command_line,
            })
            .collect(),
        total: used(&total),
        without_counters: found.without_counters,
        machine,
        recorded_for: found.recorded_for.map(|time| Quantity::exact(time.as_ms() / 1000.0, Unit::S)),
        functions_by_fault_time: functions(heaviest(&stacks, timed, FUNCTIONS), |ns| milliseconds(Nanos(ns))),
        functions_by_cpu_samples: functions(heaviest(&stacks, samples, FUNCTIONS), |samples| {
            Quantity::exact(samples as f64, Unit::Count)
        }),
    }
}
