//! What it costs, or saves, that the scheduler runs client and server on different CPUs: the same pairs free and pinned to one CPU
//! each, in alternating blocks, compared by block.
//!
//! Owns the design and the verdict. Statistics are `experiment`'s. Every block has processes of its own: a pair that was pinned
//! before would begin on one CPU. Only pairs that SYNC calls POOR in the free half of a block count, in both halves: what the
//! scheduler kept on one CPU shows no effect of another. A verdict needs an interval that lies on one side as a whole; the samples
//! of a closed loop follow each other too closely for one of their own, medians of blocks do not.

use super::sample::{Caller, GOOD_SYNC};
use super::{PairSamples, Placement, Plan, run};
use crate::scheduling::allowed_cpus;
use crate::transport::IpcError;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::design::schedule;
use slowpath_experiment::{Estimate, Level, Samples, effect, median};
use slowpath_tables::missing::declared;
use slowpath_tables::{Quantity, Unavailable, Unit};

/// Blocks, each with a free and a pinned half: their order is balanced over eight, and six have an interval.
const BLOCKS: usize = 16;
/// Iterations of a half.
const ITERATIONS: u32 = 25;
/// Seed of the order of the halves.
const SEED: u64 = 1;
/// The arms.
const PINNED: usize = 0;
const FREE: usize = 1;

/// What the placement of the scheduler does to the latency of normal callers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlacementEffect {
    /// What the interval shows.
    pub verdict: PlacementVerdict,
    /// `free` less `pinned`, paired by block.
    pub difference: Option<Quantity>,
    /// Median of the blocks' medians as the scheduler placed the pairs.
    pub free: Option<Quantity>,
    /// The same with client and server on one CPU.
    pub pinned: Option<Quantity>,
    /// Blocks that were compared.
    pub blocks: usize,
    /// Blocks that were not, because no pair was POOR in their free half.
    pub dropped: usize,
    /// Iterations of each half of a block.
    pub iterations: u32,
}

/// What the interval of the difference shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacementVerdict {
    /// The whole interval lies above zero: cross-CPU placement is slower than one CPU.
    Slower,
    /// The whole interval lies below zero: cross-CPU placement is faster than one CPU.
    Faster,
    /// The interval holds zero, or there are too few blocks for one.
    NotShown,
}

/// The two halves of a block.
#[derive(Debug)]
struct Block {
    free: Vec<PairSamples>,
    pinned: Vec<PairSamples>,
}

/// Measures it with the pairs of a plan. `None` when `stop` says so, or where the rate leaves no time for as many transactions as it
/// takes.
///
/// # Errors
/// As [`run`].
pub fn measure(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Option<PlacementEffect>, IpcError> {
    let cpus = allowed_cpus().map_err(|source| IpcError::system("sched_getaffinity", source))?;
    let (Some(iterations), false) = (iterations(plan), cpus.is_empty()) else { return Ok(None) };
    let on_one = |pair: usize| {
        let cpu = cpus.get(pair % cpus.len()).copied();
        Placement { client: cpu, server: cpu }
    };
    let half = |arm: usize| {
        let place = |pair| if arm == PINNED { on_one(pair) } else { Placement::default() };
        let places = (0..plan.places.len()).map(place).collect();
        let half = Plan { iterations, places, rate: plan.rate, ..Plan::new(plan.transport) };
        run(&half, None, stop)
    };
    let mut blocks = Vec::new();
    for order in schedule(2, BLOCKS, SEED) {
        let mut block = Block { free: Vec::new(), pinned: Vec::new() };
        for arm in order {
            let measured = match half(arm) {
                Err(IpcError::Interrupted) => return Ok(None),
                measured => measured?,
            };
            if stop() {
                return Ok(None);
            }
            *(if arm == PINNED { &mut block.pinned } else { &mut block.free }) = measured;
        }
        blocks.push(block);
    }
    Ok(Some(compare(&blocks, iterations)))
}

/// Iterations of a half: with a rate, all of them together take no longer than the plan itself.
fn iterations(plan: &Plan) -> Option<u32> {
    let share = match plan.rate {
        Some(_) => plan.iterations / (2 * BLOCKS as u32),
        None => ITERATIONS,
    };
    (share > 0).then_some(share.min(ITERATIONS))
}

/// Why the effect of a plan cannot be measured on some number of CPUs; `None` where it can.
pub fn unavailable(plan: &Plan, cpus: usize) -> Option<Unavailable> {
    let (users, remedy) = match plan.load {
        0 if plan.places.len() <= cpus => return None,
        0 => ("another pair uses", "run at most as many pairs as CPUs"),
        _ => ("a load process uses", "run without --load"),
    };
    let reason = format!("a pinned pair could not leave a CPU that {users}");
    Some(declared::PLACEMENT.because(reason, remedy))
}

/// Places of the pairs that SYNC calls POOR.
pub fn poor(pairs: &[PairSamples]) -> Vec<usize> {
    let is_poor = |pair: &PairSamples| {
        let same = pair.samples.iter().filter(|sample| sample.same_cpu()).count();
        !pair.samples.is_empty() && same as f64 / pair.samples.len() as f64 <= GOOD_SYNC
    };
    pairs.iter().enumerate().filter(|(_, pair)| is_poor(pair)).map(|(index, _)| index).collect()
}

/// Median latency of normal callers of some pairs, in ms; `None` when one of these pairs ended early.
fn latency(pairs: &[PairSamples], of: &[usize]) -> Option<f64> {
    let chosen: Vec<&PairSamples> = of.iter().filter_map(|index| pairs.get(*index)).collect();
    if chosen.iter().any(|pair| pair.ended.is_some()) {
        return None;
    }
    let samples = chosen.iter().flat_map(|pair| &pair.samples).filter(|sample| sample.caller == Caller::Normal);
    median::point(&samples.map(|sample| sample.latency() as f64 / 1e6).collect::<Vec<_>>())
}

fn compare(blocks: &[Block], iterations: u32) -> PlacementEffect {
    let mut samples = Samples::new(2, blocks.len());
    for (number, block) in blocks.iter().enumerate() {
        let counted = poor(&block.free);
        if let (Some(pinned), Some(free)) = (latency(&block.pinned, &counted), latency(&block.free, &counted)) {
            // The cells exist, and latencies are finite.
            let _ = samples.set(PINNED, number, pinned).and_then(|()| samples.set(FREE, number, free));
        }
    }
    let ms = |one: Estimate| Quantity { value: one.value, low: one.low, high: one.high, unit: Unit::Ms };
    let effect = effect::paired(&samples, PINNED, FREE, Level::P95).ok();
    let of = |part: fn(&slowpath_experiment::Effect) -> Option<Estimate>| effect.as_ref().and_then(part);
    PlacementEffect {
        verdict: verdict(of(|effect| effect.difference)),
        difference: of(|effect| effect.difference).map(ms),
        free: of(|effect| effect.treated).map(ms),
        pinned: of(|effect| effect.baseline).map(ms),
        blocks: effect.as_ref().map_or(0, |effect| effect.pairs),
        dropped: effect.as_ref().map_or(blocks.len(), |effect| effect.dropped),
        iterations,
    }
}

fn verdict(difference: Option<Estimate>) -> PlacementVerdict {
    match difference.and_then(|difference| difference.interval()) {
        Some((low, _)) if low > 0.0 => PlacementVerdict::Slower,
        Some((_, high)) if high < 0.0 => PlacementVerdict::Faster,
        _ => PlacementVerdict::NotShown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_samples::{measured, sample};
    use super::*;
    use crate::transport::named;
    use std::cell::Cell;

    /// A pair of which all transactions of normal callers take that long, in us.
    fn pair(us: u64, same: bool) -> PairSamples {
        let both = [Caller::Fifo, Caller::Normal];
        measured((0..10).map(|index| sample(both[index % 2], if index % 2 == 0 { 9_000 } else { us }, same)).collect())
    }

    /// Eight blocks with one pair: latency in us free and pinned, and whether it stayed on one CPU when free.
    fn of(times: impl Fn(u64) -> (u64, u64), same: impl Fn(u64) -> bool) -> PlacementEffect {
        let block = |number| {
            let (free, pinned) = times(number);
            Block { free: vec![pair(free, same(number))], pinned: vec![pair(pinned, true)] }
        };
        compare(&(0..8).map(block).collect::<Vec<_>>(), ITERATIONS)
    }

    #[test]
    fn a_verdict_needs_an_interval_on_one_side_of_zero() {
        let slower = of(|block| (30 + block, 20), |_| false);
        assert_eq!((slower.verdict, slower.blocks, slower.dropped), (PlacementVerdict::Slower, 8, 0));
        assert!((slower.difference.unwrap().value - 0.0135).abs() < 1e-9, "{slower:?}");
        assert_eq!(of(|block| (20, 30 + block), |_| false).verdict, PlacementVerdict::Faster);
        // More at the median, and not in every block.
        let either = of(|block| if block < 6 { (30 + block, 20) } else { (20, 60) }, |_| false);
        assert!(either.difference.unwrap().value > 0.0, "{either:?}");
        assert_eq!(either.verdict, PlacementVerdict::NotShown);
        // Drift that both halves of a block share is none.
        assert_eq!(of(|block| (20 + 100 * block, 20 + 100 * block), |_| false).verdict, PlacementVerdict::NotShown);
    }

    #[test]
    fn blocks_in_which_the_scheduler_kept_the_pair_on_one_cpu_do_not_count() {
        let few = of(|_| (30, 20), |block| block >= 5);
        assert_eq!((few.verdict, few.blocks, few.dropped), (PlacementVerdict::NotShown, 5, 3));
        let none = of(|_| (30, 20), |_| true);
        assert_eq!((none.verdict, none.blocks, none.difference), (PlacementVerdict::NotShown, 0, None));
    }

    #[test]
    fn pairs_that_are_good_count_on_neither_side() {
        let block = |number: u64| Block {
            free: vec![pair(5_000 + number, true), pair(30, false)],
            pinned: vec![pair(7, true), pair(30, true)],
        };
        let effect = compare(&(0..8).map(block).collect::<Vec<_>>(), ITERATIONS);
        assert_eq!((effect.verdict, effect.difference.unwrap().value), (PlacementVerdict::NotShown, 0.0));
        assert_eq!(poor(&block(0).free), [1]);
        assert!(poor(&[measured(Vec::new())]).is_empty(), "without a transaction nothing is POOR");
    }

    #[test]
    fn a_pair_that_ended_early_is_not_compared() {
        let block = |_| {
            let mut free = pair(30, false);
            free.ended = Some("the server was ended by signal 9".to_owned());
            Block { free: vec![free], pinned: vec![pair(20, true)] }
        };
        assert_eq!(compare(&(0..8).map(block).collect::<Vec<_>>(), ITERATIONS).blocks, 0);
    }

    #[test]
    fn all_blocks_are_measured_and_who_is_stopped_has_no_effect() {
        let plan = Plan::new(named("pipe").unwrap());
        let effect = measure(&plan, &|| false).unwrap().unwrap();
        assert_eq!((effect.blocks + effect.dropped, effect.iterations), (BLOCKS, ITERATIONS));
        let looks = Cell::new(0);
        let stop = || {
            looks.set(looks.get() + 1);
            looks.get() > 3
        };
        assert_eq!(measure(&plan, &stop).unwrap(), None);
    }

    #[test]
    fn pairs_that_would_be_pinned_beside_others_are_not_measured() {
        let plan =
            |pairs, load| Plan { places: vec![Placement::default(); pairs], load, ..Plan::new(named("pipe").unwrap()) };
        assert_eq!(unavailable(&plan(2, 0), 2), None);
        assert!(unavailable(&plan(3, 0), 2).unwrap().reason.contains("another pair"));
        assert!(unavailable(&plan(1, 1), 2).unwrap().remedy.contains("without --load"));
    }

    #[test]
    fn with_a_rate_it_takes_no_longer_than_what_was_asked_for() {
        let plan = |iterations| Plan { iterations, rate: Some(0.1), ..Plan::new(named("pipe").unwrap()) };
        for asked in [1, 31, 32, 100, 1000, 1_000_000] {
            let all = iterations(&plan(asked)).map(|each| each * 2 * BLOCKS as u32);
            assert!(all.is_none_or(|all| all <= asked), "{asked}: {all:?}");
            assert_eq!(all.is_some(), asked >= 32, "{asked}");
        }
        assert_eq!(iterations(&Plan { rate: None, ..plan(1) }), Some(ITERATIONS));
    }
}
