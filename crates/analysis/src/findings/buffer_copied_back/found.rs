//! The pattern in one launch, with what its evidence and confidence go by.

use super::round_trips::{CopySide, RoundTrip};
use crate::findings::allocating_stack::AllocatingStack;
use crate::findings::materiality::CostShare;
use crate::findings::memory_use::MemoryUse;
use crate::findings::sampled_time::sampled_time;
use slowpath_tables::Quantity;

/// The pattern in one launch.
pub(super) struct CopiedBuffer<'a> {
    pub(super) memory: &'a MemoryUse<'a>,
    pub(super) trip: &'a RoundTrip,
    /// Samples a second.
    pub(super) hertz: u64,
    pub(super) cost: Quantity,
    pub(super) share: CostShare,
    /// Who allocates the block.
    pub(super) allocates: AllocatingStack,
}

impl CopiedBuffer<'_> {
    /// The stack with most samples of a direction.
    pub(super) fn main_site(&self, way: &CopySide) -> AllocatingStack {
        way.sites.first().map(|site| self.memory.stacks.of_row(site.stack)).unwrap_or_default()
    }

    pub(super) fn saving(&self) -> Quantity {
        let low = |way: &CopySide| sampled_time(way.samples, self.hertz).low.unwrap_or_default();
        let low = low(&self.trip.copied_in).min(low(&self.trip.copied_back));
        Quantity { low: Some(low), ..self.cost }
    }

    /// What makes it the same in several launches.
    pub(super) fn key(&self) -> (String, String, String) {
        let site = |way| self.main_site(way).folded();
        (self.trip.program.clone(), site(&self.trip.copied_in), site(&self.trip.copied_back))
    }
}
