//! What the JSON of an analysis holds: the results of this crate with names, units and shares.
//!
//! Owns names and shape. Leaves sums and what they mean to the modules that make them, and screens to `report`.

mod analysis;
pub mod critical_path;
pub mod ledger;
pub mod longest;
pub mod looked_for;
pub mod quantities;
pub mod round_trips;
pub mod time_spent;
pub mod usage;

pub use analysis::{ANALYZE_SCHEMA, Analysis};
