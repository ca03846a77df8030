//! Looking at the data while they come in, without paying for it in false alarms.
//!
//! An experiment that is looked at after every block and stopped at the first difference finds one sooner or later. Here
//! the moments of looking are fixed before, the permitted error is spent over them by a spending function
//! (K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983), 659-663), and the increment of each look is
//! the error of that look alone. By the union bound all intervals together miss with at most the whole error, whatever the
//! dependence between looks: they are repeated confidence intervals (C. Jennison and B. W. Turnbull, Journal of the Royal
//! Statistical Society B 51 (1989), 305-361), valid under any rule of stopping that uses nothing else. The price, against
//! one look at the end, is an interval about a tenth wider.

use crate::{Level, signed_rank};

/// The planned looks of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    error: f64,
    looks: Vec<Look>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    blocks: usize,
    error: f64,
}

/// The first look: seven blocks are the fewest with which an effect is planned for ([`crate::power::FEWEST_PLANNED_PAIRS`]).
const FIRST: usize = 8;
/// Each look comes after half as many blocks again: close enough to stop soon, far enough for the error to suffice.
const GROWTH: f64 = 1.5;
/// After a third as many where a large difference is expected. Of 16 blocks (looks after 8, 11 and 16) that finds as many as 15 with
/// looks after 8 and 15 (87 and 85 % where a difference is 1.75 times the noise of a launch), and sooner: one of 2.5 times the noise after
/// 10.2 blocks instead of 11.1 (docs/measurements/2026-11-29T1737-looks.md).
const EARLY_GROWTH: f64 = 4.0 / 3.0;

impl Looks {
    /// Looks up to `most` blocks whose intervals hold together at `level`.
    ///
    /// A look whose share of the error is too small for an interval of so few pairs is left out, and its share goes to the
    /// next.
    pub fn new(most: usize, level: Level) -> Self {
        Self::planned(most, level, squared, |blocks, _| grown(blocks, GROWTH))
    }

    /// The same where a large difference is expected: the first looks may spend more, so that they find it, and the later ones are a
    /// little wider.
    pub fn early(most: usize, level: Level) -> Self {
        let early = |blocks| grown(blocks, EARLY_GROWTH);
        Self::planned(most, level, linear, |blocks, is_first| match is_first {
            true => blocks + 1,
            // A look shortly before the end would leave the last one too little.
            false if early(early(blocks)) > most => most,
            false => early(blocks),
        })
    }

    /// `spending(error, time)` is the error that may be spent until then; `next(blocks, is_first)` when it is looked after `blocks`.
    fn planned(most: usize, level: Level, spending: fn(f64, f64) -> f64, next: impl Fn(usize, bool) -> usize) -> Self {
        let error = level.error();
        let mut looks: Vec<Look> = Vec::new();
        let mut spent = 0.0;
        if most == 0 {
            return Self { error, looks };
        }
        let mut blocks = FIRST.min(most);
        loop {
            let until_now = if blocks == most { error } else { spending(error, blocks as f64 / most as f64) };
            let exists = level_of(until_now - spent).and_then(|level| signed_rank::excluded(blocks, level)).is_some();
            if exists {
                looks.push(Look { blocks, error: until_now - spent });
                spent = until_now;
            }
            if blocks == most {
                break;
            }
            blocks = next(blocks, looks.is_empty()).min(most);
        }
        Self { error, looks }
    }

    /// The level of the intervals at the look after `blocks` blocks; `None` where no look is planned.
    pub fn at(&self, blocks: usize) -> Option<Level> {
        self.looks.iter().find(|look| look.blocks == blocks).and_then(|look| level_of(look.error))
    }

    /// The level of a last look after `blocks` blocks that the data did not ask for (time was over): all error that no
    /// earlier look has spent. At a planned look it is at least as wide an error as planned.
    pub fn last(&self, blocks: usize) -> Option<Level> {
        let spent: f64 = self.looks.iter().filter(|look| look.blocks < blocks).map(|look| look.error).sum();
        level_of(self.error - spent)
    }

    /// After how many blocks it is looked.
    pub fn blocks(&self) -> impl Iterator<Item = usize> {
        self.looks.iter().map(|look| look.blocks)
    }
}

/// The fewest blocks from which there is an interval of this level (see [`signed_rank`]), and from which anything is judged.
pub fn fewest_blocks(level: Level) -> usize {
    (crate::outcome::MINIMUM_PAIRS..=signed_rank::EXACT_LIMIT)
        .find(|blocks| signed_rank::excluded(*blocks, level).is_some())
        .unwrap_or(signed_rank::EXACT_LIMIT)
}

/// A p-value of a look whose intervals have level `look`, made comparable with the whole error of `whole`: below the whole
/// error exactly when it was below the error of its look. By the union bound it is valid however the look was reached.
pub fn over_all_looks(p: f64, look: Level, whole: Level) -> f64 {
    (p * whole.error() / look.error()).min(1.0)
}

fn grown(blocks: usize, growth: f64) -> usize {
    (blocks as f64 * growth).ceil() as usize
}

fn level_of(error: f64) -> Option<Level> {
    Level::new(1.0 - error).ok()
}

/// The error that may be spent until a share `time` of the whole: `error * time^2`, of the power family (K. Kim and D. L.
/// DeMets, Biometrika 74 (1987), 149-154). Compared with O'Brien and Fleming's it leaves an interval 3 % wider at the end, and
/// a large difference is seen after 12 of 100 blocks instead of 27.
fn squared(error: f64, time: f64) -> f64 {
    error * time * time
}

/// Of the same family, in proportion to the time.
fn linear(error: f64, time: f64) -> f64 {
    error * time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_all_looks_add_up_to_the_whole() {
        for most in [6, 8, 9, 20, 60, 100, 1000] {
            let looks = Looks::new(most, Level::P95);
            let total: f64 = looks.looks.iter().map(|look| look.error).sum();
            assert!((total - 0.05).abs() < 1e-12, "{most}: {total}");
            assert_eq!(looks.blocks().last(), Some(most));
            assert!(looks.looks.iter().all(|look| look.error > 0.0));
        }
    }

    #[test]
    fn early_looks_get_little_and_a_look_without_an_interval_is_left_out() {
        let looks = Looks::new(60, Level::P95);
        // 8 blocks of 60 would get 0.0009, and 2^-7 is the least that 8 pairs can show.
        assert!(looks.at(8).is_none() && looks.at(12).is_some(), "{looks:?}");
        let levels: Vec<f64> = looks.blocks().filter_map(|n| looks.at(n)).map(Level::fraction).collect();
        assert!(levels.len() >= 3 && levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        assert!((0.95..0.975).contains(levels.last().unwrap()), "{levels:?}");
    }

    #[test]
    fn early_looks_of_a_short_experiment_exist_and_spend_no_more_than_the_whole() {
        // Four arms of a diagnosis: 9 pairs can show 2^-8, which is less than 9 / 16 of their error.
        let level = Level::P95.shared_by(4);
        let looks = Looks::early(16, level);
        assert_eq!(looks.blocks().collect::<Vec<_>>(), [9, 12, 16]);
        assert_eq!(Looks::early(16, Level::P95.shared_by(3)).blocks().collect::<Vec<_>>(), [8, 11, 16]);
        assert_eq!(Looks::early(12, level).blocks().collect::<Vec<_>>(), [8, 12], "8 pairs can show 2^-7");
        let total: f64 = looks.looks.iter().map(|look| look.error).sum();
        assert!((total - level.error()).abs() < 1e-12);
        assert_eq!(Looks::new(16, level).blocks().collect::<Vec<_>>(), [12, 16], "{looks:?}");
    }

    #[test]
    fn a_p_value_counts_what_its_look_may_spend() {
        let look = Level::new(1.0 - 0.005).unwrap();
        assert!((over_all_looks(0.004, look, Level::P95) - 0.04).abs() < 1e-9);
        assert_eq!(over_all_looks(0.5, look, Level::P95), 1.0);
        assert!((over_all_looks(0.5, Level::P95, Level::P95) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_last_look_gets_what_is_left() {
        let looks = Looks::new(60, Level::P95);
        let first = looks.blocks().next().unwrap();
        assert_eq!(looks.last(first - 1).map(Level::fraction), Some(0.95));
        assert!(looks.last(60).unwrap().fraction() >= 0.95 - 1e-12);
        assert!(looks.last(60).unwrap() == looks.at(60).unwrap());
        assert!(Looks::new(0, Level::P95).at(0).is_none());
    }
}
