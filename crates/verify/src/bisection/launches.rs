//! Runs blocks of choices and keeps what they gave: which choices a block holds changes from stage to stage, and whatever two of
//! them share a block are compared by its pairs.

use super::choice::Choice;
use super::outcome::Ended;
use crate::comparison::{ATTEMPTS, Measured, Sample};
use slowpath_experiment::{Estimate, Level, design, median};
use slowpath_launch::Metric;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the user sees while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being tried, in words.
    pub phase: String,
    /// Launches until now.
    pub launches: usize,
    /// Time until now.
    pub elapsed: Duration,
}

/// What a bisection launches with.
pub struct Bench<'a, E> {
    /// Makes one launch under these conditions; the number is that of the block.
    pub launch: &'a mut dyn FnMut(&Choice, usize) -> Result<Sample, E>,
    /// Time since the bisection began.
    pub elapsed: &'a dyn Fn() -> Duration,
    /// Called after each launch; false ends the bisection with the whole blocks until then.
    pub progress: &'a mut dyn FnMut(&Progress) -> bool,
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// All its blocks were run.
    Whole,
    /// The next block would have ended too late.
    Late,
    /// The user asked to stop.
    Stopped,
    /// A context as a whole is not ready any more: nothing can be compared with it.
    Failed,
}

/// What the launches of a choice took, those that do not count included.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    seconds: f64,
    /// How often it was to be launched once: some of these took several launches.
    asked: u32,
    /// How many of them gave numbers.
    measured: u32,
}

/// Why a choice was never ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotReady {
    /// The last reason.
    pub reason: String,
    /// Launches in a row.
    pub launches: usize,
}

impl NotReady {
    /// A sentence about this choice.
    pub(super) fn in_words(&self, choice: &Choice) -> String {
        let Self { reason, launches } = self;
        let launches = if *launches == 1 { "1 launch".to_owned() } else { format!("{launches} launches in a row") };
        format!("{} was not ready in {launches}: {reason}", choice.name())
    }
}

/// All launches of a bisection.
pub(super) struct Launches<'a, E> {
    bench: Bench<'a, E>,
    blocks: Vec<BTreeMap<Choice, Measured>>,
    costs: BTreeMap<Choice, Cost>,
    failed: BTreeMap<Choice, NotReady>,
    seed: u64,
    stages: u64,
    launched: usize,
    ended: Ended,
}

impl<'a, E> Launches<'a, E> {
    pub(super) fn new(bench: Bench<'a, E>, seed: u64) -> Self {
        Self {
            bench,
            blocks: Vec::new(),
            costs: BTreeMap::new(),
            failed: BTreeMap::new(),
            seed,
            stages: 0,
            launched: 0,
            ended: Ended::Decided,
        }
    }

    /// Runs up to `blocks` blocks of these choices, none of which is likely to end after `until`.
    ///
    /// # Errors
    /// A launch could not be made at all. A choice that never gets ready is left out from then on: see [`Self::failure`].
    pub(super) fn run(&mut self, phase: &str, choices: &[Choice], blocks: usize, until: Duration) -> Result<Stage, E> {
        let mut choices: Vec<Choice> = choices.to_vec();
        choices.sort();
        choices.dedup();
        choices.retain(|one| !self.failed.contains_key(one));
        self.stages += 1;
        // Each stage has an order of its own.
        let order = design::schedule(choices.len(), blocks, design::mixed(self.seed, self.stages));
        for row in order {
            if self.ended == Ended::Stopped {
                return Ok(Stage::Stopped);
            }
            let row: Vec<&Choice> = row.iter().map(|arm| &choices[*arm]).collect();
            // Those that failed in an earlier block are not tried again.
            let row: Vec<&Choice> = row.into_iter().filter(|one| !self.failed.contains_key(one)).collect();
            let length: f64 = row.iter().map(|one| self.cost(one)).sum();
            if self.elapsed().as_secs_f64() + length > until.as_secs_f64() {
                return Ok(Stage::Late);
            }
            let mut block = BTreeMap::new();
            for choice in &row {
                if let Some(measured) = self.one(phase, choice, until)? {
                    block.insert((*choice).clone(), measured);
                } else if self.ended != Ended::Stopped && self.elapsed() > until {
                    self.blocks.push(block);
                    return Ok(Stage::Late);
                }
                if self.ended == Ended::Stopped {
                    break;
                }
            }
            if self.ended == Ended::Stopped && block.len() < row.len() {
                return Ok(Stage::Stopped);
            }
            self.blocks.push(block);
        }
        Ok(Stage::Whole)
    }

    /// Launches until one counts; `None`: none did, time was over after one that did not, or the user asked to stop.
    fn one(&mut self, phase: &str, choice: &Choice, until: Duration) -> Result<Option<Measured>, E> {
        self.costs.entry(choice.clone()).or_default().asked += 1;
        let mut failures = 0;
        for _ in 0..ATTEMPTS {
            let before = self.elapsed();
            let sample = (self.bench.launch)(choice, self.blocks.len())?;
            self.launched += 1;
            let elapsed = self.elapsed();
            let cost = self.costs.entry(choice.clone()).or_default();
            cost.seconds += elapsed.saturating_sub(before).as_secs_f64();
            let progress = Progress { phase: phase.to_owned(), launches: self.launched, elapsed };
            if !(self.bench.progress)(&progress) || sample == Sample::Stopped {
                self.ended = Ended::Stopped;
            }
            match sample {
                Sample::Measured(measured) => {
                    cost.measured += 1;
                    return Ok(Some(measured));
                }
                Sample::Failed(reason) => {
                    failures += 1;
                    // What is cut off by the time has failed only where it was never ready before.
                    let is_last = failures == ATTEMPTS || (elapsed > until && cost.measured == 0);
                    if is_last && self.ended != Ended::Stopped {
                        self.failed.insert(choice.clone(), NotReady { reason, launches: failures });
                    }
                }
                Sample::Discarded(_) | Sample::Stopped => {}
            }
            if self.ended == Ended::Stopped || elapsed > until {
                break;
            }
        }
        Ok(None)
    }

    /// Seconds that a launch is expected to take, with the attempts that fail: as those before, or as the longest of others.
    pub(super) fn cost(&self, choice: &Choice) -> f64 {
        let mean = |cost: &Cost| cost.seconds / f64::from(cost.asked.max(1));
        match self.costs.get(choice) {
            Some(cost) => mean(cost),
            // What hangs says nothing of the others.
            None => self.costs.values().filter(|cost| cost.measured > 0).map(mean).fold(0.0, f64::max),
        }
    }

    /// Makes the launches until now count for nothing but their time: they brought files into memory.
    pub(super) fn forget(&mut self) {
        self.blocks.clear();
    }

    /// Why a choice was never ready.
    pub(super) fn failure(&self, choice: &Choice) -> Option<&NotReady> {
        self.failed.get(choice)
    }

    /// The number of the next block.
    pub(super) fn next_block(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks from `from` on that hold both.
    pub(super) fn shared(&self, one: &Choice, other: &Choice, from: usize) -> usize {
        self.blocks.iter().skip(from).filter(|block| block.contains_key(one) && block.contains_key(other)).count()
    }

    /// Logarithms of `slower` over `quicker` in the blocks from `from` on that hold both. What is not positive has no logarithm, and
    /// its block is left out.
    pub(super) fn pairs(&self, metric: Metric, quicker: &Choice, slower: &Choice, from: usize) -> Vec<f64> {
        let values = self.values(metric, [quicker, slower], from);
        let logarithm = |[before, after]: [f64; 2]| (before > 0.0 && after > 0.0).then(|| after.ln() - before.ln());
        values.into_iter().filter_map(logarithm).collect()
    }

    /// The values of a metric in the blocks from `from` on that hold all of `choices`.
    pub(super) fn values<const N: usize>(&self, metric: Metric, choices: [&Choice; N], from: usize) -> Vec<[f64; N]> {
        let of_block = |block: &BTreeMap<Choice, Measured>| {
            let mut row = [0.0; N];
            for (value, choice) in row.iter_mut().zip(choices) {
                *value = *block.get(choice)?.measures.get(&metric)?;
            }
            Some(row)
        };
        self.blocks.iter().skip(from).filter_map(of_block).collect()
    }

    /// The median of a choice over all blocks, with its 95 % interval.
    pub(super) fn median(&self, metric: Metric, choice: &Choice) -> Option<Estimate> {
        let values: Vec<f64> = self.values(metric, [choice], 0).into_iter().flatten().collect();
        median::median(&values, Level::P95)
    }

    pub(super) fn elapsed(&self) -> Duration {
        (self.bench.elapsed)()
    }

    pub(super) fn launched(&self) -> usize {
        self.launched
    }

    /// Remembers why something was left open.
    pub(super) fn note(&mut self, stage: Stage) {
        if self.ended != Ended::Decided {
            return;
        }
        match stage {
            Stage::Late => self.ended = Ended::TimeOver,
            Stage::Failed => self.ended = Ended::Failed,
            Stage::Whole | Stage::Stopped => {}
        }
    }

    pub(super) fn ended(&self) -> Ended {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::Group;
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::convert::Infallible;

    /// Each launch takes a second; those with anything slow fail, the first so many times.
    fn launched<T>(
        failing: usize,
        until: u64,
        then: impl FnOnce(&mut Launches<'_, Infallible>, Duration) -> T,
    ) -> (T, usize) {
        let (time, failures, shown) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
        let mut launch = |choice: &Choice, _: usize| {
            time.set(time.get() + 1);
            if *choice != Choice::fast() && failures.get() < failing {
                failures.set(failures.get() + 1);
                return Ok(Sample::Failed("no".to_owned()));
            }
            Ok(Sample::Measured(Measured::default()))
        };
        let mut progress = |now: &Progress| {
            shown.borrow_mut().push(now.launches);
            true
        };
        let elapsed = || Duration::from_secs(time.get());
        let bench = Bench { launch: &mut launch, elapsed: &elapsed, progress: &mut progress };
        let mut launches = Launches::new(bench, 1);
        let found = then(&mut launches, Duration::from_secs(until));
        drop(launches);
        let shown = shown.into_inner();
        assert!(shown.iter().copied().eq(1..=shown.len()), "{shown:?}");
        (found, shown.len())
    }

    #[test]
    fn launches_that_fail_cost_time_and_are_shown_like_the_others() {
        let slow = Choice::Slow(Group::from([0]));
        let arms = [Choice::fast(), slow.clone()];
        let run = |launches: &mut Launches<'_, Infallible>, until| {
            assert_eq!(launches.run("", &arms, 1, until), Ok(Stage::Whole));
            (launches.cost(&slow), launches.failure(&slow).cloned())
        };
        // Two fail before one counts: that is what to expect of the next as well.
        assert_eq!(launched(2, 100, run), ((3.0, None), 4));
        let failure = NotReady { reason: "no".to_owned(), launches: ATTEMPTS };
        assert_eq!(launched(9, 100, run), ((3.0, Some(failure)), 4));
    }

    #[test]
    fn a_single_failure_at_the_end_of_the_time_is_not_held_against_what_was_ready_before() {
        let slow = Choice::Slow(Group::from([0]));
        let run = |launches: &mut Launches<'_, Infallible>, until| {
            let stage = launches.run("", std::slice::from_ref(&slow), 4, until);
            (stage, launches.failure(&slow).is_some())
        };
        assert_eq!(launched(9, 0, run).0, (Ok(Stage::Late), true));
        let later = |launches: &mut Launches<'_, Infallible>, until| {
            launches.costs.insert(slow.clone(), Cost { seconds: 0.0, asked: 1, measured: 1 });
            run(launches, until)
        };
        assert_eq!(launched(9, 0, later).0, (Ok(Stage::Late), false));
    }
}
