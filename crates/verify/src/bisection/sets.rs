//! What the set that delta debugging came to says in launches that it did not see: delta debugging decides on few of them, and can
//! leave a harmless candidate in a set, or a set that has no effect.
//!
//! A member is kept only where the set is slower than the set without it. What could not be tried so is reported as one of several, unnamed.

use super::choice::{Choice, Group};
use super::interaction::{Interaction, MOST_MEMBERS};
use super::log_ratio::LogRatio;
use super::outcome::{Cause, Kind};
use super::round::{fewest_blocks, joint};
use super::target::{ERROR_OF_SETS, SETS};
use slowpath_experiment::Level;

/// Blocks beyond the fewest that allow an interval: with those alone every single one must agree.
const SPARE: usize = 2;

impl<E> Interaction<'_, '_, E> {
    /// The causes in a set; none where it has no effect.
    ///
    /// # Errors
    /// A launch cannot be made.
    pub(super) fn confirmed(&mut self, set: &Group) -> Result<Vec<Cause>, E> {
        let count = set.len();
        // With one member the set without it is the fast context.
        let level = Level::new(1.0 - ERROR_OF_SETS / (SETS * count.max(1) as f64)).unwrap_or(Level::P95);
        let of_set = self.target.level_of_sets();
        let are_parts_tried = (2..=MOST_MEMBERS).contains(&count);
        let (parts, blocks): (Vec<Group>, usize) = match are_parts_tried {
            true => (set.iter().map(|one| Group::from([*one])).collect(), fewest_blocks(level) + SPARE),
            false => (vec![set.clone()], fewest_blocks(of_set) + SPARE),
        };
        let from = self.beside_its_parts(&parts, blocks)?;
        let [sufficient, _] = self.both(set, of_set, from);
        if !sufficient.is_some_and(|ratio| self.target.is_effect(&ratio)) {
            return Ok(Vec::new());
        }
        if count == 1 {
            return Ok(vec![self.cause(set, Kind::Alone, false, of_set, from)?]);
        }
        let whole = Choice::Slow(set.clone());
        let adds = |part: &Group| {
            let others = Choice::Slow(set - part);
            let pairs = self.launches.pairs(self.settings.metric, &others, &whole, from);
            LogRatio::of(&pairs, level).filter(|ratio| ratio.estimate.interval().is_some())
        };
        let tried: Option<Vec<LogRatio>> = if are_parts_tried { parts.iter().map(adds).collect() } else { None };
        let Some(tried) = tried else { return self.bundle(set, from) };
        let kept: Vec<Group> =
            parts.into_iter().zip(&tried).filter(|(_, adds)| adds.is_above_zero()).map(|(part, _)| part).collect();
        if kept.is_empty() {
            return self.bundle(set, from);
        }
        let first = from;
        let mut from = from;
        if kept.len() < count {
            // What was left out may have been of use all the same: then those that are kept do not do it alone.
            from = self.beside_its_parts(&kept, blocks)?;
        }
        let members: Group = kept.iter().flatten().copied().collect();
        let [sufficient, _] = self.both(&members, of_set, from);
        if !sufficient.is_some_and(|ratio| self.target.is_effect(&ratio)) {
            return self.bundle(set, first);
        }
        if kept.len() == 1 {
            return Ok(vec![self.cause(&members, Kind::Alone, false, of_set, from)?]);
        }
        if self.is_only_together(&kept, from) {
            return Ok(vec![self.cause(&members, Kind::Together, false, of_set, from)?]);
        }
        let is_shown = |one: &Group| {
            let [sufficient, _] = self.both(one, level, from);
            sufficient.is_some_and(|ratio| self.target.is_effect(&ratio))
        };
        if !kept.iter().all(is_shown) {
            return self.bundle(set, first);
        }
        kept.iter().map(|one| self.cause(one, Kind::Alone, false, level, from)).collect()
    }

    /// Several of which it is not known which it is.
    fn bundle(&mut self, set: &Group, from: usize) -> Result<Vec<Cause>, E> {
        Ok(vec![self.cause(set, Kind::Alone, true, self.target.level_of_sets(), from)?])
    }

    /// Members as a cause, by the blocks from `from` on and some more in which they are taken out of the slow context.
    fn cause(&mut self, members: &Group, kind: Kind, is_bundled: bool, level: Level, from: usize) -> Result<Cause, E> {
        joint(self.launches, self.target.count, members, self.until)?;
        let [sufficient, necessary] = self.both(members, level, from);
        let [added, taken] =
            [&sufficient, &necessary].map(|direction| direction.is_some_and(|ratio| self.target.is_effect(&ratio)));
        let counters = self.counters(members, added, taken);
        Ok(Cause { members: members.clone(), kind, is_bundled, sufficient, necessary, counters })
    }
}

#[cfg(test)]
mod tests {
    use super::super::launches::{Bench, Launches};
    use super::super::{Candidate, Expected, Settings, Target};
    use super::*;
    use crate::comparison::{Measured, Sample};
    use slowpath_experiment::design;
    use slowpath_launch::Metric;
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::time::Duration;

    /// What is confirmed of `set` among twelve, where a launch with these slow takes so many milliseconds but for some percent of noise.
    fn confirmed(set: &[usize], ms: impl Fn(&Group) -> f64, seed: u64, seconds: u64) -> Vec<Cause> {
        let (time, draws) = (Cell::new(Duration::ZERO), Cell::new(0));
        // The sum of four uniform numbers is close to normal.
        let uniform = |draw: u64| design::mixed(seed, draw) as f64 / u64::MAX as f64 - 0.5;
        let noise = || {
            draws.set(draws.get() + 4);
            0.05 * (0..4).map(|part| uniform(draws.get() + part)).sum::<f64>()
        };
        let mut launch = |choice: &Choice, _: usize| {
            let Choice::Slow(slow) = choice else { unreachable!("nothing was given") };
            time.set(time.get() + Duration::from_millis(200));
            let measures = [(Metric::Wall, ms(slow) * f64::exp(noise())), (Metric::Switches, slow.len() as f64)].into();
            Ok::<_, Infallible>(Sample::Measured(Measured { measures, ..Measured::default() }))
        };
        let bench = Bench { launch: &mut launch, elapsed: &|| time.get(), progress: &mut |_| true };
        let until = Duration::from_secs(seconds);
        let settings = Settings { metric: Metric::Wall, max_time: until, seed, given: false, margin: 0.02 };
        let target = Target { count: 12, gap: 1.0, margin: 0.02 };
        let candidates = vec![Candidate { expected: Expected::Little, counters: vec![Metric::Switches] }; 12];
        let mut launches = Launches::new(bench, seed);
        let mut interaction = Interaction {
            launches: &mut launches,
            settings: &settings,
            target: &target,
            candidates: &candidates,
            until,
        };
        interaction.confirmed(&set.iter().copied().collect()).unwrap_or_default()
    }

    fn both(slow: &Group) -> f64 {
        if slow.contains(&0) && slow.contains(&1) { 180.0 } else { 100.0 }
    }

    #[test]
    fn a_harmless_member_of_a_set_is_left_out_and_the_others_are_named() {
        let mut named_too = 0;
        for seed in 0..200 {
            let found = confirmed(&[0, 1, 7], both, seed, 600);
            let is_right = found.len() == 1 && found[0].members == Group::from([0, 1]);
            assert!(found.iter().all(|one| one.members.is_superset(&Group::from([0, 1]))), "{found:?}");
            if is_right {
                assert!(found[0].is_named() && found[0].kind == Kind::Together, "{found:?}");
            }
            named_too += usize::from(found.iter().any(|one| one.is_named() && one.members.contains(&7)));
        }
        // One of three members has a sixth of 1 % in that direction.
        assert!(named_too <= 2, "the harmless one is named in {named_too} of 200");
    }

    #[test]
    fn members_that_could_not_be_tried_are_a_bundle_and_no_cause() {
        // Time for the fewest blocks of two arms, or more members than are tried.
        for found in [confirmed(&[0, 1, 7], both, 1, 10), confirmed(&[0, 1, 2, 3, 4, 5, 6], both, 1, 600)] {
            assert!(found.iter().all(|one| one.is_bundled && !one.is_named()), "{found:?}");
        }
        assert_eq!(confirmed(&[0, 1, 2, 3, 4, 5, 6], both, 1, 600).len(), 1);
    }

    #[test]
    fn members_that_add_up_are_causes_by_themselves() {
        let adding = |slow: &Group| 100.0 + 30.0 * [0, 1].iter().filter(|one| slow.contains(one)).count() as f64;
        for seed in 0..20 {
            let found = confirmed(&[0, 1], adding, seed, 600);
            let members: Vec<&Group> = found.iter().map(|one| &one.members).collect();
            assert_eq!(members, [&Group::from([0]), &Group::from([1])], "seed {seed}: {found:?}");
            assert!(found.iter().all(|one| one.kind == Kind::Alone && one.is_named()), "{found:?}");
        }
    }

    #[test]
    fn a_set_without_an_effect_is_nothing() {
        let found = (0..100).filter(|seed| !confirmed(&[4, 5], |_| 100.0, *seed, 600).is_empty()).count();
        assert!(found <= 1, "{found} of 100");
    }
}
