//! Compiled and cached artifacts that processes need, and who can use them.
//!
//! Owns: the access evaluator ([`access`]) and reading the facts it needs ([`gather`]). Leaves to others: what an unreadable artifact
//! costs, and changing anything; as whom files are read is decided by `cli`.

pub mod access;
pub mod gather;
