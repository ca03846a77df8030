//! What machine code is called and how its callers are found.
//!
//! Owns: unwinding tables made from `.eh_frame` ([`unwind_table`]), the reference of a walk with them ([`walk`]), a second
//! opinion on walked stacks ([`audit`]), the names of frames ([`symbolize`]), and the functions, segments and sections of a file
//! ([`binary`]). Leaves walking stacks in the kernel to
//! `capture`, which processes are recorded to `cli`, and what stacks mean to `analysis`. Everything here parses foreign files,
//! so it runs without privilege.

pub mod audit;
pub mod binary;
pub mod startup;
pub mod symbolize;
pub mod unwind_table;
mod vdso_mapping;
pub mod walk;
