//! How much CPU time a thread used between two of its samples.

use crate::ThreadKey;
use fxprof_processed_profile::CpuDelta;
use slowpath_recording::Tables;
use slowpath_tables::{CpuSample, Nanos};
use std::collections::HashMap;

/// When threads did not run, as far as it was recorded.
pub(super) struct CpuTime {
    /// Intervals off the CPU of each thread by time; null where they were not recorded at all.
    off: Option<HashMap<ThreadKey, Vec<(u64, u64)>>>,
    /// What one sample stands for, in ns.
    interval: u64,
}

impl CpuTime {
    pub(super) fn new(tables: &Tables, interval: u64) -> Self {
        if tables.off_cpu.is_empty() {
            return Self { off: None, interval };
        }
        let mut off: HashMap<ThreadKey, Vec<(u64, u64)>> = HashMap::new();
        for row in &tables.off_cpu {
            off.entry((row.process(), row.tid)).or_default().push((row.ts.0, (row.ts + row.duration).0));
        }
        for intervals in off.values_mut().filter(|intervals| !intervals.is_sorted()) {
            intervals.sort_unstable();
        }
        Self { off: Some(off), interval }
    }

    /// CPU time since the sample before, for each sample of a thread in the order of time; none for the first. Where waits
    /// were recorded it is the time without them, else a sample stands for one interval at most.
    pub(super) fn deltas(&self, thread: ThreadKey, samples: &[&CpuSample]) -> Vec<CpuDelta> {
        let none = Vec::new();
        let mut waits = self.off.as_ref().map(|off| off.get(&thread).unwrap_or(&none).iter().copied().peekable());
        let mut before: Option<Nanos> = None;
        let mut deltas = Vec::with_capacity(samples.len());
        for sample in samples {
            let from = before.replace(sample.ts).unwrap_or(sample.ts).0;
            let distance = sample.ts.0.saturating_sub(from);
            let Some(waits) = &mut waits else {
                deltas.push(CpuDelta::from_nanos(distance.min(self.interval)));
                continue;
            };
            let (mut waited, mut reached) = (0u64, from);
            while let Some((start, end)) = waits.peek().copied().filter(|(start, _)| *start < sample.ts.0) {
                // Damaged intervals can overlap; time is counted once.
                let (start, until) = (start.max(reached), end.min(sample.ts.0));
                waited += until.saturating_sub(start);
                reached = reached.max(until);
                if end > sample.ts.0 {
                    break;
                }
                waits.next();
            }
            deltas.push(CpuDelta::from_nanos(distance.saturating_sub(waited)));
        }
        deltas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str, interval: u64) -> Vec<CpuDelta> {
        let tables = Tables::from_text(text).unwrap();
        let samples: Vec<&CpuSample> = tables.cpu_samples.iter().collect();
        CpuTime::new(&tables, interval).deltas((samples[0].process(), samples[0].tid), &samples)
    }

    const SAMPLES: &str = "== cpu_samples\nts pid start tid\n1_000_000 7 1 7\n2_000_000 7 1 7\n9_000_000 7 1 7\n";

    #[test]
    fn waits_are_no_cpu_time_and_each_counts_once() {
        let waits = "== off_cpu\nts duration pid start tid reason\n500_000 600_000 7 1 7 futex\n\
            3_000_000 4_000_000 7 1 7 futex\n5_000_000 1_000_000 7 1 7 futex\n8_999_000 9_000_000 7 1 7 futex\n\
            3_000_000 4_000_000 7 1 8 futex\n";
        let expected = [0, 900, 2_999].map(CpuDelta::from_micros);
        assert_eq!(micros(&format!("{SAMPLES}{waits}"), 1_000_000), expected);
    }

    #[test]
    fn without_recorded_waits_a_sample_is_one_interval_at_most() {
        assert_eq!(micros(SAMPLES, 1_500_000), [0, 1_000, 1_500].map(CpuDelta::from_micros));
    }
}
