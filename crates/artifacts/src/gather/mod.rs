//! The facts that decide about access, read from a live path.
//!
//! Owns reading: one component at a time, by descriptors that open nothing ([`Machine`]). Leaves deciding to [`crate::access`]. Reads with
//! the rights of the calling process: what these do not show ends the lookup as [`crate::access::LookupEnd::Blocked`], and the evaluator
//! says unknown.

mod facts;
mod machine;

pub use machine::{Found, LookupError, Machine};
