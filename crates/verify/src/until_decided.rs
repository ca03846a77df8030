//! When a trial of fixes has enough launches, and which level its intervals then have.
//!
//! The looks are planned before the first launch ([`slowpath_experiment::looks`]), and every arm shares one error rate with the others
//! over all looks: that a trial ends when its fixes are decided takes nothing from "all intervals together hold with 95 %". Nor does
//! ending an arm at a look after which no open fix needs it: its interval is the one of that look. The untreated arm, open fixes and the
//! shams that these have to beat go on; the others show after the first look what they show of a fix that is decided there.
//!
//! Whoever runs several trials gives each a level of its own, so that those of all trials together have that error rate
//! ([`Level::shared_by`]); before the first launch of the first one.

use crate::comparison::{Arm, ArmResult, NextBlock, Role};
use crate::judgement::{judge_results, sham_of};
use slowpath_experiment::looks::Looks;
use slowpath_experiment::{Level, Outcome};
use slowpath_launch::Metric;

/// How many arms are judged: all but the untreated one and the warm one, which others are compared with.
pub fn judged<'a>(arms: impl Iterator<Item = &'a Arm>) -> usize {
    arms.filter(|arm| !matches!(arm.role, Role::Baseline | Role::Warm)).count()
}

/// The rule by which a trial ends, made before its first launch.
#[derive(Debug)]
pub struct UntilDecided {
    looks: Option<Looks>,
    /// Of all arms together.
    whole: Level,
    /// Of one arm.
    base: Level,
    metric: Metric,
}

impl UntilDecided {
    /// Of at most `most` blocks of these arms, judged by `metric`: all their intervals together hold with the level `whole`.
    pub fn new(arms: &[Arm], most: usize, metric: Metric, whole: Level) -> Self {
        let fixed = Self::fixed(arms, metric, whole);
        Self { looks: Some(Looks::early(most, fixed.base)), ..fixed }
    }

    /// As many blocks as were asked for, whatever they show.
    pub fn fixed(arms: &[Arm], metric: Metric, whole: Level) -> Self {
        Self { looks: None, whole, base: whole.shared_by(judged(arms.iter())), metric }
    }

    /// What follows after so many blocks. Where a look is planned, blocks go on with the fixes that are open and what these are compared
    /// with. Decided is a fix that helps, hurts, or makes no difference that anybody would act on.
    pub fn next(&self, arms: &[Arm], results: &[ArmResult], blocks: usize) -> NextBlock {
        if self.looks.as_ref().is_none_or(|looks| looks.at(blocks).is_none()) {
            return NextBlock::SameArms;
        }
        let Ok(judgements) = judge_results(arms, results, self.metric, |blocks| self.level(blocks)) else {
            return NextBlock::SameArms;
        };
        let is_open = |outcome| matches!(outcome, Outcome::Inconclusive | Outcome::NotTestable);
        let mut fixes = judgements.iter().filter(|one| arms[one.arm].role == Role::Fix).peekable();
        if fixes.peek().is_none() {
            return NextBlock::SameArms;
        }
        let open: Vec<usize> = fixes.filter(|one| is_open(one.outcome)).map(|one| one.arm).collect();
        let shams: Vec<usize> = open.iter().filter_map(|fix| sham_of(arms, *fix)).collect();
        let is_needed = |arm: &usize| arms[*arm].role == Role::Baseline || open.contains(arm) || shams.contains(arm);
        match open.is_empty() {
            true => NextBlock::Enough,
            false => NextBlock::Only((0..arms.len()).filter(is_needed).collect()),
        }
    }

    /// The level with which all intervals of the trial hold together.
    pub fn whole(&self) -> Level {
        self.whole
    }

    /// The level of the intervals of an arm that ended after so many blocks.
    pub fn level(&self, blocks: usize) -> Level {
        let planned = self.looks.as_ref().and_then(|looks| looks.at(blocks).or_else(|| looks.last(blocks)));
        planned.unwrap_or(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Comparison, Measured, Sample, compare_until};
    use crate::judgement::{Judgement, judge};
    use std::convert::Infallible;

    fn arms() -> Vec<Arm> {
        let arm = |name: &str, role| Arm { name: name.to_owned(), title: name.to_owned(), role, sham: None };
        vec![arm("cold", Role::Baseline), arm("fix", Role::Fix), arm("sham", Role::Sham), arm("warm", Role::Warm)]
    }

    /// Launches of 1000 ms, with `fix` ms for the fix, that vary by some 3 %.
    fn trial(fix: f64, seed: u64, rule: &UntilDecided) -> Comparison {
        trial_with(fix, seed, |results, blocks| rule.next(&arms(), results, blocks))
    }

    fn trial_with(fix: f64, seed: u64, next: impl Fn(&[ArmResult], usize) -> NextBlock) -> Comparison {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut noise = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f64 / (1_u64 << 24) as f64 * 100.0
        };
        let launch = |arm: usize, _| {
            let ms = [1000.0, fix, 1000.0, 500.0][arm] + noise();
            Ok::<_, Infallible>(Sample::Measured(Measured {
                measures: [(Metric::Wall, ms)].into(),
                ..Measured::default()
            }))
        };
        compare_until(arms(), 16, seed, launch, |_| true, next).unwrap()
    }

    fn judged(compared: &Comparison, rule: &UntilDecided) -> Vec<Judgement> {
        judge(compared, Metric::Wall, |blocks| rule.level(blocks)).unwrap()
    }

    #[test]
    fn what_no_open_fix_is_compared_with_ends_at_the_look_and_is_judged_as_it_was_then() {
        let rule = UntilDecided::new(&arms(), 16, Metric::Wall, Level::P95);
        // Less than such launches vary by: open at the first look, decided or not at the last.
        let compared = trial(980.0, 3, &rule);
        let blocks: Vec<usize> = compared.results.iter().map(|arm| arm.launches.len()).collect();
        assert_eq!((compared.blocks, blocks), (16, vec![16, 16, 16, 8]));
        let judged = judged(&compared, &rule);
        assert_eq!(judged.iter().map(|one| one.effect.pairs).collect::<Vec<_>>(), [16, 16, 8]);
        assert_eq!(judged[2].effect.dropped, 0, "the arm was to have no launch in the other blocks");
        assert_eq!(judged[2].effect.level, rule.level(8).fraction());
        assert_eq!(judged[0].share.as_ref().unwrap().blocks, 8);
        assert_eq!(judged[0].share.as_ref().unwrap().level, rule.level(8).fraction());
    }

    #[test]
    fn when_the_time_is_over_arms_that_had_ended_keep_their_level_and_the_others_get_what_is_left() {
        let rule = UntilDecided::new(&arms(), 16, Metric::Wall, Level::P95);
        let next = |results: &[ArmResult], blocks| match blocks {
            10 => NextBlock::Enough,
            _ => rule.next(&arms(), results, blocks),
        };
        let compared = trial_with(980.0, 3, next);
        assert_eq!(compared.results.iter().map(|arm| arm.launches.len()).collect::<Vec<_>>(), [10, 10, 10, 8]);
        let [fix, sham, warm] = judged(&compared, &rule).try_into().unwrap();
        assert_eq!([fix.effect.level, sham.effect.level], [rule.level(10).fraction(); 2]);
        let spent = rule.level(8).error() + rule.level(10).error();
        assert!((spent - Level::P95.shared_by(2).error()).abs() < 1e-12, "{spent}");
        assert_eq!(warm.effect.level, rule.level(8).fraction());
    }

    #[test]
    fn a_fix_that_is_decided_ends_with_its_sham_while_another_goes_on() {
        let arm = |name: &str, role, sham: Option<&str>| Arm {
            name: name.to_owned(),
            title: name.to_owned(),
            role,
            sham: sham.map(str::to_owned),
        };
        let arms = [
            arm("cold", Role::Baseline, None),
            arm("large", Role::Fix, Some("sham")),
            arm("small", Role::Fix, Some("other")),
            arm("sham", Role::Sham, None),
            arm("other", Role::Sham, None),
            arm("rival", Role::Rival, None),
        ];
        let rule = UntilDecided::new(&arms, 16, Metric::Wall, Level::P95);
        let level = rule.looks.as_ref().unwrap().blocks().next().unwrap();
        let results = |times: [f64; 6]| -> Vec<ArmResult> {
            let launch = |ms: f64, block: usize| Measured {
                measures: [(Metric::Wall, ms + [0.0, 40.0, 10.0, 30.0, 20.0][block % 5])].into(),
                ..Measured::default()
            };
            let of = |(arm, ms): (usize, f64)| ArmResult {
                launches: (0..level).map(|block| Some(launch(ms, block + arm * block))).collect(),
                ..ArmResult::default()
            };
            times.into_iter().enumerate().map(of).collect()
        };
        let next = |times| rule.next(&arms, &results(times), level);
        assert_eq!(next([1000.0, 700.0, 995.0, 1000.0, 1000.0, 800.0]), NextBlock::Only(vec![0, 2, 4]));
        assert_eq!(next([1000.0, 995.0, 700.0, 1000.0, 1000.0, 800.0]), NextBlock::Only(vec![0, 1, 3]));
        assert_eq!(next([1000.0, 700.0, 700.0, 1000.0, 1000.0, 800.0]), NextBlock::Enough);
        let before = rule.next(&arms, &results([1000.0, 700.0, 995.0, 1000.0, 1000.0, 800.0]), level - 1);
        assert_eq!(before, NextBlock::SameArms, "no look is planned there");
    }

    #[test]
    fn a_large_effect_ends_the_trial_at_the_first_look() {
        let rule = UntilDecided::new(&arms(), 16, Metric::Wall, Level::P95);
        let compared = trial(700.0, 3, &rule);
        let level = rule.level(compared.blocks);
        assert!(compared.blocks < 10, "{}", compared.blocks);
        assert_eq!(judged(&compared, &rule)[0].outcome, Outcome::Helps);
        assert!(level.fraction() > 0.975, "wider than that of one look: {level:?}");
    }

    #[test]
    fn an_effect_that_is_not_there_is_hardly_ever_found_however_often_it_is_looked() {
        let rule = UntilDecided::new(&arms(), 16, Metric::Wall, Level::P95);
        let is_wrong = |seed: &u64| {
            let compared = trial(1000.0, *seed, &rule);
            matches!(judged(&compared, &rule)[0].outcome, Outcome::Helps | Outcome::Hurts)
        };
        let wrong = (1..=2000).filter(is_wrong).count();
        // 2.5 % for one of two arms; three standard deviations of 2000 trials more.
        assert!(wrong <= 70, "{wrong} of 2000");
    }

    /// Whether a trial of arms that do not differ says of some arm that it helps or hurts.
    fn is_false_alarm(seed: u64, whole: Level) -> bool {
        let rule = UntilDecided::new(&arms(), 16, Metric::Wall, whole);
        let compared = trial(1000.0, seed, &rule);
        let mut ours = judged(&compared, &rule).into_iter().filter(|one| compared.arms[one.arm].role != Role::Warm);
        ours.any(|one| matches!(one.outcome, Outcome::Helps | Outcome::Hurts))
    }

    #[test]
    fn of_two_trials_in_which_nothing_is_true_hardly_ever_does_any_arm_say_otherwise() {
        let share = Level::P95.shared_by(2);
        let is_wrong = |seed: &u64| is_false_alarm(*seed, share) || is_false_alarm(seed + 10_000, share);
        let wrong = (1..=2000).filter(is_wrong).count();
        // 5 % of 2000 pairs of trials: what both together may spend.
        assert!(wrong <= 100, "{wrong} of 2000");
        // Each alone with all of the error would spend it twice.
        let is_wrong = |seed: &u64| is_false_alarm(*seed, Level::P95) || is_false_alarm(seed + 10_000, Level::P95);
        let unshared = (1..=2000).filter(is_wrong).count();
        assert!(unshared > wrong * 3 / 2, "{unshared} and {wrong} of 2000");
    }

    #[test]
    fn the_arms_of_a_trial_divide_the_level_that_it_was_given() {
        let share = Level::P95.shared_by(2);
        let rule = UntilDecided::fixed(&arms(), Metric::Wall, share);
        assert_eq!((rule.whole(), rule.level(15)), (share, share.shared_by(2)));
        assert!((rule.level(15).error() - 0.0125).abs() < 1e-12);
    }

    #[test]
    fn blocks_that_were_asked_for_are_all_launched() {
        let rule = UntilDecided::fixed(&arms(), Metric::Wall, Level::P95);
        let compared = trial(700.0, 3, &rule);
        assert_eq!((compared.blocks, rule.level(16)), (16, Level::P95.shared_by(2)));
    }
}
