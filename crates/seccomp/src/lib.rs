//! System call filters: programs of classic BPF that the kernel runs at each system call of a thread (seccomp(2)).
//!
//! Owns: a filter as raw instructions ([`Program`]); getting one from foreign bytes ([`parse`]: JSON of seccompiler, profiles of container
//! runtimes, raw instructions), from a running process ([`of_process`]), made for a measurement ([`built_in`]), or compiled from rules
//! ([`compile`]); installing one in the calling thread ([`install`]). Parsing is pure and total on any bytes. Leaves to others: which threads get a filter, and what it costs.

pub mod built_in;
mod compile;
mod error;
pub mod install;
mod instruction;
mod parse;
mod parsed;
mod process;
mod profile;
mod program;

pub use compile::{Rules, compile};
pub use error::{FilterError, ProcessError};
pub use instruction::{Instruction, MOST_INSTRUCTIONS};
pub use parse::{MOST_BYTES, parse};
pub use parsed::Parsed;
pub use process::of_process;
pub use program::Program;
