//! The fix `readahead_size`: how much the kernel reads around a demand.
//!
//! Tried in the lab only, on the lab's own device; the report then shows which level helped. Changing a real device
//! changes every program on it, so slowpath names the command and does not run it.

use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::treatment::Treatment;

/// Name of the fix.
pub const NAME: &str = "readahead_size";

/// The fix.
pub const FIX: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "another readahead of the device",
    what: "The kernel reads more, or less, around each missing page (read_ahead_kb of the device).",
    why: "A larger readahead brings neighbouring pages that the launch needs next; a smaller one reads fewer unneeded pages.",
    price: "it changes every program on the device: more memory and bandwidth, or more requests",
    by_hand: "as root: echo KIB > /sys/class/bdi/MAJOR:MINOR/read_ahead_kb; the former value, or a reboot, undoes it",
    trial: "in a lab only, on its own device; slowpath never changes a real one",
    propose: None,
};

/// Levels that are tried, KiB: a quarter of the kernel's default (`VM_READAHEAD_PAGES`, 128 KiB), the default, and two
/// and four doublings above it.
pub const LEVELS_KIB: [u64; 4] = [32, 128, 512, 2048];

/// One plan a level; the level that the device already has is left out, it would change nothing.
pub fn plans(current_kib: Option<u64>) -> Vec<FixPlan> {
    LEVELS_KIB.into_iter().filter(|level| Some(*level) != current_kib).map(|level| plan(level, current_kib)).collect()
}

/// The plan of one level.
pub fn plan(level_kib: u64, current_kib: Option<u64>) -> FixPlan {
    let grows = current_kib.is_none_or(|current| level_kib > current);
    let side_effect = if grows {
        "more pages are read that nobody needs: memory and bandwidth go to them, for every program on the device"
    } else {
        "sequential reads of every program on the device need more requests"
    };
    FixPlan {
        fix: NAME.to_owned(),
        name: format!("readahead_size {level_kib}"),
        title: format!("read up to {level_kib} KiB at a demand"),
        changes: vec![Change {
            what: "read_ahead_kb of the device that holds the program's files".to_owned(),
            from: current_kib.map(|kib| kib.to_string()),
            to: level_kib.to_string(),
        }],
        scope: Scope::LabDevice,
        privilege: Privilege::Root,
        side_effects: vec![side_effect.to_owned()],
        price: "nothing but the side effects".to_owned(),
        security_cost: "none: only the amount read ahead changes, not what may be read".to_owned(),
        undo: match current_kib {
            Some(kib) => format!("write {kib} to /sys/class/bdi/MAJOR:MINOR/read_ahead_kb; a reboot does the same"),
            None => {
                "write the former value to /sys/class/bdi/MAJOR:MINOR/read_ahead_kb; a reboot does the same".to_owned()
            }
        },
        trial: Trial {
            possible: true,
            how: "on the lab's own loop device; a real device is never changed by a trial".to_owned(),
        },
        treatment: Treatment::Readahead { kib: level_kib },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_in_force_is_no_fix() {
        let names: Vec<_> = plans(Some(128)).into_iter().map(|plan| plan.name).collect();
        assert_eq!(names, ["readahead_size 32", "readahead_size 512", "readahead_size 2048"]);
        assert_eq!(plans(None).len(), 4);
    }

    #[test]
    fn undo_names_the_former_value() {
        assert!(plan(512, Some(128)).undo.contains("write 128 "));
    }
}
