//! Runs the arms block by block, in the order that `experiment` designed, and collects what counts.

use slowpath_experiment::{Samples, design};

/// What an arm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The untreated cold launch.
    Baseline,
    /// A fix.
    Fix,
    /// What surrounds the fix, without it.
    Sham,
    /// What another tool offers for the same end.
    Rival,
    /// Everything in memory.
    Warm,
}

/// One arm of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Name, unique in the comparison.
    pub name: String,
    /// One line for the reader.
    pub title: String,
    /// What it is for.
    pub role: Role,
}

/// What one launch of an arm gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// It counts.
    Measured {
        /// Time to ready in milliseconds.
        ms: f64,
        /// Bytes read from the lab's device.
        bytes: u64,
    },
    /// It ran, and does not count (a cold launch that was not cold).
    Discarded(String),
    /// It was not ready.
    Failed(String),
}

/// The launches of one arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmResult {
    /// Time to ready by block; `None` where no launch of the block counts.
    pub samples_ms: Vec<Option<f64>>,
    /// Bytes read from the device, of the launches that count.
    pub bytes: Vec<u64>,
    /// Reasons of the launches that ran and do not count.
    pub discarded: Vec<String>,
    /// Reasons of the launches that were not ready.
    pub failed: Vec<String>,
}

/// All launches of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The arms, in the order of `results`.
    pub arms: Vec<Arm>,
    /// Their launches.
    pub results: Vec<ArmResult>,
    /// The same as a matrix for `experiment`.
    pub samples: Samples,
    /// Blocks that were run.
    pub blocks: usize,
    /// Seed of the order.
    pub seed: u64,
}

/// Why a comparison was given up.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError<E: std::error::Error + 'static> {
    /// A launch could not be made.
    #[error("a launch of arm {arm} could not be made")]
    Launch {
        /// The arm.
        arm: String,
        /// Why.
        #[source]
        source: E,
    },
    /// An arm was not ready in [`ATTEMPTS`] launches in a row.
    #[error("arm {arm} was not ready in {ATTEMPTS} launches in a row: {reason}")]
    NeverReady {
        /// The arm.
        arm: String,
        /// The last reason.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("stopped on request")]
    Stopped,
}

/// Launches of one arm in one block until one counts; after that the cell stays empty.
pub const ATTEMPTS: usize = 3;

/// Runs `blocks` blocks. `launch(arm, block)` makes one launch; `progress(done, total)` is told after each and returns
/// false to stop after the present block's launch.
///
/// # Errors
/// A launch could not be made at all, or an arm never gets ready. Discarded launches are data.
pub fn compare<E: std::error::Error + 'static>(
    arms: Vec<Arm>,
    blocks: usize,
    seed: u64,
    mut launch: impl FnMut(usize, usize) -> Result<Sample, E>,
    mut progress: impl FnMut(usize, usize) -> bool,
) -> Result<Comparison, ComparisonError<E>> {
    let mut results = vec![ArmResult { samples_ms: vec![None; blocks], ..ArmResult::default() }; arms.len()];
    let mut samples = Samples::new(arms.len(), blocks);
    let total = blocks * arms.len();
    let mut done = 0;
    for (block, order) in design::schedule(arms.len(), blocks, seed).into_iter().enumerate() {
        for arm in order {
            let mut failures = 0;
            for _ in 0..ATTEMPTS {
                let sample = launch(arm, block)
                    .map_err(|source| ComparisonError::Launch { arm: arms[arm].name.clone(), source })?;
                match sample {
                    Sample::Measured { ms, bytes } => {
                        results[arm].samples_ms[block] = Some(ms);
                        results[arm].bytes.push(bytes);
                        // Block and arm are inside the matrix and a duration is finite.
                        let _ = samples.set(arm, block, ms);
                        break;
                    }
                    Sample::Discarded(reason) => results[arm].discarded.push(reason),
                    Sample::Failed(reason) => {
                        failures += 1;
                        results[arm].failed.push(reason.clone());
                        if failures == ATTEMPTS {
                            return Err(ComparisonError::NeverReady { arm: arms[arm].name.clone(), reason });
                        }
                    }
                }
            }
            done += 1;
            if !progress(done, total) {
                return Err(ComparisonError::Stopped);
            }
        }
    }
    Ok(Comparison { arms, results, samples, blocks, seed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn arms() -> Vec<Arm> {
        ["cold", "fix"].map(|name| Arm { name: name.to_owned(), title: String::new(), role: Role::Baseline }).into()
    }

    #[test]
    fn every_block_holds_every_arm_once_in_changing_order() {
        let mut seen = Vec::new();
        let launch = |arm, block| {
            seen.push((block, arm));
            Ok::<_, Infallible>(Sample::Measured { ms: 1.0, bytes: 0 })
        };
        let comparison = compare(arms(), 8, 1, launch, |_, _| true).unwrap();
        assert!(comparison.results.iter().all(|arm| arm.samples_ms.iter().all(Option::is_some)));
        let first: Vec<usize> = seen.iter().step_by(2).map(|(_, arm)| *arm).collect();
        assert_eq!(first.iter().filter(|arm| **arm == 0).count(), 4);
    }

    #[test]
    fn a_lukewarm_launch_is_repeated_and_counted() {
        let mut calls = 0;
        let launch = |arm, _| {
            calls += 1;
            let lukewarm = arm == 0 && calls < 3;
            Ok::<_, Infallible>(if lukewarm {
                Sample::Discarded("lukewarm".to_owned())
            } else {
                Sample::Measured { ms: 1.0, bytes: 0 }
            })
        };
        let comparison = compare(arms(), 1, 3, launch, |_, _| true).unwrap();
        assert!(!comparison.results[0].discarded.is_empty());
        assert_eq!(comparison.results[0].samples_ms, [Some(1.0)]);
    }

    #[test]
    fn an_arm_that_is_never_ready_ends_the_comparison_with_its_reason() {
        let launch = |_, _| Ok::<_, Infallible>(Sample::Failed("time-out".to_owned()));
        let error = compare(arms(), 2, 3, launch, |_, _| true).unwrap_err().to_string();
        assert!(error.ends_with("was not ready in 3 launches in a row: time-out"), "{error}");
    }
}
