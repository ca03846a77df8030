//! What `slowpath ipc` measured, in a terminal: one file a command. `throughput` has the format of Google Benchmark, which
//! `slowpath_ipc::throughput::google` owns.

pub mod comparison;
pub mod doctor;
pub mod latency;
pub mod pool;

use crate::terminal::escape_terminal;
use slowpath_tables::{Quantity, Unavailable};

/// A line for each that is not available.
pub fn gaps(gaps: &[Unavailable]) -> String {
    let line = |gap: &Unavailable| {
        format!("{} is unavailable: {} (remedy: {})\n", gap.what, escape_terminal(&gap.reason), gap.remedy)
    };
    gaps.iter().map(line).collect()
}

/// A quantity with its interval, without its unit.
fn figure(quantity: &Quantity) -> String {
    match (quantity.low, quantity.high) {
        (Some(low), Some(high)) => format!("{:.3} ({low:.3} to {high:.3})", quantity.value),
        _ => format!("{:.3}", quantity.value),
    }
}
