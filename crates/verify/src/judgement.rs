//! The rule by which an arm is judged: against the untreated launch, and a fix also against its empty sham, so that
//! what surrounds the fix is never taken for the fix's effect. The metric is the caller's choice, made before the first launch.
//!
//! The arms of one comparison share one error rate ([`crate::until_decided`]): each interval is wide enough that all of them hold
//! together with 95 %, with those of other comparisons of the same question.

use crate::comparison::{Arm, ArmResult, Comparison, Role, matrix};
use slowpath_experiment::effect::{Effect, paired};
use slowpath_experiment::gap::{ShareRemoved, share_removed};
use slowpath_experiment::sample::SampleError;
use slowpath_experiment::{Level, Outcome, outcome};
use slowpath_launch::Metric;

/// A difference within this share of the untreated median is no difference that a user would act on.
pub const MARGIN: f64 = 0.02;

/// What the launches say of one arm.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Index of the arm.
    pub arm: usize,
    /// Its difference from the untreated launch, in the unit of the metric (negative is faster, or less).
    pub effect: Effect,
    /// The same against the sham of its kind; of fixes only, and `None` where there is no sham.
    pub against_sham: Option<Effect>,
    /// The conclusion.
    pub outcome: Outcome,
    /// Share of the cold-warm gap that it removed; `None` without a warm arm or a gap.
    pub share: Option<ShareRemoved>,
    /// Why the conclusion is what it is.
    pub reason: String,
}

/// Judges every arm but the baseline by `metric`. `level` is that of the intervals of an arm that took part in so many blocks: one that
/// ended before the others is judged as it was then.
///
/// # Errors
/// The comparison's matrix does not hold an arm that it lists.
pub fn judge(
    comparison: &Comparison,
    metric: Metric,
    level: impl Fn(usize) -> Level,
) -> Result<Vec<Judgement>, SampleError> {
    judge_results(&comparison.arms, &comparison.results, metric, level)
}

/// The same of the launches of these arms.
pub(crate) fn judge_results(
    arms: &[Arm],
    results: &[ArmResult],
    metric: Metric,
    level: impl Fn(usize) -> Level,
) -> Result<Vec<Judgement>, SampleError> {
    let position = |role: Role| arms.iter().position(|arm| arm.role == role);
    let Some(baseline) = position(Role::Baseline) else { return Ok(Vec::new()) };
    let warm = position(Role::Warm);
    let mut judgements = Vec::new();
    for index in 0..arms.len() {
        if index == baseline {
            continue;
        }
        let blocks = results[index].launches.len();
        let samples = &matrix(results, metric, blocks);
        let effect = paired(samples, baseline, index, level(blocks))?;
        let margin = MARGIN * effect.baseline.map_or(0.0, |median| median.value);
        let mut outcome = outcome::judge(&effect, margin);
        let mut reason = words(&effect, outcome);
        let sham = sham_of(arms, index);
        let against_sham = sham.map(|sham| paired(samples, sham, index, level(blocks))).transpose()?;
        // A sham that is slower than the untreated launch takes nothing from the fix; one that is faster explains its effect.
        if outcome == Outcome::Helps
            && let (Some(sham), Some(against)) = (sham, &against_sham)
            && outcome::judge(against, margin) != Outcome::Helps
        {
            outcome = Outcome::Inconclusive;
            let better = if metric == Metric::Wall { "faster" } else { "less" };
            let sham = &arms[sham].title;
            reason = format!("{better} than the untreated launch, but not than {sham}");
        }
        let share = |warm: usize| {
            let both = blocks.min(results[warm].launches.len());
            share_removed(&matrix(results, metric, both), baseline, index, warm, level(both))
        };
        let share = match warm {
            Some(warm) if index != warm => Some(share(warm)?),
            _ => None,
        };
        judgements.push(Judgement { arm: index, effect, against_sham, outcome, share, reason });
    }
    Ok(judgements)
}

/// The sham that a fix is held against, by its place; `None` where there is none, and for arms that are no fix.
pub(crate) fn sham_of(arms: &[Arm], index: usize) -> Option<usize> {
    let arm = arms.get(index).filter(|arm| arm.role == Role::Fix)?;
    let is_named = |sham: &Arm| arm.sham.as_ref().is_none_or(|name| sham.name == *name);
    arms.iter().position(|other| other.role == Role::Sham && is_named(other))
}

fn words(effect: &Effect, outcome: Outcome) -> String {
    match outcome {
        Outcome::Helps => "the whole interval is below zero".to_owned(),
        Outcome::Hurts => "the whole interval is above zero".to_owned(),
        Outcome::NoDifference => format!("the interval lies within {:.0} % of the untreated median", MARGIN * 100.0),
        Outcome::Inconclusive => "the interval holds zero and is wider than the margin".to_owned(),
        Outcome::NotTestable => format!("{} pairs are too few", effect.pairs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Measured, Sample, compare};
    use crate::until_decided::UntilDecided;
    use std::convert::Infallible;

    fn comparison(times: [f64; 4]) -> Comparison {
        let arm =
            |name: &str, role| Arm { name: name.to_owned(), title: format!("the title of {name}"), role, sham: None };
        let arms =
            vec![arm("cold", Role::Baseline), arm("fix", Role::Fix), arm("sham", Role::Sham), arm("warm", Role::Warm)];
        let launch = |arm: usize, block: usize| {
            let ms = times[arm] + (block * 7 % 5) as f64 * 0.1;
            // The other metric says the opposite.
            let measures = [(Metric::Wall, ms), (Metric::Cpu, 2000.0 - ms)].into();
            Ok::<_, Infallible>(Sample::Measured(Measured { measures, ..Measured::default() }))
        };
        compare(arms, 12, 1, launch, |_| true).unwrap()
    }

    fn judgements(comparison: &Comparison, metric: Metric) -> Result<Vec<Judgement>, SampleError> {
        let level = UntilDecided::fixed(&comparison.arms, metric, Level::P95).level(comparison.blocks);
        judge(comparison, metric, |_| level)
    }

    #[test]
    fn a_fix_that_beats_cold_and_sham_helps_and_its_share_of_the_gap_is_stated() {
        let judged = judgements(&comparison([1000.0, 600.0, 1001.0, 500.0]), Metric::Wall).unwrap();
        assert_eq!(judged[0].outcome, Outcome::Helps);
        let share = judged[0].share.as_ref().unwrap().share.unwrap().value;
        assert!((share - 0.8).abs() < 0.01, "{share}");
    }

    #[test]
    fn a_fix_that_is_no_faster_than_its_sham_is_not_said_to_help() {
        let judged = judgements(&comparison([1000.0, 600.0, 600.0, 500.0]), Metric::Wall).unwrap();
        assert_eq!(judged[0].outcome, Outcome::Inconclusive);
        assert_eq!(judged[0].reason, "faster than the untreated launch, but not than the title of sham");
    }

    #[test]
    fn a_fix_that_names_its_sham_is_held_against_that_one() {
        let mut comparison = comparison([1000.0, 600.0, 600.0, 500.0]);
        comparison.arms[1].sham = Some("other".to_owned());
        let judged = judgements(&comparison, Metric::Wall).unwrap();
        assert_eq!((judged[0].outcome, judged[0].against_sham.is_none()), (Outcome::Helps, true));
        comparison.arms[1].sham = Some("sham".to_owned());
        assert_eq!(judgements(&comparison, Metric::Wall).unwrap()[0].outcome, Outcome::Inconclusive);
    }

    #[test]
    fn a_sham_that_is_slower_takes_nothing_from_a_fix_and_its_effect_against_both_is_there() {
        let judged = judgements(&comparison([1000.0, 900.0, 1050.0, 500.0]), Metric::Wall).unwrap();
        assert_eq!((judged[0].outcome, judged[1].outcome), (Outcome::Helps, Outcome::Hurts));
        let against = judged[0].against_sham.as_ref().unwrap().difference.unwrap().value;
        assert!((against + 150.0).abs() < 1.0, "{against}");
        assert!(judged[1].against_sham.is_none());
    }

    #[test]
    fn arms_of_one_comparison_share_one_error_rate() {
        let judged = judgements(&comparison([1000.0, 600.0, 1001.0, 500.0]), Metric::Wall).unwrap();
        assert!((judged[0].effect.level - 0.975).abs() < 1e-12, "two arms are judged: {}", judged[0].effect.level);
    }

    #[test]
    fn the_metric_that_is_asked_for_decides() {
        let comparison = comparison([1000.0, 600.0, 1001.0, 500.0]);
        let judged = judgements(&comparison, Metric::Cpu).unwrap();
        assert_eq!((judged[0].outcome, judged[0].effect.pairs), (Outcome::Hurts, 12));
        assert_eq!(judgements(&comparison, Metric::MinorFaults).unwrap()[0].outcome, Outcome::NotTestable);
    }
}
