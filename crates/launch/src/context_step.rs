//! What surrounds a target and is set by itself between its fork and its exec, so that nothing else is changed by it.
//!
//! Owns what can be set and when in the life of the target-to-be; the system calls are in `apply`. What the caller of a launch
//! gives otherwise (environment, limits, identity, working directory, cgroups, session) stands in [`crate::LaunchSpec`].

mod apply;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use slowpath_process::Capabilities;
use slowpath_seccomp::Program;

use crate::os_text;

/// One step. Values are the kernel's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextStep {
    /// Policy, real-time priority and nice value (sched_setattr(2)).
    Scheduling {
        /// `SCHED_OTHER` (0), `SCHED_FIFO` (1), `SCHED_RR` (2), `SCHED_BATCH` (3) or `SCHED_IDLE` (5).
        policy: u32,
        /// 1 to 99 for the two real-time policies, else 0.
        priority: u32,
        /// -20 to 19.
        nice: i32,
    },
    /// The CPUs it may run on (sched_setaffinity(2)).
    Affinity {
        /// Their numbers.
        processors: Vec<u32>,
    },
    /// By how much its timers may be late (`PR_SET_TIMERSLACK`). Its children get it as their own default.
    TimerSlack {
        /// Nanoseconds; 0 is the value that the launcher has.
        ns: u64,
    },
    /// Class and level of its block I/O (ioprio_set(2)).
    IoPriority {
        /// As `IOPRIO_PRIO_VALUE` packs them; 0: from the nice value.
        value: u16,
    },
    /// The execution domain (personality(2)).
    Personality {
        /// All flags; what is not among them is taken back.
        flags: u32,
    },
    /// Whether the process may not have transparent huge pages (`PR_SET_THP_DISABLE`).
    HugePages {
        /// True: it may not.
        disabled: bool,
    },
    /// From which nodes it gets memory (set_mempolicy(2)).
    MemoryPolicy {
        /// `MPOL_DEFAULT` (0) and so on, flags included.
        mode: u32,
        /// Numbers of the nodes.
        nodes: Vec<u32>,
    },
    /// Bounds of the utilisation that the scheduler assumes, of 1024 (sched_setattr(2)).
    UtilizationClamp {
        /// Least.
        min: u32,
        /// Most.
        max: u32,
    },
    /// A core-scheduling cookie of its own (`PR_SCHED_CORE_CREATE`).
    CoreCookie,
    /// What the CPU may guess (`PR_SET_SPECULATION_CTRL`).
    Speculation {
        /// Which guess.
        of: Speculation,
        /// Whether it may.
        state: SpeculationState,
    },
    /// The nice value of its session (`/proc/self/autogroup`, sched(7)); only with [`crate::LaunchSpec::session`], for else it
    /// would be that of the caller's session.
    AutogroupNice {
        /// -20 to 19.
        nice: i32,
    },
    /// Sets of capabilities that an exec keeps or bounds by (capabilities(7)), as bit masks.
    Capabilities {
        /// What executed programs may get at all; only ever fewer than the launcher's.
        bounding: u64,
        /// Inheritable ones.
        inheritable: u64,
        /// Ambient ones: also inheritable.
        ambient: u64,
    },
    /// Executing gives no privileges from here on (`PR_SET_NO_NEW_PRIVS`).
    NoNewPrivileges,
    /// One more seccomp filter (seccomp(2)), put on last. A target that is not root's gives up new privileges with it, whether
    /// [`Self::NoNewPrivileges`] is there or not: a set-uid program under a filter of somebody else's choice may take a refused
    /// call for one that was made.
    SystemCallFilter {
        /// The program: 8 bytes an instruction (`struct sock_filter`).
        program: Vec<u8>,
        /// Whether the filter must not restrict speculation (`SECCOMP_FILTER_FLAG_SPEC_ALLOW`); else the kernel decides.
        may_speculate: bool,
    },
    /// Enters a directory before the identity is taken on, as a program does that changes its user later. Then
    /// [`crate::LaunchSpec::cwd`] is not entered.
    EnterDirectory {
        /// Which.
        #[serde(with = "os_text::path")]
        path: PathBuf,
    },
    /// A process of the launcher follows the target and all its descendants with ptrace(2) and stops each of their system calls
    /// twice, as `strace -f` does. It is no part of the tree: what it uses is not counted.
    Traced,
}

/// Bytes of an instruction.
const INSTRUCTION: usize = 8;

/// What a CPU guesses (Documentation/userspace-api/spec_ctrl.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speculation {
    /// `PR_SPEC_STORE_BYPASS`.
    StoreBypass,
    /// `PR_SPEC_INDIRECT_BRANCH`.
    IndirectBranch,
}

/// Whether it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeculationState {
    /// `PR_SPEC_ENABLE`.
    Enabled,
    /// `PR_SPEC_DISABLE`.
    Disabled,
    /// `PR_SPEC_FORCE_DISABLE`: for good.
    ForceDisabled,
}

/// The capabilities that the steps give a target that is not root's, beyond its identity. They are not in effect before its exec.
pub(crate) fn kept_capabilities(steps: &[ContextStep]) -> Capabilities {
    let kept = |step: &ContextStep| match step {
        ContextStep::Capabilities { inheritable, ambient, .. } => {
            Some(Capabilities { effective: 0, permitted: *ambient, inheritable: *inheritable })
        }
        _ => None,
    };
    steps.iter().rev().find_map(kept).unwrap_or_default()
}

impl ContextStep {
    /// Whether the step changes the memory of the process and not the task: then the target must not share the launcher's.
    pub(crate) fn changes_memory(&self) -> bool {
        matches!(self, Self::HugePages { .. })
    }

    /// What can be checked before a process is started.
    pub(crate) fn validate(&self, session: bool) -> Result<(), String> {
        match self {
            Self::SystemCallFilter { program, .. } => {
                Program::from_bytes(program).map(drop).map_err(|error| error.to_string())
            }
            Self::Affinity { processors } if processors.is_empty() => Err("no CPU is left".into()),
            Self::AutogroupNice { .. } if !session => Err("an autogroup needs a session of its own".into()),
            Self::EnterDirectory { path } if !path.is_absolute() => {
                Err(format!("the directory {} is not absolute", path.display()))
            }
            _ => Ok(()),
        }
    }
}

/// After "cannot ".
impl fmt::Display for ContextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduling { policy, priority, nice } => {
                write!(f, "set scheduling policy {policy}, priority {priority}, nice {nice}")
            }
            Self::Affinity { processors } => write!(f, "run on CPUs {processors:?} only"),
            Self::TimerSlack { ns } => write!(f, "set the timer slack to {ns} ns"),
            Self::IoPriority { value } => write!(f, "set the I/O priority to {value:#x}"),
            Self::Personality { flags } => write!(f, "set the personality to {flags:#x}"),
            Self::HugePages { disabled: true } => f.write_str("give up huge pages"),
            Self::HugePages { disabled: false } => f.write_str("allow huge pages"),
            Self::MemoryPolicy { mode, nodes } => write!(f, "set memory policy {mode} for nodes {nodes:?}"),
            Self::UtilizationClamp { min, max } => write!(f, "clamp the utilisation to {min} to {max}"),
            Self::CoreCookie => f.write_str("make a core-scheduling cookie"),
            Self::Speculation { of, state } => write!(f, "set speculation ({of:?}) to {state:?}"),
            Self::AutogroupNice { nice } => write!(f, "set the nice value of the session to {nice}"),
            Self::Capabilities { bounding, inheritable, ambient } => {
                write!(
                    f,
                    "set capabilities (bounding {bounding:#x}, inheritable {inheritable:#x}, ambient {ambient:#x})"
                )
            }
            Self::NoNewPrivileges => f.write_str("give up new privileges"),
            Self::SystemCallFilter { program, .. } => {
                write!(f, "install a seccomp filter of {} instructions", program.len() / INSTRUCTION)
            }
            Self::EnterDirectory { path } => write!(f, "enter {}", path.display()),
            Self::Traced => f.write_str("be traced"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_whole_instructions_and_not_more_than_the_kernel_takes() {
        let filter = |bytes: usize| {
            ContextStep::SystemCallFilter { program: vec![0; bytes], may_speculate: false }.validate(false)
        };
        assert!(filter(8).is_ok() && filter(4096 * 8).is_ok());
        assert!(filter(0).is_err() && filter(12).is_err() && filter(4097 * 8).is_err());
    }

    #[test]
    fn the_nice_value_of_the_callers_session_is_never_changed() {
        assert!(ContextStep::AutogroupNice { nice: 5 }.validate(false).is_err());
        assert!(ContextStep::AutogroupNice { nice: 5 }.validate(true).is_ok());
    }
}
