//! From the launches of a bisection to what is printed.

use super::printed::{
    BisectedCandidate, BisectedCause, BisectedCounterShift, BisectedReproduction, BisectedSide, BisectedTotal,
    CONTEXT_BISECT_SCHEMA, CandidateVerdict, ContextBisection, RemainingDifference, change_in_percent,
};
use super::sides::{GivenSide, Sides};
use super::{ContextBisected, Wanted};
use crate::bisection::{Bisection, CandidateEffect, Cause, Direction, GapAnswer, Group, LogRatio, State};
use crate::printed::quantity;
use slowpath_context::printed::ComparedContext;
use slowpath_context::toggles::{Candidate, Plan, Remaining};
use slowpath_context::{Remedy, factors};
use slowpath_tables::{Quantity, Unit};

/// What is printed of the launches of a bisection. `conclusion` says in a sentence what all the rest of it says.
pub fn printed_of(
    wanted: &Wanted,
    bisected: &ContextBisected,
    conclusion: impl FnOnce(&ContextBisection) -> String,
) -> ContextBisection {
    let ContextBisected { sides, plan, found } = bisected;
    let unit = wanted.metric.unit();
    let total = &found.gap;
    let percent = |ratio: &Option<LogRatio>| ratio.as_ref().map(change_in_percent);
    let (named, unnamed): (Vec<&Cause>, Vec<&Cause>) = found.causes.iter().partition(|cause| cause.is_named());
    let of_causes = |causes: Vec<&Cause>| causes.into_iter().map(|cause| caused(plan, cause)).collect();
    let candidates = plan.candidates.iter().enumerate();
    let mut printed = ContextBisection {
        schema: CONTEXT_BISECT_SCHEMA,
        conclusion: String::new(),
        command: wanted.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        fast: side(&sides.fast),
        slow: side(&sides.slow),
        metric: wanted.metric,
        total: BisectedTotal {
            answer: total.answer.into(),
            difference: percent(&total.ratio),
            fast: total.fast.map(|estimate| quantity(estimate, unit)),
            slow: total.slow.map(|estimate| quantity(estimate, unit)),
            pairs: total.ratio.map_or(0, |ratio| number(ratio.pairs)),
            enough: total.enough.map(|time| Quantity::exact(time.as_secs_f64(), Unit::S)),
        },
        reproduction: found.reproduction.as_ref().map(|one| BisectedReproduction {
            difference: percent(&one.ratio),
            unexplained: percent(&one.rest),
            is_shown: one.is_shown,
            failure: one.failure.clone(),
        }),
        causes: of_causes(named),
        effects: of_causes(unnamed),
        candidates: candidates.map(|(index, one)| candidate(plan, found, index, one)).collect(),
        remaining: plan.remaining.iter().map(remaining).collect(),
        follows: plan.follows.iter().map(remaining).collect(),
        lacking: plan.lacking.iter().map(remaining).collect(),
        rest: percent(&found.rest),
        margin: Quantity::exact(found.margin.exp_m1() * 100.0, Unit::Percent),
        ended: found.ended.into(),
        launches: number(found.launches),
        took: Quantity::exact(found.took.as_secs_f64(), Unit::S),
        seed: wanted.seed,
        notes: notes(sides, plan, found),
        unavailable: plan.unavailable.clone(),
    };
    printed.conclusion = conclusion(&printed);
    printed
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn side(side: &GivenSide) -> BisectedSide {
    BisectedSide { given: side.given.clone(), context: ComparedContext::of(&side.context) }
}

fn remaining(one: &Remaining) -> RemainingDifference {
    RemainingDifference {
        name: one.name.clone(),
        title: one.title.clone(),
        fast: one.fast.clone(),
        slow: one.slow.clone(),
        known: one.known.clone(),
        why: one.why.clone(),
    }
}

fn caused(plan: &Plan, cause: &Cause) -> BisectedCause {
    let members: Vec<&Candidate> = cause.members.iter().filter_map(|one| plan.candidates.get(*one)).collect();
    let mut mechanisms: Vec<&str> = members.iter().map(|one| one.mechanism).filter(|text| !text.is_empty()).collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    BisectedCause {
        names: members.iter().map(|one| one.name.clone()).collect(),
        kind: cause.kind.into(),
        is_bundled: cause.is_bundled,
        sufficient: cause.sufficient.as_ref().map(change_in_percent),
        necessary: cause.necessary.as_ref().map(change_in_percent),
        counters: cause.counters.iter().map(BisectedCounterShift::of).collect(),
        mechanism: mechanisms.join("; "),
        remedies: members.iter().flat_map(|one| remedies(one)).collect(),
    }
}

fn remedies(candidate: &Candidate) -> Vec<Remedy> {
    factors::named(candidate.factor).map(|factor| factor.remedies(&candidate.name)).unwrap_or_default()
}

fn candidate(plan: &Plan, found: &Bisection, index: usize, one: &Candidate) -> BisectedCandidate {
    // The smallest group shows most of it.
    let with_it = found.effects.iter().filter(|tested| tested.group.contains(&index));
    let tested = with_it.min_by_key(|tested| tested.group.len());
    let pairs = |side: &Direction| side.ratio.map_or(0, |ratio| ratio.pairs);
    let effect = |side: &Direction| side.ratio.as_ref().map(change_in_percent);
    BisectedCandidate {
        name: one.name.clone(),
        factor: one.factor.to_owned(),
        title: one.title.clone(),
        fast: one.fast.clone(),
        slow: one.slow.clone(),
        known: one.known.clone(),
        irreversible: one.irreversible,
        mechanism: one.mechanism.to_owned(),
        sham: one.sham.to_owned(),
        verdict: verdict(found, index, tested),
        reason: tested.and_then(failure),
        tried_with: tried_with(found, index, tested)
            .into_iter()
            .filter_map(|other| Some(plan.candidates.get(other)?.name.clone()))
            .collect(),
        sufficient: tested.and_then(|tested| effect(&tested.sufficient)),
        necessary: tested.and_then(|tested| effect(&tested.necessary)),
        pairs: tested.map_or(0, |tested| number(pairs(&tested.sufficient).max(pairs(&tested.necessary)))),
    }
}

/// The others that a candidate was only tried with. A set of indistinguishable members says more than that each was tried by itself.
fn tried_with(found: &Bisection, index: usize, tested: Option<&CandidateEffect>) -> Group {
    let bundle = found.causes.iter().find(|cause| cause.is_bundled && cause.members.contains(&index));
    let together = bundle.map(|cause| &cause.members).or(tested.map(|tested| &tested.group));
    together.into_iter().flatten().copied().filter(|other| *other != index).collect()
}

fn failure(tested: &CandidateEffect) -> Option<String> {
    [&tested.sufficient, &tested.necessary].into_iter().find_map(|side| match &side.state {
        State::Failed(reason) => Some(reason.clone()),
        _ => None,
    })
}

fn verdict(found: &Bisection, index: usize, tested: Option<&CandidateEffect>) -> CandidateVerdict {
    let with_it = found.causes.iter().find(|cause| cause.members.contains(&index));
    if let Some(cause) = with_it {
        return match (cause.is_named(), cause.is_bundled) {
            (true, _) => CandidateVerdict::Cause,
            (false, true) => CandidateVerdict::AmongSeveral,
            (false, false) => CandidateVerdict::NoMechanism,
        };
    }
    let Some(tested) = tested else { return CandidateVerdict::NotTried };
    let states = [&tested.sufficient.state, &tested.necessary.state];
    let has = |state: &State| states.contains(&state);
    if tested.is_shown() {
        CandidateVerdict::AmongSeveral
    } else if failure(tested).is_some() {
        CandidateVerdict::Failed
    } else if has(&State::Open) {
        CandidateVerdict::NotShown
    } else if has(&State::NotNeeded) {
        CandidateVerdict::NotNeeded
    } else {
        CandidateVerdict::NoEffect
    }
}

fn notes(sides: &Sides, plan: &Plan, found: &Bisection) -> Vec<String> {
    let mut notes = Vec::new();
    if sides.in_place {
        notes.push(
            "the command ended before its context could be read: that of `sleep` behind the same wrappers was read instead".to_owned(),
        );
    }
    if let Some(failure) = &found.failure {
        notes.push(format!("{failure}; nothing could be compared with it from here on"));
    }
    for one in &plan.lacking {
        notes.push(format!(
            "both contexts have {} {}, the launches {}: {}; what it costs is part of both",
            one.name, one.fast, one.slow, one.why
        ));
    }
    let has_wrapper =
        [&sides.fast, &sides.slow].iter().any(|side| side.wrapper.as_ref().is_some_and(|words| !words.is_empty()));
    if has_wrapper && found.reproduction.as_ref().is_some_and(|one| !one.is_shown) {
        notes.push(
            "the wrappers take time themselves until they run the command, about a millisecond for each program: that is in the difference \
             as given and in no reproduction"
                .to_owned(),
        );
    }
    // Without a cause, what is left is the difference of the reproductions in all blocks.
    let value = |ratio: Option<LogRatio>| ratio.map(|ratio| ratio.estimate.value);
    let first = value(found.reproduction.as_ref().map_or(found.gap.ratio, |one| one.ratio));
    if found.causes.is_empty() && value(found.rest).zip(first).is_some_and(|(all, first)| all < first / 2.0) {
        notes.push(
            "the difference did not last: over all blocks it is less than half of the first estimate; the machine changed meanwhile"
                .to_owned(),
        );
    }
    if !sides.are_given() && found.gap.answer != GapAnswer::NotShown {
        notes.push(
            "only contexts were given: the difference is that between their reproductions, without what these lack"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisection::{BaselineGap, Ended, Kind};
    use std::time::Duration;

    #[test]
    fn members_of_a_set_that_could_not_be_told_apart_are_named_with_each_other() {
        let direction = || Direction { ratio: None, state: State::Small };
        let tested = [Group::from([0]), Group::from([1]), Group::from([2, 3])].map(|group| CandidateEffect {
            group,
            sufficient: direction(),
            necessary: direction(),
        });
        let bundle = Cause {
            members: Group::from([0, 1]),
            kind: Kind::Alone,
            is_bundled: true,
            sufficient: None,
            necessary: None,
            counters: Vec::new(),
        };
        let found = Bisection {
            gap: BaselineGap { answer: GapAnswer::Slower, ratio: None, fast: None, slow: None, enough: None },
            reproduction: None,
            effects: tested.to_vec(),
            causes: vec![bundle],
            rest: None,
            margin: 0.02,
            failure: None,
            ended: Ended::Decided,
            launches: 0,
            took: Duration::ZERO,
        };
        assert_eq!(tried_with(&found, 0, tested.first()), Group::from([1]));
        assert_eq!(verdict(&found, 0, tested.first()), CandidateVerdict::AmongSeveral);
        assert_eq!(tried_with(&found, 2, tested.last()), Group::from([3]));
        assert_eq!(tried_with(&found, 4, None), Group::new());
    }
}
