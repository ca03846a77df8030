//! The order of a binary's code: which functions a launch uses first, and what another order would save.
//!
//! Owns the trace of first uses ([`tracer`], [`trace_file`]), orders made from traces ([`order`]), the pages and faults that an order
//! predicts ([`score`]), what else of the file a start needs ([`why`]), and variants that are built and compared ([`trial`]). Leaves reading
//! ELF files to `symbols`, one launch and its identity to `launch`, launches in blocks to `verify`, giving up privilege to `process`, and
//! what is printed to `cli` and `report`.
//!
//! # Who does what
//!
//! ```text
//! main ── tracer (a thread)  ptrace(2): breakpoints, stops, restores; parses nothing
//!   ├──── reader             a worker as the target's user: opens and parses ELF files, answers with numbers
//!   └──── launcher ── target
//! ```

pub mod foreign;
pub mod order;
pub mod score;
pub mod trace_file;
pub mod tracer;
pub mod trial;
pub mod why;
