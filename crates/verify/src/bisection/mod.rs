//! Which of several differences makes the same command slower? Found by launching it with one of them at a time.
//!
//! Owns the order of the search and what its launches allow to say:
//!
//! 1. [`baseline_gap`]: the two sides as they were given. Where they do not differ by what matters there is nothing to explain. Then their
//!    reproduction, in which every candidate has the value of one side.
//! 2. [`round`]: each candidate in both directions, those that nothing is known of as one (group testing: R. Dorfman, "The Detection of
//!    Defective Members of Large Populations", Annals of Mathematical Statistics 14 (1943), 436-440), divided when they show an effect.
//! 3. [`interaction`]: effects that do not add up, and [`delta`] with [`sets`] where single ones do not explain the difference.
//! 4. [`mechanism`]: a cause is named only where a counter of its mechanism rose as well.
//!
//! Errors: the gap has 5 % for itself and gates all else. 4 % are divided among all candidates in both directions (Bonferroni), and
//! spent over the looks of each ([`slowpath_experiment::looks`]); 1 % is for sets whose members show nothing alone, divided among these. A group of several is never named, so its error
//! costs time alone. So a factor without any effect is named in fewer than 5 % of the runs, whatever is left out, stopped or put off.
//!
//! What a candidate is, and how it is applied, belongs to the caller.

mod baseline_gap;
mod candidate;
mod choice;
mod delta;
mod error;
mod groups;
mod interaction;
mod launches;
mod log_ratio;
mod mechanism;
mod outcome;
mod round;
mod sets;
mod settings;
mod target;

pub use candidate::{Candidate, Expected};
pub use choice::{Choice, Group, Side};
pub use error::BisectionError;
pub use launches::{Bench, Progress};
pub use log_ratio::LogRatio;
pub use outcome::{
    BaselineGap, Bisection, CandidateEffect, Cause, CounterShift, Direction, Ended, GapAnswer, Kind, Reproduction,
    State,
};
pub use settings::{MARGIN, Settings};

use delta::{Delta, REPRODUCED};
use interaction::Interaction;
use launches::Launches;
use round::{Round, joint, rest};
use settings::{GAP_UNTIL, REPRODUCTION_UNTIL, ROUNDS_UNTIL};
use std::time::Duration;
use target::Target;

/// An effect below this share of the gap is none of its causes.
const PART: f64 = 0.1;

/// Searches for what makes the slow side slower.
///
/// # Errors
/// A launch cannot be made, one of the two sides is never ready, or it was stopped before there was anything to say. That nothing
/// is found, or that time is over, is a result.
pub fn bisect<E: std::error::Error + 'static>(
    candidates: &[Candidate],
    settings: &Settings,
    bench: Bench<'_, E>,
) -> Result<Bisection, BisectionError<E>> {
    let count = candidates.len();
    let share = |part: f64| settings.max_time.mul_f64(part);
    let mut launches = Launches::new(bench, settings.seed);
    let sides = match settings.given {
        true => [Choice::Given(Side::Fast), Choice::Given(Side::Slow)],
        false => [Choice::fast(), Choice::slow(count)],
    };
    let gap = baseline_gap::baseline_gap(&mut launches, settings, &sides, count, share(GAP_UNTIL))?;
    let size = gap.ratio.map_or(0.0, |ratio| ratio.estimate.value);
    let margin = settings.margin.max(PART * size);
    let is_slower = gap.answer == GapAnswer::Slower;
    let mut found = Bisection {
        gap,
        reproduction: None,
        effects: Vec::new(),
        causes: Vec::new(),
        rest: None,
        margin,
        failure: None,
        ended: Ended::Decided,
        launches: 0,
        took: Duration::ZERO,
    };
    let mut target = Target { count, gap: size, margin };
    if is_slower && count > 0 {
        let mut can_search = true;
        if settings.given {
            let until = share(REPRODUCTION_UNTIL);
            let reproduction =
                baseline_gap::reproduction(&mut launches, settings, &target, until).map_err(BisectionError::Launch)?;
            target.gap = reproduction.ratio.map_or(0.0, |ratio| ratio.estimate.value);
            can_search = reproduction.is_shown;
            found.reproduction = Some(reproduction);
        }
        if can_search {
            search(&mut launches, candidates, settings, &target, &mut found).map_err(BisectionError::Launch)?;
        }
        found.failure = target.failure(&launches);
    }
    found.ended = launches.ended();
    found.launches = launches.launched();
    found.took = launches.elapsed();
    Ok(found)
}

/// Searches among the candidates.
fn search<E>(
    launches: &mut Launches<'_, E>,
    candidates: &[Candidate],
    settings: &Settings,
    target: &Target,
    found: &mut Bisection,
) -> Result<(), E> {
    found.effects = one_at_a_time(launches, candidates, settings, target)?;
    let until = settings.max_time;
    let mut interaction = Interaction { launches, settings, target, candidates, until };
    found.causes = interaction.causes(&found.effects)?;
    found.rest = what_is_left(launches, settings, target, &found.causes)?;
    let is_open = found.rest.is_none_or(|rest| rest.estimate.value > target.margin.max(REPRODUCED * target.gap));
    if is_open && target.count > 1 && !matches!(launches.ended(), Ended::Stopped | Ended::Failed) {
        let set = Delta { launches, settings, target, until }.smallest()?;
        if let Some(set) = set {
            let confirmed = Interaction { launches, settings, target, candidates, until }.confirmed(&set)?;
            if with_set(&mut found.causes, confirmed) {
                found.rest = what_is_left(launches, settings, target, &found.causes)?;
            }
        }
    }
    let size = |cause: &Cause| {
        let value = |ratio: Option<LogRatio>| ratio.map_or(0.0, |ratio| ratio.estimate.value);
        value(cause.sufficient).max(value(cause.necessary))
    };
    found.causes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    Ok(())
}

/// Everything in both directions, groups that show an effect in parts.
fn one_at_a_time<E>(
    launches: &mut Launches<'_, E>,
    candidates: &[Candidate],
    settings: &Settings,
    target: &Target,
) -> Result<Vec<CandidateEffect>, E> {
    let until = settings.max_time.mul_f64(ROUNDS_UNTIL);
    let both = launches.cost(&Choice::fast()) + launches.cost(&Choice::slow(target.count));
    let time = until.saturating_sub(launches.elapsed()).as_secs_f64();
    let affordable = |groups: usize| both * round::price(groups, target.level(1, groups)) <= time;
    let mut groups = groups::first(candidates, affordable);
    let mut tested: Vec<CandidateEffect> = Vec::new();
    let mut divided: Vec<CandidateEffect> = Vec::new();
    let mut phase = "one at a time";
    while !groups.is_empty() {
        let singles = tested.iter().filter(|one| one.is_shown()).flat_map(|one| one.group.iter().copied());
        let found: Group = singles.collect();
        let round = Round { launches, settings, target, until, found }.run(phase, &groups)?;
        groups = Vec::new();
        for one in round {
            if one.is_shown() && one.group.len() > 1 && launches.ended() == Ended::Decided {
                groups.extend(groups::parts(&one.group));
                divided.push(one);
            } else {
                tested.push(one);
            }
        }
        phase = "which of those that were tried together";
    }
    // What no part of a group shows, the group still has.
    for whole in divided {
        if !tested.iter().any(|one| one.is_shown() && one.group.is_subset(&whole.group)) {
            tested.push(whole);
        }
    }
    Ok(tested)
}

/// What these causes leave of the reproduced difference: everything, where there are none.
fn what_is_left<E>(
    launches: &mut Launches<'_, E>,
    settings: &Settings,
    target: &Target,
    causes: &[Cause],
) -> Result<Option<LogRatio>, E> {
    let members: Group = causes.iter().flat_map(|cause| cause.members.iter().copied()).collect();
    if !members.is_empty() && members.len() < target.count {
        joint(launches, target.count, &members, settings.max_time)?;
    }
    Ok(rest(launches, settings, target, &members))
}

/// Adds the causes in a set to those that are known; whether there are any new ones. A set says how its members act, so it takes the place of
/// single ones; what shows in a bundle alone says nothing of those that are known.
fn with_set(causes: &mut Vec<Cause>, of_set: Vec<Cause>) -> bool {
    let before = causes.len();
    for cause in of_set {
        let is_known = |one: &Cause| match (cause.is_bundled, one.is_bundled) {
            (true, false) => !one.members.is_disjoint(&cause.members),
            _ => cause.members.is_subset(&one.members),
        };
        if causes.iter().any(is_known) {
            continue;
        }
        causes.retain(|one| !one.members.is_subset(&cause.members));
        causes.push(cause);
    }
    causes.len() != before
}
