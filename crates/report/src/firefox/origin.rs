//! Moments of a recording as those of a profile.

use fxprof_processed_profile::{MarkerTiming, ReferenceTimestamp, Timestamp};
use slowpath_recording::Tables;
use slowpath_tables::Nanos;

/// From moments of the recording to those of the profile, which begin with the first thing that is shown.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Origin {
    pub(super) fn of(tables: &Tables) -> Self {
        let manifest = &tables.manifest;
        let moments = (tables.cpu_samples.iter().map(|row| row.ts))
            .chain(tables.off_cpu.iter().map(|row| row.ts))
            .chain(tables.faults.iter().map(|row| row.ts))
            .chain(tables.memory_calls.iter().map(|row| row.ts))
            .chain(tables.forks.iter().map(|row| row.ts))
            .chain(tables.execs.iter().map(|row| row.ts))
            .chain(tables.exits.iter().map(|row| row.ts))
            .chain([manifest.started].into_iter().filter(|started| started.0 > 0))
            .chain(manifest.ended);
        let (first, last) = moments.fold((u64::MAX, 0), |(first, last), ts| (first.min(ts.0), last.max(ts.0)));
        Self { first: first.min(last), last }
    }

    pub(super) fn at(self, moment: Nanos) -> Timestamp {
        Timestamp::from_nanos_since_reference(moment.0.saturating_sub(self.first))
    }

    pub(super) fn span(self, from: Nanos, duration: Nanos) -> MarkerTiming {
        MarkerTiming::Interval(self.at(from), self.at(from + duration))
    }

    /// The time of day.
    pub(super) fn reference(self, tables: &Tables) -> ReferenceTimestamp {
        let clock = tables.manifest.clock;
        let since = self.first as f64 - clock.monotonic.0 as f64;
        let realtime = if clock.realtime > 0 { clock.realtime as f64 + since } else { 0.0 };
        ReferenceTimestamp::from_millis_since_unix_epoch((realtime / 1e6).max(0.0))
    }
}
