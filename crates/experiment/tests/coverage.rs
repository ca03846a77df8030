//! Simulations of known truth: how often intervals hold it, how often the rule errs.
//!
//! Seeds are fixed, so a failure is a change of the code and not bad luck. Sizes stand at each test; the tolerance is
//! three standard errors of the simulation.

mod machine;

use machine::{Machine, SHAPES, Shape, three_errors};
use slowpath_experiment::{Effect, Level, Outcome, Samples, design, effect, gap, median, outcome, power, rank_sum};

/// Runs the arms in a counterbalanced order on a drifting machine. `launch` gives the value of an arm from the relative
/// drift of its moment and its own noise.
fn session(machine: &mut Machine, arms: usize, blocks: usize, launch: impl Fn(usize, f64, f64) -> f64) -> Samples {
    let schedule = design::schedule(arms, blocks, machine.seed());
    let mut drift = machine.drift(arms * blocks, arms).into_iter();
    let mut samples = Samples::new(arms, blocks);
    for (block, order) in schedule.into_iter().enumerate() {
        for (arm, drift) in order.into_iter().zip(drift.by_ref()) {
            let noise = machine.noise();
            samples.set(arm, block, launch(arm, drift, noise)).expect("the cell exists");
        }
    }
    samples
}

/// Two arms around 100 that differ by `shift`, with additive drift and noise of 3 % of 100.
fn two_arms(machine: &mut Machine, blocks: usize, shift: f64) -> Effect {
    let samples =
        session(machine, 2, blocks, |arm, drift, noise| 100.0 + arm as f64 * shift + 100.0 * drift + 3.0 * noise);
    effect::paired(&samples, 0, 1, Level::P95).expect("two arms")
}

fn holds(interval: Option<(f64, f64)>, truth: f64) -> bool {
    let (low, high) = interval.expect("enough blocks for an interval");
    low <= truth && truth <= high
}

/// The share of experiments for which `hit` is true.
fn rate(experiments: usize, mut hit: impl FnMut() -> bool) -> f64 {
    (0..experiments).filter(|_| hit()).count() as f64 / experiments as f64
}

/// Holds a coverage between the level and the discreteness of rank statistics at these sizes.
fn assert_covers(what: &str, coverage: f64, most: f64, experiments: usize) {
    let tolerance = three_errors(0.95, experiments);
    assert!((0.95 - tolerance..=most + tolerance).contains(&coverage), "{what}: coverage {coverage}");
}

/// 1,000 experiments for each of 4 shapes and 3 sizes.
#[test]
fn the_interval_of_a_difference_holds_the_truth_in_95_percent_under_drift() {
    for shape in SHAPES {
        for (blocks, exact) in [(8, 0.9610), (15, 0.9521), (20, 0.9516)] {
            let mut machine = Machine::new(shape, 11);
            let coverage = rate(1000, || {
                let difference = two_arms(&mut machine, blocks, -7.0).difference;
                holds(difference.and_then(|d| d.interval()), -7.0)
            });
            assert_covers(&format!("{shape:?}, {blocks} blocks"), coverage, exact, 1000);
        }
    }
}

/// 1,000 experiments for each of 4 shapes; drift and noise act on the logarithm.
#[test]
fn the_interval_of_a_ratio_holds_the_truth_in_95_percent_under_drift() {
    for shape in SHAPES {
        let mut machine = Machine::new(shape, 12);
        let coverage = rate(1000, || {
            let samples =
                session(&mut machine, 2, 15, |arm, drift, noise| [100.0, 80.0][arm] * (drift + 0.05 * noise).exp());
            let effect = effect::paired(&samples, 0, 1, Level::P95).expect("two arms");
            holds(effect.ratio.and_then(|ratio| ratio.interval()), 0.8)
        });
        assert_covers(&format!("{shape:?}"), coverage, 0.9521, 1000);
    }
}

/// 2,000 experiments for each of 4 shapes and 2 sizes, without drift: the median of a drifting machine is no constant.
#[test]
fn the_interval_of_a_median_holds_the_truth_in_95_percent() {
    for shape in SHAPES {
        for (launches, exact) in [(15, 0.9648), (20, 0.9586)] {
            let mut machine = Machine::new(shape, 13);
            let coverage = rate(2000, || {
                let values: Vec<f64> = (0..launches).map(|_| machine.noise()).collect();
                let median = median::median(&values, Level::P95).expect("there are values");
                holds(median.interval(), 0.0)
            });
            assert_covers(&format!("{shape:?}, {launches}"), coverage, exact, 2000);
        }
    }
}

/// 2,000 experiments for each of 4 shapes and 2 pairs of sizes, without drift, which two samples in a row do not share.
#[test]
fn the_interval_of_a_shift_between_independent_samples_holds_the_truth_in_95_percent() {
    for shape in SHAPES {
        for (before, after, exact) in [(4, 4, 0.9714), (6, 9, 0.9504)] {
            let mut machine = Machine::new(shape, 20);
            let coverage = rate(2000, || {
                let mut values = |count: usize, centre: f64| -> Vec<f64> {
                    (0..count).map(|_| centre + 3.0 * machine.noise()).collect()
                };
                let (before, after) = (values(before, 100.0), values(after, 93.0));
                let shift = rank_sum::shift(&before, &after, Level::P95).expect("there are values");
                holds(shift.interval(), -7.0)
            });
            assert_covers(&format!("{shape:?}, {before} and {after}"), coverage, exact, 2000);
        }
    }
}

/// 800 experiments for each of 4 shapes, 2 levels of noise and 3 shares. Lognormal noise acts on the logarithm here;
/// `exp(z) - 1` at 10 % would make cold launches up to three times as long, which breaks the symmetry that the method
/// asks for.
#[test]
fn the_interval_of_the_share_removed_holds_the_truth_in_95_percent_under_drift() {
    for shape in SHAPES {
        for size in [0.03, 0.10] {
            for truth in [0.0, 0.65, 1.0] {
                let drawn = match shape {
                    Shape::Lognormal => Shape::Normal,
                    other => other,
                };
                let mut machine = Machine::new(drawn, 14);
                let levels = [100.0, 100.0 - 60.0 * truth, 40.0];
                let mut answered = 0;
                let held = rate(800, || {
                    let samples = session(&mut machine, 3, 18, |arm, drift, noise| {
                        let factor = match shape {
                            Shape::Lognormal => (size * noise).exp(),
                            _ => 1.0 + size * noise,
                        };
                        levels[arm] * (1.0 + drift) * factor
                    });
                    let result = gap::share_removed(&samples, 0, 1, 2, Level::P95).expect("three arms");
                    answered += usize::from(result.share.is_some());
                    result.share.is_some_and(|share| holds(share.interval(), truth))
                });
                // Contaminated noise of 10 % hides even this gap now and then.
                assert!(answered >= 790, "{shape:?} {size}: {answered} answers");
                let coverage = held * 800.0 / answered as f64;
                assert_covers(&format!("{shape:?} {size} {truth}"), coverage, 0.956, 800);
            }
        }
    }
}

/// The Wilcoxon rank-sum test by its normal approximation: what one would use without pairs.
fn unpaired_test_rejects(first: &[f64], second: &[f64]) -> bool {
    let (m, n) = (first.len() as f64, second.len() as f64);
    let wins = first.iter().flat_map(|a| second.iter().map(move |b| f64::from(u8::from(b > a)))).sum::<f64>();
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    ((wins - m * n / 2.0) / deviation).abs() > 1.96
}

/// 2,000 experiments for each of 4 shapes and 2 methods: 20 launches of each of two identical arms.
#[test]
fn identical_arms_differ_in_5_percent_when_paired_and_far_more_often_in_a_fixed_order() {
    for shape in SHAPES {
        let mut machine = Machine::new(shape, 15);
        let paired = rate(2000, || {
            let effect = two_arms(&mut machine, 20, 0.0);
            matches!(outcome::judge(&effect, 1.0), Outcome::Helps | Outcome::Hurts)
        });
        let fixed_order = rate(2000, || {
            let values: Vec<f64> =
                machine.drift(40, 2).into_iter().map(|drift| 100.0 + 100.0 * drift + 3.0 * machine.noise()).collect();
            unpaired_test_rejects(&values[..20], &values[20..])
        });
        let most = 0.05 + three_errors(0.05, 2000);
        assert!(paired <= most, "{shape:?}: paired {paired}");
        assert!(
            fixed_order > 2.0 * most,
            "{shape:?}: the fixed order errs in {fixed_order} only, so this drift tests nothing"
        );
    }
}

/// 1,000 experiments for each of 4 shapes whose true difference equals the margin: calling it none is an error.
#[test]
fn a_difference_as_large_as_the_margin_is_called_none_in_2_5_percent_at_most() {
    for shape in SHAPES {
        let mut machine = Machine::new(shape, 16);
        let called_none = rate(1000, || {
            let effect = two_arms(&mut machine, 20, 4.0);
            outcome::judge(&effect, 4.0) == Outcome::NoDifference
        });
        let most = 0.025 + three_errors(0.025, 1000);
        assert!(called_none <= most, "{shape:?}: {called_none}");
    }
}

/// 1,000 experiments of identical arms with a margin twice the half-width that 20 pairs give under normal noise.
#[test]
fn identical_arms_with_a_wide_margin_are_mostly_called_no_difference() {
    let mut machine = Machine::new(Shape::Normal, 17);
    let called_none = rate(1000, || {
        let effect = two_arms(&mut machine, 20, 0.0);
        outcome::judge(&effect, 4.0) == Outcome::NoDifference
    });
    assert!(called_none > 0.85, "{called_none}");
}

/// 600 experiments for each of 3 shapes and 2 sizes to find the typical figure, and as many to try it.
#[test]
fn an_effect_of_the_minimum_detectable_size_is_found_in_about_80_percent() {
    for shape in [Shape::Normal, Shape::StudentT3, Shape::Contaminated] {
        for blocks in [15, 20] {
            let mut machine = Machine::new(shape, 18);
            let stated: Vec<f64> =
                (0..600).filter_map(|_| two_arms(&mut machine, blocks, 0.0).minimum_detectable_effect).collect();
            let typical = median::median(&stated, Level::P95).expect("values").value;
            let power = rate(600, || {
                let effect = two_arms(&mut machine, blocks, -typical);
                outcome::judge(&effect, 0.0) == Outcome::Helps
            });
            assert!((0.70..=0.90).contains(&power), "{shape:?}, {blocks} blocks: power {power}");
        }
    }
}

/// 1,000 experiments for each of 3 effects, normal noise of known size.
#[test]
fn the_planned_number_of_pairs_finds_its_effect_in_80_percent_at_least() {
    let sigma = 3.0 * 2.0_f64.sqrt();
    for share_of_sigma in [1.3, 1.0, 0.6] {
        let wanted = share_of_sigma * sigma;
        let pairs = power::pairs_needed(sigma, wanted).expect("positive numbers");
        let mut machine = Machine::new(Shape::Normal, 19);
        let power = rate(1000, || {
            let effect = two_arms(&mut machine, pairs, -wanted);
            outcome::judge(&effect, 0.0) == Outcome::Helps
        });
        assert!(power >= 0.8 - three_errors(0.8, 1000), "{pairs} pairs: power {power}");
    }
}
