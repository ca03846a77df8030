//! Traces of other tools as recordings, so that every analysis runs on them.
//!
//! An importer is one file with one declaration, `IMPORT`, listed in [`ALL`]. It reads its trace from begin to end, once, and hands what
//! it understands to a [`Trace`], which knows processes, files, call stacks and waits, and writes rows as they come: memory grows
//! with what is distinct in a trace (threads, files, code), each with a limit, and not with its length. What a trace cannot hold is
//! unavailable in the recording, with the reason. Frames without a name get one from files of this machine, by build id
//! ([`local_code`]). [`import`] does it for all traces of one command. Leaves opening files, identity and where the recording is written to the command, and
//! what rows mean to `analysis`.

mod code_file;
mod cpu_event;
mod declaration;
mod event_fields;
mod facts;
mod files;
pub mod foreign;
mod ftrace;
mod imported;
#[cfg(test)]
mod imported_findings;
mod in_order;
mod input;
mod kernel_event;
mod local_code;
mod mappings;
mod moment;
mod output;
mod perf_data;
mod perf_lost;
mod perf_sample;
mod perf_script;
mod perfetto;
mod problem;
mod registry;
mod simpleperf;
mod sorted_runs;
mod stacks;
mod strace;
mod tasks;
mod trace;
mod wait_reason;
mod waits;
mod wpa_csv;
mod xperf;

pub use declaration::{HEAD, Importer};
pub use imported::{Imported, NotImported, Wanted, import};
pub use input::{Input, Places};
pub use output::{Output, Row};
pub use perfetto::{messages as perfetto_messages, next_packet as next_perfetto_packet};
pub use problem::ImportError;
pub use registry::{ALL, detected, named};
pub use trace::Trace;
