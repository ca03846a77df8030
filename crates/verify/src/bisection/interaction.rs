//! From single effects to causes: which act by themselves, which only together, and which hide each other.
//!
//! A candidate that helps when it is taken out and does nothing when it is added may act only together with others (AND); one that hurts
//! when it is added and whose removal does not help may be hidden by others (OR). Which of both it is, or neither, says a double
//! difference of four choices in blocks that were launched for nothing else: what the one costs beside the other, less what it costs
//! without it. Costs that add up in seconds have none on the linear scale, and those that multiply have none of their logarithms, so an
//! interaction is claimed only where the 95 % intervals on both scales exclude zero in the same direction: where costs add up on
//! either, in at most 2.5 of 100 such questions. Otherwise a candidate acts by itself.

use super::candidate::Candidate;
use super::choice::{Choice, Group};
use super::launches::{Launches, Stage};
use super::log_ratio::LogRatio;
use super::mechanism;
use super::outcome::{CandidateEffect, Cause, CounterShift, Direction, Kind, State};
use super::round::joint;
use super::settings::Settings;
use super::target::Target;
use slowpath_experiment::{Level, signed_rank};
use std::time::Duration;

/// An effect in one direction below this share of that in the other speaks for an interaction.
const LOPSIDED: f64 = 0.5;
/// Share of the effect of a set that its members alone must lack, or have too much.
const LACKING: f64 = 0.25;
/// Blocks in which it is asked how candidates act on each other: twelve counters of a mechanism can show with them too.
const BLOCKS: usize = 12;
/// Members of a set whose parts are launched at most: six have fifteen pairs.
pub(super) const MOST_MEMBERS: usize = 6;
/// Error of the pairs that are tried at once, in both directions together.
const ERROR_OF_PAIRS: f64 = 0.05;

/// How two act on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acting {
    /// Together they cost more than each adds by itself.
    More,
    /// Together they cost less.
    Less,
}

/// What causes are made with.
pub(super) struct Interaction<'r, 'a, E> {
    pub launches: &'r mut Launches<'a, E>,
    pub settings: &'r Settings,
    pub target: &'r Target,
    pub candidates: &'r [Candidate],
    pub until: Duration,
}

impl<E> Interaction<'_, '_, E> {
    /// The causes among what was tried.
    ///
    /// # Errors
    /// A launch cannot be made.
    pub(super) fn causes(&mut self, tested: &[CandidateEffect]) -> Result<Vec<Cause>, E> {
        let mut left: Vec<&CandidateEffect> = tested.iter().filter(|one| one.is_shown()).collect();
        let mut causes: Vec<Cause> = Vec::new();
        for kind in [Kind::Together, Kind::Each] {
            let members = interacting(kind, &left);
            if !(2..=MOST_MEMBERS).contains(&members.len()) {
                continue;
            }
            for sets in self.sets(kind, &members)? {
                causes.extend(self.set(kind, &sets)?);
            }
            left.retain(|one| !causes.iter().any(|cause| one.group.is_subset(&cause.members)));
        }
        for one in left {
            let kind = self.kind(one)?;
            let [sufficient, necessary] =
                [&one.sufficient, &one.necessary].map(|direction| direction.state == State::Shown);
            let counters = self.counters(&one.group, sufficient, necessary);
            causes.push(Cause {
                members: one.group.clone(),
                kind,
                is_bundled: one.group.len() > 1,
                sufficient: one.sufficient.ratio,
                necessary: one.necessary.ratio,
                counters,
            });
        }
        Ok(causes)
    }

    /// The sets of this kind among `members`: pairs are asked for first, so that two pairs are no set of four.
    fn sets<'t>(&mut self, kind: Kind, members: &[&'t CandidateEffect]) -> Result<Vec<Vec<&'t CandidateEffect>>, E> {
        let count = members.len();
        let pairs: Vec<[usize; 2]> =
            (0..count).flat_map(|one| (one + 1..count).map(move |other| [one, other])).collect();
        let union = |which: &[usize]| -> Group {
            which.iter().flat_map(|index| members[*index].group.iter().copied()).collect()
        };
        let mut arms = vec![Choice::fast(), Choice::slow(self.target.count)];
        arms.extend(members.iter().map(|one| Choice::Slow(one.group.clone())));
        arms.extend(pairs.iter().map(|pair| Choice::Slow(union(pair))));
        if let [pair] = pairs.as_slice() {
            arms.push(Choice::without(&union(pair), self.target.count));
        }
        let from = self.blocks("which of them together", &arms, BLOCKS)?;
        let level = Level::new(1.0 - ERROR_OF_PAIRS / pairs.len() as f64).unwrap_or(Level::P95);
        let mut found: Vec<(f64, [usize; 2])> = Vec::new();
        for [one, other] in pairs {
            let [first, second, both] = [&[one][..], &[other], &[one, other]].map(&union);
            if let Some(strength) = self.strength(kind, [&first, &second, &both], level, from) {
                found.push((strength, [one, other]));
            }
        }
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut sets: Vec<Vec<usize>> = Vec::new();
        let is_pair =
            |one: usize, other: usize| found.iter().any(|(_, pair)| *pair == [one.min(other), one.max(other)]);
        for (_, pair) in &found {
            if pair.iter().any(|one| sets.iter().flatten().any(|taken| taken == one)) {
                continue;
            }
            let mut set = pair.to_vec();
            // Of several each suffices where any two hide each other.
            if kind == Kind::Each {
                let others = (0..count).filter(|one| !sets.iter().flatten().any(|taken| taken == one));
                for one in others.collect::<Vec<usize>>() {
                    if set.iter().all(|member| *member != one && is_pair(*member, one)) {
                        set.push(one);
                    }
                }
            }
            sets.push(set);
        }
        // What acts only together by three or more shows in no pair.
        let rest: Vec<usize> = (0..count).filter(|one| !sets.iter().flatten().any(|taken| taken == one)).collect();
        if kind == Kind::Together && rest.len() > 2 {
            let parts: Vec<Group> = rest.iter().map(|index| members[*index].group.clone()).collect();
            let from = self.beside_its_parts(&parts, BLOCKS)?;
            if self.is_only_together(&parts, from) {
                sets.push(rest);
            }
        }
        Ok(sets.into_iter().map(|set| set.into_iter().map(|index| members[index]).collect()).collect())
    }

    /// By how much a pair and its members alone differ, where that is an interaction of this kind.
    fn strength(&self, kind: Kind, groups: [&Group; 3], level: Level, from: usize) -> Option<f64> {
        let fast = Choice::fast();
        let [one, other, both] = groups.map(|group| Choice::Slow(group.clone()));
        let wanted = if kind == Kind::Together { Acting::More } else { Acting::Less };
        if self.acting([&fast, &one, &other, &both], from, level) != Some(wanted) {
            return None;
        }
        let effect = |slower| LogRatio::of(&self.launches.pairs(self.settings.metric, &fast, slower, from), Level::P95);
        let [one, other] = [&one, &other].map(|alone| effect(alone).map_or(0.0, |ratio| ratio.estimate.value.max(0.0)));
        let of_pair = effect(&both).filter(LogRatio::is_above_zero)?.estimate.value;
        let strength = if kind == Kind::Together { of_pair - one - other } else { one + other - of_pair };
        (strength > self.target.margin.max(LACKING * of_pair)).then_some(strength)
    }

    /// A set as a cause, where the set as a whole has an effect.
    fn set(&mut self, kind: Kind, members: &[&CandidateEffect]) -> Result<Option<Cause>, E> {
        let set: Group = members.iter().flat_map(|one| one.group.iter().copied()).collect();
        joint(self.launches, self.target.count, &set, self.until)?;
        // Its members have shown effects at their own corrected levels already.
        let [sufficient, necessary] = self.both(&set, Level::P95, 0);
        let effect = if kind == Kind::Together { sufficient } else { necessary };
        if !effect.is_some_and(|effect| self.target.is_effect(&effect)) {
            return Ok(None);
        }
        let counters = self.counters(&set, kind == Kind::Together, kind != Kind::Together);
        let is_bundled = members.iter().any(|one| one.group.len() > 1);
        Ok(Some(Cause { members: set, kind, is_bundled, sufficient, necessary, counters }))
    }

    /// How one acts that belongs to no set.
    fn kind(&mut self, one: &CandidateEffect) -> Result<Kind, E> {
        let (wanted, kind) = match leaning(one) {
            None => return Ok(Kind::Alone),
            Some(Acting::More) => (Acting::More, Kind::OnlyWithOthers),
            Some(Acting::Less) => (Acting::Less, Kind::HiddenByOthers),
        };
        let count = self.target.count;
        let (fast, slow) = (Choice::fast(), Choice::slow(count));
        let (with, without) = (Choice::Slow(one.group.clone()), Choice::without(&one.group, count));
        let arms = [fast, with, without, slow];
        let from = self.blocks("how it acts beside the others", &arms, BLOCKS)?;
        let [fast, with, without, slow] = &arms;
        let is_so = self.acting([fast, with, without, slow], from, Level::P95) == Some(wanted);
        Ok(if is_so { kind } else { Kind::Alone })
    }

    /// Runs blocks in addition to those that there are; gives the number of the first.
    pub(super) fn blocks(&mut self, phase: &str, arms: &[Choice], blocks: usize) -> Result<usize, E> {
        let from = self.launches.next_block();
        let stage = self.launches.run(phase, arms, blocks, self.until)?;
        if stage == Stage::Late {
            self.launches.note(stage);
        }
        Ok(from)
    }

    /// Launches all `parts` at once beside each of them alone, all but each, and none; gives the first block.
    pub(super) fn beside_its_parts(&mut self, parts: &[Group], blocks: usize) -> Result<usize, E> {
        let set: Group = parts.iter().flatten().copied().collect();
        let mut arms = vec![Choice::fast()];
        arms.extend(parts.iter().flat_map(|part| [part.clone(), &set - part]).map(Choice::Slow));
        arms.push(Choice::Slow(set));
        self.blocks("the set that was found", &arms, blocks)
    }

    /// Whether each of `parts` costs more beside the others than alone, in the blocks of [`Self::beside_its_parts`].
    pub(super) fn is_only_together(&self, parts: &[Group], from: usize) -> bool {
        let set: Group = parts.iter().flatten().copied().collect();
        let (fast, all) = (Choice::fast(), Choice::Slow(set.clone()));
        parts.len() > 1
            && parts.iter().all(|part| {
                let [alone, others] = [part.clone(), &set - part].map(Choice::Slow);
                self.acting([&fast, &alone, &others, &all], from, Level::P95) == Some(Acting::More)
            })
    }

    /// How `one` and `other` act on each other, in blocks from `from` on that hold all four; `None`: that is not shown.
    fn acting(&self, four: [&Choice; 4], from: usize, level: Level) -> Option<Acting> {
        let rows = self.launches.values(self.settings.metric, four, from);
        let rows: Vec<[f64; 4]> = rows.into_iter().filter(|row| row.iter().all(|value| *value > 0.0)).collect();
        let of_scale = |scale: fn(f64) -> f64| {
            let differences: Vec<f64> = rows
                .iter()
                .map(|row| row.map(scale))
                .map(|[neither, one, other, both]| (both - other) - (one - neither))
                .collect();
            signed_rank::centre(&differences, level)?.interval()
        };
        match [of_scale(f64::ln)?, of_scale(|value| value)?] {
            [(logarithmic, _), (linear, _)] if logarithmic > 0.0 && linear > 0.0 => Some(Acting::More),
            [(_, logarithmic), (_, linear)] if logarithmic < 0.0 && linear < 0.0 => Some(Acting::Less),
            _ => None,
        }
    }

    /// Both effects of a set, in the blocks from `from` on.
    pub(super) fn both(&self, set: &Group, level: Level, from: usize) -> [Option<LogRatio>; 2] {
        let count = self.target.count;
        let directions =
            [(Choice::fast(), Choice::Slow(set.clone())), (Choice::without(set, count), Choice::slow(count))];
        directions.map(|(quicker, slower)| {
            LogRatio::of(&self.launches.pairs(self.settings.metric, &quicker, &slower, from), level)
        })
    }

    /// Counters that moved in a direction that shows the effect.
    pub(super) fn counters(&self, set: &Group, sufficient: bool, necessary: bool) -> Vec<CounterShift> {
        let candidates: Vec<&Candidate> = set.iter().filter_map(|one| self.candidates.get(*one)).collect();
        let count = self.target.count;
        let directions = [
            (sufficient, Choice::fast(), Choice::Slow(set.clone())),
            (necessary, Choice::without(set, count), Choice::slow(count)),
        ];
        let of_directions = directions.iter().filter(|(is_shown, _, _)| *is_shown);
        let mut each = of_directions
            .map(|(_, quicker, slower)| mechanism::moved(self.launches, self.settings, &candidates, [quicker, slower]));
        each.find(|moved| !moved.is_empty()).unwrap_or_default()
    }
}

impl Direction {
    /// The estimate, where the direction was launched and did not fail.
    fn measured(&self) -> Option<f64> {
        match self.state {
            State::Failed(_) => None,
            _ => self.ratio.map(|ratio| ratio.estimate.value),
        }
    }
}

/// Whether `one` is much less than `other`. What was not measured is not less.
fn is_lopsided(one: &Direction, other: &Direction) -> bool {
    one.measured().zip(other.measured()).is_some_and(|(one, other)| one < LOPSIDED * other)
}

/// The interaction that both effects of one speak for.
fn leaning(one: &CandidateEffect) -> Option<Acting> {
    let (sufficient, necessary) = (&one.sufficient, &one.necessary);
    match [sufficient, necessary].map(|direction| direction.state == State::Shown) {
        [false, true] if is_lopsided(sufficient, necessary) => Some(Acting::More),
        [true, false] if is_lopsided(necessary, sufficient) => Some(Acting::Less),
        _ => None,
    }
}

/// Those that could belong to a set of this kind.
fn interacting<'t>(kind: Kind, tested: &[&'t CandidateEffect]) -> Vec<&'t CandidateEffect> {
    fn directions(kind: Kind, one: &CandidateEffect) -> [&Direction; 2] {
        match kind {
            Kind::Together => [&one.sufficient, &one.necessary],
            _ => [&one.necessary, &one.sufficient],
        }
    }
    let is_one_sided = |one: &&&CandidateEffect| {
        let [less, more] = directions(kind, one);
        more.state == State::Shown && is_lopsided(less, more)
    };
    let mut found: Vec<&CandidateEffect> = tested.iter().filter(is_one_sided).copied().collect();
    if let [only] = found.as_slice() {
        // Its partner may have an effect of its own besides.
        let lacking = |one: &CandidateEffect| {
            let [less, more] = directions(kind, one).map(Direction::measured);
            more.zip(less).map_or(0.0, |(more, less)| more - less)
        };
        let others = tested.iter().filter(|one| one.group != only.group && lacking(one) > 0.0);
        found.extend(others.max_by(|one, other| lacking(one).total_cmp(&lacking(other))));
    }
    found
}
