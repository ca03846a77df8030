//! From a demand to ordered ranges. Pure.
//!
//! Pages of a file are joined over small gaps (a request costs more than two unneeded pages), cut at a cap (so that a
//! range whose first page is wanted early does not drag late pages before other early ones), and sorted by the time of
//! their earliest page.

use crate::preload_plan::{Order, PlanOptions, PlannedFile, PlannedRange, PreloadPlan, Provenance};
use slowpath_analysis::io::merge::MergedDemand;
use slowpath_experiment::design::mixed;
use slowpath_tables::{PAGE_SIZE, Pages};

/// What [`build`] made, and what it had to leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// The plan.
    pub plan: PreloadPlan,
    /// Files without a recorded size or modification time: nothing could tell later whether they changed.
    pub unidentified_files: Vec<String>,
    /// Demanded pages beyond the end of their file as recorded.
    pub pages_beyond_end: u64,
}

struct Timed {
    /// First use of the earliest page, in the order of the demand.
    rank: usize,
    /// First use of the file, likewise.
    file_rank: usize,
    range: PlannedRange,
}

/// Builds a plan from a merged demand.
pub fn build(demand: &MergedDemand, options: &PlanOptions, provenance: Provenance) -> Built {
    let mut built = Built {
        plan: PreloadPlan { provenance, options: options.clone(), ..PreloadPlan::default() },
        ..Built::default()
    };
    // Pages of each file with the rank of their first use.
    let mut pages: Vec<Vec<(u64, usize)>> = vec![Vec::new(); demand.files.len()];
    for (rank, page) in demand.pages.iter().enumerate() {
        if let Some(pages) = pages.get_mut(page.file as usize) {
            pages.push((page.page, rank));
        }
    }
    let mut ranges: Vec<Timed> = Vec::new();
    for (file, mut pages) in demand.files.iter().zip(pages) {
        let (Some(size), Some(mtime_ns)) = (file.size, file.mtime) else {
            built.unidentified_files.push(file.path.clone());
            continue;
        };
        let file_rank = pages.first().map_or(usize::MAX, |(_, rank)| *rank);
        pages.sort_unstable();
        let end = size.div_ceil(PAGE_SIZE);
        let inside = pages.partition_point(|(page, _)| *page < end);
        built.pages_beyond_end += (pages.len() - inside) as u64;
        pages.truncate(inside);
        if pages.is_empty() {
            continue;
        }
        let number = u32::try_from(built.plan.files.len()).unwrap_or(u32::MAX);
        built.plan.files.push(PlannedFile { path: file.path.clone(), size, mtime_ns, build_id: file.build_id.clone() });
        if options.whole_files {
            let range = PlannedRange { file: number, page: Pages(0), pages: Pages(end) };
            ranges.push(Timed { rank: file_rank, file_rank, range });
        } else {
            let cap = (options.cap_bytes / PAGE_SIZE).max(1);
            join(&pages, options.gap_pages, cap, |rank, page, pages| {
                let range = PlannedRange { file: number, page: Pages(page), pages: Pages(pages) };
                ranges.push(Timed { rank, file_rank, range });
            });
        }
    }
    match options.order {
        Order::FirstUse => ranges.sort_by_key(|timed| timed.rank),
        Order::FileOffset => ranges.sort_by_key(|timed| (timed.file_rank, timed.range.file, timed.range.page)),
        Order::Shuffled(seed) => shuffle(&mut ranges, seed),
    }
    built.plan.ranges = ranges.into_iter().map(|timed| timed.range).collect();
    built
}

/// Joins sorted pages over gaps of up to `gap` pages into ranges of at most `cap` pages; calls `emit` with the smallest
/// rank of the range's pages, its first page and its length. Every range begins and ends with a needed page.
fn join(pages: &[(u64, usize)], gap: u64, cap: u64, mut emit: impl FnMut(usize, u64, u64)) {
    let mut current: Option<(usize, u64, u64)> = None;
    for &(page, rank) in pages {
        match &mut current {
            Some((least, first, last)) if page - *last <= gap.saturating_add(1) && page - *first < cap => {
                *last = page;
                *least = rank.min(*least);
            }
            _ => {
                if let Some((least, first, last)) = current.replace((rank, page, page)) {
                    emit(least, first, last - first + 1);
                }
            }
        }
    }
    if let Some((least, first, last)) = current {
        emit(least, first, last - first + 1);
    }
}

/// Fisher-Yates: an order that depends on the seed alone. The modulo's bias is below 2^-40 for any plan.
fn shuffle<T>(items: &mut [T], seed: u64) {
    for (draw, i) in (1..).zip((1..items.len()).rev()) {
        items.swap(i, (mixed(seed, draw) % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slowpath_analysis::io::demand::DemandedFile;
    use slowpath_analysis::io::merge::MergedPage;
    use std::collections::BTreeSet;

    fn demand(files: &[(&str, Option<u64>)], pages: &[(u32, u64)]) -> MergedDemand {
        MergedDemand {
            files: files
                .iter()
                .map(|(path, size)| DemandedFile {
                    path: (*path).to_owned(),
                    size: *size,
                    mtime: Some(1),
                    build_id: None,
                })
                .collect(),
            pages: pages
                .iter()
                .enumerate()
                .map(|(i, &(file, page))| MergedPage { file, page, at: i as f64 / 1e6, seen: 1 })
                .collect(),
            trainings: 1,
            ..MergedDemand::default()
        }
    }

    const MIB: Option<u64> = Some(1 << 20);

    fn ranges(demand: &MergedDemand, options: &PlanOptions) -> Vec<(u32, u64, u64)> {
        let built = build(demand, options, Provenance::default());
        built.plan.ranges.iter().map(|range| (range.file, range.page.0, range.pages.0)).collect()
    }

    #[test]
    fn pages_are_joined_over_small_gaps_only_and_sorted_by_the_earliest_use() {
        let demand = demand(&[("/a", MIB), ("/b", MIB)], &[(0, 20), (1, 5), (0, 3), (0, 0), (0, 7)]);
        // 0 and 3 are two unneeded pages apart, 3 and 7 three.
        assert_eq!(ranges(&demand, &PlanOptions::default()), [(0, 20, 1), (1, 5, 1), (0, 0, 4), (0, 7, 1)]);
    }

    #[test]
    fn a_range_is_no_longer_than_the_cap() {
        let demand = demand(&[("/a", MIB)], &(0..10).map(|page| (0, page)).collect::<Vec<_>>());
        let options = PlanOptions { cap_bytes: 4 * 4096, ..PlanOptions::default() };
        assert_eq!(ranges(&demand, &options), [(0, 0, 4), (0, 4, 4), (0, 8, 2)]);
    }

    #[test]
    fn by_offset_files_keep_the_order_of_their_first_use() {
        let demand = demand(&[("/a", MIB), ("/b", MIB)], &[(1, 50), (0, 90), (1, 10), (0, 30)]);
        let options = PlanOptions { order: Order::FileOffset, ..PlanOptions::default() };
        assert_eq!(ranges(&demand, &options), [(1, 10, 1), (1, 50, 1), (0, 30, 1), (0, 90, 1)]);
    }

    #[test]
    fn a_seed_decides_a_shuffled_order_of_the_same_ranges() {
        let demand = demand(&[("/a", Some(1 << 24))], &(0..50).map(|i| (0, i * 10)).collect::<Vec<_>>());
        let by = |order| ranges(&demand, &PlanOptions { order, ..PlanOptions::default() });
        assert_eq!(by(Order::Shuffled(1)), by(Order::Shuffled(1)));
        assert_ne!(by(Order::Shuffled(1)), by(Order::Shuffled(2)));
        assert_ne!(by(Order::Shuffled(1)), by(Order::FirstUse));
        assert_eq!(by(Order::Shuffled(1)).into_iter().collect::<BTreeSet<_>>().len(), 50);
    }

    #[test]
    fn a_seed_that_a_plan_names_has_the_same_order_for_good() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..10).collect();
            shuffle(&mut items, seed);
            items
        };
        // By the generator's reference implementation (Vigna, splitmix64.c), one number a step from the last place down.
        assert_eq!(shuffled(1), [4, 2, 8, 1, 9, 3, 0, 6, 7, 5]);
        assert_eq!(shuffled(2), [9, 8, 3, 2, 4, 6, 1, 7, 5, 0]);
    }

    #[test]
    fn the_rival_asks_for_each_needed_file_whole() {
        let demand = demand(&[("/a", Some(5000)), ("/b", MIB)], &[(1, 9), (0, 1)]);
        let options = PlanOptions { whole_files: true, ..PlanOptions::default() };
        assert_eq!(ranges(&demand, &options), [(1, 0, 256), (0, 0, 2)]);
    }

    #[test]
    fn pages_beyond_the_end_and_files_without_identity_are_left_out_and_counted() {
        let demand = demand(&[("/a", Some(5000)), ("/b", None)], &[(0, 1), (0, 2), (1, 0)]);
        let built = build(&demand, &PlanOptions::default(), Provenance::default());
        assert_eq!(built.plan.ranges.len(), 1);
        assert_eq!(built.plan.bytes().0, 5000 - 4096);
        assert_eq!(built.pages_beyond_end, 1);
        assert_eq!(built.unidentified_files, ["/b"]);
    }

    proptest! {
        #[test]
        fn every_needed_page_is_planned_once_and_no_range_begins_or_ends_in_a_gap(
            wanted in prop::collection::btree_set(0u64..400, 1..120), gap in 0u64..5, cap in 1u64..40
        ) {
            let demand = demand(&[("/a", Some(400 * 4096))], &wanted.iter().map(|&p| (0, p)).collect::<Vec<_>>());
            let options = PlanOptions { gap_pages: gap, cap_bytes: cap * 4096, ..PlanOptions::default() };
            let mut planned = BTreeSet::new();
            for (_, first, count) in ranges(&demand, &options) {
                prop_assert!(count <= cap);
                prop_assert!(wanted.contains(&first) && wanted.contains(&(first + count - 1)));
                for page in first..first + count {
                    prop_assert!(planned.insert(page), "page {} is planned twice", page);
                }
            }
            prop_assert!(planned.is_superset(&wanted));
        }
    }
}
