//! From single effects to causes: which act by themselves, which only together, and which hide each other.
//!
//! Effects on the log scale add up where candidates act by themselves. A candidate that helps when it is taken out and does nothing when
//! it is added acts only together with others (AND); one that hurts when it is added and whose removal does not help is hidden by
//! others (OR). Such sets are tried at once, in launches of their own.

use super::launches::{Launches, LogRatio};
use super::mechanism;
use super::outcome::{Cause, Kind, State, Tested};
use super::round::joint;
use super::treatment::{Group, Treatment};
use super::{Settings, Suspect, Target};
use slowpath_experiment::Level;
use std::time::Duration;

/// An effect in one direction below this share of that in the other speaks for an interplay.
const LOPSIDED: f64 = 0.5;
/// Share of the effect of a set that its members alone must lack.
const LACKING: f64 = 0.25;

/// What causes are made with.
pub(super) struct Interplay<'r, 'a, E> {
    pub launches: &'r mut Launches<'a, E>,
    pub settings: &'r Settings,
    pub target: &'r Target,
    pub suspects: &'r [Suspect],
    pub until: Duration,
}

impl<E> Interplay<'_, '_, E> {
    /// The causes among what was tried.
    ///
    /// # Errors
    /// A launch cannot be made.
    pub(super) fn causes(&mut self, tested: &[Tested]) -> Result<Vec<Cause>, E> {
        let shown: Vec<&Tested> = tested.iter().filter(|one| one.is_shown()).collect();
        let mut left = shown.clone();
        let mut causes = Vec::new();
        for kind in [Kind::Together, Kind::Each] {
            let members = interacting(kind, &left);
            let set: Group = members.iter().flat_map(|one| one.group.iter().copied()).collect();
            if members.len() < 2 {
                continue;
            }
            if let Some(cause) = self.set(kind, &set, &members)? {
                left.retain(|one| !one.group.is_subset(&set));
                causes.push(cause);
            }
        }
        for one in left {
            let [sufficient, necessary] = [&one.sufficient, &one.necessary].map(|way| way.state == State::Shown);
            let kind = match (sufficient, necessary) {
                (false, true) if is_lopsided(one.sufficient.value(), one.necessary.value()) => Kind::OnlyWithOthers,
                (true, false) if is_lopsided(one.necessary.value(), one.sufficient.value()) => Kind::HiddenByOthers,
                _ => Kind::Alone,
            };
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

    /// A set whose members act together, or each for itself, where launches of the set confirm it.
    fn set(&mut self, kind: Kind, set: &Group, members: &[&Tested]) -> Result<Option<Cause>, E> {
        // Its members have shown effects at their own corrected levels already: what is asked here is only how they act together.
        joint(self.launches, self.target.count, set, self.until)?;
        let [sufficient, necessary] = self.both(set, Level::P95, 0);
        let (of_set, alone): (Option<LogRatio>, f64) = match kind {
            Kind::Together => (sufficient, members.iter().map(|one| one.sufficient.value().max(0.0)).sum()),
            _ => (necessary, members.iter().map(|one| one.necessary.value().max(0.0)).sum()),
        };
        let Some(effect) = of_set else { return Ok(None) };
        let value = effect.estimate.value;
        let is_more = value - alone > self.target.margin.max(LACKING * value);
        if !effect.is_above_zero() || value <= self.target.margin || !is_more {
            return Ok(None);
        }
        let counters = self.counters(set, kind == Kind::Together, kind != Kind::Together);
        let is_bundled = members.iter().any(|one| one.group.len() > 1);
        Ok(Some(Cause { members: set.clone(), kind, is_bundled, sufficient, necessary, counters }))
    }

    /// Both effects of a set, in the blocks from `from` on.
    pub(super) fn both(&self, set: &Group, level: Level, from: usize) -> [Option<LogRatio>; 2] {
        let count = self.target.count;
        let ways = [
            (Treatment::fast(), Treatment::Slow(set.clone())),
            (Treatment::without(set, count), Treatment::slow(count)),
        ];
        ways.map(|(quicker, slower)| {
            LogRatio::of(&self.launches.pairs(self.settings.metric, &quicker, &slower, from), level)
        })
    }

    /// Counters that moved in a direction that shows the effect.
    pub(super) fn counters(&self, set: &Group, sufficient: bool, necessary: bool) -> Vec<super::outcome::Moved> {
        let suspects: Vec<&Suspect> = set.iter().filter_map(|one| self.suspects.get(*one)).collect();
        let count = self.target.count;
        let ways = [
            (sufficient, Treatment::fast(), Treatment::Slow(set.clone())),
            (necessary, Treatment::without(set, count), Treatment::slow(count)),
        ];
        let of_ways = ways.iter().filter(|(is_shown, _, _)| *is_shown);
        let mut each = of_ways
            .map(|(_, quicker, slower)| mechanism::moved(self.launches, self.settings, &suspects, [quicker, slower]));
        each.find(|moved| !moved.is_empty()).unwrap_or_default()
    }
}

fn is_lopsided(one: f64, other: f64) -> bool {
    one < LOPSIDED * other
}

/// Those that could belong to a set of this kind.
fn interacting<'t>(kind: Kind, tested: &[&'t Tested]) -> Vec<&'t Tested> {
    let ways = |one: &Tested| match kind {
        Kind::Together => (one.sufficient.value(), one.necessary.clone()),
        _ => (one.necessary.value(), one.sufficient.clone()),
    };
    let is_one_sided = |one: &&&Tested| {
        let (less, more) = ways(one);
        more.state == State::Shown && is_lopsided(less, more.value())
    };
    let mut found: Vec<&Tested> = tested.iter().filter(is_one_sided).copied().collect();
    if found.len() == 1 {
        // Its partner may have an effect of its own besides.
        let lacking = |one: &Tested| {
            let (less, more) = ways(one);
            more.value() - less
        };
        let others = tested.iter().filter(|one| one.group != found[0].group && lacking(one) > 0.0);
        found.extend(others.max_by(|one, other| lacking(one).total_cmp(&lacking(other))));
    }
    found
}
