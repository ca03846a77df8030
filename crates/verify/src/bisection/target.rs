//! What is to be explained, from which effect on something explains it, and the errors that the tests of single candidates, of groups
//! and of sets may make.

use super::choice::Choice;
use super::launches::Launches;
use super::log_ratio::LogRatio;
use slowpath_experiment::Level;

/// Error of all single candidates together.
const ERROR: f64 = 0.04;
/// Error of all sets together.
pub(super) const ERROR_OF_SETS: f64 = 0.01;
/// Such a set is tried in two directions.
pub(super) const SETS: f64 = 2.0;
/// Error of all groups that are tried as one; nothing is named by it.
const ERROR_OF_GROUPS: f64 = 0.05;

/// What is to be explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    /// Candidates.
    pub count: usize,
    /// The difference of the reproduced contexts, as a logarithm.
    pub gap: f64,
    /// The smallest effect that matters.
    pub margin: f64,
}

impl Target {
    /// Level of the intervals of a group of `size`, of `groups` that are tried at the same time.
    pub(super) fn level(&self, size: usize, groups: usize) -> Level {
        let error = match size {
            0 | 1 => ERROR / (2 * self.count.max(1)) as f64,
            _ => ERROR_OF_GROUPS / (2 * groups.max(1)) as f64,
        };
        Level::new(1.0 - error).unwrap_or(Level::P95)
    }

    /// Whether an effect is shown that matters.
    pub(super) fn is_effect(&self, ratio: &LogRatio) -> bool {
        ratio.is_above_zero() && ratio.estimate.value > self.margin
    }

    /// Why one of the whole contexts is not ready any more, in words.
    pub(super) fn failure<E>(&self, launches: &Launches<'_, E>) -> Option<String> {
        let whole = [Choice::fast(), Choice::slow(self.count)];
        whole.iter().find_map(|one| Some(launches.failure(one)?.in_words(one)))
    }

    /// Level of the intervals of a set that delta debugging finds: none of its members has shown anything by itself.
    pub(super) fn level_of_sets(&self) -> Level {
        Level::new(1.0 - ERROR_OF_SETS / SETS).unwrap_or(Level::P95)
    }

    /// Whether a rest is too little to look for: any cause that matters would be more.
    pub(super) fn is_little(&self, rest: &LogRatio) -> bool {
        rest.estimate.value <= self.margin
    }
}
