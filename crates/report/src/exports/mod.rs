//! A launch benchmark in the forms of other programs: [`csv`], [`markdown`] for pull requests, [`hyperfine`]'s JSON.
//!
//! Command lines and names are foreign text: each form escapes them in its own way.

pub mod csv;
pub mod hyperfine;
pub mod markdown;

#[cfg(test)]
pub(crate) mod sample;
