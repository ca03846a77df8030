//! Transports against each other: bursts in counterbalanced blocks, paired by block. Statistics are `experiment`'s.

use crate::throughput::session::{Burst, Session};
use crate::transport::{IpcError, Transport};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::design::schedule;
use slowpath_experiment::{Estimate, Level, Samples, effect, looks};
use slowpath_tables::{Quantity, Unavailable, Unit};

/// Schema of [`Comparison`].
pub const SCHEMA: &str = "slowpath-ipc-compare/1";
/// How long a burst should take: far above a tick, short enough for many.
const BURST_NS: u64 = 5_000_000;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Plan {
    /// At least two; the first is what the others are compared with.
    pub transports: Vec<&'static Transport>,
    /// Payload in bytes.
    pub size: usize,
    /// Blocks, each with one burst of every transport.
    pub blocks: usize,
    /// Seed of the order.
    pub seed: u64,
}

/// What `slowpath ipc compare --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// `slowpath-ipc-compare/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Payload in bytes.
    pub size: usize,
    /// Blocks that were measured.
    pub blocks: usize,
    /// Whether these are all that were asked for.
    pub complete: bool,
    /// Seed of the order.
    pub seed: u64,
    /// Each transport.
    pub arms: Vec<Arm>,
    /// Each transport but the first against the first.
    pub comparisons: Vec<Compared>,
    /// Transports that do not work here.
    pub unavailable: Vec<Unavailable>,
}

/// One transport.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Arm {
    /// Name.
    pub transport: &'static str,
    /// Median time of a round trip.
    pub round_trip: Option<Quantity>,
    /// Round trips of a burst.
    pub iterations: u64,
    /// Time of a round trip in each block, in us.
    pub samples_us: Vec<f64>,
}

/// Two transports.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// With what.
    pub a: &'static str,
    /// What.
    pub b: &'static str,
    /// `b` less `a`, at `level`.
    pub difference: Option<Quantity>,
    /// `b` over `a`, at `level`.
    pub ratio: Option<Quantity>,
    /// Confidence level of these intervals, as a fraction: with all comparisons of this result together, 95 %.
    pub level: f64,
    /// Blocks that were compared.
    pub pairs: usize,
    /// The smallest difference that these blocks would show.
    pub minimum_detectable_effect: Option<Quantity>,
}

/// The level of each of some number of comparisons that hold together with 95 %.
fn level(comparisons: usize) -> Level {
    Level::P95.shared_by(comparisons)
}

/// Fewest blocks of which each of some number of comparisons has an interval: 6 for one, 9 for eight.
pub fn fewest_blocks(comparisons: usize) -> usize {
    looks::fewest_blocks(level(comparisons))
}

/// Measures and compares. When `stop` says so, the blocks until then are compared.
///
/// # Errors
/// Fewer than two transports or [`fewest_blocks`], a transport that cannot be set up, a process that dies, or `stop` before as many
/// blocks.
pub fn compare(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Comparison, IpcError> {
    if plan.transports.len() < 2 {
        return Err(IpcError::Usage("a comparison needs at least two transports".to_owned()));
    }
    let fewest = fewest_blocks(plan.transports.len() - 1);
    if plan.blocks < fewest {
        let number = plan.transports.len();
        return Err(IpcError::Usage(format!(
            "{number} transports need --blocks {fewest} for an interval of each ratio"
        )));
    }
    let mut sessions = Vec::new();
    for transport in &plan.transports {
        let mut session = Session::start(transport, plan.size)?;
        let iterations = calibrate(&mut session, plan.size, stop)?;
        sessions.push((session, iterations));
    }
    let mut measured = Vec::new();
    for order in schedule(sessions.len(), plan.blocks, plan.seed) {
        match block(&mut sessions, &order, plan.size, stop) {
            Ok(times) => measured.push(times),
            Err(IpcError::Interrupted) if measured.len() >= fewest => break,
            Err(error) => return Err(error),
        }
    }
    let mut samples = Samples::new(sessions.len(), measured.len());
    for (block, times) in measured.iter().enumerate() {
        for (arm, us) in times {
            // The cell exists: these are the arms and blocks.
            let _ = samples.set(*arm, block, *us);
        }
    }
    let iterations: Vec<u64> = sessions.iter().map(|(_, iterations)| *iterations).collect();
    Ok(conclude(plan, &samples, &iterations))
}

/// One burst of every transport: its number, and the time of a round trip in us.
fn block(
    sessions: &mut [(Session, u64)],
    order: &[usize],
    size: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<(usize, f64)>, IpcError> {
    let one = |arm: &usize| {
        let (session, iterations) = &mut sessions[*arm];
        Ok((*arm, session.burst(size, *iterations, stop)?.real_each() / 1000.0))
    };
    order.iter().map(one).collect()
}

/// How many iterations take about [`BURST_NS`].
fn calibrate(session: &mut Session, size: usize, stop: &dyn Fn() -> bool) -> Result<u64, IpcError> {
    session.burst(size, 100, stop)?;
    let Burst { iterations, real_ns, .. } = session.burst(size, 100, stop)?;
    Ok((BURST_NS * iterations / real_ns.max(1)).clamp(10, 10_000_000))
}

fn conclude(plan: &Plan, samples: &Samples, iterations: &[u64]) -> Comparison {
    let in_unit =
        |estimate: Estimate, unit| Quantity { value: estimate.value, low: estimate.low, high: estimate.high, unit };
    let arms = plan.transports.iter().zip(iterations).enumerate().map(|(arm, (transport, iterations))| {
        let values = samples.values(arm).unwrap_or_default();
        Arm {
            transport: transport.name,
            round_trip: slowpath_experiment::median::median(&values, Level::P95).map(|one| in_unit(one, Unit::Us)),
            iterations: *iterations,
            samples_us: values,
        }
    });
    let level = level(plan.transports.len() - 1);
    let compared = (1..plan.transports.len()).filter_map(|arm| {
        let effect = effect::paired(samples, 0, arm, level).ok()?;
        Some(Compared {
            a: plan.transports[0].name,
            b: plan.transports[arm].name,
            difference: effect.difference.map(|one| in_unit(one, Unit::Us)),
            ratio: effect.ratio.map(|one| in_unit(one, Unit::Ratio)),
            level: effect.level,
            pairs: effect.pairs,
            minimum_detectable_effect: effect
                .minimum_detectable_effect
                .map(|smallest| Quantity::exact(smallest, Unit::Us)),
        })
    });
    Comparison {
        schema: SCHEMA,
        size: plan.size,
        blocks: samples.blocks(),
        complete: samples.blocks() == plan.blocks,
        seed: plan.seed,
        arms: arms.collect(),
        comparisons: compared.collect(),
        unavailable: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::named;

    #[test]
    fn every_transport_has_a_burst_in_every_block_and_is_compared_with_the_first() {
        let transports = ["pipe", "in-process", "futex-shm"].map(|name| named(name).unwrap()).to_vec();
        let comparison = compare(&Plan { transports, size: 4, blocks: 8, seed: 1 }, &|| false).unwrap();
        for arm in &comparison.arms {
            assert_eq!(arm.samples_us.iter().filter(|us| **us > 0.0).count(), 8, "{arm:?}");
        }
        let names: Vec<_> = comparison.comparisons.iter().map(|one| (one.a, one.b, one.pairs)).collect();
        assert_eq!(names, [("pipe", "in-process", 8), ("pipe", "futex-shm", 8)]);
        assert!(comparison.comparisons.iter().all(|one| one.ratio.is_some_and(|ratio| ratio.low.is_some())));
    }

    #[test]
    fn ratios_share_one_level_and_each_has_an_interval_from_the_fewest_blocks_on() {
        let all = ["pipe", "in-process", "futex-shm", "unix-stream", "unix-seqpacket", "eventfd-shm", "pi-futex-shm"];
        for (number, fewest) in [(2, 6), (3, 7), (5, 8), (7, 8)] {
            assert_eq!(fewest_blocks(number - 1), fewest, "{number}");
            let transports: Vec<_> = all[..number].iter().map(|name| named(name).unwrap()).collect();
            let plan = |blocks| Plan { transports: transports.clone(), size: 4, blocks, seed: 1 };
            let mut samples = Samples::new(number, fewest);
            for block in 0..fewest {
                (0..number).for_each(|arm| samples.set(arm, block, (1 + arm + block * block) as f64).unwrap());
            }
            let iterations = vec![1; number];
            for compared in conclude(&plan(fewest), &samples, &iterations).comparisons {
                assert!((1.0 - compared.level - 0.05 / (number - 1) as f64).abs() < 1e-12, "{compared:?}");
                assert!(compared.ratio.is_some_and(|ratio| ratio.low.is_some()), "{compared:?}");
            }
            let Err(IpcError::Usage(text)) = compare(&plan(fewest - 1), &|| false) else { panic!("{number}") };
            assert!(text.contains(&format!("--blocks {fewest}")), "{text}");
        }
        assert_eq!(fewest_blocks(8), 9);
    }

    #[test]
    fn one_transport_compares_with_nothing() {
        let plan = Plan { transports: vec![named("pipe").unwrap()], size: 4, blocks: 8, seed: 1 };
        assert!(matches!(compare(&plan, &|| false), Err(IpcError::Usage(_))));
    }
}
