//! Which CPUs are on line, and what changed: events of page faults belong to a CPU.

use std::collections::BTreeSet;

/// Processors on line now; `None` where the system does not say.
pub(crate) fn on_line() -> Option<BTreeSet<u32>> {
    parse(&std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?)
}

/// Ranges as the kernel prints them, like `0-3,5` (Documentation/admin-guide/cputopology.rst).
fn parse(text: &str) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // No machine has more; a number beyond would only be a misread text.
        all.extend(first..=last.min(first.saturating_add(8192)));
    }
    Some(all)
}

/// What is to be done when `attached` have events and `on_line` run: the CPUs whose events went with them, and those
/// that have none yet.
pub(crate) fn changes(attached: &BTreeSet<u32>, on_line: &BTreeSet<u32>) -> (Vec<u32>, Vec<u32>) {
    (attached.difference(on_line).copied().collect(), on_line.difference(attached).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_cpus_are_read_and_nonsense_is_refused() {
        assert_eq!(parse("0-3,5\n"), Some(BTreeSet::from([0, 1, 2, 3, 5])));
        assert_eq!(parse("0\n"), Some(BTreeSet::from([0])));
        assert_eq!(parse(""), Some(BTreeSet::new()));
        assert_eq!(parse("0-x"), None);
        assert!(on_line().is_some_and(|all| !all.is_empty()));
    }

    #[test]
    fn a_cpu_that_went_and_one_that_came_are_found() {
        let (before, now) = (BTreeSet::from([0, 1, 2]), BTreeSet::from([0, 2, 3]));
        assert_eq!(changes(&before, &now), (vec![1], vec![3]));
        assert_eq!(changes(&now, &now), (vec![], vec![]));
    }
}
