//! Call stacks as the page draws them: for each weight a tree from the outermost function inwards and one from the innermost
//! outwards, of a size that does not grow with the recording.
//!
//! Owns which weights there are, what the page says of those that were not recorded, and the shape of the JSON. Leaves what rows
//! weigh to [`crate::stack_weight`], what a frame is called to `names`, building and folding to `tree`, the rows with their times to
//! `rows`, and those of two sets of recordings in one tree to `differential`. The trees of a weight add up to its rows: what is folded
//! away is a node of its own.

mod differential;
mod names;
mod rows;
mod tree;

pub use differential::{DifferentialFlames, DifferentialGraph, DifferentialTree, FlameRecordings, NodesOfChance};
pub use rows::{FlameRows, FlameThreads};

use crate::stack_weight::{TimedRow, Weight, Weighted};
use crate::timeline::zero_of;
use names::{NamedStacks, Names};
use rows::{MOST_ROWS, RowPlace, Threads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_analysis::stacks::call_stacks::{CallStacks, StackPath};
use slowpath_recording::Tables;
use slowpath_tables::missing::declared;
use slowpath_tables::{ProcessKey, Unavailable, Unit};
use std::collections::HashMap;
use tree::Stacks;

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

/// Columns of one length: an entry is a function in a file, or what stands for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlameFrames {
    /// Its name; the name of a process; `[libfoo.so]` for code of which no name is known. Long names lack their middle.
    pub name: Vec<String>,
    /// Index into `places`.
    pub place: Vec<u32>,
}

/// Where code is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FlamePlace {
    /// Name of the file; empty for what is in none.
    pub name: String,
    /// What it is.
    pub kind: PlaceKind,
}

/// Kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// All rows: the root of a tree.
    Whole,
    /// What is too small to be shown, together.
    Folded,
    /// No code: the processes of one program.
    Process,
    /// A mapped file.
    File,
    /// Code that the kernel maps into processes.
    Vdso,
    /// Code that was generated at run time.
    Generated,
    /// The kernel.
    Kernel,
    /// Not known: no stack, a damaged one, or one that ends here because it could not be followed.
    Unknown,
}

/// What is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlameWeight {
    /// CPU samples.
    CpuSamples,
    /// Time off the CPU, waits for work included, ns.
    OffCpu,
    /// Time in page faults of known duration, ns.
    FaultTime,
    /// Bytes by which mmap, mremap and brk let address spaces grow.
    Allocated,
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

/// A tree as columns of one length, an entry a node; the first is the root. A node comes after its caller, before the callers'
/// next child, and children come heaviest first, so depths alone tell the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlameTree {
    /// 0 for the root.
    pub depth: Vec<u32>,
    /// Index into `frames`.
    pub frame: Vec<u32>,
    /// Its rows and those of all that is below it, in the unit of the graph. What its children do not have is its own.
    pub weight: Vec<u64>,
    /// Nodes of less are folded into a child `(other)` of their caller, in the unit of the graph.
    pub smallest: u64,
}

/// Nodes below this share of all rows are folded: on a screen of 1,360 pixels, two thirds of one.
const SMALLEST_SHARE: f64 = 0.0005;
/// Nodes of a tree, those named `(other)` not counted: where more are above that share, the heaviest. A node takes some 17 bytes of
/// the page, so the eight trees together stay below 1.7 MB, and are a tenth of it for most programs.
const MOST_NODES: usize = 6_000;

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

/// The rows of a weight, those of one program and stack together.
struct Sums {
    /// By frame of the process and path, sorted.
    of_stack: Vec<((u32, Option<StackPath>), u64)>,
    /// The frames of processes.
    of_process: HashMap<ProcessKey, u32>,
    total: u64,
    has_rows: bool,
    has_stacks: bool,
}

fn sums(
    rows: impl Iterator<Item = Weighted>,
    stacks: &NamedStacks<'_, '_>,
    processes: &Processes,
    names: &mut Names,
) -> Sums {
    let mut of_process: HashMap<ProcessKey, u32> = HashMap::new();
    let mut sums: HashMap<(u32, Option<StackPath>), u64> = HashMap::new();
    let (mut total, mut has_rows, mut has_stacks) = (0u64, false, false);
    for (process, stack, amount) in rows {
        let process = *of_process.entry(process).or_insert_with(|| names.process(&processes.name(process)));
        let path = stacks.path(stack);
        (has_rows, has_stacks) = (true, has_stacks || path.is_some());
        total = total.saturating_add(amount);
        let sum = sums.entry((process, path)).or_default();
        *sum = sum.saturating_add(amount);
    }
    let mut of_stack: Vec<_> = sums.into_iter().collect();
    of_stack.sort_unstable_by_key(|(key, _)| *key);
    Sums { of_stack, of_process, total, has_rows, has_stacks }
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
