//! The order of a binary's code: which functions a launch uses first, and what another order would save.
//!
//! Owns the trace of first uses ([`tracer`], [`trace_file`]), what orders are made from ([`work`]), orders ([`order`]), the pages and
//! faults that an order predicts ([`score`]), what else of the file a start needs ([`why`]), variants that are built and compared
//! ([`trial`]), and what the commands print of these ([`traced`], [`ordered`], [`scored`], [`explained`]). Leaves reading ELF files to
//! `symbols`, one launch and its identity to `launch`, launches in blocks to `verify`, giving up privilege to `process`, and screens to
//! `report`.
//!
//! # Who does what
//!
//! ```text
//! main ── tracer (a thread)  ptrace(2): breakpoints, stops, restores; parses nothing
//!   ├──── reader             a worker as the target's user: opens and parses ELF files, answers with numbers
//!   └──── launcher ── target
//! ```

pub mod explained;
pub mod foreign;
mod inputs;
pub mod order;
pub mod ordered;
pub mod repack;
pub mod repacked;
pub mod score;
pub mod scored;
pub mod trace_file;
pub mod traced;
pub mod tracer;
pub mod trial;
pub mod why;
pub mod work;
