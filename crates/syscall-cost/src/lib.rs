//! What a system call costs here, and what a seccomp filter costs: arms in alternating bursts in one process.
//!
//! Filters and states of speculation cannot be taken back, but they belong to a thread. So each arm is a thread of one process
//! ([`crew`]): all of them on one CPU, in one address space, never two at once. They hand over a baton after each burst of some
//! 1.5 ms, in a counterbalanced order, and the differences are those of bursts of one block. Each block has threads of its own, so that the
//! place where the kernel puts a filter is chance too. One arm is there twice; what differs there is what this measurement cannot resolve.
//!
//! Owns: the bursts ([`workload`]), the arms and the reading of their states, which decides whether an arm is what it should be
//! ([`arm`], [`state`]), what a filter lets through ([`probe`]), which filter a word means ([`filter_choice`]), the measurement
//! ([`measure`]), what it says ([`SyscallCost`]), and all of that in processes of their own ([`cost`]). Leaves to others: where filters come
//! from (`seccomp`), and showing it (`report`). The process that measures must have one thread and must end
//! without joining those of the arms: their filters may refuse to end a thread.

mod apart;
pub mod arm;
mod baton;
mod crew;
pub mod filter_choice;
mod measure;
mod outcome;
#[cfg(test)]
mod outcome_tests;
mod probe;
mod state;
mod workload;

pub use apart::cost;
pub use arm::Arm;
pub use measure::{MeasureError, Measured, Plan, measure};
pub use outcome::{ArmCost, ArmShown, Change, ForcedMitigation, SCHEMA, ShownFilter, SyscallCost, WorkloadCost};
pub use probe::{Answer, calls};
pub use state::ThreadState;
pub use workload::Workload;
