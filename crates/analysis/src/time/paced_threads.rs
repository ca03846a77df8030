//! Threads that sleep to keep a pace: frames, ticks.
//!
//! Owns the distinction of such a sleep from one that somebody waits for in vain: a thread that keeps a pace sleeps less the longer
//! it worked before, one that sleeps before each answer sleeps as long as ever. Sleeps of [`LONGEST`] or more are nobody's pace. A loop
//! that sleeps the same time after
//! each frame, whatever the frame took, keeps none by this rule.

use crate::integer_hash::IntegerSet;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpuReason, ProcessKey};
use std::collections::BTreeMap;

/// Frames are at most 42 ms apart (24 a second), ticks mostly less than this.
pub(crate) const LONGEST: Nanos = Nanos(100_000_000);

/// Sleeps with the work before each, from which on a rule can be seen.
const LEAST: usize = 5;

/// Of each ns that it works longer it sleeps at least this much less. All of it by the rule, nothing without one.
const CLEAR: f64 = 0.5;

/// Those among all threads of a recording. Rows may be in any order.
pub(crate) fn paced_threads(tables: &Tables) -> IntegerSet<(ProcessKey, u32)> {
    let mut sleeps: BTreeMap<(ProcessKey, u32), Vec<(Nanos, Nanos)>> = BTreeMap::new();
    for row in tables.off_cpu.iter().filter(|row| row.reason == OffCpuReason::Timer && row.duration < LONGEST) {
        // Until it was woken; that it then stood in a run queue delays its work.
        sleeps.entry((row.process(), row.tid)).or_default().push((row.ts, row.duration - row.runnable));
    }
    sleeps.into_iter().filter_map(|(thread, sleeps)| keeps_pace(sleeps).then_some(thread)).collect()
}

/// Whether sleeps, by begin and length, make up for the time between them. Work of more than half a usual sleep is left out: who is too
/// late for the next frame, or for several, sleeps by no rule.
fn keeps_pace(mut sleeps: Vec<(Nanos, Nanos)>) -> bool {
    sleeps.sort_unstable();
    let worked = |pair: &[(Nanos, Nanos)]| pair[1].0 - Nanos(pair[0].0.0.saturating_add(pair[0].1.0));
    let mut lengths: Vec<Nanos> = sleeps.iter().map(|(_, length)| *length).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    let pairs = sleeps.windows(2).filter(|pair| worked(pair).0 * 2 < usual.0);
    let pairs: Vec<(f64, f64)> = pairs.map(|pair| (worked(pair).0 as f64, pair[1].1.0 as f64)).collect();
    if pairs.len() < LEAST {
        return false;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (mean_worked, mean_slept) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|(worked, slept)| of(worked - mean_worked, slept - mean_slept)).sum()
    };
    // The slope of sleep over work, by least squares.
    let (together, alone) = (sum(&|worked, slept| worked * slept), sum(&|worked, _| worked * worked));
    alone > 0.0 && together <= -CLEAR * alone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps of a thread that works for so long between them.
    fn kept(work: &[u64], sleep: impl Fn(u64) -> u64) -> bool {
        let mut at = 0;
        let sleeps = work.iter().map(|work| {
            at += work;
            let (from, length) = (Nanos(at), Nanos(sleep(*work)));
            at += length.0;
            (from, length)
        });
        keeps_pace(sleeps.collect())
    }

    const WORK: [u64; 8] = [1_000_000, 1_400_000, 900_000, 3_000_000, 1_100_000, 1_200_000, 800_000, 1_500_000];

    #[test]
    fn who_sleeps_until_the_next_frame_keeps_a_pace_and_who_sleeps_before_each_answer_does_not() {
        assert!(kept(&WORK, |work| 33_000_000 - work));
        assert!(kept(&WORK, |work| 33_000_000 - work + work % 7 * 10_000), "woken a little late");
        let stalled: Vec<u64> = WORK.into_iter().chain([98_000_000]).chain(WORK).collect();
        assert!(kept(&stalled, |work| 33_000_000u64.saturating_sub(work).max(1_000_000)));
        assert!(!kept(&WORK, |_| 25_000_000));
        assert!(!kept(&WORK, |work| 25_000_000 + work % 7 * 10_000));
        assert!(!kept(&WORK[..5], |work| 33_000_000 - work), "four pairs show no rule");
        assert!(!kept(&[1_000_000; 20], |_| 25_000_000), "nor does work that is always the same");
    }

    #[test]
    fn long_sleeps_are_nobodys_pace() {
        let text = |length: u64| -> String {
            let mut rows = "== off_cpu\nts duration pid start tid reason\n".to_owned();
            for (n, work) in (0u64..).zip(WORK) {
                rows.push_str(&format!("{} {} 7 1 7 timer\n", n * length + work, length - work));
            }
            rows
        };
        let found = |length| paced_threads(&Tables::from_text(&text(length)).unwrap()).len();
        assert_eq!((found(33_000_000), found(200_000_000)), (1, 0));
    }
}
