//! Runs **one** launch of a command under given conditions and reports its time to ready.
//!
//! This crate owns: the small launcher (a re-execution of the calling program), taking on who the target runs as
//! ([`Identity`], which `slowpath_process` finds), where it runs (cgroups, private mounts, pid namespace), what of its execution context is set before its exec
//! ([`ContextStep`]), the start of the clock, the observation
//! of readiness ([`ReadyWhen`]), the end of the process tree ([`EndPolicy`]), and the numbers that a launch has ([`Metric`]). It leaves to others: what is
//! recorded while the launch runs (they hang on [`Hooks`]), how often and in which order launches are made, what
//! the image behind a [`MountStep`] holds, and every statistic.
//!
//! # Processes
//!
//! ```text
//! main ── guardian ── observer ── target
//! ```
//!
//! *main* is the caller of [`ProcessLauncher`]. It starts the *guardian*: the same executable with the hidden
//! argument [`LAUNCHER_ARGUMENT`], whose `main` must call [`launcher_main`] before anything else. The guardian
//! prepares mounts and namespaces and forks the *observer*, which takes both ends of the measured interval with one
//! clock (`CLOCK_MONOTONIC`) and is the init of the pid namespace or a child subreaper. The observer forks the
//! *target*, which becomes the command by `execve` once main has released it. Guardian and observer watch each
//! other and main: whichever of the three is killed, the others end the tree of an [`EndPolicy::KillTree`] launch.
//! With a pid namespace the kernel does, even when all three are killed at once. Without one, guardian *and* observer
//! killed within the same moment leave the target's descendants behind (the target itself dies with its parent), and
//! so does a tree that a set-uid program runs beyond the reach of a caller who is not root
//! ([`LaunchError::TreeSurvived`]). What other daemons start on the target's behalf (systemd, D-Bus activation) is
//! never part of the tree.
//!
//! # The interval
//!
//! The clock starts immediately before the byte that lets the target call `execve` is written, and stops when the
//! observer has seen the ready event. `exit`, `line`, `file`, `notify` and `browser` are driven by events;
//! `tcp` and `http` are attempts at a fixed interval of [`ATTEMPT_INTERVAL`], the same for every launch, and
//! [`LaunchOutcome::resolution`] says so.

mod context_step;
mod error;
#[doc(hidden)]
pub mod foreign;
mod hooks;
mod launcher;
mod limits;
mod metric;
pub mod mock;
mod mount_namespace;
mod mount_step;
mod mounting;
mod os_text;
mod outcome;
mod process_launcher;
mod ptrace;
mod ready_page;
mod ready_when;
mod scheduling_attributes;
mod seen_file;
mod spec;
mod sys;
mod wire;

pub use context_step::{ContextStep, Speculation, SpeculationState};
pub use error::{BoxError, ExecError, LaunchError, SetupStage};
pub use hooks::{Hooks, Launcher, NoHooks};
pub use launcher::launcher_main;
pub use limits::{Limit, LimitKind, current_limits};
pub use metric::{Measures, Metric, UnknownMetric, measures};
pub use mount_namespace::MountNamespace;
pub use mount_step::{LeftOut, LeftOutReason, MountStep};
pub use mounting::Mounting;
pub use outcome::{Exit, GroupCounts, LaunchOutcome, NotReady, ProcessMemory, StopReason, ThreadTimes, TreeUsage};
pub use process_launcher::{LAUNCHER_ARGUMENT, LauncherProgram, ProcessLauncher};
pub use ready_when::{ATTEMPT_INTERVAL, ReadyWhen, ReadyWhenError};
pub use scheduling_attributes::SchedulingAttributes;
pub use seen_file::{LookedAt, MOST_COPIED_BYTES, Permissions, SeenFile};
pub use slowpath_process::{Identity, IdentityError, IdentityWarning};
pub use spec::{EndPolicy, LaunchSpec, StdioPolicy};
