//! Call stacks as the page draws them: for each weight a tree from the outermost function inwards and one from the
//! innermost outwards, of a size that does not grow with the recording.
//!
//! Owns which weights a page has, what it says of those that were not recorded, and the shape of the JSON as a whole.
//! Leaves what rows weigh to [`crate::stack_weight`], adding up to `sums`, what a frame is called to `names`, building
//! and folding to `tree`, the rows with their times to `rows`, and those of two sets of recordings in one tree to
//! `differential`. The trees of a weight add up to its rows: what is folded away is a node of its own.

mod differential;
mod names;
mod rows;
mod sums;
mod tree;

pub use differential::{DifferentialFlames, DifferentialGraph, DifferentialTree, FlameRecordings, NodesOfChance};
pub use names::{FlameFrames, FlamePlace, PlaceKind};
pub use rows::{FlameRows, FlameThreads};
pub use sums::FlameWeight;
pub use tree::FlameTree;

use crate::stack_weight::{TimedRow, Weight};
use crate::timeline::zero_of;
use names::{NamedStacks, Names};
use rows::{MOST_ROWS, RowPlace, Threads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;
use slowpath_tables::missing::declared;
use slowpath_tables::{Unavailable, Unit};
use sums::{Sums, sums};
use tree::{MOST_NODES, SMALLEST_SHARE, Stacks};

/// The flame graphs of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlameGraphs {
    /// What the nodes of all trees show.
    pub frames: FlameFrames,
    /// Where code is, by the numbers of `frames.place`.
    pub places: Vec<FlamePlace>,
    /// One for each weight, also for those that were not recorded.
    pub graphs: Vec<FlameGraph>,
    /// Threads that have rows.
    #[serde(default)]
    pub threads: FlameThreads,
}

/// Stacks by one weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlameGraph {
    /// What is added up.
    pub weight: FlameWeight,
    /// Its unit: `count`, `ns` or `bytes`.
    pub unit: Unit,
    /// Sum of all rows, those without a stack included.
    pub total: u64,
    /// Why there are no trees; null where there are.
    pub unavailable: Option<Unavailable>,
    /// From the processes and their outermost functions to what these called.
    pub callees: Option<FlameTree>,
    /// From the innermost functions to what called them, the processes last.
    pub callers: Option<FlameTree>,
    /// The rows with their times; null where there are no trees.
    #[serde(default)]
    pub rows: Option<FlameRows>,
}

const WEIGHTS: [(FlameWeight, Weight, Unit); 4] = [
    (FlameWeight::CpuSamples, Weight::Cpu, Unit::Count),
    (FlameWeight::OffCpu, Weight::OffCpu, Unit::Ns),
    (FlameWeight::FaultTime, Weight::FaultTime, Unit::Ns),
    (FlameWeight::Allocated, Weight::Allocations, Unit::Bytes),
];

/// The flame graphs of a recording, whose stacks are resolved already; `None` where no row of any weight has a stack.
pub fn of_tables(tables: &Tables, stacks: &CallStacks<'_>) -> Option<FlameGraphs> {
    let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    let mut names = Names::default();
    let stacks = names.of_stacks(stacks);
    let mut threads = Threads::default();
    let mut graphs: Vec<FlameGraph> = WEIGHTS
        .into_iter()
        .map(|weight| graph(tables, &stacks, &processes, (&mut names, &mut threads), weight))
        .collect();
    if graphs.iter().all(|graph| graph.callees.is_none()) {
        return None;
    }
    let trees = graphs.iter_mut().flat_map(|graph| graph.callees.iter_mut().chain(&mut graph.callers));
    let mut threads = threads.columns;
    let (frames, places) = names.used(trees.map(|tree| &mut tree.frame).chain([&mut threads.process]));
    Some(FlameGraphs { frames, places, graphs, threads })
}

fn graph(
    tables: &Tables,
    stacks: &NamedStacks<'_, '_>,
    processes: &Processes,
    (names, threads): (&mut Names, &mut Threads),
    (name, weight, unit): (FlameWeight, Weight, Unit),
) -> FlameGraph {
    let Sums { of_stack, of_process, total, has_rows, has_stacks } =
        sums(weight.rows(tables), stacks, processes, names);
    if !has_stacks {
        let unavailable = Some(unavailable(tables, name, has_rows));
        return FlameGraph { weight: name, unit, total, unavailable, callees: None, callers: None, rows: None };
    }
    let mut found = Stacks::default();
    for ((process, path), sum) in &of_stack {
        found.add(*process, stacks.frames(*path), *sum);
    }
    let (callees, nodes) = found.tree(SMALLEST_SHARE, MOST_NODES);
    found.turn();
    let (callers, turned_nodes) = found.tree(SMALLEST_SHARE, MOST_NODES);
    let place_of = |row: &TimedRow| {
        let process = *of_process.get(&row.process)?;
        let key = (process, stacks.path(row.stack));
        let stack = of_stack.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(RowPlace { process, callees: nodes[stack], callers: turned_nodes[stack] })
    };
    let rows = rows::columns(weight.timed_rows(tables), place_of, threads, zero_of(tables), MOST_ROWS);
    FlameGraph {
        weight: name,
        unit,
        total,
        unavailable: None,
        callees: Some(callees),
        callers: Some(callers),
        rows: Some(rows),
    }
}

/// Why a weight has no stacks, and which option of `slowpath record` asks for them.
fn unavailable(tables: &Tables, weight: FlameWeight, has_rows: bool) -> Unavailable {
    let (what, probe, event) = match weight {
        FlameWeight::CpuSamples => (&declared::FLAME_SAMPLES, "cpu_sample", "cpu"),
        FlameWeight::OffCpu => (&declared::FLAME_WAITS, "off_cpu", "wait"),
        FlameWeight::FaultTime => (&declared::FLAME_FAULTS, "fault", "fault"),
        FlameWeight::Allocated => (&declared::FLAME_ALLOCATIONS, "memory", "alloc"),
    };
    let reason = match (has_rows, tables.manifest.ran(probe)) {
        (true, _) => "recorded without call stacks",
        (false, true) => "there was none",
        (false, false) => "not recorded",
    };
    what.because(reason, format!("--stacks {event}"))
}

#[cfg(test)]
mod tests;
