//! What one launch gave: the measured interval, how it stopped, what it used.

use serde::{Deserialize, Serialize};

use crate::LeftOut;

/// The result of one launch whose command was executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchOutcome {
    /// The target's pid in the pid namespace of the caller. It may be recycled once the target is gone.
    pub pid: i32,
    /// Time zero: `CLOCK_MONOTONIC` in ns, immediately before the exec was released.
    pub released_at: u64,
    /// `CLOCK_MONOTONIC` in ns when the observer had seen the ready event; `None` when it never came.
    pub ready_at: Option<u64>,
    /// The interval in ns at which readiness was tried; 0 where an event reported it.
    pub resolution: u64,
    /// Why the launch stopped being observed.
    pub stop: StopReason,
    /// How the target itself ended; `None` when it was left running.
    pub exit: Option<Exit>,
    /// Resources of the tree; `None` when it was left running.
    pub usage: Option<TreeUsage>,
    /// Times of the target's first thread, until it was ready or had ended; `None` where the kernel does not tell.
    pub first_thread: Option<ThreadTimes>,
    /// What the cgroups that the target joined counted during the launch; `None` without a group.
    pub groups: Option<GroupCounts>,
    /// The processes of the tree that lived when the target was ready, where [`crate::LaunchSpec::memory`] asks for it.
    pub memory: Vec<ProcessMemory>,
    /// The last 4 KiB of standard output, when it was captured.
    pub stdout_tail: Option<String>,
    /// The last 4 KiB of standard error, when it was captured.
    pub stderr_tail: Option<String>,
    /// The page address given to a browser.
    pub url: Option<String>,
    /// Files whose copies were not put over them ([`crate::MountStep::File`]).
    pub left_out: Vec<LeftOut>,
}

impl LaunchOutcome {
    /// Time to ready in ns, or `None` when the launch was never ready.
    pub fn time_to_ready(&self) -> Option<u64> {
        Some(self.ready_at?.saturating_sub(self.released_at))
    }

    /// Whether the time-out ended the launch.
    pub fn timed_out(&self) -> bool {
        self.stop == StopReason::TimedOut
    }

    /// Time to ready in ns.
    ///
    /// # Errors
    /// [`NotReady`] with the reason and the end of the captured output.
    pub fn require_ready(&self) -> Result<u64, NotReady> {
        self.time_to_ready().ok_or_else(|| NotReady {
            stop: self.stop,
            stderr_tail: self.stderr_tail.clone().unwrap_or_default(),
            stdout_tail: self.stdout_tail.clone().unwrap_or_default(),
        })
    }
}

/// Why the observation of a launch stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StopReason {
    /// The target was ready, and the end policy was carried out.
    Ready,
    /// The time-out passed before the target was ready.
    TimedOut,
    /// The target exited before it was ready, or, under `exit`, with a status other than 0. With status 0 this
    /// means that no process of its tree was left that could still become ready.
    Exited {
        /// Its exit status.
        code: i32,
    },
    /// The target died of a signal before it was ready.
    Killed {
        /// The signal number.
        signal: i32,
    },
    /// [`crate::Hooks::stop_requested`] asked for it. [`LaunchOutcome::ready_at`] may be set (when the request came
    /// while waiting for the exit).
    Requested,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// It died of this signal.
    Signal(i32),
}

impl Exit {
    /// As a shell has it: the exit status, of eight bits, or 128 and the number of the signal.
    pub fn status(self) -> u8 {
        match self {
            Self::Code(code) => code as u8,
            Self::Signal(signal) => (128 + signal) as u8,
        }
    }
}

/// Resources of the target and of all its descendants that were waited for (by their parent or by the observer),
/// from `getrusage(2)` as `wait4(2)` gives it. Includes the microseconds between fork and exec. Processes whose
/// parent ignores `SIGCHLD` are not in it ([`TreeUsage::lacks_children`]): the kernel drops their counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeUsage {
    /// CPU time in user mode, ns.
    pub user: u64,
    /// CPU time in kernel mode, ns.
    pub system: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Blocks of 512 bytes read from storage.
    pub blocks_in: u64,
    /// Context switches of threads that waited.
    pub voluntary_switches: u64,
    /// Context switches of threads that could have gone on.
    pub involuntary_switches: u64,
    /// Largest resident set of any of the processes, bytes. The kernel counts a process from its fork: a program that
    /// needs less than the few MiB of the launcher that it was forked from is reported as large as that.
    pub largest_rss: u64,
    /// Processes that the observer reaped.
    pub reaped: u32,
    /// Whether a process ignored `SIGCHLD`: the target when it ended, or any of the tree when it was ready. Its children, if it has some,
    /// are not counted.
    pub lacks_children: bool,
}

/// Times of one thread, from `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst). Its other threads and its children are
/// not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// Time on a CPU, ns, with the microseconds between fork and exec.
    pub on_cpu: u64,
    /// Time in which it could have run and waited for a CPU, ns. Since Linux 6.12 waits that follow a short sleep are often
    /// missing (delayed dequeue); those of a thread that was switched away are all there.
    pub run_delay: u64,
}

/// What cgroups counted, from `cpu.stat`, and from `memory.failcnt` (version 1) or `memory.events` (version 2). Others in the
/// same group are in it. `None`: no group reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Periods of a quota in which something ran.
    pub periods: Option<u64>,
    /// Those in which the quota was used up.
    pub throttled_periods: Option<u64>,
    /// Time in which CPUs were kept from the group, ns.
    pub throttled: Option<u64>,
    /// How often memory was at its limit.
    pub memory_limit_hits: Option<u64>,
}

/// Memory of one process since its last exec, from `/proc/PID/status` and `/proc/PID/smaps_rollup` (proc(5)), in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMemory {
    /// Its pid in the namespace of the launch.
    pub pid: i32,
    /// Its name as the kernel keeps it, at most 15 bytes; anything may stand in it.
    pub name: String,
    /// The largest resident set so far.
    pub peak_rss: u64,
    /// Its share of all pages that it maps; `None` where the kernel does not tell.
    pub pss: Option<u64>,
}

impl TreeUsage {
    pub(crate) fn add(&mut self, other: &TreeUsage) {
        self.user += other.user;
        self.system += other.system;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.blocks_in += other.blocks_in;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.largest_rss = self.largest_rss.max(other.largest_rss);
        self.reaped += other.reaped;
        self.lacks_children |= other.lacks_children;
    }
}

/// A launch that was not ready, as an error for callers that need it to be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}{}", describe(self.stop), tail(&self.stderr_tail, &self.stdout_tail))]
pub struct NotReady {
    /// Why.
    pub stop: StopReason,
    /// The end of the captured standard error; control characters are not escaped.
    pub stderr_tail: String,
    /// The end of the captured standard output; control characters are not escaped.
    pub stdout_tail: String,
}

fn describe(stop: StopReason) -> String {
    match stop {
        StopReason::Ready => "the command was ready".into(),
        StopReason::TimedOut => "the command was not ready within the time-out".into(),
        StopReason::Exited { code } => format!("the command exited with status {code} before it was ready"),
        StopReason::Killed { signal } => format!("the command died of signal {signal} before it was ready"),
        StopReason::Requested => "the launch was stopped on request before the command was ready".into(),
    }
}

/// The last line that says something, with control characters escaped for a terminal.
fn tail(stderr: &str, stdout: &str) -> String {
    let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
    match last(stderr).or_else(|| last(stdout)) {
        Some(line) => format!("; its last line: {}", line.trim().escape_debug()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_that_was_not_ready_names_status_and_last_line_with_escapes() {
        let error = NotReady {
            stop: StopReason::Exited { code: 3 },
            stderr_tail: "one\nbad \u{1b}[2J thing\n\n".into(),
            stdout_tail: "other\n".into(),
        };
        assert_eq!(
            error.to_string(),
            "the command exited with status 3 before it was ready; its last line: bad \\u{1b}[2J thing"
        );
    }
}
