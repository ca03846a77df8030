//! Memory that processes map, touch and give back.
//!
//! Owns address spaces ([`address_space`]), blocks ([`memory_blocks`]), what they cost ([`cost_model`]) and what would keep them
//! ([`memory_fixes`]), which of their faults may have brought huge pages ([`huge_faults`]), pages that were given back
//! ([`released_pages`]), spans that would fit a huge page ([`huge_page_spans`]) and who asked for one ([`huge_page_advice`]), faults that
//! a fork caused ([`fork_faults`]), what the addresses of faults meant ([`fault_places`]), whether all faults were recorded
//! ([`completeness`]), and what the kernel's threads did for memory and for whom ([`background_reclaim`]).

pub(crate) mod address_ranges;
pub mod address_space;
pub mod background_reclaim;
pub(crate) mod block;
pub mod completeness;
pub mod cost_model;
pub mod fault_places;
pub mod fork_faults;
pub mod huge_faults;
pub mod huge_page_advice;
pub mod huge_page_spans;
pub mod memory_blocks;
pub(crate) mod memory_calls;
pub mod memory_events;
pub mod memory_fixes;
#[cfg(test)]
#[path = "../../tests/known_answers/memory_rows.rs"]
pub(crate) mod memory_rows;
pub(crate) mod page_owners;
pub mod released_pages;
