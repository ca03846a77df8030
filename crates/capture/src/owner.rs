//! Whose a recording is, and what follows for what may stand in it. The rule itself is the kernel side's: `bpf/sight.bpf.h`.

mod withheld;

use crate::events::{SIGHT_OPEN, SIGHT_WHILE_DUMPABLE, task_state};
use slowpath_process::page_size;
use std::os::unix::fs::MetadataExt;

/// Whose a recording is. Root's holds everything; a user's no addresses of the kernel, and of tasks that the user could not trace
/// (ptrace(2), "Ptrace access mode checking") no addresses, call stacks, mappings, contents and private file names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

/// Section of every probe that holds the owner and the secret of the recording, and the size of pages.
pub(crate) const SECTION: &str = ".rodata.recording";

impl Owner {
    /// Whether nothing is withheld.
    pub fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Writes the section of a probe.
    pub(crate) fn write(self, secret: [u64; 2], section: &mut [u8]) {
        let page_shift = u64::from(page_size().trailing_zeros());
        let words = [u64::from(self.uid) | u64::from(self.gid) << 32, secret[0], secret[1], page_shift];
        for (place, word) in section.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Whether the owner may know what the memory of a process holds that has this state.
    pub(crate) fn may_see(self, pid: u32, state: &task_state) -> bool {
        // /proc/PID belongs to root while the process keeps itself from being dumped (task_dump_owner in fs/proc/base.c).
        let is_dumpable =
            || std::fs::metadata(format!("/proc/{pid}/pagemap")).is_ok_and(|shown| shown.uid() == self.uid);
        self.is_root()
            || match u32::try_from(state.sight) {
                Ok(SIGHT_OPEN) => true,
                Ok(SIGHT_WHILE_DUMPABLE) => is_dumpable(),
                _ => false,
            }
    }
}

/// 128 bits that nobody else knows.
pub(crate) fn secret() -> std::io::Result<[u64; 2]> {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes to a place of ours; so few it gives whole (getrandom(2)).
    let given = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if given != 16 {
        return Err(std::io::Error::last_os_error());
    }
    let (low, high) = bytes.split_at(8);
    let word = |half: &[u8]| half.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    Ok([word(low), word(high)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_secrets_differ_and_stand_behind_the_owner() {
        assert_ne!(secret().unwrap(), secret().unwrap());
        let mut section = [0u8; 32];
        Owner { uid: 7, gid: 8 }.write([9, 10], &mut section);
        assert_eq!((section[0], section[4], section[8], section[16]), (7, 8, 9, 10));
        assert_eq!(1 << section[24], page_size());
    }

    #[test]
    fn a_user_sees_what_was_judged_open_and_root_everything() {
        let state = |sight| task_state { sight, ..Default::default() };
        let (user, root) = (Owner { uid: 65534, gid: 65534 }, Owner::default());
        assert!(user.may_see(1, &state(SIGHT_OPEN.into())) && root.may_see(1, &state(0)));
        for sight in [0, 1, 99] {
            assert!(!user.may_see(std::process::id(), &state(sight)));
        }
        // The first process is root's.
        assert!(!user.may_see(1, &state(SIGHT_WHILE_DUMPABLE.into())));
    }
}
