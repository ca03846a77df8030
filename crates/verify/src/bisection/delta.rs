//! A smallest set of candidates that together reproduce at least half of the difference, where single ones do not explain it: delta
//! debugging (A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
//! Engineering 28 (2002), 183-200, algorithm ddmin). "Fails" is here: with only these slow the logarithm of the time rises by at least half of the gap.

use super::choice::{Choice, Group};
use super::launches::{Launches, Stage};
use super::settings::Settings;
use super::target::Target;
use slowpath_experiment::{Level, signed_rank};
use std::time::Duration;

/// Blocks of a test, and as many more where their signs differ.
const BLOCKS: usize = 5;
/// Share of the gap that the set must reproduce.
pub(super) const REPRODUCED: f64 = 0.5;

/// The search.
pub(super) struct Delta<'r, 'a, E> {
    pub launches: &'r mut Launches<'a, E>,
    pub settings: &'r Settings,
    pub target: &'r Target,
    pub until: Duration,
}

impl<E> Delta<'_, '_, E> {
    /// The set; `None` where time was over before it was smallest.
    ///
    /// # Errors
    /// A launch cannot be made.
    pub(super) fn smallest(&mut self) -> Result<Option<Group>, E> {
        let mut set: Vec<usize> = (0..self.target.count).collect();
        let mut parts = 2;
        while set.len() > 1 {
            let subsets = split(&set, parts);
            let Some(reproducing) = self.first_that_reproduces(&subsets)? else { return Ok(None) };
            if let Some(subset) = reproducing {
                set = subset;
                parts = 2;
                continue;
            }
            // With two parts the complements are the parts.
            let complements: Vec<Vec<usize>> = match parts {
                2 => Vec::new(),
                _ => {
                    subsets.iter().map(|part| set.iter().copied().filter(|one| !part.contains(one)).collect()).collect()
                }
            };
            let Some(reproducing) = self.first_that_reproduces(&complements)? else { return Ok(None) };
            if let Some(complement) = reproducing {
                set = complement;
                parts = (parts - 1).max(2);
            } else if parts < set.len() {
                parts = (2 * parts).min(set.len());
            } else {
                break;
            }
        }
        Ok(Some(set.into_iter().collect()))
    }

    /// `None`: time was over. All sets are launched in the same blocks.
    #[expect(clippy::option_option, reason = "an answer that there is none differs from no answer")]
    fn first_that_reproduces(&mut self, sets: &[Vec<usize>]) -> Result<Option<Option<Vec<usize>>>, E> {
        if sets.is_empty() {
            return Ok(Some(None));
        }
        let from = self.launches.next_block();
        let fast = Choice::fast();
        let choices: Vec<Choice> = sets.iter().map(|set| Choice::Slow(set.iter().copied().collect())).collect();
        let mut open: Vec<usize> = (0..sets.len()).collect();
        let mut reproducing: Vec<usize> = Vec::new();
        for last in [false, true] {
            let mut arms = vec![fast.clone()];
            arms.extend(open.iter().map(|index| choices[*index].clone()));
            let stage = self.launches.run("which of them together", &arms, BLOCKS, self.until)?;
            if stage != Stage::Whole {
                self.launches.note(stage);
                return Ok(None);
            }
            let threshold = REPRODUCED * self.target.gap;
            open.retain(|index| {
                let pairs = self.launches.pairs(self.settings.metric, &fast, &choices[*index], from);
                let above = pairs.iter().filter(|pair| **pair >= threshold).count();
                let centre = signed_rank::centre(&pairs, Level::P95).map_or(0.0, |centre| centre.value);
                if above == pairs.len() || last {
                    if !pairs.is_empty() && centre >= threshold {
                        reproducing.push(*index);
                    }
                    return false;
                }
                above > 0
            });
            if open.is_empty() {
                break;
            }
        }
        reproducing.sort_unstable();
        Ok(Some(reproducing.first().map(|index| sets[*index].clone())))
    }
}

/// `set` in `parts` parts of about the same size.
fn split(set: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let bounds: Vec<usize> = (0..=parts).map(|part| part * set.len() / parts).collect();
    bounds.windows(2).map(|ends| set[ends[0]..ends[1]].to_vec()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_everything_once() {
        assert_eq!(split(&[1, 2, 3, 4, 5], 2), [vec![1, 2], vec![3, 4, 5]]);
        assert_eq!(split(&[1, 2], 2), [[1], [2]]);
        assert_eq!(split(&[1, 2, 3], 3).concat(), [1, 2, 3]);
    }
}
