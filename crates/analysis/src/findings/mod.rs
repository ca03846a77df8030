//! One module a finding.
//!
//! Owns the list of findings ([`ALL`]) and their input ([`Observation`]); what several need stands beside them. A finding is a pure
//! function of recordings; it never measures.

pub(crate) mod allocating_stack;
pub mod background_reclaim;
pub mod block_places;
pub mod buffer_copied_back;
pub mod cold_file_reads;
mod copying_code;
mod doubts;
mod fallback_cost;
mod fallback_finding;
pub mod fault_sums;
pub mod heap_trim_churn;
mod kept_blocks;
mod loader_findings;
pub mod many_libraries;
pub mod materiality;
pub mod memory_confidence;
pub mod memory_evidence;
pub(crate) mod memory_use;
pub mod missing_artifact;
mod never_used;
mod observation;
mod other_allocators;
mod registry;
pub mod relocation_cost;
pub mod repeated_child_work;
mod rust_names;
mod sampled_time;
pub mod slow_ipc_reply;
pub mod stale_artifact;
pub mod thp_missed;
pub mod timed_wait;
pub mod transient_large_allocation;
pub mod unreadable_artifact;
pub mod unused_touched_pages;
mod wait_place;

pub use observation::Observation;
pub use registry::{ALL, former_name, of_observation, of_recordings};
pub(crate) use registry::{named, of_declaration, of_launches};
