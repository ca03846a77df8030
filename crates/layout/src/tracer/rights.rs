//! The ids and capabilities of a process, which decide whether the tracer writes to its memory.
//!
//! Breakpoints are set where a worker of the target's user says, and hold what it says. So they are set only into processes that have no
//! more than this user: in a set-user-ID program, or one with capabilities of its file, they would be a way to its power.

use slowpath_process::{status_field, status_of};

/// The ids and capabilities of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Real, effective, saved and of the file system, as the kernel prints them: of the user, and of the group.
    ids: [String; 2],
    /// Permitted capabilities; of a process in another user namespace none, for there they reach nothing of ours.
    permitted: u64,
}

impl Rights {
    /// Those of a process; none once it is gone.
    pub fn of(pid: i32) -> Option<Self> {
        let status = status_of(pid).ok()?;
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
        let is_here = namespace(&pid.to_string()) == namespace("self");
        Self::in_status(&status, is_here)
    }

    fn in_status(status: &str, is_here: bool) -> Option<Self> {
        let field = |name| status_field(status, name);
        let permitted = u64::from_str_radix(field("CapPrm")?, 16).ok()?;
        let ids = [field("Uid")?.to_owned(), field("Gid")?.to_owned()];
        Some(Self { ids, permitted: if is_here { permitted } else { 0 } })
    }

    /// Whether a process with these may be written to for the user of one with `others`. Root has everything anyway.
    pub fn are_those_of(&self, others: &Self) -> bool {
        let is_root = others.ids[0].split_ascii_whitespace().all(|id| id == "0");
        is_root || (self.ids == others.ids && self.permitted & !others.permitted == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ids_or_more_capabilities_are_not_those_of_the_target() {
        let rights = |uids: &str, permitted: &str, is_here| {
            let status = format!("Name:\tx\nUid:\t{uids}\nGid:\t7\t7\t7\t7\nCapPrm:\t{permitted}\n");
            Rights::in_status(&status, is_here).unwrap()
        };
        let target = rights("5\t5\t5\t5", "0000000000000000", true);
        let root = rights("0\t0\t0\t0", "000001ffffffffff", true);
        assert!(target.are_those_of(&target) && target.are_those_of(&root));
        assert!(!root.are_those_of(&target));
        assert!(!rights("5\t0\t0\t0", "000001ffffffffff", true).are_those_of(&target));
        assert!(!rights("5\t5\t0\t5", "0000000000000000", true).are_those_of(&target));
        assert!(!rights("5\t5\t5\t5", "0000000000000080", true).are_those_of(&target));
        assert!(rights("5\t5\t5\t5", "000001ffffffffff", false).are_those_of(&target));
        assert!(Rights::of(std::process::id() as i32).is_some() && Rights::of(0).is_none());
    }
}
