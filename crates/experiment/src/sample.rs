//! The measurements of one experiment: arms by blocks, with gaps.
//!
//! Owns the pairing by block. Why a launch was discarded stays with the caller, which leaves its cell empty.

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

/// Arms by blocks. An empty cell is a launch that failed, was discarded, or was not run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Samples {
    /// Number of arms; every block has a cell for each.
    arms: usize,
    /// One row a block, one cell an arm.
    blocks: Vec<Vec<Option<f64>>>,
}

/// A cell or an arm that does not exist, or a value that is no measurement.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SampleError {
    /// The arm is not one of this experiment.
    #[error("arm {arm} does not exist: the experiment has {arms}")]
    NoSuchArm {
        /// The arm asked for, from 0.
        arm: usize,
        /// How many there are.
        arms: usize,
    },
    /// The block is not one of this experiment.
    #[error("block {block} does not exist: the experiment has {blocks}")]
    NoSuchBlock {
        /// The block asked for, from 0.
        block: usize,
        /// How many there are.
        blocks: usize,
    },
    /// Infinite values and NaN have no place in a ranking.
    #[error("the value of arm {arm} in block {block} is {value}, which is not a finite number")]
    NotFinite {
        /// The arm of the cell.
        arm: usize,
        /// The block of the cell.
        block: usize,
        /// The refused value.
        value: f64,
    },
}

/// The blocks in which every one of `N` arms has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete<const N: usize> {
    /// One row a complete block, in the order of the arms asked for.
    pub rows: Vec<[f64; N]>,
    /// Blocks left out because at least one of these arms has no value there.
    pub dropped: usize,
}

impl Samples {
    /// An experiment of `arms` arms in `blocks` blocks, all cells empty.
    pub fn new(arms: usize, blocks: usize) -> Self {
        Self { arms, blocks: vec![vec![None; arms]; blocks] }
    }

    /// Number of arms.
    pub fn arms(&self) -> usize {
        self.arms
    }

    /// Number of blocks, complete or not.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Stores one measurement; a later one replaces it.
    ///
    /// # Errors
    /// [`SampleError`] when the cell does not exist or the value is not finite.
    pub fn set(&mut self, arm: usize, block: usize, value: f64) -> Result<(), SampleError> {
        self.check_arm(arm)?;
        let blocks = self.blocks.len();
        let row = self.blocks.get_mut(block).ok_or(SampleError::NoSuchBlock { block, blocks })?;
        if !value.is_finite() {
            return Err(SampleError::NotFinite { arm, block, value });
        }
        row[arm] = Some(value);
        Ok(())
    }

    /// One cell; `None` when it is empty or does not exist.
    pub fn get(&self, arm: usize, block: usize) -> Option<f64> {
        self.blocks.get(block)?.get(arm).copied().flatten()
    }

    /// All values of one arm, in the order of the blocks.
    ///
    /// # Errors
    /// [`SampleError::NoSuchArm`].
    pub fn values(&self, arm: usize) -> Result<Vec<f64>, SampleError> {
        self.check_arm(arm)?;
        Ok(self.blocks.iter().filter_map(|row| row[arm]).collect())
    }

    /// The blocks in which all of `arms` have a value. A gap in any other arm costs nothing here.
    ///
    /// # Errors
    /// [`SampleError::NoSuchArm`].
    pub fn complete<const N: usize>(&self, arms: [usize; N]) -> Result<Complete<N>, SampleError> {
        for arm in arms {
            self.check_arm(arm)?;
        }
        let rows: Vec<[f64; N]> = self
            .blocks
            .iter()
            .filter_map(|row| {
                let mut values = [0.0; N];
                for (value, &arm) in values.iter_mut().zip(&arms) {
                    *value = row[arm]?;
                }
                Some(values)
            })
            .collect();
        let dropped = self.blocks.len() - rows.len();
        Ok(Complete { rows, dropped })
    }

    fn check_arm(&self, arm: usize) -> Result<(), SampleError> {
        if arm < self.arms { Ok(()) } else { Err(SampleError::NoSuchArm { arm, arms: self.arms }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_cell_drops_its_block_for_the_pairs_of_that_arm_only() {
        let mut samples = Samples::new(3, 2);
        for (arm, block) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)] {
            samples.set(arm, block, (10 * arm + block) as f64).expect("the cell exists");
        }
        let untouched = samples.complete([0, 1]).expect("the arms exist");
        assert_eq!(untouched.rows, [[0.0, 10.0], [1.0, 11.0]]);
        assert_eq!(untouched.dropped, 0);
        let gapped = samples.complete([2, 0]).expect("the arms exist");
        assert_eq!(gapped.rows, [[20.0, 0.0]]);
        assert_eq!(gapped.dropped, 1);
        assert_eq!(samples.values(2), Ok(vec![20.0]));
    }

    #[test]
    fn cells_that_do_not_exist_and_values_that_are_not_finite_are_refused() {
        let mut samples = Samples::new(2, 1);
        assert!(matches!(samples.set(2, 0, 1.0), Err(SampleError::NoSuchArm { arm: 2, arms: 2 })));
        assert!(matches!(samples.set(0, 1, 1.0), Err(SampleError::NoSuchBlock { .. })));
        for bad in [f64::NAN, f64::INFINITY] {
            assert!(matches!(samples.set(0, 0, bad), Err(SampleError::NotFinite { .. })));
        }
        assert!(samples.complete([0, 5]).is_err());
        assert_eq!(samples.get(0, 0), None, "a refused value was stored");
    }
}
