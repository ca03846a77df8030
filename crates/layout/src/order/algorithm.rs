//! What an algorithm declares.

use crate::work::Work;

/// A way to make an order.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name on the command line and in JSON.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub title: &'static str,
    /// Addresses of all functions that any of the works used, each once, in the order in which they are to stand.
    pub order: fn(&[Work]) -> Vec<u64>,
}
