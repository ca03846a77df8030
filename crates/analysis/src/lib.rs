//! From the tables of a recording to findings. Pure: no clock, no file, no process.
//!
//! Owns what rows mean: address spaces ([`address_space`]), blocks of memory ([`memory_blocks`]), what they cost ([`cost_model`]) and what
//! would keep them ([`memory_fixes`]), which of their faults may have brought huge pages ([`huge_faults`]), pages that were given back
//! ([`released_pages`]), spans that would fit a huge page ([`huge_page_spans`]) and who asked for one ([`huge_page_wishes`]), faults that a
//! fork caused ([`fork_faults`]), processes ([`processes`]), call stacks ([`call_stacks`]), why pages were read ([`insertions`]), when
//! threads waited for them ([`blocked`]), which were needed ([`demand`], [`merge`]), whether recording was complete ([`completeness`]),
//! which share of everything a process ([`usage`]) and a function ([`function_weights`]) has, where the time of every thread went
//! ([`ledger`]), what the kernel's threads did for memory and for whom ([`background_reclaim`]), what a launch waited for in the end
//! ([`critical_path`]), who waited for replies of whom ([`round_trips`]), the work that a thread does because it could not use an artifact
//! (`fallbacks`), the starts that siblings repeat (`repeated_starts`) and what of them a fork would hand on ([`inherited_loads`]), those
//! starts beside each other ([`sibling_starts`]), the spans of a
//! launch by names that other launches have too ([`launch_spans`]), who sleeps to keep a pace (`paced_threads`), what the run-time linker
//! does before main (`loader_work`), the few parts that its time has ([`time_spent`]), what a preload plan would gain ([`predict`]), what a
//! recording cost as another one can be laid beside it ([`metrics`]), how all of that is printed ([`printed`]), and the findings
//! ([`findings`]) with the report's I/O map ([`io_map`]). Leaves recording to `capture`, plans on disk and trials to `fix` and `verify`,
//! inference between arms to `experiment`.
//!
//! [`launch_facts::LaunchFacts`] derives everything of one recording once; the others take it from there.

mod address_ranges;
pub mod address_space;
pub mod attribution;
pub mod background_reclaim;
pub mod blocked;
pub mod call_stacks;
pub mod children;
pub mod completeness;
pub mod cost_model;
pub mod critical_path;
pub mod declaration;
pub mod demand;
pub(crate) mod fallbacks;
pub mod files;
pub mod finding;
pub mod findings;
pub mod fix_inputs;
pub mod fork_faults;
pub mod function_weights;
pub mod huge_faults;
pub mod huge_page_spans;
pub mod huge_page_wishes;
pub mod inherited_loads;
pub mod insertions;
mod integer_hash;
pub mod interval;
pub mod io_map;
pub mod launch_facts;
pub mod launch_spans;
pub mod ledger;
mod loader_work;
pub mod memory_blocks;
mod memory_calls;
pub mod memory_fixes;
#[cfg(test)]
#[path = "../tests/known_answers/memory_rows.rs"]
mod memory_rows;
pub mod merge;
pub mod metrics;
pub mod not_recorded;
pub mod off_cpu_times;
mod opening_threads;
mod paced_threads;
mod page_owners;
mod page_ranges;
pub mod predict;
pub mod printed;
pub mod processes;
mod recording_times;
pub mod released_pages;
mod repeated_starts;
pub mod round_trips;
pub mod sibling_starts;
pub mod time_spent;
pub mod usage;
pub mod zygote_advice;

pub use declaration::{Declaration, ShowsIn};
pub use demand::{Demand, NeededUnknown};
pub use finding::{Confidence, Evidence, Finding};
pub use io_map::IoMap;
pub use launch_facts::LaunchFacts;
pub use merge::{MergedDemand, merge};
