//! What perf's records say is lost, of `perf.data` and of what `perf script` prints of it. Leaves how they are written to both.

use slowpath_tables::Losses;

/// Events that the kernel found no place for: as it says where there is place again (PERF_RECORD_LOST), and as its counters of each event
/// say in the end, which perf reads since Linux 6.1 (PERF_RECORD_LOST_SAMPLES). What is lost is in both (`__perf_output_begin` in
/// kernel/events/ring_buffer.c), but for what comes after the last place.
#[derive(Default)]
pub(crate) struct Lost {
    said: u64,
    counted: u64,
}

impl Lost {
    pub(crate) fn said(&mut self, events: u64) {
        self.said = self.said.saturating_add(events);
    }

    pub(crate) fn counted(&mut self, events: u64) {
        self.counted = self.counted.saturating_add(events);
    }

    /// Adds them to the losses of a recording, once.
    pub(crate) fn add_to(&self, losses: &mut Losses) {
        let lost = self.said.max(self.counted);
        if lost > 0 {
            losses.add("perf.any", lost);
        }
    }
}
