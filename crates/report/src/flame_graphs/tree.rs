//! Stacks with weights to a tree of bounded size.
//!
//! Owns the columns of a tree, its limits, building and folding: which nodes there are ([`Shape`]) is kept apart from
//! what they have, so that figures of several recordings can stand at the same nodes. Stacks are sorted, so that those
//! with the same begin are neighbours and a node is a range of them; the heaviest node that is not yet in the tree
//! comes next, until there are enough or the rest is too light. Its callers are in the tree by then, because a caller
//! is at least as heavy. So the cost is that of sorting, and of the nodes that are kept, however deep and many the
//! stacks are.

use super::names::{OTHER, WHOLE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

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
pub(super) const SMALLEST_SHARE: f64 = 0.0005;
/// Nodes of a tree, those named `(other)` not counted: where more are above that share, the heaviest. A node takes some 17 bytes of
/// the page, so the eight trees together stay below 1.7 MB, and are a tenth of it for most programs.
pub(super) const MOST_NODES: usize = 6_000;

/// Stacks: process and frames, outermost first until [`Stacks::turn`].
#[derive(Default)]
pub(super) struct Stacks {
    frames: Vec<u32>,
    stacks: Vec<Stack>,
}

struct Stack {
    frames: Range<usize>,
    weight: u64,
    /// How many were added before it.
    number: usize,
}

/// The nodes of a tree, each before its children and these heaviest first.
pub(super) struct Shape {
    pub(super) nodes: Vec<ShapeNode>,
    /// Numbers of the stacks as they are sorted.
    order: Vec<usize>,
    /// Nodes of less are folded.
    pub(super) smallest: u128,
}

/// A node, or what is folded into its caller.
pub(super) struct ShapeNode {
    pub(super) depth: u32,
    pub(super) frame: u32,
    /// Its sorted stacks and those of all that is below it.
    all: Vec<Range<usize>>,
    /// Those that none of its children has.
    own: Vec<Range<usize>>,
}

impl Shape {
    /// What each node has with all that is below it, from what each stack has, by its number.
    pub(super) fn sums(&self, of_stack: impl Fn(usize) -> u64) -> Vec<u64> {
        self.sums_of(of_stack, |node| &node.all)
    }

    /// What each node has that none of its children has.
    pub(super) fn own_sums(&self, of_stack: impl Fn(usize) -> u64) -> Vec<u64> {
        self.sums_of(of_stack, |node| &node.own)
    }

    /// The node that each stack ends in, by its number: one that has it as its own.
    fn nodes_of_stacks(&self) -> Vec<u32> {
        let mut nodes = vec![0; self.order.len()];
        for (node, ShapeNode { own, .. }) in (0u32..).zip(&self.nodes) {
            for number in own.iter().flat_map(|run| &self.order[run.clone()]) {
                nodes[*number] = node;
            }
        }
        nodes
    }

    fn sums_of(&self, of_stack: impl Fn(usize) -> u64, runs: impl Fn(&ShapeNode) -> &[Range<usize>]) -> Vec<u64> {
        let before = sums_before(self.order.iter().map(|number| of_stack(*number)));
        let sum = |node| clamped(runs(node).iter().map(|run| before[run.end] - before[run.start]).sum());
        self.nodes.iter().map(sum).collect()
    }
}

/// The sum before each weight and, last, that of all: the sum of a range is one subtraction.
fn sums_before(weights: impl Iterator<Item = u64>) -> Vec<u128> {
    let mut before: Vec<u128> = vec![0];
    let mut sum = 0;
    for weight in weights {
        sum += u128::from(weight);
        before.push(sum);
    }
    before
}

/// A range of sorted stacks that begin with the same frames.
struct Node {
    parent: usize,
    /// Frames that its stacks share; 0 for the root.
    depth: usize,
    frame: u32,
    range: Range<usize>,
    weight: u128,
    is_kept: bool,
}

impl Stacks {
    /// Adds a stack.
    pub(super) fn add(&mut self, process: u32, outermost_first: Vec<u32>, weight: u64) {
        let from = self.frames.len();
        self.frames.push(process);
        self.frames.extend(outermost_first);
        self.stacks.push(Stack { frames: from..self.frames.len(), weight, number: self.stacks.len() });
    }

    /// Turns all stacks round: the innermost frame comes first, the process last.
    pub(super) fn turn(&mut self) {
        for stack in &self.stacks {
            self.frames[stack.frames.clone()].reverse();
        }
    }

    /// The tree of all stacks, and by the number of a stack the node that it ends in. Nodes below `smallest_share` of all and those
    /// beyond the `most` heaviest are folded.
    pub(super) fn tree(&mut self, smallest_share: f64, most: usize) -> (FlameTree, Vec<u32>) {
        let mut weights = vec![0; self.stacks.len()];
        self.stacks.iter().for_each(|stack| weights[stack.number] = stack.weight);
        let shape = self.shape(smallest_share, most);
        let tree = FlameTree {
            depth: shape.nodes.iter().map(|node| node.depth).collect(),
            frame: shape.nodes.iter().map(|node| node.frame).collect(),
            weight: shape.sums(|number| weights[number]),
            smallest: clamped(shape.smallest),
        };
        (tree, shape.nodes_of_stacks())
    }

    /// The nodes of that tree.
    pub(super) fn shape(&mut self, smallest_share: f64, most: usize) -> Shape {
        let frames = &self.frames;
        self.stacks.sort_unstable_by(|a, b| frames[a.frames.clone()].cmp(&frames[b.frames.clone()]));
        let before = sums_before(self.stacks.iter().map(|stack| stack.weight));
        let sum = before.last().copied().unwrap_or(0);
        let mut smallest = ((sum as f64 * smallest_share).ceil() as u128).max(1);
        let root = Node { parent: 0, depth: 0, frame: WHOLE, range: 0..self.stacks.len(), weight: sum, is_kept: false };
        let mut nodes = vec![root];
        let mut next = BinaryHeap::from([(sum, Reverse(0))]);
        let mut kept = 0;
        while let Some((weight, Reverse(number))) = next.pop() {
            if kept == most {
                smallest = smallest.max(weight);
                break;
            }
            kept += 1;
            nodes[number].is_kept = true;
            let first_child = nodes.len();
            self.children(number, &before, &mut nodes, smallest);
            next.extend((first_child..nodes.len()).map(|child| (nodes[child].weight, Reverse(child))));
        }
        Shape { nodes: self.in_order(&nodes), order: self.stacks.iter().map(|stack| stack.number).collect(), smallest }
    }

    /// Adds the children of a node that are heavy enough.
    fn children(&self, number: usize, before: &[u128], nodes: &mut Vec<Node>, smallest: u128) {
        let Node { depth, ref range, .. } = nodes[number];
        let (mut at, end) = (self.ends_of_own(&nodes[number]), range.end);
        while at < end {
            let frame = self.frames[self.stacks[at].frames.start + depth];
            let same = |stack: &Stack| self.frames[stack.frames.start + depth] == frame;
            let until = at + self.stacks[at..end].partition_point(same);
            let weight = before[until] - before[at];
            if weight >= smallest {
                let range = at..until;
                nodes.push(Node { parent: number, depth: depth + 1, frame, range, weight, is_kept: false });
            }
            at = until;
        }
    }

    /// Where a node's own stacks end, those that go no further: shorter ones are sorted before longer ones.
    fn ends_of_own(&self, node: &Node) -> usize {
        let ends_here = |stack: &Stack| stack.frames.len() == node.depth;
        node.range.start + self.stacks[node.range.clone()].partition_point(ends_here)
    }

    /// The kept nodes, each before its children and these heaviest first, with what is folded.
    fn in_order(&self, nodes: &[Node]) -> Vec<ShapeNode> {
        let mut children: Vec<usize> = (1..nodes.len()).filter(|number| nodes[*number].is_kept).collect();
        // Last in a stack is first out of it: the lightest first.
        children.sort_by_key(|number| (nodes[*number].parent, nodes[*number].weight, Reverse(*number)));
        let mut ordered = Vec::with_capacity(children.len() + 1);
        enum Step {
            Node(usize),
            Folded { depth: usize, runs: Vec<Range<usize>> },
        }
        let mut steps = vec![Step::Node(0)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Folded { depth, runs } => {
                    ordered.push(ShapeNode { depth: depth as u32, frame: OTHER, all: runs.clone(), own: runs });
                }
                Step::Node(number) => {
                    let node = &nodes[number];
                    let from = children.partition_point(|child| nodes[*child].parent < number);
                    let shown = &children[from..];
                    let shown = &shown[..shown.partition_point(|child| nodes[*child].parent == number)];
                    let below = self.ends_of_own(node)..node.range.end;
                    let runs = between(below.clone(), shown.iter().map(|child| &nodes[*child].range));
                    if runs.iter().any(|run| self.stacks[run.clone()].iter().any(|stack| stack.weight > 0)) {
                        steps.push(Step::Folded { depth: node.depth + 1, runs });
                    }
                    steps.extend(shown.iter().map(|child| Step::Node(*child)));
                    let own = node.range.start..below.start;
                    let (all, own) = (vec![node.range.clone()], vec![own]);
                    ordered.push(ShapeNode { depth: node.depth as u32, frame: node.frame, all, own });
                }
            }
        }
        ordered
    }
}

/// What of a range is in none of these parts of it.
fn between<'r>(whole: Range<usize>, parts: impl Iterator<Item = &'r Range<usize>>) -> Vec<Range<usize>> {
    let mut parts: Vec<&Range<usize>> = parts.collect();
    parts.sort_by_key(|part| part.start);
    let mut at = whole.start;
    let mut left = Vec::new();
    for part in parts {
        left.push(at..part.start);
        at = part.end;
    }
    left.push(at..whole.end);
    left.retain(|run| !run.is_empty());
    left
}

/// Sums of hostile figures do not wrap round.
fn clamped(weight: u128) -> u64 {
    u64::try_from(weight).unwrap_or(u64::MAX)
}
