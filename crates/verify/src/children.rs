//! What `slowpath launch children --json` holds: how long children take from their fork until they are ready, by kind.
//!
//! Owns the figures of child launches that were found: first against later ones of a kind, new processes against copies of
//! a running one. Leaves finding the launches to `analysis::starts::children`, and what was lost in a recording to its reader.

use crate::printed::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::starts::children::{ChildLaunch, Origin};
use slowpath_experiment::{Level, median, quantile};
use slowpath_tables::{Losses, Nanos, Quantity, Unavailable, Unit};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Value of [`ChildLaunches::schema`].
pub const CHILDREN_SCHEMA: &str = "slowpath-children/1";

/// Value of [`ChildLaunches::ready`]; the limit is that of the probe `first_wait`.
const READY: &str = "the main thread first waits for events, for 1 ms or longer";

/// What `slowpath launch children --json` prints: launches of children in several runs of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChildLaunches {
    /// [`CHILDREN_SCHEMA`].
    #[schemars(extend("const" = CHILDREN_SCHEMA))]
    pub schema: String,
    /// When a child counts as ready, in words.
    pub ready: String,
    /// Runs of the program.
    pub runs: u32,
    /// Directories of the recordings, one a run; empty where none were kept.
    pub recordings: Vec<String>,
    /// The kinds, in the order of their first launch.
    pub kinds: Vec<ChildKind>,
    /// What speaks against trusting the figures.
    pub notes: Vec<String>,
    /// Events lost while the runs were recorded, by kind. Where a first wait was lost, a child looks never ready.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
}

/// How a child became what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildOrigin {
    /// A new process: it executed a program.
    Executed,
    /// A reused image: a copy of its parent (a zygote, say) that never called exec.
    Forked,
}

impl From<Origin> for ChildOrigin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Executed => Self::Executed,
            Origin::Forked => Self::Forked,
        }
    }
}

/// Children of one kind that began in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChildKind {
    /// What they are: the value of `--type=` where the program has such roles, else the base name of the program.
    pub kind: String,
    /// How they began.
    pub origin: ChildOrigin,
    /// Children.
    pub count: u32,
    /// Those of them that were not seen to be ready.
    pub never_ready: u32,
    /// The first of each run. It pays for what the later ones find done.
    pub first: ChildTimes,
    /// All others.
    pub later: ChildTimes,
    /// First and later ones together; null where none was ready.
    pub all: Option<ChildSpread>,
    /// From the lowest to the highest time, a bucket for each power of two.
    pub histogram: Vec<ChildBucket>,
}

/// Times from fork to ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChildTimes {
    /// Children.
    pub count: u32,
    /// Those of them that were not seen to be ready.
    pub never_ready: u32,
    /// Median of those that were; null where none was. The interval takes the launches for independent, which those of the
    /// same run are only as far as the machine's state allows.
    pub median: Option<Quantity>,
    /// Each of them in ms, run by run, in the order of their forks.
    pub samples_ms: Vec<f64>,
}

/// Quantiles of times from fork to ready; each with an interval where there are enough launches for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChildSpread {
    /// Median.
    pub p50: Quantity,
    /// 75 % quantile.
    pub p75: Quantity,
    /// 95 % quantile.
    pub p95: Quantity,
    /// 99 % quantile.
    pub p99: Quantity,
    /// The longest that was seen.
    pub max: Quantity,
}

/// A bucket of a histogram: times of at least `from` and less than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildBucket {
    /// Lower bound, ns: a power of two, or 0.
    pub from: Nanos,
    /// Upper bound, ns: the next power of two.
    pub to: Nanos,
    /// First launches.
    pub first: u32,
    /// Later launches.
    pub later: u32,
}

/// Launches of one group in the making.
#[derive(Default)]
struct Times {
    count: usize,
    ready: Vec<Nanos>,
}

impl Times {
    fn add(&mut self, launch: &ChildLaunch) {
        self.count += 1;
        self.ready.extend(launch.time());
    }

    fn figures(&self) -> ChildTimes {
        let samples_ms = ms(&self.ready);
        ChildTimes {
            count: small(self.count),
            never_ready: small(self.count - self.ready.len()),
            median: median::median(&samples_ms, Level::P95).map(|estimate| quantity(estimate, Unit::Ms)),
            samples_ms,
        }
    }
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn ms(times: &[Nanos]) -> Vec<f64> {
    times.iter().map(|time| time.as_ms()).collect()
}

/// The figures of several runs. Each holds the launches of one run in the order of their forks; the first of a kind and
/// origin in a run is its first launch, whether it got ready or not.
pub fn of_runs(runs: &[Vec<ChildLaunch>]) -> ChildLaunches {
    let mut kinds: Vec<(&str, ChildOrigin, [Times; 2])> = Vec::new();
    let mut places: HashMap<(&str, ChildOrigin), usize> = HashMap::new();
    for run in runs {
        let mut seen = HashSet::new();
        for launch in run {
            let (kind, origin) = (launch.kind.as_str(), ChildOrigin::from(launch.origin));
            let place = *places.entry((kind, origin)).or_insert_with(|| {
                kinds.push((kind, origin, Default::default()));
                kinds.len() - 1
            });
            let later = usize::from(!seen.insert((kind, origin)));
            kinds[place].2[later].add(launch);
        }
    }
    ChildLaunches {
        schema: CHILDREN_SCHEMA.to_owned(),
        ready: READY.to_owned(),
        runs: small(runs.len()),
        recordings: Vec::new(),
        kinds: kinds.iter().map(|(kind, origin, [first, later])| child_kind(kind, *origin, first, later)).collect(),
        notes: Vec::new(),
        losses: Losses::default(),
        unavailable: Vec::new(),
    }
}

fn child_kind(kind: &str, origin: ChildOrigin, first: &Times, later: &Times) -> ChildKind {
    let both = [first.ready.as_slice(), later.ready.as_slice()];
    let (first, later) = (first.figures(), later.figures());
    ChildKind {
        kind: kind.to_owned(),
        origin,
        count: first.count.saturating_add(later.count),
        never_ready: first.never_ready.saturating_add(later.never_ready),
        all: spread(&ms(&both.concat())),
        histogram: histogram(both),
        first,
        later,
    }
}

fn spread(values: &[f64]) -> Option<ChildSpread> {
    let at = |share: f64| Some(quantity(quantile::quantile(values, share, Level::P95)?, Unit::Ms));
    Some(ChildSpread {
        p50: at(0.5)?,
        p75: at(0.75)?,
        p95: at(0.95)?,
        p99: at(0.99)?,
        max: Quantity::exact(values.iter().copied().reduce(f64::max)?, Unit::Ms),
    })
}

/// First and later times by powers of two, without gaps between the lowest and the highest.
fn histogram(times: [&[Nanos]; 2]) -> Vec<ChildBucket> {
    // A bucket is known by the bits of its times: 0 for none, then one bit more for each power of two.
    let mut counts: BTreeMap<u32, [u32; 2]> = BTreeMap::new();
    for (which, times) in times.into_iter().enumerate() {
        for time in times {
            counts.entry(u64::BITS - time.0.leading_zeros()).or_default()[which] += 1;
        }
    }
    let power = |bits: u32| 1u64.checked_shl(bits).unwrap_or(u64::MAX);
    let ends = counts.keys().next().zip(counts.keys().next_back());
    let buckets = ends.map(|(lowest, highest)| *lowest..=*highest).into_iter().flatten();
    let bucket = |bits: u32| {
        let [first, later] = counts.get(&bits).copied().unwrap_or_default();
        ChildBucket { from: Nanos(bits.checked_sub(1).map_or(0, power)), to: Nanos(power(bits)), first, later }
    };
    buckets.map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::ProcessKey;

    fn launch(kind: &str, origin: Origin, ms: Option<u64>) -> ChildLaunch {
        ChildLaunch {
            process: ProcessKey { pid: 1, start: Nanos(1) },
            kind: kind.to_owned(),
            origin,
            forked: Nanos(500),
            ready: ms.map(|ms| Nanos(500 + ms * 1_000_000)),
        }
    }

    fn page(ms: u64) -> ChildLaunch {
        launch("page", Origin::Forked, Some(ms))
    }

    #[test]
    fn the_first_of_each_run_stands_apart_from_the_later_ones() {
        let runs = [
            vec![page(40), launch("gpu", Origin::Executed, Some(90)), page(10), page(14)],
            vec![page(60), page(12)],
            vec![launch("gpu", Origin::Executed, None)],
        ];
        let found = of_runs(&runs);
        assert_eq!(found.runs, 3);
        let kinds: Vec<_> = found.kinds.iter().map(|kind| (kind.kind.as_str(), kind.origin, kind.count)).collect();
        assert_eq!(kinds, [("page", ChildOrigin::Forked, 5), ("gpu", ChildOrigin::Executed, 2)]);
        let (page, gpu) = (&found.kinds[0], &found.kinds[1]);
        assert_eq!(
            (page.first.samples_ms.as_slice(), page.later.samples_ms.as_slice()),
            (&[40.0, 60.0][..], &[10.0, 14.0, 12.0][..])
        );
        assert_eq!(page.first.median, Some(Quantity::exact(50.0, Unit::Ms)));
        assert_eq!(page.later.median, Some(Quantity::exact(12.0, Unit::Ms)));
        let all = page.all.as_ref().unwrap();
        // Type 7 of 10, 12, 14, 40, 60: the places 2, 3, 3.8 and 3.96 from 0.
        let points = [all.p50, all.p75, all.p95, all.p99, all.max].map(|quantity| (quantity.value * 10.0).round());
        assert_eq!(points, [140.0, 400.0, 560.0, 592.0, 600.0]);
        assert_eq!((gpu.never_ready, gpu.first.never_ready, gpu.first.count, gpu.later.count), (1, 1, 2, 0));
        assert_eq!(gpu.later.median, None);
    }

    #[test]
    fn a_first_launch_that_is_never_ready_does_not_make_the_second_one_the_first() {
        let found = of_runs(&[vec![launch("page", Origin::Forked, None), page(10)]]);
        let kind = &found.kinds[0];
        assert_eq!((kind.first.samples_ms.len(), kind.later.samples_ms.as_slice()), (0, &[10.0][..]));
        assert_eq!((kind.first.count, kind.first.never_ready, kind.first.median), (1, 1, None));
    }

    #[test]
    fn a_copy_and_a_new_process_of_one_kind_are_two_rows_with_a_first_each() {
        let found = of_runs(&[vec![page(10), launch("page", Origin::Executed, Some(20))]]);
        assert_eq!(found.kinds.len(), 2);
        assert!(found.kinds.iter().all(|kind| kind.first.count == 1 && kind.later.count == 0));
    }

    #[test]
    fn six_launches_give_the_median_an_interval_and_five_do_not() {
        let later = |count: u64| {
            let found = of_runs(&[(0..=count).map(page).collect()]);
            found.kinds[0].later.median.unwrap()
        };
        assert_eq!(later(6), Quantity::interval(3.5, 1.0, 6.0, Unit::Ms));
        assert_eq!(later(5), Quantity::exact(3.0, Unit::Ms));
    }

    #[test]
    fn buckets_are_powers_of_two_without_gaps() {
        let bucket = |from, to, first, later| ChildBucket { from: Nanos(from), to: Nanos(to), first, later };
        assert_eq!(
            histogram([&[Nanos(8), Nanos(15)], &[Nanos(16), Nanos(64)]]),
            [bucket(8, 16, 2, 0), bucket(16, 32, 0, 1), bucket(32, 64, 0, 0), bucket(64, 128, 0, 1),]
        );
        assert_eq!(histogram([&[Nanos(0)], &[Nanos(1)]]), [bucket(0, 1, 1, 0), bucket(1, 2, 0, 1)]);
        assert_eq!(histogram([&[], &[Nanos(u64::MAX)]]), [bucket(1 << 63, u64::MAX, 0, 1)]);
        assert_eq!(histogram([&[], &[]]), []);
    }

    #[test]
    fn nothing_recorded_is_no_kind_and_a_kind_without_readiness_has_no_figures() {
        assert_eq!(of_runs(&[]).kinds, []);
        let found = of_runs(&[vec![launch("page", Origin::Forked, None)]]);
        assert_eq!((found.kinds[0].all.as_ref(), found.kinds[0].histogram.len()), (None, 0));
    }
}
