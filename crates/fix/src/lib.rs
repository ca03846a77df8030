//! Fixes: from a finding to something that can be tried, applied and undone.
//!
//! Owns one module a fix, its declaration ([`ALL`]), and the description that all share ([`plan`]). Those for cold reads need a lab:
//! [`preload_plan`], [`readahead_size`]. The others are made from what findings ask for and what is known of the program ([`program`],
//! `dynamic_symbols`) and of the [`Machine`]; [`propose`] asks each. For memory: [`allocator_tunables`], [`replace_allocator`],
//! [`huge_pages`], [`populate_at_map`], [`reuse_buffer`], [`right_size_buffer`], [`advise_huge_pages`], [`avoid_copy`], and the control
//! beside them, [`sham_environment`]. For artifacts: [`grant_read`], [`regenerate_artifact`], [`share_artifact`], [`drop_isolation`]; for
//! children: [`preload_in_zygote`]. Fixes in the source say where (`source_place`). What a fix does to a launch is a [`treatment`]; [`apply`]
//! makes of it files that a person can read before they are written. Leaves findings, and the values that follow from them, to `analysis`,
//! and the judgement of a trial to `verify`.

pub mod advise_huge_pages;
pub mod allocator_tunables;
pub mod apply;
mod artifact_subject;
pub mod avoid_copy;
mod case;
pub mod declaration;
mod digest;
pub mod drop_isolation;
#[doc(hidden)]
pub mod dynamic_symbols;
mod fix_list;
pub mod grant_read;
pub mod huge_pages;
mod installed_allocator;
mod machine;
pub mod not_triable;
mod path_list;
pub mod plan;
pub mod populate_at_map;
pub mod preload_in_zygote;
pub mod preload_plan;
pub mod program;
mod proposal;
mod proposal_per_finding;
pub mod readahead_size;
pub mod regenerate_artifact;
pub mod replace_allocator;
pub mod reuse_buffer;
pub mod right_size_buffer;
#[cfg(test)]
mod sample;
pub mod sham_environment;
pub mod share_artifact;
mod source_place;
pub mod treatment;
pub mod word;

pub use case::Case;
pub use declaration::Declaration;
pub use digest::sha256;
pub use fix_list::{ALL, fixes_not_made_here, is_same_name, propose};
pub use machine::Machine;
pub use not_triable::NotTriable;
pub use plan::{Change, FixPlan, Privilege, Scope, Trial};
pub use program::Program;
pub use proposal::{Lookup, Proposal};
pub use treatment::{FilePermissions, TreatedFile, Treatment};
pub use word::Word;
