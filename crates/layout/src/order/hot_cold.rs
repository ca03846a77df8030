//! A split alone: what was used stands together, in the order in which it stood.
//!
//! Neighbours in a source file often work together, and an order that keeps them so needs no trace of the moment.

use super::algorithm::Algorithm;
use crate::work::Work;

pub(super) const ALGORITHM: Algorithm =
    Algorithm { name: "hot-cold", title: "functions that any trace uses, in their present order", order };

fn order(works: &[Work]) -> Vec<u64> {
    let mut order: Vec<u64> = works.iter().flatten().map(|used| used.address).collect();
    order.sort_unstable();
    order.dedup();
    order
}
