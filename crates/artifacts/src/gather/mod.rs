//! The facts that decide about access, read from a live path or from a listing made elsewhere.
//!
//! Owns reading: one component at a time, by descriptors that open nothing ([`Machine`]), and `ls -lRZ` of another machine ([`Listing`]).
//! Leaves deciding to [`crate::access`]. Reads with the rights of the calling process: what these do not show ends the lookup as
//! [`crate::access::LookupEnd::Blocked`], and the evaluator says unknown.

mod facts;
mod listing;
mod machine;

pub use listing::{Listed, Listing, MOST_BYTES};
pub use machine::{Found, LookupError, Machine};
