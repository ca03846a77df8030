//! Where time went.
//!
//! Owns the time of every thread ([`ledger`]), what a launch waited for in the end ([`critical_path`]), its spans by names that other
//! launches have too ([`launch_spans`]), who waited for replies of whom ([`round_trips`]), who sleeps to keep a pace (`paced_threads`),
//! which share of everything a process has ([`usage`]), the few parts that a launch's time has ([`time_spent`]), and what recording took
//! (`recording_times`, [`off_cpu_times`]).

pub mod critical_path;
pub mod launch_spans;
pub mod ledger;
pub mod off_cpu_times;
pub(crate) mod paced_threads;
pub(crate) mod recording_times;
pub mod round_trips;
pub mod time_spent;
pub mod usage;
