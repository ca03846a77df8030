//! What an order saves, before anything is rebuilt: pages of code that a piece of work touches, and the faults that bring them.
//!
//! Owns the model: where functions stand in an order ([`Code::placed`]), which pages a work touches and in which sequence, and the faults
//! of those ([`faults`]). A function is taken to be touched as a whole, from its first byte to its last: a page that holds a part which
//! never runs counts, before as after. Leaves counting pages of a real process to others.

mod faults;
mod placement;

pub use faults::{Cost, cost};
pub use placement::{Code, Placement};

use crate::work::Work;

/// What a work costs where functions stand so.
pub fn of_work(placement: &Placement, work: &Work) -> Cost {
    cost(placement.page(), work.iter().flat_map(|used| placement.pages(used)))
}

/// The mean of costs; none of nothing.
pub fn mean(costs: &[Cost]) -> Option<Cost> {
    let count = costs.len() as f64;
    let mean = |figure: fn(&Cost) -> f64| costs.iter().map(figure).sum::<f64>() / count;
    (!costs.is_empty()).then(|| Cost {
        pages: mean(|cost| cost.pages),
        faults: mean(|cost| cost.faults),
        cold_faults: mean(|cost| cost.cold_faults),
        pages_read: mean(|cost| cost.pages_read),
    })
}

/// The mean cost of works as the functions stand now.
pub fn current(code: &Code, works: &[Work]) -> Option<Cost> {
    let placement = code.current();
    mean(&works.iter().map(|work| of_work(&placement, work)).collect::<Vec<_>>())
}

/// The mean cost of works in an order that was made from all of them.
pub fn train(code: &Code, works: &[Work], order: &[u64]) -> Option<Cost> {
    let placement = code.placed(order);
    mean(&works.iter().map(|work| of_work(&placement, work)).collect::<Vec<_>>())
}

/// The mean cost of works, each in an order that was made from all others; none where there is only one.
pub fn held_out(code: &Code, works: &[Work], make: fn(&[Work]) -> Vec<u64>) -> Option<Cost> {
    if works.len() < 2 {
        return None;
    }
    let without = |left_out: usize| {
        let others: Vec<Work> =
            works.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, work)| work.clone()).collect();
        of_work(&code.placed(&make(&others)), &works[left_out])
    };
    mean(&(0..works.len()).map(without).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::ALGORITHMS;
    use crate::work::Used;

    /// Functions of 256 bytes, 16 a page.
    fn code(count: u64) -> Code {
        let functions = (0..count).map(|n| Used { address: n * 256, size: 256 });
        Code::new(functions.collect(), Some(0..count * 256))
    }

    fn work(numbers: impl Iterator<Item = u64>) -> Work {
        numbers.map(|n| Used { address: n * 256, size: 256 }).collect()
    }

    #[test]
    fn scattered_functions_need_a_page_each_and_in_order_a_sixteenth() {
        let code = code(16 * 100);
        let work = work((0..64).map(|n| n * 16));
        assert_eq!(current(&code, std::slice::from_ref(&work)).unwrap().pages, 64.0);
        for algorithm in ALGORITHMS {
            let order = (algorithm.order)(std::slice::from_ref(&work));
            assert_eq!(train(&code, std::slice::from_ref(&work), &order).unwrap().pages, 4.0, "{}", algorithm.name);
        }
    }

    #[test]
    fn what_an_order_does_not_know_stays_scattered() {
        let code = code(16 * 100);
        let (known, unknown) = (work((0..32).map(|n| n * 16)), work((32..64).map(|n| n * 16)));
        let (first, both) = (ALGORITHMS[0].order, [known.clone(), unknown.clone()]);
        // Each half is unknown to the order of the other.
        assert_eq!(held_out(&code, &both, first).unwrap().pages, 32.0);
        assert_eq!(held_out(&code, &[known], first), None);
    }

    #[test]
    fn works_that_share_their_functions_lose_nothing_by_being_held_out() {
        let code = code(16 * 100);
        let same = work((0..64).map(|n| n * 16));
        let works = [same.clone(), same];
        let order = (ALGORITHMS[0].order)(&works);
        assert_eq!(held_out(&code, &works, ALGORITHMS[0].order), train(&code, &works, &order));
    }
}
