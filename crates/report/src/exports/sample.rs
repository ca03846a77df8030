//! A small benchmark for the tests of the forms.

use crate::{ArmComparison, Benchmark, BenchmarkArm, LAUNCH_SCHEMA, OneLaunch, Outcome};
use slowpath_tables::{Quantity, Unit};
use slowpath_verify::{HostActivity, Metric};

fn launch(position: u32, ms: f64) -> Option<OneLaunch> {
    let measures = [(Metric::Wall, ms), (Metric::User, ms / 2.0)].into();
    Some(OneLaunch { position, measures, around: HostActivity::default() })
}

fn arm(name: &str, launches: Vec<Option<OneLaunch>>, median: f64) -> BenchmarkArm {
    BenchmarkArm {
        name: name.to_owned(),
        command: vec![name.to_owned(), "--x".to_owned()],
        launches,
        medians: [(Metric::Wall, Quantity::exact(median, Unit::Ms))].into(),
        quantiles: Vec::new(),
        discarded: 0,
        failed: 0,
        reasons: Vec::new(),
        outliers: Vec::new(),
    }
}

/// Two arms, two blocks, one launch missing.
pub(crate) fn benchmark() -> Benchmark {
    Benchmark {
        schema: LAUNCH_SCHEMA.to_owned(),
        ready: "exit".to_owned(),
        conditions: vec!["warm".to_owned()],
        seed: 1,
        blocks: 2,
        ended: "2 blocks were asked for".to_owned(),
        compared: vec![Metric::Wall],
        units: Metric::ALL.map(|metric| (metric, metric.unit())).into(),
        arms: vec![
            arm("old", vec![launch(0, 10.0), launch(1, 20.0)], 15.0),
            arm("new", vec![launch(1, 12.0), None], 12.0),
        ],
        comparisons: vec![ArmComparison {
            arm: "new".to_owned(),
            against: "old".to_owned(),
            metric: Metric::Wall,
            outcome: Outcome::Inconclusive,
            difference: Some(Quantity::interval(2.0, -1.0, 5.0, Unit::Ms)),
            ratio: Some(Quantity::interval(1.2, 0.9, 1.5, Unit::Ratio)),
            quantiles: Vec::new(),
            margin: Some(Quantity::exact(0.3, Unit::Ms)),
            minimum_detectable_effect: Some(Quantity::exact(4.0, Unit::Ms)),
            pairs: 1,
            dropped: 1,
            p: Some(0.5),
            level: 0.95,
        }],
        notes: Vec::new(),
        unavailable: Vec::new(),
    }
}
