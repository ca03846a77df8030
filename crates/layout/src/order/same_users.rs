//! Functions that the same works use stand together; groups follow each other by how alike their users are.
//!
//! A page is then used as a whole or not at all, by most works, and what a work uses lies in few runs: the first group is that of most
//! users, and behind each stands the one that shares most of its users with it (Jaccard index). Within a group functions keep the order in
//! which they stand: neighbours of a source file often work together, and a reader of 128 KiB around a fault likes runs. On CPython with
//! ten works this needs fewer pages than balanced partitioning, for what it was made from and for what it was not
//! (docs/measurements, layout-rebuild).

use super::algorithm::Algorithm;
use crate::work::Work;
use std::collections::{BTreeMap, HashMap};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "same-users",
    title: "functions that the same traces use are grouped, each group behind the one with the most similar traces",
    order,
};

/// Which works use a function: a bit for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Users(Vec<u64>);

impl Users {
    fn none(works: usize) -> Self {
        Self(vec![0; works.div_ceil(64)])
    }

    fn add(&mut self, work: usize) {
        if let Some(word) = self.0.get_mut(work / 64) {
            *word |= 1 << (work % 64);
        }
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Users in both, of the users in either: 0 to 1.
    fn alike(&self, other: &Self) -> f64 {
        let pairs = || self.0.iter().zip(&other.0);
        let both: u32 = pairs().map(|(one, other)| (one & other).count_ones()).sum();
        let either: u32 = pairs().map(|(one, other)| (one | other).count_ones()).sum();
        f64::from(both) / f64::from(either.max(1))
    }
}

fn order(works: &[Work]) -> Vec<u64> {
    let mut users: HashMap<u64, Users> = HashMap::new();
    for (number, work) in works.iter().enumerate() {
        for used in work {
            users.entry(used.address).or_insert_with(|| Users::none(works.len())).add(number);
        }
    }
    // In the order of their users: the same each time.
    let mut groups: BTreeMap<Users, Vec<u64>> = BTreeMap::new();
    for (address, users) in users {
        groups.entry(users).or_default().push(address);
    }
    let mut order = Vec::new();
    let mut last: Option<Users> = None;
    let rank = |users: &Users, last: Option<&Users>| (last.map_or(0.0, |last| users.alike(last)), users.count());
    let next = |groups: &BTreeMap<Users, Vec<u64>>, last: Option<&Users>| {
        groups
            .keys()
            .map(|users| (rank(users, last), users))
            .max_by(|((one, most), _), ((other, than), _)| one.total_cmp(other).then(most.cmp(than)))
            .map(|(_, users)| users.clone())
    };
    while let Some(users) = next(&groups, last.as_ref()) {
        let mut functions = groups.remove(&users).unwrap_or_default();
        functions.sort_unstable();
        order.append(&mut functions);
        last = Some(users);
    }
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
    fn groups_of_the_same_users_follow_each_other_by_likeness() {
        // 5 and 6: all; 4: the first two; 1 and 7: the first; 2: the third alone.
        let works = [work(&[7, 6, 4, 1, 5]), work(&[5, 4, 6]), work(&[6, 5, 2])];
        assert_eq!(order(&works), [5, 6, 4, 1, 7, 2]);
    }

    #[test]
    fn a_single_work_is_one_group_as_it_stands() {
        assert_eq!(order(&[work(&[9, 3, 7])]), [3, 7, 9]);
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn more_works_than_a_word_has_bits_are_told_apart() {
        // Each of 130 works has a function of its own, and one that it shares with all.
        let works: Vec<Work> = (0..130).map(|number| work(&[1000, number])).collect();
        let order = order(&works);
        assert_eq!((order.len(), order[0]), (131, 1000));
    }
}
