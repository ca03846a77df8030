//! Balanced partitioning (Hoag, Lee, Mestre, Pupyrev, Zhu: "Optimizing Function Layout for Mobile Applications", arXiv 2211.09285).
//!
//! Functions and *utilities* are the two sides of a graph; functions that share utilities belong near each other. The utilities of a
//! function are the beginnings of works in which it was used: a work's first 2^k functions, for every k from the first in which it is. The
//! functions are halved so that the sum over utilities of `l·log2(l+1) + r·log2(r+1)` is large (`l`, `r`: members in the left and right
//! half), by exchanging the pairs that gain most, and each half is halved again.

use super::algorithm::Algorithm;
use crate::work::Work;
use slowpath_experiment::design::mixed;
use std::collections::HashMap;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "balanced",
    title: "balanced partitioning: functions that are used in the same prefixes of traces are grouped (Meta 2022)",
    order,
};

/// Rounds of exchanges at one level; they end early when none gains.
const ROUNDS: usize = 20;
/// Halves of fewer functions than this stay as they are: they fit a page or two.
const SMALLEST: usize = 4;

struct Node {
    address: u64,
    /// Place by first use.
    place: usize,
    utilities: Vec<u32>,
}

fn order(works: &[Work]) -> Vec<u64> {
    let mut nodes = nodes(works);
    halve(&mut nodes);
    nodes.into_iter().map(|node| node.address).collect()
}

/// Functions with their utilities.
fn nodes(works: &[Work]) -> Vec<Node> {
    let mut utilities: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut first = 0u32;
    for work in works {
        let levels = work.len().max(1).ilog2() + 2;
        for (place, used) in work.iter().enumerate() {
            // The first level whose 2^k functions hold this place.
            let from = (place + 1).next_power_of_two().ilog2();
            utilities.entry(used.address).or_default().extend((from..levels).map(|level| first + level));
        }
        first += levels;
    }
    let by_first_use = (super::first_use::ALGORITHM.order)(works);
    let node = |(place, address)| Node { address, place, utilities: utilities.remove(&address).unwrap_or_default() };
    by_first_use.into_iter().enumerate().map(node).collect()
}

/// Orders functions by halving them again and again. It goes as deep as the list's length has bits.
fn halve(nodes: &mut [Node]) {
    if nodes.len() < 2 * SMALLEST {
        nodes.sort_by_key(|node| node.place);
        return;
    }
    // Works that alternate by first use would be halved evenly, which no exchange betters: a mixture never is even. By a number that has
    // nothing to do with where a function stands, and is the same each time.
    nodes.sort_by_key(|node| (mixed(node.address, 0), node.place));
    let middle = nodes.len() / 2;
    for _ in 0..ROUNDS {
        if !exchange(nodes, middle) {
            break;
        }
    }
    let mean = |half: &[Node]| half.iter().map(|node| node.place as f64).sum::<f64>() / half.len() as f64;
    let is_late = mean(&nodes[..middle]) > mean(&nodes[middle..]);
    if is_late {
        // What is used first comes first.
        nodes.rotate_left(middle);
    }
    let (left, right) = nodes.split_at_mut(if is_late { nodes.len() - middle } else { middle });
    halve(left);
    halve(right);
}

/// Members of a utility in the left and in the right half.
type Members = HashMap<u32, (f64, f64)>;

/// Exchanges pairs of functions that gain; whether there were any.
fn exchange(nodes: &mut [Node], middle: usize) -> bool {
    let mut members = Members::new();
    for (at, node) in nodes.iter().enumerate() {
        for utility in &node.utilities {
            let (left, right) = members.entry(*utility).or_default();
            *(if at < middle { left } else { right }) += 1.0;
        }
    }
    let best_first = |range: std::ops::Range<usize>| {
        let from_left = range.start == 0;
        let mut gains: Vec<(f64, usize)> = range.map(|at| (gain(&members, &nodes[at], from_left), at)).collect();
        gains.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        gains
    };
    let (left, right) = (best_first(0..middle), best_first(middle..nodes.len()));
    let mut has_exchanged = false;
    for ((_, one), (_, other)) in left.into_iter().zip(right) {
        // What was exchanged before has changed what this pair is worth.
        let before = gain(&members, &nodes[one], true);
        shift(&mut members, &nodes[one], true);
        let gained = before + gain(&members, &nodes[other], false);
        if gained <= 1e-9 {
            shift(&mut members, &nodes[one], false);
            continue;
        }
        shift(&mut members, &nodes[other], false);
        nodes.swap(one, other);
        has_exchanged = true;
    }
    has_exchanged
}

/// What it gains to move a function to the other half.
fn gain(members: &Members, node: &Node, from_left: bool) -> f64 {
    let one = |utility: &u32| {
        let (left, right) = members.get(utility).copied().unwrap_or_default();
        let (from, to) = if from_left { (left, right) } else { (right, left) };
        closeness(from - 1.0) + closeness(to + 1.0) - closeness(from) - closeness(to)
    };
    node.utilities.iter().map(one).sum()
}

/// Counts a function in the other half.
fn shift(members: &mut Members, node: &Node, from_left: bool) {
    for utility in &node.utilities {
        let (left, right) = members.entry(*utility).or_default();
        let (from, to) = if from_left { (left, right) } else { (right, left) };
        *from -= 1.0;
        *to += 1.0;
    }
}

/// What `count` functions of a utility in one half are worth: more than linear, so that they gather.
fn closeness(count: f64) -> f64 {
    count * (count + 1.0).max(1.0).log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Used;

    #[test]
    fn functions_of_different_works_are_kept_apart() {
        // Two works that share nothing, of 40 functions each, traced with equal progress: first use alternates between them.
        let work = |base: u64| -> Work { (0..40).map(|n| Used { address: base + n * 16, size: 16 }).collect() };
        let order = order(&[work(0), work(100_000)]);
        let sides: Vec<bool> = order.iter().map(|address| *address >= 100_000).collect();
        let changes = sides.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 4, "{changes} changes between the works in {sides:?}");
    }
}
