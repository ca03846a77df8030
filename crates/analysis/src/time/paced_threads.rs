//! Threads that sleep to keep a pace: frames, ticks.
//!
//! Owns the distinction of such a sleep from one that somebody waits for in vain: a thread that keeps a pace sleeps less the longer
//! it worked before, one that sleeps before each answer sleeps as long as ever. Sleeps of [`LONGEST`] or more are nobody's pace. A loop
//! that sleeps the same time after
//! each frame, whatever the frame took, keeps none by this rule.

use crate::integer_hash::IntegerSet;
use crate::interval::median;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpuReason, ProcessKey};
use std::collections::BTreeMap;

/// Frames are at most 42 ms apart (24 a second), ticks mostly less than this.
pub(crate) const LONGEST: Nanos = Nanos(100_000_000);

/// Sleeps with the work before each, from which on a rule can be seen: fewer have no order that is as rare as [`CHANCE`] asks.
const LEAST: usize = 7;

/// Sleeps that are looked at: every two of them are compared.
const MOST: usize = 400;

/// Standard deviations of a sum of signs that chance alone exceeds once in a thousand times (one side).
const CHANCE: f64 = 3.09;

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

/// Whether sleeps, by begin and length, make up for the time between them. Who works longer than the pace, which is about a usual sleep and
/// the usual work before it, is too late for the next frame, or for several, and sleeps by no rule: that is left out.
///
/// By ranks, so that one sleep that ended late decides nothing, however late: least squares took such a one, beside work that is nearly
/// always the same, for a slope of any size and either sign.
fn keeps_pace(mut sleeps: Vec<(Nanos, Nanos)>) -> bool {
    sleeps.sort_unstable();
    let worked = |pair: &[(Nanos, Nanos)]| pair[1].0 - Nanos(pair[0].0.0.saturating_add(pair[0].1.0));
    let pairs: Vec<(f64, f64)> = sleeps.windows(2).map(|pair| (worked(pair).0 as f64, pair[1].1.0 as f64)).collect();
    let usual = |part: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(part).collect::<Vec<_>>()).unwrap_or(0.0);
    let pace = usual(|pair| pair.0) + usual(|pair| pair.1);
    let in_time: Vec<(f64, f64)> = pairs.iter().copied().filter(|(work, _)| *work < pace).take(MOST).collect();
    in_time.len() >= LEAST && decreases(&in_time)
}

/// Whether the second value surely falls with the first, by at least [`CLEAR`] of it: the sum of signs of Kendall (1938) is lower than
/// chance explains ([`CHANCE`]), and the median of the slopes between any two points (Theil 1950, Sen 1968) is that steep.
fn decreases(pairs: &[(f64, f64)]) -> bool {
    let mut slopes = Vec::with_capacity(pairs.len() * (pairs.len() - 1) / 2);
    for (number, one) in pairs.iter().enumerate() {
        let of_both = pairs[number + 1..].iter().map(|other| (other.0 - one.0, other.1 - one.1));
        slopes.extend(of_both.filter(|(x, _)| *x != 0.0).map(|(x, y)| y / x));
    }
    let score: f64 = slopes.iter().map(|slope| if *slope == 0.0 { 0.0 } else { slope.signum() }).sum();
    let n = pairs.len() as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    slopes.sort_unstable_by(f64::total_cmp);
    score <= -CHANCE * deviation && slopes.get(slopes.len() / 2).is_some_and(|median| *median <= -CLEAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

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
        let long: Vec<u64> = WORK.into_iter().map(|work| work + 5_000_000).collect();
        assert!(kept(&long, |work| 8_300_000u64.saturating_sub(work).max(100_000)), "work of most of a frame");
        assert!(!kept(&WORK, |_| 25_000_000));
        assert!(!kept(&WORK, |work| 25_000_000 + work % 7 * 10_000));
        assert!(!kept(&WORK[..7], |work| 33_000_000 - work), "six pairs show no rule");
        assert!(!kept(&[1_000_000; 20], |_| 25_000_000), "nor does work that is always the same");
    }

    /// How many of 1,000 threads with 20 sleeps each keep a pace. Work takes about 2 ms, `jitter` ns more or less; every twentieth sleep
    /// ends up to 30 ms late, as on a machine whose processors are taken away.
    fn paced_of_1000(jitter: u64, sleep: impl Fn(u64) -> u64) -> usize {
        let mut random = ChaCha8Rng::seed_from_u64(jitter);
        let is_kept = |_: &u32| {
            let mut sleeps = Vec::new();
            let mut at = 0;
            for _ in 0..20 {
                let work = 2_000_000 + random.random_range(0..=jitter);
                let late = random.random_range(0..60_000);
                let taken_away = if random.random_range(0..20) == 0 { random.random_range(0..30_000_000) } else { 0 };
                let length = sleep(work) + late + taken_away;
                sleeps.push((Nanos(at + work), Nanos(length)));
                at += work + length;
            }
            keeps_pace(sleeps)
        };
        (0..1000).filter(is_kept).count()
    }

    #[test]
    fn late_sleeps_of_a_server_make_no_pace_and_hide_none() {
        for jitter in [30_000, 300_000, 3_000_000] {
            for sleep in [2_000_000, 25_000_000] {
                let paced = paced_of_1000(jitter, |_| sleep);
                assert!(paced <= 5, "{paced} of 1000 that sleep for {sleep} ns, work differs by {jitter} ns");
            }
        }
        for jitter in [1_000_000, 3_000_000] {
            for pace in [6_000_000, 33_000_000] {
                let paced = paced_of_1000(jitter, |work| pace - work);
                assert!(paced >= 950, "{paced} of 1000 that keep a pace of {pace} ns, work differs by {jitter} ns");
            }
        }
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
