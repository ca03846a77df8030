//! What launches have in common: medians and percentiles with their intervals, and differences between packages by pairs.

use super::printed::{AndroidLaunches, ChildrenOfKind, Difference, Launched, Measure};
use crate::startup::{ChildStart, Phase};
use slowpath_experiment::effect::paired;
use slowpath_experiment::quantile::quantile;
use slowpath_experiment::{Estimate, Level, Samples};
use std::collections::BTreeMap;

/// How a measure is read from a launch, ms.
type OfLaunch = fn(&Launched) -> Option<f64>;

/// What is measured of each launch.
const MEASURES: [(&str, OfLaunch); 8] = [
    ("am_start_total_ms", |one| Some(one.reported.total_ms? as f64)),
    ("first_frame_ms", |one| Some(ms(one.startup.as_ref()?.duration_ns))),
    ("fully_drawn_ms", |one| Some(ms(one.startup.as_ref()?.fully_drawn_ns?))),
    ("bind_application_ms", |one| of_phase(&one.startup.as_ref()?.phases, "bind_application")),
    ("verify_class_ms", |one| of_phase(&one.startup.as_ref()?.phases, "verify_class")),
    ("dex_open_ms", |one| of_phase(&one.startup.as_ref()?.phases, "dex_open")),
    ("main_thread_storage_ms", |one| Some(ms(one.startup.as_ref()?.main_thread.storage_ns))),
    ("main_thread_binder_ms", |one| Some(ms(one.startup.as_ref()?.binder.main_thread_ns))),
];

/// How a measure is read from the start of a process, ms.
type OfChild = fn(&ChildStart) -> Option<f64>;

const OF_CHILDREN: [(&str, OfChild); 6] = [
    ("duration_ms", |one| Some(ms(one.duration_ns))),
    ("to_fork_ms", |one| one.to_fork_ns.map(ms)),
    ("bind_application_ms", |one| Some(ms(one.bind_application_ns))),
    ("verify_class_ms", |one| of_phase(&one.phases, "verify_class")),
    ("dex_open_ms", |one| of_phase(&one.phases, "dex_open")),
    ("class_initialization_ms", |one| of_phase(&one.phases, "class_initialization")),
];

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Time in a phase; 0 where the trace was read and has no such slice.
fn of_phase(phases: &[Phase], name: &str) -> Option<f64> {
    Some(phases.iter().find(|phase| phase.name == name).map_or(0.0, |phase| ms(phase.duration_ns)))
}

fn measure(name: &str, values: &[f64]) -> Option<Measure> {
    let at = |share| quantile(values, share, Level::P95);
    Some(Measure {
        name: name.to_owned(),
        launches: u32::try_from(values.len()).unwrap_or(u32::MAX),
        p50: at(0.5)?,
        p95: at(0.95)?,
    })
}

/// Fills what is summed up from the launches so far.
pub fn summarise(launches: &mut AndroidLaunches) {
    for package in &mut launches.packages {
        let of = |one: &&Launched| one.package == package.package;
        let all: Vec<&Launched> = launches.launches.iter().filter(of).collect();
        let counted: Vec<&Launched> = all.iter().copied().filter(|one| one.counts).collect();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        package.launches = number(counted.len());
        package.other_kind = number(all.iter().filter(|one| !one.counts && one.reported.is_ok()).count());
        package.failed = number(all.iter().filter(|one| !one.reported.is_ok()).count());
        let measured = |(name, read): &(&str, OfLaunch)| {
            let values: Vec<f64> = counted.iter().filter_map(|one| read(one)).collect();
            measure(name, &values)
        };
        package.measures = MEASURES.iter().filter_map(measured).collect();
        package.children = children(&counted);
    }
    launches.differences = differences(launches);
}

fn children(counted: &[&Launched]) -> Vec<ChildrenOfKind> {
    let mut kinds: BTreeMap<&str, Vec<&ChildStart>> = BTreeMap::new();
    for child in counted.iter().flat_map(|one| &one.children) {
        kinds.entry(&child.kind).or_default().push(child);
    }
    let of_kind = |(kind, starts): (&str, Vec<&ChildStart>)| {
        let measured = |(name, read): &(&str, OfChild)| {
            let values: Vec<f64> = starts.iter().filter_map(|one| read(one)).collect();
            measure(name, &values)
        };
        ChildrenOfKind {
            kind: kind.to_owned(),
            starts: u32::try_from(starts.len()).unwrap_or(u32::MAX),
            isolated: starts.iter().filter(|one| one.is_isolated == Some(true)).count().try_into().unwrap_or(u32::MAX),
            measures: OF_CHILDREN.iter().filter_map(measured).collect(),
        }
    };
    kinds.into_iter().map(of_kind).collect()
}

fn differences(launches: &AndroidLaunches) -> Vec<Difference> {
    let mut found = Vec::new();
    let Some((baseline, others)) = launches.packages.split_first() else { return found };
    for other in others {
        for (measure, read) in &MEASURES {
            let Some((blocks, difference_ms)) = by_pairs(launches, &baseline.package, &other.package, *read) else {
                continue;
            };
            found.push(Difference {
                package: other.package.clone(),
                baseline: baseline.package.clone(),
                measure: (*measure).to_owned(),
                blocks,
                difference_ms,
            });
        }
    }
    found
}

fn by_pairs(launches: &AndroidLaunches, baseline: &str, other: &str, read: OfLaunch) -> Option<(u32, Estimate)> {
    let mut samples = Samples::new(2, launches.blocks as usize);
    for one in launches.launches.iter().filter(|one| one.counts) {
        let arm = [baseline, other].iter().position(|name| *name == one.package);
        if let (Some(arm), Some(value)) = (arm, read(one)) {
            // Launches of blocks beyond those asked for do not exist.
            samples.set(arm, one.block as usize, value).ok()?;
        }
    }
    let effect = paired(&samples, 0, 1, Level::P95).ok()?;
    Some((u32::try_from(effect.pairs).unwrap_or(u32::MAX), effect.difference?))
}
