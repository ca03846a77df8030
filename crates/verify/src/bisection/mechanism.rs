//! Whether the mechanism of a cause was seen: one of its counters rose in the launches that show its effect.

use super::candidate::Candidate;
use super::choice::Choice;
use super::launches::Launches;
use super::outcome::CounterShift;
use super::settings::Settings;
use slowpath_experiment::{median, signed_rank};
use slowpath_launch::Metric;

/// The error with which any of the counters of a cause is said to have risen.
const ERROR: f64 = 0.01;
/// One is the sum of the others: none of them is a cross-check of another.
const FAMILY: [Metric; 3] = [Metric::Cpu, Metric::User, Metric::System];

/// The counters of these candidates that rose between two choices, by a paired test in that direction; the error is divided among
/// all that are tested (Bonferroni).
///
/// What is asked is not whether something moved, but whether an effect that is shown already has its mechanism.
pub(super) fn moved<E>(
    launches: &Launches<'_, E>,
    settings: &Settings,
    candidates: &[&Candidate],
    [quicker, slower]: [&Choice; 2],
) -> Vec<CounterShift> {
    let metrics = usable_counters(candidates, settings.metric);
    // The test is two-sided: half of its p-value is that of a rise.
    let error = 2.0 * ERROR / metrics.len().max(1) as f64;
    let tested = metrics.into_iter().filter_map(|metric| {
        let rows = launches.values(metric, [quicker, slower], 0);
        let differences: Vec<f64> = rows.iter().map(|[without, with]| with - without).collect();
        let count = |is_counted: fn(&f64) -> bool| differences.iter().filter(|one| is_counted(one)).count();
        if count(|one| *one > 0.0) <= count(|one| *one < 0.0) {
            return None;
        }
        let p = signed_rank::p_value(&differences)?;
        let middle = |side: usize| median::point(&rows.iter().map(|row| row[side]).collect::<Vec<f64>>());
        Some(CounterShift { metric, without: middle(0)?, with: middle(1)?, p })
    });
    tested.filter(|moved| moved.p <= error).collect()
}

/// Counters that can confirm an effect on `metric`: not the metric itself, and no other of the CPU times beside one of them.
/// Where a mechanism has nothing else, the parts of the time are all that can be asked for.
fn usable_counters(candidates: &[&Candidate], metric: Metric) -> Vec<Metric> {
    let mut all: Vec<Metric> = candidates.iter().flat_map(|candidate| candidate.counters.iter().copied()).collect();
    all.sort();
    all.dedup();
    let is_other = |one: &Metric| *one != metric;
    let is_apart = |one: &Metric| is_other(one) && !(FAMILY.contains(one) && FAMILY.contains(&metric));
    if all.iter().any(is_apart) {
        all.retain(is_apart);
    } else if all.iter().any(is_other) {
        all.retain(is_other);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::launches::Bench;
    use super::*;
    use crate::bisection::Expected;
    use crate::comparison::{Measured, Sample};
    use slowpath_experiment::design;
    use std::convert::Infallible;
    use std::time::Duration;

    /// Six counters that have nothing to do with the effect.
    #[test]
    fn counters_that_move_by_chance_are_no_mechanism_however_many_there_are() {
        use Metric::{BytesRead, MajorFaults, MinorFaults, RunDelay, Switches, Waiting};
        let counters = vec![MinorFaults, MajorFaults, Switches, RunDelay, Waiting, BytesRead];
        let settings = Settings { metric: Metric::Wall, max_time: Duration::MAX, seed: 1, given: false, margin: 0.02 };
        let candidate = Candidate { expected: Expected::Little, counters: counters.clone() };
        let (fast, slow) = (Choice::fast(), Choice::slow(1));
        let mut by_chance = 0;
        for seed in 0..400 {
            let mut draws = 0;
            let mut launch = |_: &Choice, _: usize| {
                let value = |metric: &Metric| {
                    draws += 1;
                    (*metric, (design::mixed(seed, draws) % 1000) as f64)
                };
                let measures = counters.iter().map(value).collect();
                Ok::<_, Infallible>(Sample::Measured(Measured { measures, ..Measured::default() }))
            };
            let bench = Bench { launch: &mut launch, elapsed: &|| Duration::ZERO, progress: &mut |_| true };
            let mut launches = Launches::new(bench, seed);
            assert!(launches.run("", &[fast.clone(), slow.clone()], 20, Duration::MAX).is_ok());
            by_chance += usize::from(!moved(&launches, &settings, &[&candidate], [&fast, &slow]).is_empty());
        }
        // 1 % of 400, and twice the deviation of such a number.
        assert!(by_chance <= 8, "in {by_chance} of 400");
    }

    #[test]
    fn a_part_of_the_cpu_time_is_no_cross_check_of_it_where_there_is_another() {
        use Metric::{Cpu, MinorFaults, System, User, Wall};
        let of = |counters: &[Metric], metric| {
            usable_counters(&[&Candidate { expected: Expected::Little, counters: counters.to_vec() }], metric)
        };
        let all = [Cpu, User, System, MinorFaults];
        assert_eq!(of(&all, Cpu), [MinorFaults]);
        assert_eq!(of(&all, User), [MinorFaults]);
        assert_eq!(of(&all, Wall), all);
        assert_eq!(of(&all, MinorFaults), [Cpu, User, System]);
        // Of a filter only the time in the kernel shows anything.
        assert_eq!(of(&[System], Cpu), [System]);
        assert_eq!(of(&[User, Cpu], Cpu), [User]);
        assert_eq!(of(&[Cpu], Cpu), [Cpu]);
    }
}
