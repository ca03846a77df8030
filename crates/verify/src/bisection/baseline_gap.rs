//! The difference to be explained: of the two sides as they were given, and of their reproduction.

use super::choice::{Choice, Side};
use super::error::BisectionError;
use super::launches::{Launches, Stage};
use super::log_ratio::LogRatio;
use super::outcome::{BaselineGap, Ended, GapAnswer, Reproduction};
use super::settings::{GAP_UNTIL, Settings};
use super::target::Target;
use slowpath_experiment::Level;
use slowpath_experiment::looks::Looks;
use slowpath_launch::Metric;
use std::time::Duration;

/// What the user sees meanwhile.
const PHASE: &str = "the whole difference";
/// Blocks of the gap at most. More would see differences below the margin, which are of no interest.
const MOST: usize = 80;
/// Blocks that it has whatever share of the time they take.
const LEAST: usize = 6;
/// Pairs with which an interval is looked at for the first time ([`slowpath_experiment::looks`]).
const FIRST_LOOK: usize = 12;
/// Blocks in which the reproduction is compared with what was given, at most.
const MOST_REPRODUCED: usize = 24;
/// Share of the gap above which it seems to be reproduced.
const SEEMS: f64 = 0.25;

/// Compares the two sides until it is decided whether they differ, or until `until`. Their reproductions are in the first blocks too.
///
/// # Errors
/// One of them is never ready, a launch cannot be made, or the user stopped it before the first block was whole.
pub(super) fn baseline_gap<E: std::error::Error + 'static>(
    launches: &mut Launches<'_, E>,
    settings: &Settings,
    sides: &[Choice; 2],
    count: usize,
    until: Duration,
) -> Result<BaselineGap, BisectionError<E>> {
    let mut all = sides.to_vec();
    if count > 0 {
        all.extend([Choice::fast(), Choice::slow(count)]);
    }
    all.sort();
    all.dedup();
    // One launch of each that does not count: it brings files into memory, and shows how long a launch takes.
    let warmed = launches.run("warming up", &all, 1, settings.max_time).map_err(BisectionError::Launch)?;
    ready(launches, sides)?;
    if warmed == Stage::Stopped {
        return Err(BisectionError::Stopped);
    }
    launches.forget();
    // Less than this says nothing, and then there is nothing that the rest of the time were for.
    let mut stage = launches.run(PHASE, &all, LEAST, settings.max_time).map_err(BisectionError::Launch)?;
    if launches.next_block() >= LEAST {
        ready(launches, sides)?;
        valued(launches, settings.metric, sides)?;
    }
    let most = LEAST + blocks_until(launches, sides, until);
    let looks = Looks::new(most.min(MOST), Level::P95);
    let [fast, slow] = sides;
    let mut answer = GapAnswer::NotShown;
    let mut ratio = None;
    for look in looks.blocks() {
        if stage == Stage::Whole {
            let more = look.saturating_sub(launches.next_block());
            stage = launches.run(PHASE, sides, more, until).map_err(BisectionError::Launch)?;
        }
        ready(launches, sides)?;
        let done = launches.next_block();
        let level = if stage == Stage::Whole { looks.at(done) } else { looks.last(done) }.unwrap_or(Level::P95);
        ratio = LogRatio::of(&launches.pairs(settings.metric, fast, slow, 0), level);
        answer = judged(ratio.as_ref(), settings.margin);
        if answer != GapAnswer::NotShown || stage != Stage::Whole {
            break;
        }
    }
    if answer == GapAnswer::NotShown && launches.next_block() < MOST {
        launches.note(Stage::Late);
    }
    if launches.ended() == Ended::Stopped && launches.next_block() == 0 {
        return Err(BisectionError::Stopped);
    }
    if launches.shared(fast, slow, 0) == 0 {
        // The time may have gone into a reproduction that hangs.
        ready(launches, &all)?;
        return Err(BisectionError::TooLong);
    }
    let is_open = answer == GapAnswer::NotShown && launches.ended() != Ended::Stopped;
    let enough = is_open.then(|| enough(launches, settings, sides, ratio.as_ref())).flatten();
    let (fast, slow) = (launches.median(settings.metric, fast), launches.median(settings.metric, slow));
    Ok(BaselineGap { answer, ratio, fast, slow, enough })
}

/// All of the time with which it would probably be decided whether the sides differ: half an interval must not be wider than what matters, and
/// gets narrower with the root of the number of pairs. `None`: so many pairs are made already as ever are.
fn enough<E>(
    launches: &Launches<'_, E>,
    settings: &Settings,
    [fast, slow]: &[Choice; 2],
    ratio: Option<&LogRatio>,
) -> Option<Duration> {
    let done = launches.shared(fast, slow, 0);
    if done >= MOST {
        return None;
    }
    let half = ratio.and_then(|ratio| ratio.estimate.interval()).map(|(low, high)| (high - low) / 2.0);
    let needed = half.map_or(FIRST_LOOK, |half| (done as f64 * (half / settings.margin).powi(2)).ceil() as usize);
    let more = needed.clamp(done + 1, MOST) - done;
    let seconds = more as f64 * (launches.cost(fast) + launches.cost(slow));
    Some((launches.elapsed() + Duration::from_secs_f64(seconds)).div_f64(GAP_UNTIL).max(settings.max_time))
}

/// All of these can be launched.
fn ready<E: std::error::Error + 'static>(
    launches: &Launches<'_, E>,
    choices: &[Choice],
) -> Result<(), BisectionError<E>> {
    match choices.iter().find_map(|one| Some((one, launches.failure(one)?))) {
        Some((one, failure)) => Err(BisectionError::NeverReady(failure.in_words(one))),
        None => Ok(()),
    }
}

/// Most launches of both sides have a value that can be compared.
fn valued<E: std::error::Error + 'static>(
    launches: &Launches<'_, E>,
    metric: Metric,
    sides: &[Choice; 2],
) -> Result<(), BisectionError<E>> {
    let values = |metric: Metric, side: &Choice| launches.values(metric, [side], 0);
    let positive = |values: &[[f64; 1]]| values.iter().filter(|[value]| *value > 0.0).count();
    for one in sides {
        let (all, found) = (launches.shared(one, one, 0), values(metric, one));
        if 2 * positive(&found) < all {
            let has = |other: &Metric| sides.iter().all(|one| positive(&values(*other, one)) == all);
            let others = Metric::ALL.into_iter().filter(has).collect();
            return Err(BisectionError::NoValue { metric, side: one.name(), is_zero: !found.is_empty(), others });
        }
    }
    Ok(())
}

fn judged(ratio: Option<&LogRatio>, margin: f64) -> GapAnswer {
    let Some((ratio, (low, high))) = ratio.and_then(|ratio| Some((ratio, ratio.estimate.interval()?))) else {
        return GapAnswer::NotShown;
    };
    match ratio.estimate.value {
        _ if high < margin && low > -margin => GapAnswer::NoDifference,
        value if low > 0.0 && value > margin => GapAnswer::Slower,
        value if high < 0.0 && value < -margin => GapAnswer::Faster,
        _ => GapAnswer::NotShown,
    }
}

/// Compares the reproduced contexts, beside the sides as they were given. Where they seem to differ, the blocks that there are suffice:
/// both are in every later block too. Where not, it goes on until that is shown.
///
/// # Errors
/// A launch cannot be made.
pub(super) fn reproduction<E>(
    launches: &mut Launches<'_, E>,
    settings: &Settings,
    target: &Target,
    until: Duration,
) -> Result<Reproduction, E> {
    let all = [Choice::Given(Side::Fast), Choice::Given(Side::Slow), Choice::fast(), Choice::slow(target.count)];
    let [given_fast, given_slow, fast, slow] = &all;
    let mut found = Reproduction { ratio: None, rest: None, is_shown: false, failure: None };
    for (blocks, until) in [(LEAST, settings.max_time), (MOST_REPRODUCED, until)] {
        let more = blocks.saturating_sub(launches.shared(fast, slow, 0));
        let stage = launches.run("the reproduced contexts", &all, more, until)?;
        found.failure = target.failure(launches);
        found.ratio = LogRatio::of(&launches.pairs(settings.metric, fast, slow, 0), Level::P95);
        let rests: Vec<f64> = launches
            .values(settings.metric, [given_fast, given_slow, fast, slow], 0)
            .into_iter()
            .filter(|row| row.iter().all(|value| *value > 0.0))
            .map(|[a, b, fast, slow]| (b / a).ln() - (slow / fast).ln())
            .collect();
        found.rest = LogRatio::of(&rests, Level::P95);
        let seems = target.margin.max(SEEMS * target.gap);
        found.is_shown = found.failure.is_none() && found.ratio.is_some_and(|ratio| ratio.estimate.value > seems);
        if stage != Stage::Whole && !found.is_shown && found.failure.is_none() {
            launches.note(Stage::Late);
        }
        if found.is_shown || found.failure.is_some() || stage != Stage::Whole {
            break;
        }
    }
    Ok(found)
}

/// How many blocks of these choices end before `until`.
fn blocks_until<E>(launches: &Launches<'_, E>, choices: &[Choice], until: Duration) -> usize {
    let block: f64 = choices.iter().map(|one| launches.cost(one)).sum();
    let time = until.saturating_sub(launches.elapsed()).as_secs_f64();
    if block > 0.0 { (time / block) as usize } else { MOST }
}
