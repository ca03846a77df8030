//! Which processes are followed, and what they hold when recording ends.

use crate::clock::monotonic_now;
use crate::events;
use crate::page_content;
use crate::recorder::Recorder;
use crate::running_processes::{pidfd, processes};
use libbpf_rs::{MapCore, MapFlags};
use slowpath_process::{Deadline, DeadlineError, LIMIT, Owner};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::os::fd::AsRawFd;

impl Recorder {
    /// What the kernel keeps for a process, if anything; `None` where that cannot be asked.
    fn state_of(&self, pid: u32) -> Option<Option<events::task_state>> {
        let pidfd = pidfd(i32::try_from(pid).ok()?).ok()?;
        let state = self.tree.lookup(&pidfd.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok()?;
        Some(state.and_then(|state| events::record(&state)))
    }

    /// Whether the kernel keeps something for a process; `None` where that cannot be asked.
    fn is_marked(&self, pid: u32) -> Option<bool> {
        self.state_of(pid).map(|state| state.is_some())
    }

    /// The program and the identity for which it was judged that the owner of the recording may see a process's memory; `None` where
    /// they may not.
    fn judged(&self, pid: u32) -> Option<(u64, u64)> {
        let state = self.state_of(pid).flatten().filter(|state| self.options.owner.may_see(pid, state))?;
        Some((state.judged_exec, state.judged_credentials))
    }

    /// Whether a process runs and is not followed.
    pub(crate) fn is_left_out(&self, pid: u32) -> bool {
        let is_own = pid == std::process::id() || Some(pid) == self.options.writer;
        !is_own && Owner::of(pid).is_some() && self.is_marked(pid) == Some(false)
    }

    /// Whether a process runs and is followed.
    pub(crate) fn is_followed(&self, pid: u32) -> bool {
        Owner::of(pid).is_some() && self.is_marked(pid) == Some(true)
    }

    /// Looks at the pages that followed processes hold, where those of ended ones were looked at.
    pub(crate) fn look_at_held(&mut self) {
        if self.loaded("page_content").is_none() {
            return;
        }
        let began = monotonic_now();
        let mut passed_over = 0u64;
        let mut looks = Deadline::new(LIMIT, page_content::held::answer);
        for pid in processes().into_iter().filter(|pid| self.is_followed(*pid)).collect::<Vec<_>>() {
            let Some(judged) = self.judged(pid) else { continue };
            if monotonic_now() - began < page_content::held::MOST_TIME {
                match looks.ask(&pid.to_ne_bytes()) {
                    // It may have become another program meanwhile, one with more rights than the owner.
                    Ok(_) if self.judged(pid) != Some(judged) => {}
                    Ok((events, _)) => {
                        let size = size_of::<events::page_content_event>();
                        events.chunks_exact(size).for_each(|event| self.ring.add(event));
                    }
                    Err(error) => self.unavailable.push(hidden(pid, &error)),
                }
            } else {
                passed_over += 1;
            }
        }
        if passed_over > 0 {
            self.unavailable.push(declared::HELD_BY_MANY.of(
                &[&passed_over],
                "looking at those of others took as long as it may",
                "record fewer processes",
            ));
        }
    }
}

/// What of a process could not be looked at.
fn hidden(pid: u32, error: &DeadlineError) -> Unavailable {
    let remedy = "find out what blocks reads of its memory (a file system that hangs, userfaultfd)";
    declared::HELD_BY_ONE.of(&[&pid], error.to_string(), remedy)
}
