//! Whether the mechanism of a cause was seen: one of its counters moved in the launches that show its effect.

use super::launches::Launches;
use super::outcome::Moved;
use super::treatment::Treatment;
use super::{Settings, Suspect};
use crate::metric::Metric;
use slowpath_experiment::{median, signed_rank};

/// The error with which a counter is said to have moved.
const ERROR: f64 = 0.01;

/// The counters of these suspects that moved between two treatments, by a paired test in either direction.
///
/// What is asked is not whether something moved, but whether an effect that is shown already has its mechanism: each counter is
/// tested for itself. The metric that shows the effect is no second witness of it, unless nothing else is.
pub(super) fn moved<E>(
    launches: &Launches<'_, E>,
    settings: &Settings,
    suspects: &[&Suspect],
    [quicker, slower]: [&Treatment; 2],
) -> Vec<Moved> {
    let mut metrics: Vec<Metric> = suspects.iter().flat_map(|suspect| suspect.counters.iter().copied()).collect();
    metrics.sort();
    metrics.dedup();
    if metrics.iter().any(|metric| *metric != settings.metric) {
        metrics.retain(|metric| *metric != settings.metric);
    }
    let tested = metrics.into_iter().filter_map(|metric| {
        let rows = launches.values(metric, [quicker, slower], 0);
        let differences: Vec<f64> = rows.iter().map(|[without, with]| with - without).collect();
        let p = signed_rank::p_value(&differences)?;
        let middle = |side: usize| median::point(&rows.iter().map(|row| row[side]).collect::<Vec<f64>>());
        Some(Moved { metric, without: middle(0)?, with: middle(1)?, p })
    });
    tested.filter(|moved| moved.p <= ERROR).collect()
}
