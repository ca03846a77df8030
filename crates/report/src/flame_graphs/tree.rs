//! Stacks with weights to a tree of bounded size.
//!
//! Owns building and folding. Stacks are sorted, so that those with the same begin are neighbours and a node is a range of them; the
//! heaviest node that is not yet in the tree comes next, until there are enough or the rest is too light. Its callers are in
//! the tree by then, because a caller is at least as heavy. So the cost is that of sorting, and of the nodes that are kept,
//! however deep and many the stacks are.

use super::FlameTree;
use super::names::{OTHER, WHOLE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Stacks: process and frames, outermost first until [`Stacks::turn`].
#[derive(Default)]
pub(super) struct Stacks {
    frames: Vec<u32>,
    stacks: Vec<(Range<usize>, u64)>,
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
        self.stacks.push((from..self.frames.len(), weight));
    }

    /// Turns all stacks round: the innermost frame comes first, the process last.
    pub(super) fn turn(&mut self) {
        for (range, _) in &self.stacks {
            self.frames[range.clone()].reverse();
        }
    }

    /// The tree of all stacks. Nodes below `smallest_share` of all and those beyond the `most` heaviest are folded.
    pub(super) fn tree(&mut self, smallest_share: f64, most: usize) -> FlameTree {
        let frames = &self.frames;
        self.stacks.sort_unstable_by(|(a, _), (b, _)| frames[a.clone()].cmp(&frames[b.clone()]));
        // Weights before each stack: the weight of a range is one subtraction.
        let mut before: Vec<u128> = vec![0];
        let mut sum = 0;
        for (_, weight) in &self.stacks {
            sum += u128::from(*weight);
            before.push(sum);
        }
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
        self.in_order(&nodes, &before, clamped(smallest))
    }

    /// Adds the children of a node that are heavy enough.
    fn children(&self, number: usize, before: &[u128], nodes: &mut Vec<Node>, smallest: u128) {
        let Node { depth, ref range, .. } = nodes[number];
        let (mut at, end) = (self.ends_of_own(&nodes[number]), range.end);
        while at < end {
            let frame = self.frames[self.stacks[at].0.start + depth];
            let same = |stack: &(Range<usize>, u64)| self.frames[stack.0.start + depth] == frame;
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
        let ends_here = |stack: &(Range<usize>, u64)| stack.0.len() == node.depth;
        node.range.start + self.stacks[node.range.clone()].partition_point(ends_here)
    }

    /// The kept nodes, each before its children and these heaviest first, with what is folded.
    fn in_order(&self, nodes: &[Node], before: &[u128], smallest: u64) -> FlameTree {
        let mut children: Vec<usize> = (1..nodes.len()).filter(|number| nodes[*number].is_kept).collect();
        // Last in a stack is first out of it: the lightest first.
        children.sort_by_key(|number| (nodes[*number].parent, nodes[*number].weight, Reverse(*number)));
        let mut tree = FlameTree { smallest, ..FlameTree::default() };
        let mut push = |depth: usize, frame: u32, weight: u128| {
            tree.depth.push(depth as u32);
            tree.frame.push(frame);
            tree.weight.push(clamped(weight));
        };
        enum Step {
            Node(usize),
            Folded { depth: usize, weight: u128 },
        }
        let mut steps = vec![Step::Node(0)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Folded { depth, weight } => push(depth, OTHER, weight),
                Step::Node(number) => {
                    let node = &nodes[number];
                    push(node.depth, node.frame, node.weight);
                    let from = children.partition_point(|child| nodes[*child].parent < number);
                    let own = &children[from..];
                    let own = &own[..own.partition_point(|child| nodes[*child].parent == number)];
                    let shown: u128 = own.iter().map(|child| nodes[*child].weight).sum();
                    let folded = before[node.range.end] - before[self.ends_of_own(node)] - shown;
                    if folded > 0 {
                        steps.push(Step::Folded { depth: node.depth + 1, weight: folded });
                    }
                    steps.extend(own.iter().map(|child| Step::Node(*child)));
                }
            }
        }
        tree
    }
}

fn clamped(weight: u128) -> u64 {
    u64::try_from(weight).unwrap_or(u64::MAX)
}
