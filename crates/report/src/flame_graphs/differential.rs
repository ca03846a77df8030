//! Two sets of recordings in one flame graph: each node has what it had before and what it has after, as in Brendan Gregg's
//! differential flame graphs (`difffolded.pl`, `flamegraph.pl`; brendangregg.com/blog/2014-11-09/differential-flame-graphs.html).
//!
//! Owns what of two recordings is one node, and what is said of chance. The same functions in the same files, called in the same
//! way, in processes of the same name, are one node. Unlike Gregg's scripts, whose option `-n` makes both totals equal, nothing is scaled
//! but to one recording or one second: a program that does less is seen to do less. Which width a node has, and what colour,
//! is left to the page.

use super::names::{FlameFrames, FlamePlace, Names};
use super::sums::{FlameWeight, Sums, sums};
use super::tree::{MOST_NODES, SMALLEST_SHARE, Shape, Stacks};
use crate::stack_weight::Weight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::metrics::{Measure, takes_memory};
use slowpath_analysis::processes::Processes;
use slowpath_analysis::recording_comparison::{Basis, Compared, factor, lacking};
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_experiment::Level;
use slowpath_experiment::rank_sum::Sizes;
use slowpath_recording::Tables;
use slowpath_tables::missing::{Missing, declared};
use slowpath_tables::{Unavailable, Unit};
use std::collections::{HashMap, HashSet};

/// The flame graphs of two sets of recordings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferentialFlames {
    /// What the nodes of all trees show.
    pub frames: FlameFrames,
    /// Where code is, by the numbers of `frames.place`.
    pub places: Vec<FlamePlace>,
    /// One for each weight, also for those that cannot be compared.
    pub graphs: Vec<DifferentialGraph>,
}

/// Stacks of both sides by one weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferentialGraph {
    /// What is added up. CPU samples are the time that they stand for, because rates can differ; memory that is only reserved
    /// (`MAP_NORESERVE`) is not allocated.
    pub weight: FlameWeight,
    /// Its unit: `ns` or `bytes`.
    pub unit: Unit,
    /// What figures before are divided by: the recordings there, or their seconds.
    pub before_of: f64,
    /// The same after.
    pub after_of: f64,
    /// Why there are no trees; null where there are.
    pub unavailable: Option<Unavailable>,
    /// From the processes and their outermost functions to what these called.
    pub callees: Option<DifferentialTree>,
    /// From the innermost functions to what called them, the processes last.
    pub callers: Option<DifferentialTree>,
}

/// A tree as columns of one length, an entry a node; order and depths are as in a tree of one recording, heaviest meaning the sum of a
/// node's share of all before and its share of all after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferentialTree {
    /// 0 for the root.
    pub depth: Vec<u32>,
    /// Index into `frames`.
    pub frame: Vec<u32>,
    /// Rows of all recordings before of the node and of all that is below it, in the unit of the graph; to be divided by
    /// `before_of`.
    pub before: Vec<u64>,
    /// The same after.
    pub after: Vec<u64>,
    /// Nodes with less of all before and all after, on average, are folded into a child `(other)` of their caller.
    pub smallest_share: f64,
    /// What is said of chance; null where there are too few recordings for an interval.
    pub chance: Option<NodesOfChance>,
}

/// Nodes whose difference has a 95 % interval that holds zero, by index, ascending. Each is tested for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodesOfChance {
    /// With what is below them.
    pub all: Vec<u32>,
    /// What is their own: what no child of theirs has.
    pub own: Vec<u32>,
}

/// What is compared, how its rows are found in one recording, and which figure of the comparison is the same.
const WEIGHTS: [(FlameWeight, Unit, Measure); 4] = [
    (FlameWeight::CpuSamples, Unit::Ns, Measure::SampledCpuTime),
    (FlameWeight::OffCpu, Unit::Ns, Measure::OffCpuTime),
    (FlameWeight::FaultTime, Unit::Ns, Measure::FaultTime),
    (FlameWeight::Allocated, Unit::Bytes, Measure::AllocatedBytes),
];

/// Stacks of one recording: what each has, by its number in [`FlameRecordings`], for each weight.
type RecordedStacks = [HashMap<usize, u64>; 4];

/// The stacks of recordings, which can be added one after the other: what is kept of each is small beside its tables.
#[derive(Default)]
pub struct FlameRecordings {
    names: Names,
    /// Process and functions of each stack, outermost first.
    stacks: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, usize>,
    before: Vec<RecordedStacks>,
    after: Vec<RecordedStacks>,
}

impl FlameRecordings {
    /// Adds a recording of those before.
    pub fn add_before(&mut self, tables: &Tables) {
        let recorded = self.recorded(tables);
        self.before.push(recorded);
    }

    /// Adds a recording of those after.
    pub fn add_after(&mut self, tables: &Tables) {
        let recorded = self.recorded(tables);
        self.after.push(recorded);
    }

    fn recorded(&mut self, tables: &Tables) -> RecordedStacks {
        let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
        let resolved = CallStacks::new(tables);
        let named = self.names.of_stacks(&resolved);
        let per_sample = tables.manifest.cpu_sample_hz().map_or(0, |hz| 1_000_000_000 / hz.max(1));
        WEIGHTS.map(|(weight, ..)| {
            let rows: Box<dyn Iterator<Item = _>> = match weight {
                FlameWeight::CpuSamples => {
                    Box::new(Weight::Cpu.rows(tables).map(|(process, stack, _)| (process, stack, per_sample)))
                }
                FlameWeight::OffCpu => Weight::OffCpu.rows(tables),
                FlameWeight::FaultTime => Weight::FaultTime.rows(tables),
                FlameWeight::Allocated => Box::new(
                    tables
                        .memory_calls
                        .iter()
                        .filter(|call| takes_memory(call))
                        .map(|call| (call.process(), call.stack, call.growth().0)),
                ),
            };
            let Sums { of_stack, .. } = sums(rows, &named, &processes, &mut self.names);
            let mut recorded: HashMap<usize, u64> = HashMap::new();
            for ((process, path), sum) in of_stack {
                let mut frames = vec![process];
                frames.extend(named.frames(path));
                let number = *self.numbers.entry(frames).or_insert_with_key(|frames| {
                    self.stacks.push(frames.clone());
                    self.stacks.len() - 1
                });
                let known = recorded.entry(number).or_default();
                *known = known.saturating_add(sum);
            }
            recorded
        })
    }

    /// The flame graphs of both sides, of which `before` and `after` are the recordings that were added, in the same order; `None`
    /// where no weight can be compared.
    pub fn compared(self, before: &[Compared], after: &[Compared], per: Basis) -> Option<DifferentialFlames> {
        let sides = Sides {
            stacks: &self.stacks,
            before: &self.before,
            after: &self.after,
            factors_before: before.iter().map(|one| factor(one, per)).collect(),
            factors_after: after.iter().map(|one| factor(one, per)).collect(),
        };
        let of = |side: &[Compared]| match per {
            Basis::Recording => side.len() as f64,
            Basis::Second => side.iter().map(|one| one.costs.length.as_ms() / 1000.0).sum(),
        };
        let graph = |(index, (weight, unit, measure)): (usize, (FlameWeight, Unit, Measure))| {
            let sources = measure.sources_of_functions().into_iter().flatten();
            let unavailable = lacking(before, after, sources);
            let mut trees = match unavailable {
                None => sides.trees(index),
                Some(_) => None,
            };
            let unavailable = unavailable.or_else(|| {
                let nothing = || measured(weight).because("there was none on either side", "");
                trees.is_none().then(nothing)
            });
            let (callees, callers) = trees.take().unzip();
            DifferentialGraph {
                weight,
                unit,
                before_of: of(before),
                after_of: of(after),
                unavailable,
                callees,
                callers,
            }
        };
        let mut graphs: Vec<DifferentialGraph> = WEIGHTS.into_iter().enumerate().map(graph).collect();
        if graphs.iter().all(|graph| graph.callees.is_none()) {
            return None;
        }
        let trees = graphs.iter_mut().flat_map(|graph| graph.callees.iter_mut().chain(&mut graph.callers));
        let (frames, places) = self.names.used(trees.map(|tree| &mut tree.frame));
        Some(DifferentialFlames { frames, places, graphs })
    }
}

fn measured(weight: FlameWeight) -> &'static Missing {
    match weight {
        FlameWeight::CpuSamples => &declared::SAMPLES,
        FlameWeight::OffCpu => &declared::OFF_CPU,
        FlameWeight::FaultTime => &declared::FAULT_TIMES,
        FlameWeight::Allocated => &declared::MEMORY_CALLS,
    }
}

/// Both sets, and what figures of each recording are multiplied by.
struct Sides<'a> {
    stacks: &'a [Vec<u32>],
    before: &'a [RecordedStacks],
    after: &'a [RecordedStacks],
    factors_before: Vec<f64>,
    factors_after: Vec<f64>,
}

impl Sides<'_> {
    /// The trees of a weight; `None` where no recording has any.
    fn trees(&self, weight: usize) -> Option<(DifferentialTree, DifferentialTree)> {
        let total = |side: &[RecordedStacks]| -> f64 {
            side.iter().flat_map(|one| one[weight].values()).map(|sum| *sum as f64).sum()
        };
        let (total_before, total_after) = (total(self.before), total(self.after));
        if total_before + total_after == 0.0 {
            return None;
        }
        let mut found = Stacks::default();
        let all = self.before.iter().chain(self.after);
        let mut used: Vec<usize> =
            all.flat_map(|one| one[weight].keys().copied()).collect::<HashSet<_>>().into_iter().collect();
        used.sort_unstable();
        for number in &used {
            let share = |side: &[RecordedStacks], total: f64| {
                let sum: f64 = side.iter().filter_map(|one| one[weight].get(number)).map(|sum| *sum as f64).sum();
                if total > 0.0 { sum / total } else { 0.0 }
            };
            let shares = share(self.before, total_before) + share(self.after, total_after);
            if let Some((process, functions)) = self.stacks[*number].split_first() {
                // What is there at all must not become nothing.
                found.add(*process, functions.to_vec(), (shares * WHOLE_SHARE).ceil() as u64);
            }
        }
        let callees = self.tree(weight, &used, &found.shape(SMALLEST_SHARE, MOST_NODES));
        found.turn();
        let callers = self.tree(weight, &used, &found.shape(SMALLEST_SHARE, MOST_NODES));
        Some((callees, callers))
    }

    fn tree(&self, weight: usize, used: &[usize], shape: &Shape) -> DifferentialTree {
        let of_recording =
            |one: &RecordedStacks| shape.sums(|stack| one[weight].get(&used[stack]).copied().unwrap_or(0));
        let own_of_recording =
            |one: &RecordedStacks| shape.own_sums(|stack| one[weight].get(&used[stack]).copied().unwrap_or(0));
        let (before, after) = (columns(self.before, of_recording), columns(self.after, of_recording));
        let sizes = Sizes::new(self.before.len(), self.after.len(), Level::P95);
        let chance = sizes.has_interval().then(|| NodesOfChance {
            all: self.of_chance(&sizes, &before, &after),
            own: self.of_chance(
                &sizes,
                &columns(self.before, own_of_recording),
                &columns(self.after, own_of_recording),
            ),
        });
        let sum = |side: &[Vec<u64>]| -> Vec<u64> {
            let of_node = |node| side.iter().fold(0u64, |sum, one| sum.saturating_add(one[node]));
            (0..shape.nodes.len()).map(of_node).collect()
        };
        DifferentialTree {
            depth: shape.nodes.iter().map(|node| node.depth).collect(),
            frame: shape.nodes.iter().map(|node| node.frame).collect(),
            before: sum(&before),
            after: sum(&after),
            smallest_share: shape.smallest as f64 / (2.0 * WHOLE_SHARE),
            chance,
        }
    }

    /// Nodes whose difference may be chance.
    fn of_chance(&self, sizes: &Sizes, before: &[Vec<u64>], after: &[Vec<u64>]) -> Vec<u32> {
        let nodes = before.first().map_or(0, Vec::len);
        let values = |side: &[Vec<u64>], factors: &[f64], node: usize| -> Vec<f64> {
            side.iter().zip(factors).map(|(one, factor)| one[node] as f64 * factor).collect()
        };
        let is_chance = |node: &usize| {
            let before = values(before, &self.factors_before, *node);
            !sizes.is_beside_zero(&before, &values(after, &self.factors_after, *node))
        };
        (0..nodes).filter(is_chance).map(|node| node as u32).collect()
    }
}

/// A column of each recording of a side.
fn columns(side: &[RecordedStacks], of: impl Fn(&RecordedStacks) -> Vec<u64>) -> Vec<Vec<u64>> {
    side.iter().map(of).collect()
}

/// The share of all as a whole number.
const WHOLE_SHARE: f64 = (1u64 << 40) as f64;

#[cfg(test)]
mod tests;
