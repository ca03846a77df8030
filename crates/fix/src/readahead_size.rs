//! The fix `readahead_size`: how much the kernel reads around a demand.
//!
//! Tried in the lab only, on the lab's own device; the report then shows which size helped. Changing a real device changes every program
//! on it, so a plan has the commands for it ([`by_hand`]), and slowpath does not run them.

use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::treatment::Treatment;

/// Name of the fix.
pub const NAME: &str = "readahead_size";

/// The fix. Its former names are those that the arms of its sizes had.
pub const FIX: Declaration = Declaration {
    name: NAME,
    former: &["readahead_32k", "readahead_128k", "readahead_512k", "readahead_2048k"],
    title: "another readahead of the device",
    what: "The kernel reads more, or less, around each missing page (read_ahead_kb of the device).",
    why: "A larger readahead brings neighbouring pages that the launch needs next; a smaller one reads fewer unneeded pages.",
    price: "it changes every program on the device: more memory and bandwidth, or more requests",
    by_hand: "as root: blockdev --setra SECTORS DEVICE, in sectors of 512 bytes; the former value (blockdev --getra DEVICE), or a reboot, \
              undoes it",
    trial: "by `slowpath diagnose --arms standard`: in a lab only, on its own device; slowpath never changes a real one",
    propose: None,
};

/// Sizes that are tried, KiB: a quarter of the kernel's default (`VM_READAHEAD_PAGES`, 128 KiB), the default, and two
/// and four doublings above it.
const SIZES_KIB: [u64; 4] = [32, 128, 512, 2048];

/// One plan a size; that which the launches have already, `current_kib`, is left out, it would change nothing.
pub fn plans(current_kib: u64) -> Vec<FixPlan> {
    SIZES_KIB.into_iter().filter(|kib| *kib != current_kib).map(|kib| plan(kib, current_kib)).collect()
}

/// What a person does to give a device this readahead: now, and for good.
pub fn by_hand(kib: u64) -> String {
    format!(
        "as root: blockdev --setra {} \"$(findmnt -vno SOURCE -T FILE)\", where FILE is one of the program's files; to keep it, a udev \
         rule: ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"DISK\", ATTR{{bdi/read_ahead_kb}}=\"{kib}\"",
        sectors(kib)
    )
}

/// As many sectors of 512 bytes, the unit of blockdev(8). A plan that was read from a file can have any number.
fn sectors(kib: u64) -> u64 {
    kib.saturating_mul(2)
}

/// The plan of one size.
fn plan(kib: u64, current_kib: u64) -> FixPlan {
    let side_effect = match kib > current_kib {
        true => {
            "more pages are read that nobody needs: memory and bandwidth go to them, for every program on the device"
        }
        false => "sequential reads of every program on the device need more requests",
    };
    FixPlan {
        fix: NAME.to_owned(),
        name: format!("{NAME} {kib}"),
        title: format!("the kernel reads up to {kib} KiB around a missing page"),
        changes: vec![Change {
            what: "read_ahead_kb of the device that holds the program's files".to_owned(),
            from: Some(current_kib.to_string()),
            to: kib.to_string(),
        }],
        scope: Scope::Machine,
        privilege: Privilege::Root,
        side_effects: vec![
            side_effect.to_owned(),
            "files that are open already keep the size that they were opened with".to_owned(),
            format!(
                "launches without it had {current_kib} KiB; `blockdev --getra DEVICE` prints what a device has, in sectors"
            ),
        ],
        price: "nothing but the side effects".to_owned(),
        security_cost: "none: only the amount read ahead changes, not what may be read".to_owned(),
        undo: format!(
            "blockdev --setra with what `blockdev --getra DEVICE` printed before ({} sectors are {current_kib} KiB), and no udev rule; \
             a reboot does the same",
            sectors(current_kib)
        ),
        trial: Trial {
            possible: true,
            how: "on the lab's own loop device; a real device is never changed by a trial".to_owned(),
        },
        treatment: Treatment::Readahead { kib },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_in_force_is_no_fix() {
        let names: Vec<_> = plans(128).into_iter().map(|plan| plan.name).collect();
        assert_eq!(names, ["readahead_size 32", "readahead_size 512", "readahead_size 2048"]);
        assert_eq!(plans(0).len(), 4);
    }

    #[test]
    fn a_plan_says_what_a_person_does_and_undoes_in_the_unit_of_the_command() {
        let plan = plan(512, 128);
        assert!(plan.undo.contains("256 sectors are 128 KiB"), "{}", plan.undo);
        let by_hand = by_hand(512);
        assert!(by_hand.contains("blockdev --setra 1024 ") && by_hand.contains("=\"512\""), "{by_hand}");
    }
}
