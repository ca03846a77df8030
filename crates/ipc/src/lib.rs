//! Is the IPC mechanism itself healthy? Transports, throughput, latency, inheritance of priority, and the kernel's trace of
//! the very moment a deadline was missed.
//!
//! Owns: the transports, the processes that measure them, and what the measurements mean. Leaves printing and exit codes to
//! `cli`, statistics of comparisons to `experiment`.
//!
//! The path: a [`transport::Pair`] is connected, processes are forked ([`children`]), they measure into shared memory, and
//! everything after is a pure function of plain data.

mod binder;
pub mod children;
pub mod comparison;
pub mod conditions;
mod dbus;
mod detached;
pub mod doctor;
mod futex;
mod grpc;
pub mod latency;
pub mod limits;
mod mailbox;
mod memory;
mod ring;
pub mod scheduling;
pub mod throughput;
pub mod trace;
pub mod transport;
