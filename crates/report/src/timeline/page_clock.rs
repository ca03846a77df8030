//! The times of a page: where they begin, and that what was before has negative ones.

use slowpath_recording::Tables;
use slowpath_tables::Nanos;

/// Where the times of a page begin: when exec was released, or recording began where nothing was launched.
pub(crate) fn zero_of(tables: &Tables) -> Nanos {
    tables.manifest.launch.as_ref().map_or(tables.manifest.started, |launch| launch.released)
}

/// From `zero` to `at`, ns.
pub(crate) fn since(zero: Nanos, at: Nanos) -> i64 {
    let apart = i64::try_from(at.0.abs_diff(zero.0)).unwrap_or(i64::MAX);
    if at < zero { -apart } else { apart }
}
