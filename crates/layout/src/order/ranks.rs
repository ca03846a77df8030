//! Where functions stand in several works: the basis of merged orders.

use crate::work::Work;
use std::collections::BTreeMap;

/// What several works say of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rank {
    /// Works that used it.
    pub works: u32,
    /// Mean of its places in those, from 0 (first) to 1 (last).
    pub place: f64,
}

/// All functions of all works by address.
pub(super) fn ranks(works: &[Work]) -> BTreeMap<u64, Rank> {
    let mut ranks: BTreeMap<u64, Rank> = BTreeMap::new();
    for work in works {
        let length = work.len().max(1) as f64;
        for (place, used) in work.iter().enumerate() {
            let rank = ranks.entry(used.address).or_default();
            rank.works += 1;
            rank.place += place as f64 / length;
        }
    }
    for rank in ranks.values_mut() {
        rank.place /= f64::from(rank.works);
    }
    ranks
}
