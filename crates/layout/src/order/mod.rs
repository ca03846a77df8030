//! Orders of functions, made from traces: which come first in the file, and how each linker gets them.
//!
//! Owns the algorithms, one file each ([`ALGORITHMS`]), the choice between them by work that an order was not made from ([`chosen`]), the
//! forms that linkers read, one file each ([`FORMATS`]), and names that a rebuild changes ([`names`]). Leaves what an order saves to
//! [`crate::score`], and what orders are made from to [`crate::work`].

mod algorithm;
mod balanced;
mod common_first;
mod first_use;
mod formats;
mod hot_cold;
pub mod names;
mod ranks;
mod same_users;

pub use algorithm::Algorithm;
pub use formats::{FORMATS, Format, OrderedFunction, read_names};

use crate::score::{Code, held_out};
use crate::trace_file::FirstUse;
use crate::work::Work;
use std::collections::HashMap;

/// All of them; where two are equally good, the first is taken.
pub const ALGORITHMS: &[Algorithm] =
    &[first_use::ALGORITHM, common_first::ALGORITHM, balanced::ALGORITHM, same_users::ALGORITHM, hot_cold::ALGORITHM];

/// The algorithm of this name.
pub fn algorithm(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|one| one.name == name)
}

/// The algorithm whose orders touch the fewest pages on work that they were not made from (each work is left out once). With a single
/// work nothing can be left out, and the order of its first uses is all that is known.
pub fn chosen(works: &[Work], code: &Code) -> &'static Algorithm {
    let pages = |one: &&Algorithm| held_out(code, works, one.order).map_or(0, |cost| cost.pages.ceil() as u64);
    ALGORITHMS.iter().min_by_key(pages).unwrap_or(&first_use::ALGORITHM)
}

/// Functions of an order with their names, from the traces that know them.
pub fn named(order: &[u64], uses: &[&FirstUse]) -> Vec<OrderedFunction> {
    let names: HashMap<u64, &FirstUse> = uses.iter().map(|one| (one.address, *one)).collect();
    let named = |address: &u64| {
        let used = names.get(address)?;
        Some(OrderedFunction { name: used.name.clone()?, size: used.size })
    };
    order.iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Used;
    use proptest::prelude::*;

    fn works() -> impl Strategy<Value = Vec<Work>> {
        let work = proptest::collection::vec(0u64..200, 0..120).prop_map(|addresses| {
            let mut seen = std::collections::HashSet::new();
            let once = addresses.into_iter().filter(|address| seen.insert(*address));
            once.map(|address| Used { address: address * 64, size: 1 + address % 300 }).collect()
        });
        proptest::collection::vec(work, 0..5)
    }

    proptest! {
        #[test]
        fn every_algorithm_orders_what_was_used_and_each_function_once(works in works()) {
            let mut all: Vec<u64> = works.iter().flatten().map(|used| used.address).collect();
            all.sort_unstable();
            all.dedup();
            for algorithm in ALGORITHMS {
                let mut order = (algorithm.order)(&works);
                prop_assert_eq!(&order, &(algorithm.order)(&works), "{} is not the same twice", algorithm.name);
                order.sort_unstable();
                prop_assert_eq!(&order, &all, "{}", algorithm.name);
            }
        }
    }

    #[test]
    fn names_of_algorithms_and_formats_are_their_own() {
        let names: Vec<_> = ALGORITHMS.iter().map(|one| one.name).chain(FORMATS.iter().map(|one| one.name)).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
    }
}
