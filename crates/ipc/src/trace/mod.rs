//! The kernel's trace of the moment a deadline was missed.
//!
//! [`instance`] owns a private trace instance and its end; [`parse`] turns its text into events; [`timeline`] says what the two
//! threads of a transaction did; [`beside`] holds counters that have no event; [`explain`] names the cause, or says that the trace shows none.
//! [`recorded`] makes the whole trace the tables of a recording, with what each CPU did (`cpus`).

pub mod beside;
mod cpus;
pub mod explain;
pub mod instance;
pub mod parse;
pub mod recorded;
pub mod timeline;

pub use instance::{Instance, Stopper, Text, TraceError, clean, leftovers};
