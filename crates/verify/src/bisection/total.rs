//! The difference to be explained: of the two ways as they were given, and of their reproduction.

use super::launches::{Launches, LogRatio, Stage};
use super::outcome::{Reproduction, Total, TotalAnswer};
use super::treatment::{Side, Treatment};
use super::{BisectionError, Settings, Target};
use slowpath_experiment::Level;
use slowpath_experiment::looks::Looks;
use std::time::Duration;

/// What the user is told meanwhile.
const PHASE: &str = "the whole difference";
/// Blocks of the total at most. More would see differences below the margin, which are of no interest.
const MOST: usize = 40;
/// Blocks that it has whatever share of the time they take.
const LEAST: usize = 6;
/// Blocks in which the reproduction is compared with what was given, at most.
const MOST_REPRODUCED: usize = 24;
/// Share of the total above which it seems to be reproduced.
const SEEMS: f64 = 0.25;

/// Compares the two ways until it is decided whether they differ, or until `until`. Their reproductions are in the first blocks too.
///
/// # Errors
/// One of them is never ready, a launch cannot be made, or the user stopped it before the first block was whole.
pub(super) fn total<E: std::error::Error + 'static>(
    launches: &mut Launches<'_, E>,
    settings: &Settings,
    ways: &[Treatment; 2],
    count: usize,
    until: Duration,
) -> Result<Total, BisectionError<E>> {
    let mut all = ways.to_vec();
    if count > 0 {
        all.extend([Treatment::fast(), Treatment::slow(count)]);
    }
    all.sort();
    all.dedup();
    // One launch of each that does not count: it brings files into memory, and tells how long a launch takes.
    let warmed = launches.run("warming up", &all, 1, Duration::MAX).map_err(BisectionError::Launch)?;
    ready(launches, ways)?;
    if warmed == Stage::Stopped {
        return Err(BisectionError::Stopped);
    }
    launches.forget();
    // Where launches take long, less than this says nothing, and then there is nothing that the rest of the time were for.
    let until = until.max(time_of(launches, &all, LEAST)).min(settings.max_time);
    let mut stage = launches.run(PHASE, &all, LEAST, until).map_err(BisectionError::Launch)?;
    let most = LEAST + blocks_until(launches, ways, until);
    let looks = Looks::new(most.min(MOST), Level::P95);
    let [fast, slow] = ways;
    let mut answer = TotalAnswer::NotShown;
    let mut ratio = None;
    for look in looks.blocks() {
        if stage == Stage::Whole {
            let more = look.saturating_sub(launches.next_block());
            stage = launches.run(PHASE, ways, more, until).map_err(BisectionError::Launch)?;
        }
        ready(launches, ways)?;
        let done = launches.next_block();
        let level = if stage == Stage::Whole { looks.at(done) } else { looks.last(done) }.unwrap_or(Level::P95);
        ratio = LogRatio::of(&launches.pairs(settings.metric, fast, slow, 0), level);
        answer = judged(ratio.as_ref(), settings.margin);
        if answer != TotalAnswer::NotShown || stage != Stage::Whole {
            break;
        }
    }
    if answer == TotalAnswer::NotShown && launches.next_block() < MOST {
        launches.note(Stage::Late);
    }
    if launches.next_block() == 0 {
        return Err(match launches.ended() {
            super::Ended::Stopped => BisectionError::Stopped,
            _ => BisectionError::TooLong,
        });
    }
    let (fast, slow) = (launches.median(settings.metric, fast), launches.median(settings.metric, slow));
    Ok(Total { answer, ratio, fast, slow })
}

/// Both ways can be launched.
fn ready<E: std::error::Error + 'static>(
    launches: &Launches<'_, E>,
    ways: &[Treatment; 2],
) -> Result<(), BisectionError<E>> {
    for way in ways {
        if let Some(reason) = launches.failure(way) {
            return Err(BisectionError::NeverReady { which: way.clone(), reason: reason.to_owned() });
        }
    }
    Ok(())
}

fn judged(ratio: Option<&LogRatio>, margin: f64) -> TotalAnswer {
    let Some((ratio, (low, high))) = ratio.and_then(|ratio| Some((ratio, ratio.estimate.interval()?))) else {
        return TotalAnswer::NotShown;
    };
    match ratio.estimate.value {
        _ if high < margin && low > -margin => TotalAnswer::NoDifference,
        value if low > 0.0 && value > margin => TotalAnswer::Slower,
        value if high < 0.0 && value < -margin => TotalAnswer::Faster,
        _ => TotalAnswer::NotShown,
    }
}

/// Compares the reproduced contexts, beside the ways as they were given. Where they seem to differ, the blocks that there are suffice:
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
    let all =
        [Treatment::Given(Side::Fast), Treatment::Given(Side::Slow), Treatment::fast(), Treatment::slow(target.count)];
    let [given_fast, given_slow, fast, slow] = &all;
    let until = until.max(time_of(launches, &all, LEAST)).min(settings.max_time);
    let mut found = Reproduction { ratio: None, rest: None, is_shown: false, failure: None };
    for blocks in [LEAST, MOST_REPRODUCED] {
        let more = blocks.saturating_sub(launches.shared(fast, slow, 0));
        let stage = launches.run("the reproduced contexts", &all, more, until)?;
        found.failure = launches.failure(fast).or(launches.failure(slow)).map(str::to_owned);
        found.ratio = LogRatio::of(&launches.pairs(settings.metric, fast, slow, 0), Level::P95);
        let rests: Vec<f64> = launches
            .values(settings.metric, [given_fast, given_slow, fast, slow], 0)
            .into_iter()
            .filter(|row| row.iter().all(|value| *value > 0.0))
            .map(|[a, b, fast, slow]| (b / a).ln() - (slow / fast).ln())
            .collect();
        found.rest = LogRatio::of(&rests, Level::P95);
        let seems = target.margin.max(SEEMS * target.total);
        found.is_shown = found.ratio.is_some_and(|ratio| ratio.estimate.value > seems);
        if stage != Stage::Whole && !found.is_shown {
            launches.note(Stage::Late);
        }
        if found.is_shown || found.failure.is_some() || stage != Stage::Whole {
            break;
        }
    }
    Ok(found)
}

/// When so many blocks of these treatments have ended, and the noise of one more.
fn time_of<E>(launches: &Launches<'_, E>, treatments: &[Treatment], blocks: usize) -> Duration {
    let block: f64 = treatments.iter().map(|one| launches.cost(one)).sum();
    launches.elapsed() + Duration::from_secs_f64((blocks + 1) as f64 * block)
}

/// How many blocks of these treatments end before `until`.
fn blocks_until<E>(launches: &Launches<'_, E>, treatments: &[Treatment], until: Duration) -> usize {
    let block: f64 = treatments.iter().map(|one| launches.cost(one)).sum();
    let time = until.saturating_sub(launches.elapsed()).as_secs_f64();
    if block > 0.0 { (time / block) as usize } else { MOST }
}
