//! Which CPUs are on line, and what changed: events of page faults belong to a CPU.

use slowpath_process::cpu_list;
use std::collections::BTreeSet;

/// Processors on line now; `None` where the system does not say.
pub(crate) fn on_line() -> Option<BTreeSet<u32>> {
    Some(cpu_list(&std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?)?.into_iter().collect())
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
    fn this_machine_has_cpus_on_line() {
        assert!(on_line().is_some_and(|all| !all.is_empty()));
    }

    #[test]
    fn a_cpu_that_went_and_one_that_came_are_found() {
        let (before, now) = (BTreeSet::from([0, 1, 2]), BTreeSet::from([0, 2, 3]));
        assert_eq!(changes(&before, &now), (vec![1], vec![3]));
        assert_eq!(changes(&now, &now), (vec![], vec![]));
    }
}
