//! The recorder: BPF probes, a folder each, that follow processes (a tree from its
//! first instruction, running ones, or all) and put what they see into a ring.
//!
//! Owns: what can be recorded on this machine ([`machine`]), loading and attaching ([`Recorder`]), the raw records,
//! and decoding them into rows of [`slowpath_tables`] (pure). Leaves starting the target to `launch`, files and
//! directories to `recording`, and every conclusion to `analysis`.
//!
//! A probe's folder holds `<probe>.bpf.c` (what the kernel runs) and `mod.rs` (bytes to rows, pure). The records
//! are declared once, in `events.h`, for both sides.

mod capture_error;
mod clock;
mod context;
#[cfg(test)]
mod control_flow;
mod cpu_events;
mod cpus;
mod decode;
mod events;
pub mod examine;
mod fault_clock;
mod fault_counters;
mod file_rows;
mod followed;
#[doc(hidden)]
pub mod foreign;
mod interrupts;
mod kernel_events;
mod kernel_symbols;
mod kernel_types;
pub mod machine;
mod machine_counters;
mod memory_threads;
mod mounts;
mod names;
mod not_run;
mod objects;
mod options;
mod owner;
mod perf;
mod probe;
mod probes;
mod record_kinds;
mod recorder;
mod records;
mod ring;
mod running_processes;
mod system_calls;
mod walk;

mod block;
mod code_area;
mod cpu_sample;
mod fault;
mod first_wait;
mod mapping;
mod memory;
mod memory_work;
mod off_cpu;
mod open;
mod page_cache;
mod page_content;
mod present;
mod process;
mod read;
mod readahead;
mod stack;

pub use capture_error::CaptureError;
pub use clock::monotonic_now;
pub use decode::{Decoder, Facts, RawCapture, UNREADABLE_BYTES, count_events, decode, keep_reported_once};
pub use fault_clock::{FaultClock, TimedFaults};
pub use file_rows::METADATA;
pub use mounts::{Mount, parse_mountinfo};
pub use options::{LabDevice, Options, Running, StackEvents};
pub use owner::Owner;
pub use probe::Probe;
pub use probes::declared as probes;
pub use record_kinds::kinds_of_losses;
pub use recorder::Recorder;
pub use stack::{CodeMapping, CodePlace, NewModule, StackAudit, StackCopy, TableParts, VDSO, WalkFate};
