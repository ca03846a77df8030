//! Fixes: from a finding to something that can be tried, applied and undone.
//!
//! Owns one module a fix, its declaration ([`ALL`]), and the description that all share ([`plan`]). For cold reads: [`preload_plan`], [`readahead_size`].
//! For memory, each from what findings ask for and what is known of the program ([`program`]), put together by [`proposal`]:
//! [`allocator_tunables`], [`another_allocator`], [`huge_pages`], [`populate_at_map`], [`keep_buffer`], [`size_to_use`],
//! [`advise_huge_pages`], [`look_in_place`], and the control beside them, [`sham_environment`]. For artifacts: [`grant_read`]. Fixes in the source say where
//! (`source_place`). What a fix does to a launch is a [`treatment`]; [`apply`] makes of it files that a
//! person can read before they are written. Leaves findings, and the values that follow from them, to `analysis`, and the judgement of a trial
//! to `verify`.

pub mod advise_huge_pages;
pub mod allocator_tunables;
pub mod another_allocator;
pub mod apply;
pub mod declaration;
pub mod grant_read;
pub mod huge_pages;
pub mod keep_buffer;
pub mod look_in_place;
pub mod plan;
pub mod populate_at_map;
pub mod preload_plan;
pub mod program;
pub mod proposal;
pub mod readahead_size;
pub mod sham_environment;
pub mod size_to_use;
mod source_change;
mod source_place;
pub mod treatment;
pub mod word;

pub use declaration::Declaration;
pub use plan::{Change, FixPlan, Privilege, Scope, Trial};
pub use program::Program;
pub use proposal::{Machine, Proposal, propose};
pub use treatment::Treatment;
pub use word::Word;

/// Every fix, in the order in which it is explained: those of cold launches, of a launch's environment, of the source, of files.
pub const ALL: [Declaration; 11] = [
    preload_plan::FIX,
    readahead_size::FIX,
    allocator_tunables::FIX,
    another_allocator::FIX,
    huge_pages::FIX,
    populate_at_map::FIX,
    keep_buffer::FIX,
    size_to_use::FIX,
    advise_huge_pages::FIX,
    look_in_place::FIX,
    grant_read::FIX,
];
