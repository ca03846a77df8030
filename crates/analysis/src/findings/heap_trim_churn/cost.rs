//! What giving memory back and touching it again costs.
//!
//! **Value.** Time in the faults in pages that came back; in the calls that gave them back, by the part of their pages that came
//! back; in calls of brk that made those pages usable again, by the part of their range: what threads ran, where that is known
//! ([`crate::time::off_cpu_times`]). All of it ends where the memory is kept.
//!
//! **Interval.** That of the faults ([`crate::findings::fault_sums`]); at its *low* end calls are of the median duration of their
//! kind too.
//!
//! **Not included**: entering and leaving the kernel at a fault (the clock runs between the two), mprotect, with which glibc grows
//! the heaps of its other arenas, and what stands in the reasons of every finding about memory.

use super::groups::Churn;
use crate::findings::fault_sums::{FaultSums, per_second, quantile, sorted};
use crate::memory::released_pages::{Release, ReleasedPages};
use crate::time::off_cpu_times::FaultTimes;
use slowpath_tables::{Bytes, Nanos, PAGE_SIZE, Pages, ProcessKey, Quantity, Unit};
use std::collections::BTreeMap;

/// The cost of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Faults in pages that came back.
    pub faults: FaultSums,
    /// Time in calls that gave them back.
    pub release_time: f64,
    /// Time in calls of brk that made them usable again.
    pub grow_time: f64,
    /// Such calls.
    pub grows: u64,
    /// What threads did not run in all these calls, and is in nothing here.
    pub calls_off_cpu: Nanos,
    /// Everything, in ms.
    pub total: Quantity,
    /// Everything of one operation, median, in us.
    pub per_operation: Quantity,
    /// Range of a release, median, in bytes.
    pub length: u64,
    /// Pages that were given back, came they back or not.
    pub taken: Pages,
    /// Most pages that were away at the same time and came back, each process for itself: what keeping them holds.
    pub held: Pages,
    /// The most of one process, by the ranges of its releases, in bytes.
    pub amplitude: u64,
    /// From a release to the first touch: median, and what a twentieth exceeds.
    pub away: (Nanos, Nanos),
    /// Operations a second, from the first to the last.
    pub per_second: Option<f64>,
    /// Whether faults can have brought huge pages: what came back is the least then.
    pub perhaps_huge: bool,
}

/// For each group the faults in its operations: numbers of rows, in their order.
pub(crate) fn faults_of(groups: &[Churn], released: &ReleasedPages) -> Vec<Vec<usize>> {
    let mut group_of_release: Vec<Option<usize>> = vec![None; released.releases.len()];
    for (number, group) in groups.iter().enumerate() {
        group.operations.iter().for_each(|release| group_of_release[*release as usize] = Some(number));
    }
    let mut faults = vec![Vec::new(); groups.len()];
    for (number, release) in released.of_fault.iter().enumerate() {
        if let Some(group) = release.and_then(|release| group_of_release[release as usize]) {
            faults[group].push(number);
        }
    }
    faults
}

/// Adds up a group; `faults` are those of the recording, and `numbers` the rows of the group.
pub(crate) fn cost(group: &Churn, released: &ReleasedPages, faults: &FaultTimes<'_>, numbers: &[usize]) -> Cost {
    let releases = || group.operations.iter().map(|number| &released.releases[*number as usize]);
    let sum = |of: fn(&Release) -> u64| releases().map(of).fold(0u64, u64::saturating_add);
    let faults = FaultSums::of(numbers.iter().copied(), faults);
    let (release_time, grow_time) = (sum(|one| one.release_time().0) as f64, sum(|one| one.grow_time.0) as f64);
    let operations = group.operations.len() as f64;

    let value = faults.time() + release_time + grow_time;
    let median_of = |of: fn(&Release) -> u64| quantile(&sorted(releases().map(of)), 0.5) as f64;
    let calls = (median_of(|one| one.release_time().0) + median_of(|one| one.grow_time.0)) * operations;
    let low = (faults.low() + calls).min(value);
    let high = faults.high() + release_time + grow_time;
    let costs = sorted(releases().map(|one| (one.time().0 as f64 + one.untimed as f64 * faults.mean) as u64));
    let away = sorted(releases().filter_map(|one| Some(one.away()?.0)));
    let held = most_away(releases(), |one| one.faults).into_values().fold(0, u64::saturating_add);
    let page = released.host.page() / PAGE_SIZE;
    let ranges = most_away(releases(), |one| one.length.0);
    Cost {
        release_time,
        grow_time,
        calls_off_cpu: Nanos(sum(|one| one.calls_off_cpu().0)),
        grows: sum(|one| one.grows),
        total: Quantity::interval(value / 1e6, low / 1e6, high / 1e6, Unit::Ms),
        per_operation: Quantity::exact(quantile(&costs, 0.5) as f64 / 1e3, Unit::Us),
        length: median_of(|one| one.length.bytes().0) as u64,
        taken: releases().map(|one| one.taken).sum(),
        held: Pages(held.saturating_mul(page)),
        amplitude: Pages(ranges.into_values().max().unwrap_or(0)).bytes().0,
        away: (Nanos(quantile(&away, 0.5)), Nanos(quantile(&away, 0.95))),
        per_second: per_second(releases().map(|one| one.returned.0)),
        perhaps_huge: releases().all(|release| perhaps_huge(release, released.host.huge_page())),
        faults,
    }
}

/// Most pages of each process that were away at the same time. A release is away until the last of its pages that came back.
fn most_away<'a>(releases: impl Iterator<Item = &'a Release>, pages: fn(&Release) -> u64) -> BTreeMap<ProcessKey, u64> {
    // At the same moment pages come back before others go.
    let mut changes: BTreeMap<ProcessKey, Vec<(Nanos, bool, u64)>> = BTreeMap::new();
    for release in releases {
        let changes = changes.entry(release.process).or_default();
        changes.push((release.returned, true, pages(release)));
        let back = |last: Nanos| last.max(release.returned + Nanos(1));
        changes.extend(release.touched.map(|(_, last)| (back(last), false, pages(release))));
    }
    let most = |mut changes: Vec<(Nanos, bool, u64)>| {
        changes.sort_unstable();
        let (mut now, mut most) = (0u64, 0);
        for (_, goes, pages) in changes {
            now = if goes { now.saturating_add(pages) } else { now.saturating_sub(pages) };
            most = most.max(now);
        }
        most
    };
    changes.into_iter().map(|(process, changes)| (process, most(changes))).collect()
}

/// A fault may bring a huge page where those fit; then there is one fault for each, or less.
fn perhaps_huge(release: &Release, huge_page: Bytes) -> bool {
    let huge_page = huge_page.0 / PAGE_SIZE;
    release.length.0 >= huge_page && release.taken.0 <= release.length.0.div_ceil(huge_page)
}
