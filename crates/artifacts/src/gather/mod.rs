//! The facts that decide about access, read from a live path, a running process, or a listing made elsewhere.
//!
//! Owns reading: one component at a time, by descriptors that open nothing ([`Machine`]), texts of `/proc/PID` ([`ProcessTexts`]), and
//! `ls -lRZ` of another machine ([`Listing`]).
//! Leaves deciding to [`crate::access`]. Reads with the rights of the calling process: what these do not show ends the lookup as
//! [`crate::access::LookupEnd::Blocked`], and the evaluator says unknown.

mod facts;
mod listing;
mod machine;
mod process;

pub use listing::{Listed, Listing, MOST_BYTES};
pub use machine::{LookupError, Machine, ResolvedPath};
pub use process::{ProcessTexts, mapped_files};
