//! One demand out of several training launches.
//!
//! Threads run in another order in every launch, so chronological logs differ. Owns the rule that reconciles them:
//! a page is kept when at least half of the trainings demanded it before ready, and pages are ordered by the median of
//! their first demand, as a share of the launch's time to ready. Leaves ranges and files on disk to the `fix` crate.

use crate::integer_hash::IntegerMap;
use crate::interval::median;
use crate::io::demand::{Demand, DemandedFile};
use std::collections::HashMap;

/// A page that the trainings agree on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergedPage {
    /// Index into [`MergedDemand::files`].
    pub file: u32,
    /// Page in the file.
    pub page: u64,
    /// Median of the first demand; 0 is the release of exec, 1 is ready.
    pub at: f64,
    /// In how many trainings it was demanded before ready.
    pub seen: u32,
}

/// What several trainings demanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedDemand {
    /// Files with at least one kept page, in the order of their first page.
    pub files: Vec<DemandedFile>,
    /// Kept pages by order of first demand.
    pub pages: Vec<MergedPage>,
    /// How many trainings there were.
    pub trainings: usize,
    /// Pages that fewer than half of the trainings demanded.
    pub dropped_pages: u64,
    /// Files that changed between the trainings: only trainings that saw the content of the last one count for them.
    pub changed_files: Vec<String>,
}

/// Merges trainings; the last one decides which content of a file is the present one.
pub fn merge(trainings: &[&Demand]) -> MergedDemand {
    let mut merged = MergedDemand { trainings: trainings.len(), ..MergedDemand::default() };
    let mut present: HashMap<&str, &DemandedFile> = HashMap::new();
    for file in trainings.iter().flat_map(|training| &training.files) {
        if let Some(older) = present.insert(&file.path, file)
            && older != file
            && !merged.changed_files.contains(&file.path)
        {
            merged.changed_files.push(file.path.clone());
        }
    }
    // Present files by number; a training's file that is not the present one has none.
    let numbered: Vec<&DemandedFile> = {
        let mut files: Vec<&DemandedFile> = present.into_values().collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    };
    let number = |file: &DemandedFile| {
        let at = numbered.binary_search_by(|other| other.path.cmp(&file.path)).ok()?;
        (numbered[at] == file).then_some(at)
    };
    let mut times: IntegerMap<(usize, u64), Vec<f64>> = IntegerMap::default();
    for training in trainings {
        // A launch of no length cannot order anything; one nanosecond keeps the quotient finite.
        let launch = training.launch.0.max(1) as f64;
        let numbers: Vec<Option<usize>> = training.files.iter().map(number).collect();
        for page in training.pages_until_ready() {
            if let Some(number) = numbers[page.file as usize] {
                times.entry((number, page.page)).or_default().push(page.at.0 as f64 / launch);
            }
        }
    }
    let mut kept: Vec<(f64, usize, u64, u32)> = Vec::with_capacity(times.len());
    for ((number, page), at) in times {
        match median(&at) {
            Some(middle) if at.len() * 2 >= trainings.len() => {
                kept.push((middle, number, page, u32::try_from(at.len()).unwrap_or(u32::MAX)));
            }
            _ => merged.dropped_pages += 1,
        }
    }
    // Path and page decide between equal times, so that the result does not depend on the map's order.
    kept.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    let mut numbers: IntegerMap<usize, u32> = IntegerMap::default();
    for (at, number, page, seen) in kept {
        let file = *numbers.entry(number).or_insert_with(|| {
            merged.files.push(numbered[number].clone());
            u32::try_from(merged.files.len() - 1).unwrap_or(u32::MAX)
        });
        merged.pages.push(MergedPage { file, page, at, seen });
    }
    merged.changed_files.sort();
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::demand::DemandedPage;
    use crate::io::insertions::Cause;
    use slowpath_tables::{Nanos, ProcessKey};

    fn training(launch: u64, size: u64, pages: &[(u64, u64)]) -> Demand {
        let page = |&(at, page): &(u64, u64)| DemandedPage {
            file: 0,
            page,
            at: Nanos(at),
            unblocked_at: Nanos(at),
            process: ProcessKey::default(),
            tid: 1,
            cause: Cause::Fault,
        };
        Demand {
            files: vec![DemandedFile { path: "/a".to_owned(), size: Some(size), mtime: Some(1), build_id: None }],
            pages: pages.iter().map(page).collect(),
            launch: Nanos(launch),
            unblocked_launch: Nanos(launch),
        }
    }

    fn order(merged: &MergedDemand) -> Vec<(u64, u32)> {
        merged.pages.iter().map(|page| (page.page, page.seen)).collect()
    }

    #[test]
    fn a_page_of_half_of_the_trainings_is_kept_and_a_rarer_one_dropped() {
        let a = training(100, 1, &[(10, 1), (20, 2)]);
        let b = training(100, 1, &[(10, 1), (20, 2)]);
        let c = training(100, 1, &[(10, 1)]);
        let d = training(100, 1, &[(10, 1), (30, 3), (101, 2)]);
        let merged = merge(&[&a, &b, &c, &d]);
        assert_eq!(order(&merged), [(1, 4), (2, 2)]);
        assert_eq!(merged.dropped_pages, 1);
    }

    #[test]
    fn the_order_is_that_of_the_median_share_of_the_launch() {
        // Page 1 at 0.1, 0.1, 0.9; page 2 at 0.2, 0.3, 0.1: medians 0.1 and 0.2, though the slow launch says otherwise.
        let a = training(100, 1, &[(10, 1), (20, 2)]);
        let b = training(10, 1, &[(1, 1), (3, 2)]);
        let c = training(1000, 1, &[(100, 2), (900, 1)]);
        let merged = merge(&[&a, &b, &c]);
        assert_eq!(order(&merged), [(1, 3), (2, 3)]);
        assert!((merged.pages[1].at - 0.2).abs() < 1e-12);
    }

    #[test]
    fn pages_of_an_older_content_of_a_file_do_not_count() {
        let old = training(100, 1, &[(10, 1), (20, 2)]);
        let new = training(100, 2, &[(10, 7)]);
        let merged = merge(&[&old, &new]);
        assert_eq!(order(&merged), [(7, 1)]);
        assert_eq!(merged.files[0].size, Some(2));
        assert_eq!(merged.changed_files, ["/a"]);
    }

    #[test]
    fn no_training_gives_an_empty_demand() {
        assert_eq!(merge(&[]), MergedDemand::default());
    }
}
