//! The launches of a benchmark: those of all arms in blocks, each block with an environment of another size.
//!
//! Owns one launch of an arm and what is measured of it, the launch of each that does not count, and the size of the environment in a
//! block. Leaves the order within a block, and what a failed launch does to an arm, to [`crate::compare_until`], when there are enough to
//! `stopping`, cold and warm to [`crate::conditions`], and what is said of the figures to `summary`.

use super::arms::LaunchArm;
use crate::conditions::Conditions;
use crate::{
    Arm, ArmResult, Comparison, ComparisonError, HostCounters, Made, Measured, Metric, Moment, NextBlock, Sample,
    compare_until, measures,
};
use slowpath_experiment::design;
use slowpath_launch::{EndPolicy, ProcessLauncher, ReadyWhen, StdioPolicy};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Target, launcher, not_ready};
use slowpath_session::{Progress, interrupt};
use std::ffi::OsString;

/// Runs `most` blocks, or until `enough(results, blocks done)`: all arms end together.
pub fn compared(
    arms: &[LaunchArm],
    conditions: &mut Conditions,
    most: usize,
    seed: u64,
    progress: &dyn Progress,
    mut enough: impl FnMut(&[ArmResult], usize) -> bool,
) -> Result<Comparison, Failure> {
    let launched = arms.iter().map(|arm| Launched { arm: arm.described(), target: &arm.target, padding: 0 });
    let mut launches = Launches::new(launched.collect(), conditions, seed);
    if launches.conditions.is_warm() {
        launches.warm_up(progress)?;
    }
    launches.compare(most, progress, |results, blocks| NextBlock::unless(enough(results, blocks)))
}

/// The failure of a comparison that was given up; `hint` is for an arm that never got ready.
pub fn comparison_failure(error: ComparisonError<Failure>, hint: &str) -> Failure {
    match error {
        ComparisonError::Stopped => Failure::new(Kind::Interrupted, "interrupted"),
        ComparisonError::Launch { source, .. } => source,
        error @ ComparisonError::NeverReady { .. } => Failure::from_error(Kind::Target, &error).hint(hint),
    }
}

/// What the launches of an arm are.
pub struct Launched<'a> {
    /// As a comparison knows it.
    pub arm: Arm,
    /// What is launched.
    pub target: &'a Target,
    /// Bytes more of padding: what makes its environment as large as those of the others.
    pub padding: usize,
}

/// Makes single launches.
pub struct Launches<'a> {
    arms: Vec<Launched<'a>>,
    conditions: &'a mut Conditions,
    launcher: ProcessLauncher,
    counters: HostCounters,
    last: Option<Moment>,
    seed: u64,
}

/// The hint for an arm that never got ready.
pub(crate) const HINT: &str = "`--ready WHEN` says what ready means, `--timeout SECONDS` how long it may take";

/// Name of the variable that gives every block an environment of another size.
const PAD: &str = "SLOWPATH_ENVIRONMENT_PAD";
/// Sizes differ by up to a page: where the stack begins then differs by as much.
const PAD_BYTES: u64 = 4096;

/// Size of the padding in a block. The size of the environment moves the stack, and that alone can make a program some
/// percent faster or slower (Mytkowicz, Diwan, Hauswirth and Sweeney, ASPLOS 2009), so it is a factor that varies
/// between blocks and is equal within one.
fn padding(seed: u64, block: usize) -> usize {
    (design::mixed(seed, block as u64 + 1) % PAD_BYTES) as usize
}

/// The variable with the padding of a block.
pub fn pad(seed: u64, block: usize) -> (OsString, OsString) {
    (PAD.into(), "x".repeat(padding(seed, block)).into())
}

impl<'a> Launches<'a> {
    /// Of these arms under these conditions.
    pub fn new(arms: Vec<Launched<'a>>, conditions: &'a mut Conditions, seed: u64) -> Self {
        Self { arms, conditions, launcher: launcher(), counters: HostCounters::new(), last: None, seed }
    }

    /// One launch of each arm that does not count; one that fails ends the benchmark before it began.
    fn warm_up(&mut self, progress: &dyn Progress) -> Result<(), Failure> {
        for arm in 0..self.arms.len() {
            progress.step(&format!("warming up: {}", self.arms[arm].arm.name));
            let sample = self.one(arm, 0)?;
            if matches!(sample, Sample::Stopped) {
                return Err(Failure::new(Kind::Interrupted, "interrupted"));
            }
            if let Sample::Failed(reason) = sample {
                let name = &self.arms[arm].arm.name;
                return Err(
                    Failure::new(Kind::Target, format!("arm {name} failed in its first launch: {reason}")).hint(HINT)
                );
            }
        }
        Ok(())
    }

    /// Runs `most` blocks of all arms, or what `next(results, blocks done)` says.
    ///
    /// # Errors
    /// As [`compare_until`].
    pub fn compare(
        mut self,
        most: usize,
        progress: &dyn Progress,
        next: impl FnMut(&[ArmResult], usize) -> NextBlock,
    ) -> Result<Comparison, Failure> {
        let seed = self.seed;
        compare_until(
            self.arms.iter().map(|launched| launched.arm.clone()).collect(),
            most,
            seed,
            |arm, block| self.one(arm, block),
            |Made { block, launches, .. }| {
                progress.step(&format!("block {block} of at most {most}: {launches} launches"));
                !interrupt::requested()
            },
            next,
        )
        .map_err(|error| comparison_failure(error, HINT))
    }

    /// One launch of an arm.
    ///
    /// # Errors
    /// It could not be made; a target that failed is none.
    pub fn one(&mut self, arm: usize, block: usize) -> Result<Sample, Failure> {
        let (target, padding) = (self.arms[arm].target, self.arms[arm].padding);
        let (mut spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let (name, mut value) = pad(self.seed, block);
        value.push("x".repeat(padding));
        spec.env.push((name, value));
        // A command that has ended has no memory to look at.
        spec.memory = target.ready != ReadyWhen::Exit;
        // Between two warm launches nothing is done: the look after one is that before the next.
        let before = self.last.take().unwrap_or_else(|| self.counters.look());
        let launched = self.conditions.launch(&mut self.launcher, spec)?;
        let after = self.counters.look();
        self.last = self.conditions.is_warm().then(|| after.clone());
        if interrupt::requested() {
            return Ok(Sample::Stopped);
        }
        if let Some(failure) = not_ready(&launched.outcome) {
            return Ok(Sample::Failed(failure.to_string()));
        }
        if let Some(reason) = launched.not_as_meant {
            return Ok(Sample::Discarded(reason));
        }
        let mut measures = measures(&launched.outcome);
        let lacks_children = launched.outcome.usage.is_some_and(|usage| usage.lacks_children);
        let read_by_device = launched.device.is_some();
        if let Some(bytes) = launched.device {
            measures.insert(Metric::BytesRead, bytes.0 as f64);
        }
        let own = measures.get(&Metric::Cpu).copied().unwrap_or(0.0);
        Ok(Sample::Measured(Measured { measures, lacks_children, read_by_device, around: after.since(&before, own) }))
    }
}

#[cfg(test)]
mod tests {
    use super::padding;
    use std::collections::BTreeSet;

    #[test]
    fn the_padding_differs_between_blocks_and_is_the_same_for_all_arms_of_one() {
        let sizes: BTreeSet<usize> = (0..50).map(|block| padding(1, block)).collect();
        assert!(sizes.len() > 40 && sizes.iter().all(|size| *size < 4096), "{sizes:?}");
        assert_eq!(padding(7, 3), padding(7, 3));
    }
}
