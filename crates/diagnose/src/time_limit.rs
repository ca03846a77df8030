//! How many blocks of launches fit into the time that a diagnosis has.
//!
//! Decided before the first launch that counts, by how long untreated ones took. Where launches take longer than those, the blocks
//! end with the time; the difference between the arms has no say in either.

use slowpath_experiment::{Level, looks};
use slowpath_session::progress::words;
use std::time::{Duration, Instant};

/// What launches take more than untreated ones before did, at most in the usual case: those with a sham or a fix, and repeated ones.
const SLACK: f64 = 1.25;

/// The time for everything: for looking at launches, which is done however long it takes, and for the trials after that.
pub struct TimeLimit {
    until: Option<Instant>,
    whole: Duration,
}

/// No trial fits.
pub struct Too {
    /// Why, in words.
    pub long: String,
}

impl TimeLimit {
    /// From now on.
    pub fn from_now(whole: Duration) -> Self {
        Self { until: Instant::now().checked_add(whole), whole }
    }

    /// What is left; `None` where it is longer than the clock can hold.
    pub fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// When it is over; `None` where it is longer than the clock can hold.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Blocks to run: `most`, or as many as fit where one takes `block` and what comes before the first takes `before`.
    ///
    /// # Errors
    /// Fewer fit than it takes for intervals of `level`, and fewer than `most`.
    pub fn blocks(&self, most: u32, level: Level, block: Duration, before: Duration) -> Result<usize, Too> {
        let most = most as usize;
        let Some(left) = self.left() else { return Ok(most) };
        let before = before.mul_f64(SLACK);
        blocks(left.saturating_sub(before), most, level, block).ok_or_else(|| {
            let needed = before + block.mul_f64(SLACK * looks::fewest_blocks(level).min(most) as f64);
            Too {
                long: format!(
                    "its launches take some {}, more than is left of {} s (--max-time)",
                    words(needed),
                    self.whole.as_secs()
                ),
            }
        })
    }
}

fn blocks(left: Duration, most: usize, level: Level, block: Duration) -> Option<usize> {
    let fitting = (left.as_secs_f64() / (block.as_secs_f64() * SLACK).max(1e-6)) as usize;
    let blocks = fitting.min(most);
    (blocks >= looks::fewest_blocks(level).min(most)).then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_blocks_as_fit_and_no_trial_that_could_not_judge() {
        let second = Duration::from_secs(1);
        let four = Level::P95.shared_by(4);
        assert_eq!(blocks(100 * second, 15, four, second), Some(15));
        assert_eq!(blocks(14 * second, 15, four, second), Some(11));
        assert_eq!(blocks(9 * second, 15, four, second), None);
        assert_eq!(blocks(9 * second, 2, four, second), Some(2), "who asks for two blocks gets them");
        let fewest = |arms| looks::fewest_blocks(Level::P95.shared_by(arms));
        assert_eq!([1, 4, 8].map(fewest), [6, 8, 9]);
    }

    #[test]
    fn with_all_the_time_there_is_all_blocks_are_run_and_a_limit_is_told_where_it_is_too_short() {
        let hour = Duration::from_secs(3600);
        assert_eq!(TimeLimit::from_now(Duration::MAX).blocks(15, Level::P95.shared_by(4), hour, hour).ok(), Some(15));
        let minute = TimeLimit::from_now(Duration::from_secs(60));
        let said = minute.blocks(15, Level::P95, hour, Duration::ZERO).err().unwrap().long;
        assert_eq!(said, "its launches take some 450 min, more than is left of 60 s (--max-time)");
    }

    #[test]
    fn what_comes_before_the_first_block_takes_time_too() {
        let limit = TimeLimit::from_now(Duration::from_secs(100));
        let blocks = |before| limit.blocks(15, Level::P95, Duration::from_secs(8), Duration::from_secs(before)).ok();
        assert_eq!(blocks(0), Some(9));
        assert_eq!(blocks(16), Some(7));
        assert_eq!(blocks(40), None);
    }

    #[test]
    fn a_limit_that_has_passed_is_over() {
        assert!(TimeLimit::from_now(Duration::ZERO).is_over());
        assert!(!TimeLimit::from_now(Duration::from_secs(60)).is_over());
        assert!(!TimeLimit::from_now(Duration::MAX).is_over());
    }
}
