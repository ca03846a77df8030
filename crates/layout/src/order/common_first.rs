//! What most works use stands together, before what fewer use; within a group by first use.
//!
//! Work that was not traced uses the common part as a whole and little of the rest, so it touches fewer pages than where both are mixed.

use super::algorithm::Algorithm;
use super::ranks::ranks;
use crate::work::Work;
use std::cmp::Reverse;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "common-first",
    title: "functions that most traces use before those that fewer use, each group by first use",
    order,
};

fn order(works: &[Work]) -> Vec<u64> {
    let ranks = ranks(works);
    let mut order: Vec<u64> = ranks.keys().copied().collect();
    order.sort_by(|one, other| {
        let (rank, than) = (ranks[one], ranks[other]);
        Reverse(rank.works).cmp(&Reverse(than.works)).then(rank.place.total_cmp(&than.place)).then(one.cmp(other))
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Used;

    #[test]
    fn what_all_use_comes_before_what_one_uses_first() {
        let work = |addresses: &[u64]| addresses.iter().map(|address| Used { address: *address, size: 16 }).collect();
        assert_eq!(order(&[work(&[1, 8, 9]), work(&[2, 8, 9]), work(&[3, 9, 8])]), [8, 9, 1, 2, 3]);
    }
}
