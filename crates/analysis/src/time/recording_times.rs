//! What recording their faults took of threads: the walks of call stacks, on the time of the thread that faulted.
//!
//! Owns the sums for intervals. Leaves what they are taken off to those who ask: recording's own time is no cost of a program.

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};

/// The threads of which it is known.
#[derive(Debug, Default)]
pub(crate) struct RecordingTimes {
    /// When a fault was recorded, and what recording took of the thread until then, in order.
    threads: IntegerMap<(ProcessKey, u32), Vec<(u64, u64)>>,
}

impl RecordingTimes {
    /// From the rows of a recording, in any order.
    pub fn new(tables: &Tables) -> Self {
        let mut threads: IntegerMap<(ProcessKey, u32), Vec<(u64, u64)>> = IntegerMap::default();
        for row in &tables.faults {
            let Some(recording) = row.recording else { continue };
            let end = row.ts.0.saturating_add(row.duration.unwrap_or_default().0).saturating_add(recording.0);
            threads.entry((row.process(), row.tid)).or_default().push((end, recording.0));
        }
        for faults in threads.values_mut() {
            faults.sort_unstable();
            let mut sum = 0u64;
            for (_, recording) in faults {
                sum = sum.saturating_add(*recording);
                *recording = sum;
            }
        }
        Self { threads }
    }

    /// Of a thread between two moments; a fault counts when it has been recorded.
    pub fn between(&self, process: ProcessKey, tid: u32, from: Nanos, to: Nanos) -> Nanos {
        let Some(faults) = self.threads.get(&(process, tid)) else { return Nanos(0) };
        let until = |moment: Nanos| {
            let count = faults.partition_point(|(end, _)| *end <= moment.0);
            count.checked_sub(1).map_or(0, |last| faults[last].1)
        };
        Nanos(until(to).saturating_sub(until(from)))
    }

    /// Of each thread in all.
    pub fn totals(&self) -> impl Iterator<Item = ((ProcessKey, u32), Nanos)> {
        self.threads.iter().filter_map(|(thread, faults)| Some((*thread, Nanos(faults.last()?.1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_counts_from_the_end_of_its_recording_for_its_thread_alone() {
        let tables = Tables::from_text(
            "
== faults
ts  duration pid start tid address kind  recording
60  5        7   1     7   8192    minor -
70  5        7   1     7   8192    minor 15
20  5        7   1     7   4096    minor 30
80  5        7   1     8   8192    minor 9
",
        )
        .unwrap();
        let times = RecordingTimes::new(&tables);
        let process = ProcessKey { pid: 7, start: Nanos(1) };
        let of = |from, to| times.between(process, 7, Nanos(from), Nanos(to)).0;
        assert_eq!([of(0, 54), of(0, 55), of(55, 90), of(0, 1000), of(90, 55)], [0, 30, 15, 45, 0]);
        assert_eq!(times.between(process, 9, Nanos(0), Nanos(100)), Nanos(0));
        let mut all: Vec<(u32, u64)> = times.totals().map(|((_, tid), time)| (tid, time.0)).collect();
        all.sort_unstable();
        assert_eq!(all, [(7, 45), (8, 9)]);
    }
}
