//! What the transactions of a latency benchmark mean: the original's keys in its layout, and beside them what it lacks.
//! Pure functions of samples.

use super::inheritance::Inheritance;
use super::placement::PlacementEffect;
use super::sample::{Caller, GOOD_SYNC, Sample};
use super::{PairSamples, Plan};
use crate::conditions::{Conditions, Warning};
use crate::trace::explain::Explanation;
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::{Level, median, quantile};
use slowpath_tables::missing::declared;
use slowpath_tables::{Quantity, Unavailable, Unit};
use std::collections::BTreeMap;

/// Schema of [`Latency`].
pub const SCHEMA: &str = "slowpath-ipc-latency/1";

/// What `slowpath ipc latency --json` prints. It has the keys of the original (schd-dbg, libhwbinder_latency), ours beside them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Latency {
    /// `slowpath-ipc-latency/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// What was asked for.
    pub cfg: Configuration,
    /// `P0`, `P1`, ...
    #[serde(flatten)]
    pub pairs: BTreeMap<String, PairResult>,
    /// `PASS` when servers got the priority of a real-time caller, `FAIL` when they did not, `NOT_TESTABLE` when no caller
    /// could be real-time.
    #[schemars(extend("enum" = ["PASS", "FAIL", "NOT_TESTABLE"]))]
    pub inheritance: &'static str,
    /// How that was judged.
    pub inherited: Inheritance,
    /// What it costs that servers run on other CPUs than their callers: measured where SYNC of a pair is POOR, and each pair has a CPU to itself.
    pub placement_effect: Option<PlacementEffect>,
    /// The transaction that stopped the trace and what the trace says of it; with `-trace`.
    pub trace: Option<Explanation>,
    /// Directory of the recording of that trace; with `-o`.
    pub recording: Option<String>,
    /// Whether every pair did all its iterations.
    pub complete: bool,
    /// What a reader must know of the machine.
    pub warnings: Vec<Warning>,
    /// What was read of it.
    pub conditions: Conditions,
    /// What could not be measured.
    pub unavailable: Vec<Unavailable>,
}

/// `cfg`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Configuration {
    /// Pairs.
    pub pair: usize,
    /// Iterations of each client, of two transactions each.
    pub iterations: u32,
    /// Deadline in us.
    pub deadline_us: u64,
    /// Transport.
    pub transport: &'static str,
    /// Transactions a second and pair; null in a closed loop.
    pub rate_hz: Option<f64>,
    /// Processes that computed beside.
    pub load: usize,
}

/// Result of a pair.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PairResult {
    /// `GOOD` when R is above 0.6, else `POOR`; null without a transaction.
    #[serde(rename = "SYNC")]
    #[schemars(extend("enum" = ["GOOD", "POOR", null]))]
    pub sync: Option<&'static str>,
    /// Transactions that stayed on one CPU.
    #[serde(rename = "S")]
    pub same: usize,
    /// Transactions.
    #[serde(rename = "I")]
    pub transactions: usize,
    /// S / I.
    #[serde(rename = "R")]
    pub ratio: Option<f64>,
    /// Of normal callers.
    pub other_ms: Milliseconds,
    /// Of real-time callers.
    pub fifo_ms: Milliseconds,
    /// Normal callers in detail.
    pub normal: Detail,
    /// Real-time callers in detail.
    pub fifo: Detail,
    /// Why it ended before all iterations were done.
    pub ended: Option<String>,
}

/// The original's figures of one kind of caller; null without a transaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Milliseconds {
    /// Mean in ms.
    pub avg: Option<f64>,
    /// Worst in ms.
    pub wst: Option<f64>,
    /// Best in ms.
    pub bst: Option<f64>,
    /// Transactions beyond the deadline.
    pub miss: usize,
    /// Share that met it.
    #[serde(rename = "meetR")]
    pub meet_ratio: Option<f64>,
}

/// What the original does not have of one kind of caller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Detail {
    /// Transactions.
    pub transactions: usize,
    /// Of these, on one CPU.
    pub same_cpu: usize,
    /// Their share.
    pub ratio: Option<f64>,
    /// Latency by percentile: `50`, `90`, `95`, `99`, `99.9`.
    pub percentiles: BTreeMap<&'static str, Quantity>,
    /// Latency without the time that the start was late; only with a rate, where the difference is what coordinated omission
    /// would hide.
    pub uncorrected: Option<BTreeMap<&'static str, Quantity>>,
    /// Transactions by latency: `[upper end in us, number]` for each power of two.
    pub histogram: Vec<(u64, usize)>,
}

/// Percentiles that are printed.
const PERCENTILES: &[(&str, f64)] = &[("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999)];

/// Of one pair.
pub fn pair(measured: &PairSamples, deadline_ns: u64, with_rate: bool) -> PairResult {
    let of = |caller: Caller| -> Vec<Sample> {
        measured.samples.iter().filter(|sample| sample.caller == caller).copied().collect()
    };
    let (fifo, normal) = (of(Caller::Fifo), of(Caller::Normal));
    let same = measured.samples.iter().filter(|sample| sample.same_cpu()).count();
    let transactions = measured.samples.len();
    let ratio = share(same, transactions);
    PairResult {
        sync: ratio.map(|ratio| if ratio > GOOD_SYNC { "GOOD" } else { "POOR" }),
        same,
        transactions,
        ratio,
        other_ms: milliseconds(&normal, deadline_ns),
        fifo_ms: milliseconds(&fifo, deadline_ns),
        normal: detail(&normal, with_rate),
        fifo: detail(&fifo, with_rate),
        ended: measured.ended.clone(),
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn milliseconds(samples: &[Sample], deadline_ns: u64) -> Milliseconds {
    let latencies = || samples.iter().map(Sample::latency);
    let miss = latencies().filter(|latency| *latency > deadline_ns).count();
    let ms = |ns: u64| ns as f64 / 1e6;
    Milliseconds {
        avg: (!samples.is_empty()).then(|| latencies().map(ms).sum::<f64>() / samples.len() as f64),
        wst: latencies().max().map(ms),
        bst: latencies().min().map(ms),
        miss,
        meet_ratio: share(samples.len() - miss, samples.len()),
    }
}

fn detail(samples: &[Sample], with_rate: bool) -> Detail {
    let same_cpu = samples.iter().filter(|sample| sample.same_cpu()).count();
    let latencies: Vec<u64> = samples.iter().map(Sample::latency).collect();
    let uncorrected = || -> Vec<u64> { samples.iter().map(|one| one.end.saturating_sub(one.start)).collect() };
    Detail {
        transactions: samples.len(),
        same_cpu,
        ratio: share(same_cpu, samples.len()),
        percentiles: percentiles(&latencies),
        uncorrected: with_rate.then(|| percentiles(&uncorrected())),
        histogram: by_powers_of_two(&latencies),
    }
}

/// Percentiles of latencies in ns, in the order in which they were measured, as quantities in ms: the value from a histogram of three
/// digits, the interval rounded outwards to the histogram's steps.
pub fn percentiles(latencies: &[u64]) -> BTreeMap<&'static str, Quantity> {
    let Some(histogram) = histogram(latencies) else { return BTreeMap::new() };
    let values: Vec<f64> = latencies.iter().map(|ns| *ns as f64).collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    // A step of the histogram may end above the largest value.
    let largest = latencies.iter().copied().max().unwrap_or(0);
    let of = |at: f64| {
        let value = histogram.value_at_quantile(at).min(largest);
        match interval(&values, at) {
            Some((low, high)) => {
                let low = histogram.lowest_equivalent(low as u64).min(value);
                let high = histogram.highest_equivalent(high as u64).min(largest).max(value);
                Quantity::interval(ms(value), ms(low), ms(high), Unit::Ms)
            }
            None => Quantity::exact(ms(value), Unit::Ms),
        }
    };
    PERCENTILES.iter().map(|(name, at)| (*name, of(*at))).collect()
}

/// Consecutive parts of a run. Ten medians have an interval at 97.9 %: from the second to the ninth.
const PARTS: usize = 10;

/// How many transactions the interval of a percentile takes: one beyond it in each part.
pub(super) fn fewest(at: f64) -> usize {
    PARTS * (1.0 / (1.0 - at)).round() as usize
}

/// The 95 % interval of a percentile of values in the order in which they were measured. What a transaction takes depends on the one before
/// (both find the same CPU, the same frequency), so the interval between order statistics, which asks for independent values, is too
/// narrow: the one of the same percentile over consecutive parts is joined with it. `None` with less than [`fewest`].
fn interval(values: &[f64], at: f64) -> Option<(f64, f64)> {
    if values.len() < fewest(at) {
        return None;
    }
    let part = |number: usize| &values[values.len() * number / PARTS..values.len() * (number + 1) / PARTS];
    let of_parts = (0..PARTS).map(|number| quantile::quantile(part(number), at, Level::P95).map(|one| one.value));
    let of_parts: Option<Vec<f64>> = of_parts.collect();
    let (low, high) = median::median(&of_parts?, Level::P95)?.interval()?;
    let (lowest, highest) = quantile::quantile(values, at, Level::P95)?.interval()?;
    Some((low.min(lowest), high.max(highest)))
}

/// A histogram with three significant digits that grows as needed; `None` without a value.
pub fn histogram(values: &[u64]) -> Option<Histogram<u64>> {
    let mut histogram = Histogram::new(3).ok()?;
    for value in values {
        // A histogram that grows refuses only what cannot be allocated.
        histogram.record(*value).ok()?;
    }
    (!values.is_empty()).then_some(histogram)
}

fn by_powers_of_two(latencies: &[u64]) -> Vec<(u64, usize)> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for latency in latencies {
        *counts.entry(latency.div_ceil(1000).max(1).next_power_of_two()).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// Everything together. The explanation of a miss is added by who has it.
pub fn latency(
    plan: &Plan,
    measured: &[PairSamples],
    inherited: Inheritance,
    conditions: Conditions,
    warnings: Vec<Warning>,
) -> Latency {
    let deadline_ns = u64::try_from(plan.deadline.as_nanos()).unwrap_or(u64::MAX);
    let result = |one| pair(one, deadline_ns, plan.rate.is_some());
    let mut unavailable = Vec::new();
    if let Some(error) = measured.iter().find_map(|pair| pair.fifo_refused.as_ref()) {
        unavailable.push(
            declared::REAL_TIME_TRANSACTIONS
                .because(super::inheritance::fifo_cause(error, &conditions), super::inheritance::FIFO_REMEDY),
        );
    }
    Latency {
        schema: SCHEMA,
        cfg: Configuration {
            pair: plan.places.len(),
            iterations: plan.iterations,
            deadline_us: u64::try_from(plan.deadline.as_micros()).unwrap_or(u64::MAX),
            transport: plan.transport.name,
            rate_hz: plan.rate,
            load: plan.load,
        },
        pairs: measured.iter().enumerate().map(|(index, one)| (format!("P{index}"), result(one))).collect(),
        inheritance: inherited.verdict(),
        inherited,
        placement_effect: None,
        trace: None,
        recording: None,
        complete: measured.iter().all(|pair| pair.ended.is_none() && pair.missed.is_none()),
        warnings,
        conditions,
        unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_samples::{measured, sample};
    use super::*;

    fn of(samples: Vec<Sample>) -> PairResult {
        pair(&measured(samples), 2_500_000, false)
    }

    #[test]
    fn sync_counts_transactions_of_both_callers_and_is_good_only_above_the_threshold() {
        let samples = |same: usize| -> Vec<Sample> {
            (0..10)
                .map(|index| sample(if index % 2 == 0 { Caller::Fifo } else { Caller::Normal }, 10, index < same))
                .collect()
        };
        let six = of(samples(6));
        assert_eq!((six.same, six.transactions, six.ratio, six.sync), (6, 10, Some(0.6), Some("POOR")));
        assert_eq!((six.fifo.same_cpu, six.normal.same_cpu), (3, 3));
        assert_eq!(of(samples(7)).sync, Some("GOOD"));
    }

    #[test]
    fn a_miss_is_above_the_deadline_and_not_at_it() {
        let result = of([100, 2500, 2501].map(|us| sample(Caller::Fifo, us, true)).to_vec());
        assert_eq!((result.fifo_ms.miss, result.fifo_ms.wst, result.fifo_ms.bst), (1, Some(2.501), Some(0.1)));
        assert_eq!(result.fifo_ms.meet_ratio, Some(2.0 / 3.0));
        assert_eq!(result.fifo.histogram, [(128, 1), (4096, 2)]);
    }

    #[test]
    fn without_a_transaction_nothing_is_claimed() {
        let result = of(Vec::new());
        assert_eq!(
            (result.sync, result.ratio, result.fifo_ms.avg, result.fifo_ms.meet_ratio),
            (None, None, None, None)
        );
        let json = serde_json::to_value(&result).unwrap();
        assert!(json["SYNC"].is_null() && json["fifo_ms"]["avg"].is_null());
    }

    #[test]
    fn a_late_start_counts_and_the_uncorrected_time_stands_beside_it() {
        let late = Sample { intended: 1_000, start: 5_001_000, end: 5_101_000, ..sample(Caller::Normal, 0, true) };
        let result = pair(&measured(vec![late; 40]), 2_500_000, true);
        assert_eq!(result.other_ms.miss, 40);
        let uncorrected = result.normal.uncorrected.unwrap()["50"].value;
        assert!((uncorrected - 0.1).abs() < 0.001, "{uncorrected}");
        assert!((result.normal.percentiles["50"].value - 5.1).abs() < 0.01);
    }

    #[test]
    fn a_percentile_lies_in_its_interval() {
        let latencies: Vec<u64> = (0..1000).map(|index| 10_000 + index * 37).collect();
        for (name, quantity) in percentiles(&latencies) {
            if let (Some(low), Some(high)) = (quantity.low, quantity.high) {
                assert!(low <= quantity.value && quantity.value <= high, "{name}: {quantity:?}");
            }
        }
        let has_ends = |count: usize| -> Vec<bool> {
            percentiles(&latencies[..count]).values().map(|quantity| quantity.low.is_some()).collect()
        };
        // By name: 50, 90, 95, 99, 99.9.
        assert_eq!(has_ends(1000), [true, true, true, true, false]);
        assert_eq!(has_ends(20), [true, false, false, false, false]);
        assert_eq!(has_ends(19), [false; 5]);
        assert!((percentiles(&[2_771_824])["99"].value - 2.771_824).abs() < 1e-9, "above the largest value");
    }

    #[test]
    fn what_changes_from_part_to_part_of_a_run_makes_an_interval_wide() {
        // Half of the transactions take four times as long: at random, and because the pair was moved once.
        let mixed: Vec<u64> = (0..200).map(|index| if index * 7 % 13 % 2 == 0 { 10_000 } else { 40_000 }).collect();
        let mut moved = mixed.clone();
        moved.sort_unstable();
        let width = |latencies: &[u64], at: &str| {
            let quantity = percentiles(latencies)[at];
            quantity.high.unwrap() - quantity.low.unwrap()
        };
        assert!(width(&moved, "95") > 0.029 && width(&mixed, "95") < 0.001);
        // In a run that stays on one CPU, and one that leaves it for its last third, the middle is not known to 2 %.
        let left: Vec<u64> = (0..300).map(|index| if index < 200 { 10_000 + index } else { 40_000 }).collect();
        assert!(width(&left, "50") > 0.029, "{:?}", percentiles(&left)["50"]);
    }

    #[test]
    fn the_keys_of_the_original_stand_in_its_order() {
        let text = serde_json::to_string(&of(vec![sample(Caller::Fifo, 1, true)])).unwrap();
        let mut at = 0;
        for key in [
            "SYNC", "S", "I", "R", "other_ms", "avg", "wst", "bst", "miss", "meetR", "fifo_ms", "avg", "wst", "bst",
            "miss", "meetR",
        ] {
            at += text[at..].find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {text}")) + 1;
        }
    }
}
