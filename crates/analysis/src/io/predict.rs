//! How long a launch will take with a preload plan, said before any launch is treated.
//!
//! Owns the model. It walks the pages of a training launch in the order of first demand on the time line of a *warm*
//! launch (the training's, with waiting for reads taken out, scaled to the measured warm median) and compares each
//! demand with the moment at which the prefetcher has brought the page:
//!
//! - the prefetcher starts with the launch and needs [`PrefetchCosts::startup`] before its first request; request *k*
//!   is complete when it and all before it have taken [`PrefetchCosts::per_request`] each and their bytes have passed
//!   at [`PrefetchCosts::bytes_per_second`];
//! - a page that is planned but not there yet delays everything after it until it is;
//! - a page that is not planned costs [`PrefetchCosts::miss`] and brings [`PrefetchCosts::miss_pages`] around it.
//!
//! Left out, and therefore sources of error: threads that wait in parallel (the model is one line, so it predicts too
//! long), contention between misses and prefetch (too short), and pages other programs keep resident.
//!
//! Leaves measuring the costs and making plans to others; plans come in through a function, so that each training can
//! be predicted with a plan made from the others.

use crate::interval::summarize;
use crate::io::demand::Demand;
use slowpath_tables::{PAGE_SIZE, Quantity, Unit};
use std::collections::HashMap;

/// What prefetching costs on this machine, measured by a dry run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefetchCosts {
    /// From release of exec to the prefetcher's first request, ms.
    pub startup: f64,
    /// Throughput of the plan's requests, bytes a second.
    pub bytes_per_second: f64,
    /// Fixed cost of a request, ms.
    pub per_request: f64,
    /// Cost of a demand read that was not planned, ms.
    pub miss: f64,
    /// Pages that such a read brings around the page (the readahead window); 1 for none.
    pub miss_pages: u64,
}

/// A plan as the model sees it: requests in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Paths of the files.
    pub paths: Vec<String>,
    /// Index into `paths`, first page, number of pages.
    pub ranges: Vec<(u32, u64, u64)>,
}

/// What the model says of one training launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// Time to ready, ms.
    pub total: f64,
    /// Waiting for planned pages that were not there yet, ms.
    pub waits: f64,
    /// Demands that waited.
    pub waited: u64,
    /// Demand reads that were not planned.
    pub misses: u64,
    /// Pages demanded before ready.
    pub pages: u64,
}

/// A prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Predicted time to ready, ms; the interval comes from predicting each training with a plan made of the others.
    pub time: Quantity,
    /// One walk a training.
    pub walks: Vec<Walk>,
    /// True when every training was predicted with a plan made of other trainings.
    pub cross_validated: bool,
}

/// Walks one training launch against one plan; `warm` is the measured warm median in ms.
pub fn walk(training: &Demand, schedule: &Schedule, costs: &PrefetchCosts, warm: f64) -> Walk {
    let mut available = availability(schedule, costs);
    let unblocked = training.unblocked_launch.as_ms();
    let scale = if unblocked > 0.0 { warm / unblocked } else { 0.0 };
    let mut walk = Walk { total: warm, waits: 0.0, waited: 0, misses: 0, pages: 0 };
    let mut delay = 0.0f64;
    for demanded in training.pages_until_ready() {
        walk.pages += 1;
        let path = training.files[demanded.file as usize].path.as_str();
        let now = demanded.unblocked_at.as_ms() * scale + delay;
        let pages = available.entry(path).or_default();
        match pages.get(&demanded.page) {
            Some(&there) if there <= now => {}
            Some(&there) => {
                walk.waits += there - now;
                walk.waited += 1;
                delay += there - now;
            }
            None => {
                walk.misses += 1;
                delay += costs.miss;
                // The kernel reads around a faulting page: half a window before it, half after
                // (`do_sync_mmap_readahead`).
                let first = demanded.page.saturating_sub(costs.miss_pages / 2);
                for page in first..first.saturating_add(costs.miss_pages.max(1)) {
                    let there = pages.entry(page).or_insert(now + costs.miss);
                    *there = there.min(now + costs.miss);
                }
            }
        }
    }
    walk.total = warm + delay;
    walk
}

/// When each planned page is there, ms since release; the first request that holds a page counts.
fn availability<'a>(schedule: &'a Schedule, costs: &PrefetchCosts) -> HashMap<&'a str, HashMap<u64, f64>> {
    let mut available: HashMap<&str, HashMap<u64, f64>> = HashMap::new();
    let mut time = costs.startup;
    for &(file, first, count) in &schedule.ranges {
        let Some(path) = schedule.paths.get(file as usize) else { continue };
        let bytes = count.saturating_mul(PAGE_SIZE) as f64;
        let transfer = if costs.bytes_per_second > 0.0 { bytes / costs.bytes_per_second * 1e3 } else { f64::INFINITY };
        time += costs.per_request + transfer;
        let pages = available.entry(path).or_default();
        for page in first..first.saturating_add(count) {
            pages.entry(page).or_insert(time);
        }
    }
    available
}

/// Predicts the time to ready with plans made by `plan` from trainings.
///
/// With two and more trainings each is predicted with the plan of the others; a single training is predicted with its
/// own plan, which flatters the plan and gives no interval. `None` without trainings.
pub fn predict(
    trainings: &[&Demand],
    plan: impl Fn(&[&Demand]) -> Schedule,
    costs: &PrefetchCosts,
    warm: f64,
) -> Option<Prediction> {
    let cross_validated = trainings.len() >= 2;
    let walks: Vec<Walk> = (0..trainings.len())
        .map(|left_out| {
            let others: Vec<&Demand> = trainings
                .iter()
                .enumerate()
                .filter(|(index, _)| !cross_validated || *index != left_out)
                .map(|(_, training)| *training)
                .collect();
            walk(trainings[left_out], &plan(&others), costs, warm)
        })
        .collect();
    let totals: Vec<f64> = walks.iter().map(|walk| walk.total).collect();
    Some(Prediction { time: summarize(&totals, Unit::Ms)?, walks, cross_validated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::demand::{DemandedFile, DemandedPage};
    use crate::io::insertions::Cause;
    use slowpath_tables::{Nanos, ProcessKey};

    const MS: u64 = 1_000_000;
    /// One page takes 1 ms to transfer, no other costs.
    const COSTS: PrefetchCosts =
        PrefetchCosts { startup: 0.0, bytes_per_second: 4096.0 * 1000.0, per_request: 0.0, miss: 5.0, miss_pages: 1 };

    fn training(pages: &[(u64, u64)]) -> Demand {
        let page = |&(ms, page): &(u64, u64)| DemandedPage {
            file: 0,
            page,
            at: Nanos(ms * MS),
            unblocked_at: Nanos(ms * MS),
            process: ProcessKey::default(),
            tid: 1,
            cause: Cause::Fault,
        };
        Demand {
            files: vec![DemandedFile { path: "/a".to_owned(), size: None, mtime: None, build_id: None }],
            pages: pages.iter().map(page).collect(),
            launch: Nanos(100 * MS),
            unblocked_launch: Nanos(100 * MS),
        }
    }

    fn schedule(ranges: &[(u64, u64)]) -> Schedule {
        Schedule { paths: vec!["/a".to_owned()], ranges: ranges.iter().map(|&(first, n)| (0, first, n)).collect() }
    }

    fn total(demand: &[(u64, u64)], plan: &[(u64, u64)], costs: PrefetchCosts, warm: f64) -> f64 {
        walk(&training(demand), &schedule(plan), &costs, warm).total
    }

    #[test]
    fn pages_that_are_there_in_time_cost_nothing() {
        assert_eq!(total(&[(1, 0), (2, 1), (50, 2)], &[(0, 1), (1, 1), (2, 1)], COSTS, 100.0), 100.0);
    }

    #[test]
    fn a_late_page_delays_all_that_follows_once() {
        // Demanded at 1, 2, 3 ms; there at 4 ms (one request of 4 pages): waits 3 ms, then the others are there.
        assert_eq!(total(&[(1, 0), (2, 1), (3, 2)], &[(0, 4)], COSTS, 100.0), 103.0);
    }

    #[test]
    fn startup_and_request_costs_shift_the_arrival() {
        let costs = PrefetchCosts { startup: 10.0, per_request: 2.0, ..COSTS };
        // There at 10 + 3 = 13 and at 16 ms; demanded at 0 and at 0 + 13.
        assert_eq!(total(&[(0, 0), (0, 1)], &[(0, 1), (1, 1)], costs, 100.0), 116.0);
    }

    #[test]
    fn a_page_outside_the_plan_costs_a_cold_read_and_brings_its_neighbours() {
        assert_eq!(total(&[(1, 0), (2, 1)], &[], COSTS, 100.0), 110.0);
        let around = PrefetchCosts { miss_pages: 4, ..COSTS };
        assert_eq!(total(&[(1, 8), (2, 6), (3, 9), (4, 10)], &[], around, 100.0), 110.0);
    }

    #[test]
    fn a_plan_in_the_wrong_order_waits_for_the_pages_before() {
        let demand = [(0, 0), (50, 1)];
        assert_eq!(total(&demand, &[(0, 1), (1, 1)], COSTS, 100.0), 101.0);
        assert_eq!(total(&demand, &[(1, 1), (0, 1)], COSTS, 100.0), 102.0);
    }

    #[test]
    fn the_time_line_is_scaled_to_the_warm_median() {
        // At 200 ms warm the demand of 2 ms happens at 4 ms, when the 4 pages are just there.
        assert_eq!(total(&[(2, 0)], &[(0, 4)], COSTS, 200.0), 200.0);
        assert_eq!(total(&[(2, 0)], &[(0, 4)], COSTS, 50.0), 53.0);
    }

    #[test]
    fn a_slower_disk_never_predicts_a_faster_launch() {
        let demand: Vec<(u64, u64)> = (0..40).map(|i| (i, (i * 7) % 40)).collect();
        let plan: Vec<(u64, u64)> = demand.iter().map(|&(_, page)| (page, 1)).collect();
        let times: Vec<f64> = [1e8, 1e7, 1e6, 1e5]
            .map(|speed| total(&demand, &plan, PrefetchCosts { bytes_per_second: speed, ..COSTS }, 40.0))
            .to_vec();
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[3] > times[0]);
    }

    #[test]
    fn each_training_is_predicted_with_the_plan_of_the_others() {
        let plan = |trainings: &[&Demand]| {
            let pages = trainings.iter().flat_map(|t| &t.pages).map(|p| (0, p.page, 1)).collect();
            Schedule { paths: vec!["/a".to_owned()], ranges: pages }
        };
        let (a, b) = (training(&[(50, 1)]), training(&[(50, 2)]));
        let both = predict(&[&a, &b], plan, &COSTS, 100.0).unwrap();
        assert!(both.cross_validated);
        assert_eq!(both.walks.iter().map(|walk| walk.misses).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(both.time.value, 105.0);
        let one = predict(&[&a], plan, &COSTS, 100.0).unwrap();
        assert_eq!((one.time.value, one.time.low, one.cross_validated), (100.0, None, false));
        assert!(predict(&[], plan, &COSTS, 100.0).is_none());
    }
}
