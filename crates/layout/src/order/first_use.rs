//! By first use: what is used early stands first. Of several works a function has its mean place.

use super::algorithm::Algorithm;
use super::ranks::ranks;
use crate::work::Work;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "first-use",
    title: "functions in the order of their first use, at their mean place in several traces",
    order,
};

fn order(works: &[Work]) -> Vec<u64> {
    let ranks = ranks(works);
    let mut order: Vec<u64> = ranks.keys().copied().collect();
    order.sort_by(|one, other| ranks[one].place.total_cmp(&ranks[other].place).then(one.cmp(other)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Used;

    fn work(addresses: &[u64]) -> Work {
        addresses.iter().map(|address| Used { address: *address, size: 16 }).collect()
    }

    #[test]
    fn one_trace_gives_its_own_order_and_two_agree_on_the_mean() {
        assert_eq!(order(&[work(&[5, 3, 9])]), [5, 3, 9]);
        assert_eq!(order(&[work(&[5, 3, 9]), work(&[5, 9, 3])]), [5, 3, 9]);
        assert_eq!(order(&[work(&[1, 2]), work(&[7])]), [1, 7, 2]);
        assert_eq!(order(&[]), [] as [u64; 0]);
    }
}
