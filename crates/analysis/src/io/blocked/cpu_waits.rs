//! When threads were runnable without a CPU, which is no waiting for a file.
//!
//! A read that is complete wakes its thread, and on a busy machine that thread then waits in a run queue. The duration of the fault or
//! call holds both. Where waits were recorded (`off_cpu`), the second is cut out here.

use super::interval::BlockedInterval;
use crate::integer_hash::IntegerMap;
use slowpath_tables::{Nanos, OffCpu, ProcessKey};

/// From and to, by thread, disjoint and in order.
#[derive(Debug, Default)]
pub(super) struct CpuWaits(IntegerMap<(ProcessKey, u32), Vec<(Nanos, Nanos)>>);

impl CpuWaits {
    /// Of rows sorted by time. A thread is runnable in the last part of a wait, and in all of it where it was displaced.
    pub(super) fn new(rows: &[OffCpu]) -> Self {
        let mut waits: IntegerMap<(ProcessKey, u32), Vec<(Nanos, Nanos)>> = IntegerMap::default();
        for row in rows.iter().filter(|row| row.runnable.0 > 0) {
            let to = Nanos(row.ts.0.saturating_add(row.duration.0));
            let of_thread = waits.entry((row.process(), row.tid)).or_default();
            let from = Nanos(to.0.saturating_sub(row.runnable.0)).max(of_thread.last().map_or(Nanos(0), |last| last.1));
            if from < to {
                of_thread.push((from, to));
            }
        }
        Self(waits)
    }

    /// The interval without them: in pieces where they lie in its middle, and none where they fill it.
    pub(super) fn cut_out(&self, interval: BlockedInterval) -> Vec<BlockedInterval> {
        let Some(waits) = self.0.get(&(interval.process, interval.tid)) else { return vec![interval] };
        let first = waits.partition_point(|wait| wait.1 <= interval.from);
        let mut pieces = Vec::new();
        let mut from = interval.from;
        for &(begin, end) in waits[first..].iter().take_while(|wait| wait.0 < interval.to) {
            if from < begin {
                pieces.push(BlockedInterval { from, to: begin, ..interval });
            }
            from = end;
        }
        if from < interval.to {
            pieces.push(BlockedInterval { from, ..interval });
        }
        pieces
    }
}
