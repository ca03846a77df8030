//! Compiled and cached artifacts that processes need, and who can use them.
//!
//! Owns: the access evaluator ([`access`]), reading the facts it needs ([`gather`]), the families of artifacts ([`families`]), and the
//! audit of trees ([`audit`]). Leaves to others: what an unreadable artifact costs, and changing anything; as whom files are read is
//! decided by `cli`.

pub mod access;
pub mod audit;
mod disk;
pub mod families;
pub mod field_state;
pub mod foreign;
pub mod gather;
