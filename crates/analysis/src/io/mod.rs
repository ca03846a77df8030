//! What was read from files, and who waited for it.
//!
//! Owns which files a recording names ([`files`]), why pages were read ([`insertions`]), when threads waited for them ([`blocked`]), which
//! were needed ([`demand`], [`merge`]), what a preload plan would gain ([`predict`]), the work that a thread does because it could not use
//! an artifact (`fallbacks`), and the report's I/O map ([`io_map`]).

pub mod blocked;
pub mod demand;
pub(crate) mod fallbacks;
pub mod files;
pub mod insertions;
pub mod io_map;
pub mod merge;
pub(crate) mod opening_threads;
pub(crate) mod page_ranges;
pub mod predict;
