//! Fixes: from a finding to something that can be tried, applied and undone.
//!
//! Owns one module a fix ([`preload_plan`], [`readahead_size`]) and the description that all share ([`plan`]). Leaves
//! findings to `analysis` and the judgement of a trial to `verify`.

pub mod plan;
pub mod preload_plan;
pub mod readahead_size;

pub use plan::{Change, FixPlan, Privilege, Scope, Trial};
