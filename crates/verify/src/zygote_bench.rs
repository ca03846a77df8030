//! The methods to have a child of a zygote's program, in counterbalanced blocks: one child of each method in each block.
//!
//! Owns the order of the children, what is measured of each and what the numbers allow to say. Leaves how a child is had to
//! `zygote::measure`.

use crate::benchmark::{ArmComparison, ArmQuantile, Benchmark, BenchmarkArm, LAUNCH_SCHEMA, OneLaunch};
use crate::printed::quantity;
use crate::{HostActivity, HostCounters, Metric};
use slowpath_experiment::design::schedule;
use slowpath_experiment::{Level, Samples, effect, median, multiple, outcome, quantile};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::interrupt;
use slowpath_session::progress::Progress;
use slowpath_tables::{Quantity, Unit};
use slowpath_zygote::measure::{Executed, ForkServer, Ready, SparePool, StartMethod, Zygote};
use slowpath_zygote::preload::Preload;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is compared; time leads.
const METRICS: [Metric; 2] = [Metric::Wall, Metric::Pss];

/// The quantiles of an arm.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// How often the memory of several children at once is measured: the fewest of which the extremes hold the median (sign test, `1 - 2 / 2^6`
/// is above 95 %).
const MEMORY_ROUNDS: usize = 6;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct ZygoteBenchSettings {
    /// Blocks, each with one child of every method.
    pub blocks: u32,
    /// It ends after so long, at the next block.
    pub max_time: Duration,
    /// Children of a method that live at once when their memory is measured.
    pub children: u32,
    /// Seed of the order.
    pub seed: u64,
}

/// An arm and its children.
struct Arm<'a> {
    method: Box<dyn StartMethod + 'a>,
    launches: Vec<Option<OneLaunch>>,
    failed: BTreeMap<String, u32>,
}

/// Measures every method to have a child of what is preloaded; sockets are made in `place`, a directory of the caller's own.
///
/// # Errors
/// What is to be preloaded does not start, or the caller preloads a program that serves by itself.
pub fn bench(
    preload: &Preload,
    place: &Path,
    settings: &ZygoteBenchSettings,
    progress: &dyn Progress,
) -> Result<Benchmark, Failure> {
    if matches!(preload, Preload::Helper { .. }) {
        return Err(Failure::new(
            Kind::Usage,
            "a program that serves by itself has no start without a zygote to compare with",
        )
        .hint("measure it from your own client, or preload the library that it uses"));
    }
    let (mut arms, mut notes) = arms(preload, place)?;
    let until = Instant::now() + settings.max_time;
    let blocks = measure(settings, until, &mut arms, progress);
    notes.extend(too_few(blocks));
    notes.extend(memory_at_once(settings, until, &mut arms, progress));
    progress.done();
    summary(settings, &arms, blocks, notes)
}

fn arms<'a>(preload: &'a Preload, place: &Path) -> Result<(Vec<Arm<'a>>, Vec<String>), Failure> {
    let cannot =
        |what: &'static str| move |error: std::io::Error| Failure::from_error(Kind::Target, &error).during(what);
    let mut methods: Vec<Box<dyn StartMethod + 'a>> = vec![Box::new(Executed(preload))];
    methods.push(Box::new(SparePool::new(preload).map_err(cannot("starting what is to be preloaded"))?));
    let zygote = Zygote::new(preload, &place.join("z"), 0).map_err(cannot("starting the zygote"))?;
    let mut notes = vec![format!("the zygote itself took {:.0} ms to preload, once", zygote.start.as_secs_f64() * 1e3)];
    methods.push(Box::new(zygote));
    methods
        .push(Box::new(Zygote::new(preload, &place.join("s"), 2).map_err(cannot("starting the zygote with spares"))?));
    if let Preload::Python { interpreter, modules, .. } = preload {
        methods.push(Box::new(ForkServer::new(interpreter, modules).map_err(cannot("starting Python's fork server"))?));
        notes.push(
            "children of the fork server keep its user and its namespaces; those of a zygote can have others"
                .to_owned(),
        );
    }
    let arms =
        methods.into_iter().map(|method| Arm { method, launches: Vec::new(), failed: BTreeMap::new() }).collect();
    Ok((arms, notes))
}

/// Runs the blocks, and says how many.
fn measure(settings: &ZygoteBenchSettings, until: Instant, arms: &mut [Arm<'_>], progress: &dyn Progress) -> usize {
    // What is done once (a fork server that starts, pages that come from the disk) belongs to no child.
    for arm in arms.iter_mut() {
        if let Ok(ready) = arm.method.start() {
            ready.end();
        }
    }
    let counters = HostCounters::new();
    let order = schedule(arms.len(), settings.blocks as usize, settings.seed);
    for (number, block) in order.iter().enumerate() {
        if interrupt::requested() || Instant::now() >= until {
            return number;
        }
        progress.count("starting children", number, order.len());
        for (position, index) in block.iter().enumerate() {
            let before = counters.look();
            let arm = &mut arms[*index];
            match arm.method.start() {
                Ok(ready) => {
                    let around = counters.look().since(&before, 0.0);
                    arm.launches.push(Some(launch(&ready, position, around)));
                    ready.end();
                }
                Err(error) => {
                    arm.launches.push(None);
                    *arm.failed.entry(error.to_string()).or_default() += 1;
                }
            }
        }
    }
    order.len()
}

fn launch(ready: &Ready, position: usize, around: HostActivity) -> OneLaunch {
    let wall = (Metric::Wall, ready.after.as_secs_f64() * 1e3);
    let measures = std::iter::once(wall).chain(ready.pss().map(|pss| (Metric::Pss, pss))).collect();
    OneLaunch { position: u32::try_from(position).unwrap_or(u32::MAX), measures, around }
}

/// Which quantiles have no interval, and how many blocks would give one.
fn too_few(blocks: usize) -> Vec<String> {
    let one = |at: f64| {
        let needed = quantile::needed(at, Level::P95).filter(|needed| *needed > blocks)?;
        Some(format!("an interval of p{} takes {needed} blocks (--blocks {needed})", at * 100.0))
    };
    QUANTILES.into_iter().filter_map(one).collect()
}

/// The memory of several children that live at once, which is what a program with so many pays: arm after arm, several times. It is measured
/// once at least, and not again after the time is over.
fn memory_at_once(
    settings: &ZygoteBenchSettings,
    until: Instant,
    arms: &mut [Arm<'_>],
    progress: &dyn Progress,
) -> Vec<String> {
    let mut sums: Vec<Vec<f64>> = arms.iter().map(|_| Vec::new()).collect();
    for round in 0..MEMORY_ROUNDS {
        if round > 0 && Instant::now() >= until {
            break;
        }
        progress.count("measuring memory", round, MEMORY_ROUNDS);
        for (arm, sums) in arms.iter_mut().zip(&mut sums) {
            if interrupt::requested() {
                return Vec::new();
            }
            sums.extend(pss_at_once(settings, arm));
        }
    }
    let one = |(arm, sums): (&Arm<'_>, Vec<f64>)| {
        let sum = median::median(&sums, Level::P95)?;
        let interval = sum.interval().map_or_else(String::new, |(low, high)| format!(" ({low:.1} to {high:.1})"));
        let (children, name) = (settings.children, arm.method.name());
        Some(format!("{children} children of {name} at once: PSS {:.1} MiB{interval} together", sum.value))
    };
    arms.iter().zip(sums).filter_map(one).collect()
}

/// The PSS of so many children together, MiB; none where one of them did not start: of fewer the sum says nothing.
fn pss_at_once(settings: &ZygoteBenchSettings, arm: &mut Arm<'_>) -> Option<f64> {
    let ready: Vec<Ready> = (0..settings.children).filter_map(|_| arm.method.start().ok()).collect();
    let all: Option<Vec<f64>> = ready.iter().map(Ready::pss).collect();
    let all = all.filter(|all| all.len() == settings.children as usize);
    ready.into_iter().for_each(Ready::end);
    all.map(|all| all.iter().sum::<f64>() / f64::from(1 << 20))
}

fn values(arm: &Arm<'_>, metric: Metric) -> Vec<f64> {
    arm.launches.iter().flatten().filter_map(|launch| launch.measures.get(&metric).copied()).collect()
}

fn summary(
    settings: &ZygoteBenchSettings,
    arms: &[Arm<'_>],
    blocks: usize,
    notes: Vec<String>,
) -> Result<Benchmark, Failure> {
    let ended = match blocks == settings.blocks as usize {
        true => "all blocks were run".to_owned(),
        false => "it was ended before all blocks were run".to_owned(),
    };
    Ok(Benchmark {
        schema: LAUNCH_SCHEMA.to_owned(),
        ready: "everything is preloaded, and the child's work could begin".to_owned(),
        conditions: vec!["warm: every method has had one child before".to_owned()],
        seed: settings.seed,
        blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
        ended,
        compared: METRICS.to_vec(),
        units: Metric::ALL.map(|metric| (metric, metric.unit())).into(),
        arms: arms.iter().map(of_arm).collect(),
        comparisons: comparisons(arms, blocks)?,
        notes,
        unavailable: Vec::new(),
    })
}

fn of_arm(arm: &Arm<'_>) -> BenchmarkArm {
    let of_metric =
        |metric: Metric| Some((metric, quantity(median::median(&values(arm, metric), Level::P95)?, metric.unit())));
    let at = |metric: Metric, at: f64| {
        let values = values(arm, metric);
        let value = match quantile::quantile(&values, at, Level::P95) {
            Some(estimate) => quantity(estimate, metric.unit()),
            // Too few for an interval: the value alone.
            None => Quantity::exact(plain(values, at)?, metric.unit()),
        };
        Some(ArmQuantile { metric, quantile: at, value })
    };
    BenchmarkArm {
        name: arm.method.name().to_owned(),
        command: vec![arm.method.words().to_owned()],
        launches: arm.launches.clone(),
        medians: METRICS.into_iter().filter_map(of_metric).collect(),
        quantiles: METRICS.into_iter().flat_map(|metric| QUANTILES.map(|one| at(metric, one))).flatten().collect(),
        discarded: 0,
        failed: arm.failed.values().sum(),
        reasons: arm.failed.iter().map(|(reason, count)| format!("{count} x {reason}")).collect(),
        outliers: Vec::new(),
    }
}

/// The smallest value that at least this share of all does not exceed.
fn plain(mut values: Vec<f64>, at: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (at * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

/// Differences of the quantiles of two arms, each with its interval where there are enough children.
fn differences(first: &Arm<'_>, other: &Arm<'_>, metric: Metric, level: Level) -> Vec<ArmQuantile> {
    let (before, after) = (values(first, metric), values(other, metric));
    let one = |at: f64| {
        let value = quantity(quantile::difference(&before, &after, at, level)?, metric.unit());
        Some(ArmQuantile { metric, quantile: at, value })
    };
    QUANTILES.into_iter().filter_map(one).collect()
}

fn comparisons(arms: &[Arm<'_>], blocks: usize) -> Result<Vec<ArmComparison>, Failure> {
    // All comparisons hold together with 95 %.
    let level = Level::P95.shared_by((arms.len().saturating_sub(1) * METRICS.len()).max(1));
    let (mut found, mut raw) = (Vec::new(), Vec::new());
    for metric in METRICS {
        let mut samples = Samples::new(arms.len(), blocks);
        for (index, arm) in arms.iter().enumerate() {
            for (block, launch) in arm.launches.iter().enumerate() {
                if let Some(value) = launch.as_ref().and_then(|launch| launch.measures.get(&metric)) {
                    samples.set(index, block, *value).map_err(failed(Kind::Machine))?;
                }
            }
        }
        for (index, arm) in arms.iter().enumerate().skip(1) {
            let effect = effect::paired(&samples, 0, index, level).map_err(failed(Kind::Machine))?;
            raw.push(effect::p_value(&samples, 0, index).map_err(failed(Kind::Machine))?);
            found.push(ArmComparison {
                arm: arm.method.name().to_owned(),
                against: arms[0].method.name().to_owned(),
                metric,
                outcome: outcome::judge(&effect, 0.0),
                difference: effect.difference.map(|one| quantity(one, metric.unit())),
                ratio: effect.ratio.map(|one| quantity(one, Unit::Ratio)),
                quantiles: differences(&arms[0], arm, metric, level),
                margin: None,
                minimum_detectable_effect: effect
                    .minimum_detectable_effect
                    .map(|one| Quantity::exact(one, metric.unit())),
                pairs: u32::try_from(effect.pairs).unwrap_or(u32::MAX),
                dropped: u32::try_from(effect.dropped).unwrap_or(u32::MAX),
                p: None,
                level: effect.level,
            });
        }
    }
    for (one, adjusted) in found.iter_mut().zip(multiple::holm(&raw)) {
        one.p = adjusted;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_without_an_interval_say_how_many_blocks_would_give_one() {
        let notes = too_few(60);
        assert!(notes.len() == 1 && notes[0].starts_with("an interval of p99 takes 36"), "{notes:?}");
        assert_eq!((too_few(3).len(), too_few(400).len()), (2, 0));
    }

    #[test]
    fn a_quantile_of_few_is_one_of_them() {
        assert_eq!(plain(vec![3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(plain(vec![3.0, 1.0, 2.0], 0.99), Some(3.0));
        assert_eq!(plain(Vec::new(), 0.5), None);
    }
}
