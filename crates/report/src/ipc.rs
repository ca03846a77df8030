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

/// A quantity with its interval, without its unit: as many decimals as the value has three digits with, at most four.
fn figure(quantity: &Quantity) -> String {
    let magnitude = quantity.value.abs().max(1e-2).log10().floor();
    let decimals = (2.0 - magnitude).clamp(0.0, 4.0) as usize;
    let number = |value: f64| format!("{value:.decimals$}");
    match (quantity.low, quantity.high) {
        (Some(low), Some(high)) => format!("{} ({} to {})", number(quantity.value), number(low), number(high)),
        _ => number(quantity.value),
    }
}
