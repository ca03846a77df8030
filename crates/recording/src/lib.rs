//! The recording: a directory of Parquet tables and a manifest, the only contract between what observes a launch and
//! what explains it.
//!
//! Owns: the manifest, how segments are written so that a killed recorder leaves a readable recording, how they are
//! read back and told to be damaged, and the text form used by tests. Leaves the tables' columns to `tables`, filling
//! them to `capture`, their meaning to `analysis`.
//!
//! Layout of `DIR` (mode 0700, files 0600):
//!
//! ```text
//! manifest.json               what was recorded, and the list of segments: readers trust this list only
//! <table>/<number>.parquet    one immutable segment of a table; columns of 4 KiB and more zstd-compressed
//! .*.tmp, <table>/.*.tmp      what a killed recorder was writing; never read
//! .reserve                    space that a running recorder holds for its last manifest
//! ```

mod directory;
mod huge_pages;
mod limit;
mod manifest;
mod memory_cost;
mod memory_threads;
mod order;
mod page_header;
mod read;
mod read_error;
mod segment;
mod segment_limits;
mod tables;
mod text;
mod text_cell;
mod write;
mod write_error;

pub use huge_pages::HugePages;
pub use manifest::{
    CPU_SAMPLE_HZ, Clock, Device, Host, Launch, MachineFaults, Manifest, NotRecorded, Probe, ProbeState, Progress,
    RecorderProcess, SCHEMA_VERSION, Segment,
};
pub use memory_cost::{BlockCost, MemoryCost};
pub use memory_threads::{MemoryThread, MemoryThreads};
pub use read::Recording;
pub use read_error::{Damage, OpenError, ReadError, Why};
pub use segment_limits::MOST_ROWS;
pub use tables::Tables;
pub use text::TextError;
pub use write::{SEGMENT_ROWS, Writer};
pub use write_error::WriteError;

/// File name of the manifest in a recording.
pub const MANIFEST_FILE: &str = "manifest.json";

/// File that holds space for the last manifest while a recording is written.
const RESERVE_FILE: &str = ".reserve";
