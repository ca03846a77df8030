//! What a measurement says: the JSON of `slowpath context syscall-cost`.

use crate::arm::{Arm, forced};
use crate::measure::{Measured, MeasuredWorkload};
use crate::state::{STORE_BYPASS, ThreadState};
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_context::Remedy;
use slowpath_context::chains::speculation_remedies;
use slowpath_context::factors::speculation::is_restricted;
use slowpath_experiment::{Effect, Estimate, Level, Samples, effect, median, multiple, outliers};
use slowpath_tables::{Quantity, Unavailable, Unit};
use std::collections::BTreeMap;

/// Version of this JSON.
pub const SCHEMA: &str = "slowpath-syscall-cost/1";

/// The filter that was measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownFilter {
    /// As it was asked for.
    pub asked: String,
    /// What it is: a built-in one, or the form of the file.
    pub form: String,
    /// Programs: each runs at each system call.
    pub programs: usize,
    /// Instructions of all of them.
    pub instructions: usize,
    /// What was left out of it, and why.
    pub notes: Vec<String>,
}

/// An arm.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArmShown {
    /// Which.
    pub arm: Arm,
    /// Whether its thread is what it should be; an arm that is not is listed as unavailable, and has no figures.
    pub measured: bool,
    /// What the kernel says of its thread; null where there was none.
    pub state: Option<ThreadState>,
}

/// One arm against another, by pairs of bursts of the same block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Change {
    /// How much longer a step takes, in ns.
    pub difference: Quantity,
    /// The quotient.
    pub ratio: Option<Quantity>,
    /// Pairs of bursts.
    pub pairs: usize,
    /// The smallest true difference that so many pairs would show in 80 % of repetitions, in ns.
    pub minimum_detectable_effect: Option<f64>,
}

/// What a workload costs in one arm.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArmCost {
    /// Which.
    pub arm: Arm,
    /// CPU time of a step in ns: median of the bursts; null where it was not measured.
    pub step: Option<Quantity>,
    /// Against the first arm; null for that one, and where it was not measured.
    pub change: Option<Change>,
    /// Bursts far from the others; they stay in every figure.
    pub outliers: usize,
    /// CPU time of a step in ns, of each block.
    pub samples: Vec<Option<f64>>,
}

/// What a workload costs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkloadCost {
    /// Which.
    pub workload: Workload,
    /// In words.
    pub title: String,
    /// Whether a step is a system call (`open_close`: two); else it is code of the program alone.
    pub system_call: bool,
    /// Steps of a burst.
    pub steps: u64,
    /// In each arm that was measured.
    pub arms: Vec<ArmCost>,
    /// The filter without the flag against the same filter with it.
    pub without_flag: Option<Change>,
    /// p-value of the arm that is there twice, adjusted for all workloads (Holm): whether the measurement sees differences where there are none.
    pub sham_p: Option<f64>,
}

impl WorkloadCost {
    /// What it costs in an arm.
    pub fn of(&self, arm: Arm) -> Option<&ArmCost> {
        self.arms.iter().find(|one| one.arm == arm)
    }
}

/// A filter that made the kernel restrict the CPU.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ForcedMitigation {
    /// The factors of `slowpath context` that it changed.
    pub factors: Vec<String>,
    /// Their states with the filter.
    pub states: Vec<String>,
    /// What it costs code of the program: quotients of a step, by workload.
    pub cost: BTreeMap<String, Quantity>,
    /// What it is compared with: `filter_speculation_allowed`, or `none` where that is not measured.
    pub against: Arm,
    /// What can be done, with its price.
    pub remedies: Vec<Remedy>,
}

/// What `slowpath context syscall-cost --json` prints: what system calls and a filter cost here.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SyscallCost {
    /// `slowpath-syscall-cost/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The filter.
    pub filter: ShownFilter,
    /// The CPU that all bursts ran on.
    pub processor: u32,
    /// Blocks; each has a burst of every workload in every arm.
    pub blocks: usize,
    /// Seed of the order of the arms.
    pub seed: u64,
    /// Time that it took, in ms.
    pub took_ms: u64,
    /// What the kernel says of the machine.
    pub machine: BTreeMap<String, String>,
    /// The arms.
    pub arms: Vec<ArmShown>,
    /// The workloads.
    pub workloads: Vec<WorkloadCost>,
    /// Whether the arm that is there twice is the same twice: no adjusted p-value is below 0.05.
    pub calm: bool,
    /// What the filter switched off; null where it switched nothing off.
    pub forced: Option<ForcedMitigation>,
    /// What was not measured, each with its reason.
    pub unavailable: Vec<Unavailable>,
    /// What must be known to read the figures.
    pub notes: Vec<String>,
}

fn quantity(estimate: &Estimate, unit: Unit) -> Quantity {
    let rounded = |value: f64| (value * 10_000.0).round() / 10_000.0;
    Quantity { value: rounded(estimate.value), low: estimate.low.map(rounded), high: estimate.high.map(rounded), unit }
}

fn change(effect: &Effect) -> Option<Change> {
    Some(Change {
        difference: quantity(effect.difference.as_ref()?, Unit::Ns),
        ratio: effect.ratio.as_ref().map(|ratio| quantity(ratio, Unit::Ratio)),
        pairs: effect.pairs,
        minimum_detectable_effect: effect.minimum_detectable_effect,
    })
}

/// Place of an arm among all.
fn place(arm: Arm) -> usize {
    Arm::ALL.iter().position(|one| *one == arm).unwrap_or_default()
}

/// Time of a step, by arm and block.
fn samples(measured: &MeasuredWorkload, blocks: usize) -> Samples {
    let mut samples = Samples::new(Arm::ALL.len(), blocks);
    for (arm, bursts) in measured.bursts.iter().enumerate().take(Arm::ALL.len()) {
        for (block, nanos) in bursts.iter().enumerate().take(blocks) {
            if let Some(nanos) = nanos {
                // The cell exists, and a number over a number that is not 0 is finite.
                let _ = samples.set(arm, block, *nanos as f64 / measured.steps.max(1) as f64);
            }
        }
    }
    samples
}

fn compared(samples: &Samples, baseline: Arm, treated: Arm) -> Option<Change> {
    change(&effect::paired(samples, place(baseline), place(treated), Level::P95).ok()?)
}

fn workload_cost(measured: &MeasuredWorkload, blocks: usize) -> WorkloadCost {
    let samples = samples(measured, blocks);
    let arms = Arm::ALL.into_iter().filter_map(|arm| {
        let values = samples.values(place(arm)).unwrap_or_default();
        let step = median::median(&values, Level::P95)?;
        Some(ArmCost {
            arm,
            step: Some(quantity(&step, Unit::Ns)),
            change: (arm != Arm::None).then(|| compared(&samples, Arm::None, arm)).flatten(),
            outliers: outliers::outliers(&values).len(),
            samples: (0..blocks).map(|block| samples.get(place(arm), block)).collect(),
        })
    });
    WorkloadCost {
        workload: measured.workload,
        title: measured.workload.title().to_owned(),
        system_call: measured.workload.is_system_call(),
        steps: measured.steps,
        arms: arms.collect(),
        without_flag: compared(&samples, Arm::FilterSpeculationAllowed, Arm::Filter),
        sham_p: effect::p_value(&samples, place(Arm::None), place(Arm::NoneAgain)).ok().flatten(),
    }
}

impl SyscallCost {
    /// Of a measurement.
    pub fn new(measured: &Measured, filter: ShownFilter) -> Self {
        let mut workloads: Vec<WorkloadCost> =
            measured.workloads.iter().map(|one| workload_cost(one, measured.blocks)).collect();
        let adjusted = multiple::holm(&workloads.iter().map(|one| one.sham_p).collect::<Vec<_>>());
        for (one, p) in workloads.iter_mut().zip(adjusted) {
            one.sham_p = p;
        }
        let calm = workloads.iter().all(|one| one.sham_p.is_none_or(|p| p >= Level::P95.error()));
        let arms = measured.arms.iter().map(|entry| ArmShown {
            arm: entry.arm,
            measured: entry.missing.is_none(),
            state: entry.state.clone(),
        });
        let arms: Vec<ArmShown> = arms.collect();
        Self {
            schema: SCHEMA,
            filter,
            processor: measured.processor,
            blocks: measured.blocks,
            seed: measured.seed,
            took_ms: measured.took_ms,
            machine: measured.machine.clone(),
            forced: forced_mitigation(&arms, &workloads),
            notes: notes(measured, &arms, calm),
            arms,
            workloads,
            calm,
            unavailable: measured.unavailable(),
        }
    }
}

fn state(arms: &[ArmShown], arm: Arm) -> Option<&ThreadState> {
    arms.iter().find(|one| one.arm == arm)?.state.as_ref()
}

fn forced_mitigation(arms: &[ArmShown], workloads: &[WorkloadCost]) -> Option<ForcedMitigation> {
    let (base, filtered) = (state(arms, Arm::None)?, state(arms, Arm::Filter)?);
    let factors = forced(base, filtered);
    if factors.is_empty() {
        return None;
    }
    let has_flag = arms.iter().any(|one| one.arm == Arm::FilterSpeculationAllowed && one.measured);
    let cost = workloads.iter().filter(|one| !one.system_call).filter_map(|one| {
        let change = if has_flag { one.without_flag.as_ref()? } else { one.of(Arm::Filter)?.change.as_ref()? };
        Some((one.workload.name().to_owned(), change.ratio?))
    });
    let states = filtered.speculation().into_iter().filter(|(factor, _)| factors.contains(factor));
    let is_store = factors.contains(&STORE_BYPASS);
    Some(ForcedMitigation {
        cost: cost.collect(),
        states: states.map(|(_, state)| state.unwrap_or_default().to_owned()).collect(),
        against: if has_flag { Arm::FilterSpeculationAllowed } else { Arm::None },
        remedies: speculation_remedies(is_store, factors.len() > usize::from(is_store)),
        factors: factors.into_iter().map(str::to_owned).collect(),
    })
}

fn notes(measured: &Measured, arms: &[ArmShown], calm: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !calm {
        notes.push(
            "the arm that is there twice differs from itself: differences of that size are this machine's at this time, not the filter's"
                .to_owned(),
        );
    }
    if let Some(base) = state(arms, Arm::None) {
        if base.seccomp == Some(2) {
            let number = base.filters.map_or("some".to_owned(), |filters| filters.to_string());
            notes.push(format!("this context is filtered already (Seccomp_filters: {number}), and so is every arm"));
        }
        let restricted =
            base.speculation().into_iter().filter(|(_, state)| state.and_then(is_restricted) == Some(true));
        for (factor, state) in restricted {
            notes.push(format!(
                "{factor} is {:?} in every arm: what that costs, none of them shows",
                state.unwrap_or_default()
            ));
        }
    }
    if measured.machine.get("bpf_jit_enable").is_some_and(|value| value == "0") {
        notes.push("filters are interpreted here (net.core.bpf_jit_enable is 0); compiled ones cost less".to_owned());
    }
    let failed: u64 = measured.workloads.iter().map(|one| one.failed).sum();
    if failed > 0 {
        notes.push(format!("{failed} calls failed; bursts with one of them are in no figure"));
    }
    notes.push(
        "no burst includes the cost of switching between programs (flushed predictors, caches): all arms are one program".to_owned(),
    );
    notes
}
