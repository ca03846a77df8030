//! Where functions stand, now and in an order.

use crate::work::{self, Used, Work};
use slowpath_tables::{PAGE_SIZE, page_of_kernel};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

/// What compilers align functions to at most (`-falign-functions` of GCC and Clang at -O2 on x86-64).
const ALIGNMENT: u64 = 16;

/// What a function is aligned to, as far as its address shows: at -Os most are not.
fn alignment(address: u64) -> u64 {
    1 << address.trailing_zeros().min(ALIGNMENT.trailing_zeros())
}

/// No compiler makes a larger function; what a trace says is foreign.
const LARGEST: u64 = 1 << 26;

/// The code of a binary: its functions as they stand now.
#[derive(Clone, Debug)]
pub struct Code {
    /// Sorted by address, each once.
    functions: Vec<Used>,
    /// For functions whose name others have too: all of that name, by address. Compilers make copies of inlined and generic functions, and
    /// a linker that is given the name moves all of them.
    namesakes: HashMap<u64, Rc<[u64]>>,
    /// Addresses that a linker can fill in another order: its section `.text`.
    movable: Option<Range<u64>>,
    /// Bytes of a page of the kernel that it starts on.
    page: u64,
}

/// Where each function stands.
#[derive(Clone, Debug)]
pub struct Placement {
    /// New addresses of functions that have moved.
    moved: HashMap<u64, u64>,
    /// Bytes of a page.
    page: u64,
}

impl Code {
    /// Functions, and the addresses in which an order moves them (none: all).
    pub fn new(mut functions: Vec<Used>, movable: Option<Range<u64>>) -> Self {
        functions.sort_by_key(|function| function.address);
        functions.dedup_by_key(|function| function.address);
        Self { functions, namesakes: HashMap::new(), movable, page: PAGE_SIZE }
    }

    /// As a kernel with pages of so many bytes maps it: the one that traces are from ([`crate::trace_file::page_of`]).
    #[must_use]
    pub fn on_pages_of(mut self, bytes: u64) -> Self {
        self.page = page_of_kernel(bytes);
        self
    }

    /// Bytes of a page of the kernel that it starts on; 4 KiB where none was named.
    pub fn page(&self) -> u64 {
        self.page
    }

    /// With the names of functions, by address.
    #[must_use]
    pub fn with_names<'a>(mut self, names: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut by_name: HashMap<&str, Vec<u64>> = HashMap::new();
        for (name, address) in names {
            by_name.entry(name).or_default().push(address);
        }
        for addresses in by_name.into_values().filter(|addresses| addresses.len() > 1) {
            let all: Rc<[u64]> = addresses.into();
            self.namesakes.extend(all.iter().map(|address| (*address, Rc::clone(&all))));
        }
        self
    }

    /// What is known without the binary: the functions that works used.
    pub fn of_works(works: &[Work]) -> Self {
        Self::new(work::all_used(works), None)
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Bytes of all functions.
    pub fn bytes(&self) -> u64 {
        self.functions.iter().map(|function| function.size).fold(0, u64::saturating_add)
    }

    fn is_movable(&self, address: u64) -> bool {
        self.movable.as_ref().is_none_or(|movable| movable.contains(&address))
    }

    /// As they stand now.
    pub fn current(&self) -> Placement {
        Placement { moved: HashMap::new(), page: self.page }
    }

    /// In an order: its functions first, one behind the other, then all others as they followed each other. Where the binary is not known,
    /// others stay where they are.
    pub fn placed(&self, order: &[u64]) -> Placement {
        let sizes: HashMap<u64, u64> =
            self.functions.iter().map(|function| (function.address, function.size)).collect();
        let mut moved = HashMap::with_capacity(order.len());
        let knows_all = self.movable.is_some();
        // Far from everything, on a page of its own, where it is not known what comes behind.
        let mut next = self.movable.as_ref().map_or(1 << 60, |movable| movable.start);
        let mut put = |address: u64, size: u64, moved: &mut HashMap<u64, u64>| {
            if let std::collections::hash_map::Entry::Vacant(free) = moved.entry(address) {
                let alignment = alignment(address);
                let at = next.saturating_add(alignment - 1) / alignment * alignment;
                free.insert(at);
                next = at.saturating_add(size);
            }
        };
        for address in order {
            let namesakes = self.namesakes.get(address).map_or(&[][..], |all| all);
            for one in [address].into_iter().chain(namesakes).filter(|one| self.is_movable(**one)) {
                if let Some(size) = sizes.get(one) {
                    put(*one, *size, &mut moved);
                }
            }
        }
        if knows_all {
            for function in self.functions.iter().filter(|function| self.is_movable(function.address)) {
                put(function.address, function.size, &mut moved);
            }
        }
        Placement { moved, page: self.page }
    }
}

impl Placement {
    /// Bytes of a page.
    pub fn page(&self) -> u64 {
        self.page
    }

    /// The pages of a function, by their numbers.
    pub fn pages(&self, function: &Used) -> RangeInclusive<u64> {
        let at = self.moved.get(&function.address).copied().unwrap_or(function.address);
        let size = function.size.clamp(1, LARGEST);
        at / self.page..=at.saturating_add(size - 1) / self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_two_functions_stand_in_the_same_place(
            sizes in proptest::collection::vec(1u64..3000, 1..80),
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut at = 0x1000;
            let functions: Vec<Used> = sizes.iter().map(|size| { let one = Used { address: at, size: *size }; at += size; one }).collect();
            let code = Code::new(functions.clone(), Some(0x1000..at));
            let order: Vec<u64> = picks.iter().map(|pick| functions[pick.index(functions.len())].address).collect();
            let place = code.placed(&order);
            let mut ranges: Vec<_> = functions.iter().map(|one| { let to = place.moved[&one.address]; to..to + one.size }).collect();
            ranges.sort_by_key(|range| range.start);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }

    #[test]
    fn all_functions_of_a_name_move_together() {
        let function = |address| Used { address, size: 0x800 };
        let functions = vec![function(0x1000), function(0x2000), function(0x3000), function(0x4000)];
        let names = [("copied", 0x2000), ("one", 0x3000), ("copied", 0x4000)];
        let code = Code::new(functions, Some(0x1000..0x5000)).with_names(names.into_iter());
        let place = code.placed(&[0x4000, 0x3000]);
        let pages = |address| place.pages(&function(address));
        assert_eq!((pages(0x4000), pages(0x2000), pages(0x3000), pages(0x1000)), (1..=1, 1..=1, 2..=2, 2..=2));
    }

    #[test]
    fn a_kernel_with_larger_pages_needs_fewer_of_them() {
        let functions: Vec<Used> = (0..64).map(|at| Used { address: 0x1_0000 + at * 0x1000, size: 0x800 }).collect();
        let code = Code::new(functions.clone(), Some(0x1_0000..0x5_0000));
        let pages = |bytes| {
            let place = code.clone().on_pages_of(bytes).current();
            functions.iter().flat_map(|one| place.pages(one)).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!([4 << 10, 16 << 10, 64 << 10].map(pages), [64, 16, 4]);
        assert_eq!((pages(0), pages(12_288)), (64, 64), "what no kernel has is one of 4 KiB");
    }

    #[test]
    fn functions_keep_the_alignment_that_they_have() {
        let functions = vec![Used { address: 0x1001, size: 9 }, Used { address: 0x1010, size: 9 }];
        let code = Code::new(functions, Some(0x1001..0x2000));
        let places = |order: &[u64]| (code.placed(order).moved[&0x1001], code.placed(order).moved[&0x1010]);
        assert_eq!(places(&[0x1001, 0x1010]), (0x1001, 0x1010));
        assert_eq!(places(&[0x1010, 0x1001]), (0x1019, 0x1010));
    }

    #[test]
    fn what_no_linker_moves_stays() {
        let function = |address| Used { address, size: 64 };
        let code = Code::new(vec![function(0x1000), function(0x5000), function(0x6000)], Some(0x5000..0x7000));
        let place = code.placed(&[0x1000, 0x6000]);
        assert_eq!(place.pages(&function(0x1000)), 1..=1);
        assert_eq!(place.pages(&function(0x6000)), 5..=5);
        assert_eq!(place.pages(&function(0x5000)), 5..=5);
        let huge = Used { address: u64::MAX - 5, size: u64::MAX };
        assert_eq!(place.pages(&huge).count(), 1);
    }
}
