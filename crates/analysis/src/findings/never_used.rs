//! Which share of the pages that were looked at held nothing but zeros.
//!
//! Owns the estimate from an even sample. A page that was looked at stands for as many as lie between it and the next. Where all
//! were, the share is what was counted. Else its interval is Wilson's, with as many trials as a sample of equal weights would have
//! that is as certain (L. Kish, Survey Sampling, 1965: the square of the sum of weights by the sum of their squares). Even samples
//! of memory that is used from its beginning on are more certain than that.

use crate::interval::share_interval;
use crate::memory::memory_blocks::SeenPage;

/// A share of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NeverUsed {
    /// Pages that were looked at.
    pub looked_at: u64,
    /// Those that were all zero.
    pub zero: u64,
    /// Share of zero pages among all that they stand for.
    pub share: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl NeverUsed {
    /// Of a sample; `None` of none.
    pub fn of<'a>(pages: impl Iterator<Item = &'a SeenPage>) -> Option<Self> {
        let (mut looked_at, mut zero, mut all, mut unused, mut squares) = (0u64, 0u64, 0.0, 0.0, 0.0);
        let mut is_whole = true;
        for page in pages {
            let weight = page.stands_for.0 as f64;
            is_whole &= page.stands_for.0 == 1;
            looked_at += 1;
            all += weight;
            squares += weight * weight;
            if page.is_zero {
                zero += 1;
                unused += weight;
            }
        }
        if all <= 0.0 {
            return None;
        }
        let share = unused / all;
        let trials = all * all / squares;
        let (low, high) = if is_whole { (share, share) } else { share_interval(share * trials, trials) };
        Some(Self { looked_at, zero, share, low: low.min(share), high: high.max(share) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::{Bytes, Pages};

    fn pages(stands_for: &[u64], zero: usize) -> Option<NeverUsed> {
        let page = |(at, stands_for): (usize, &u64)| SeenPage {
            block: 0,
            page: 0,
            offset: Bytes(0),
            stands_for: Pages(*stands_for),
            is_zero: at < zero,
        };
        let pages: Vec<SeenPage> = stands_for.iter().enumerate().map(page).collect();
        NeverUsed::of(pages.iter())
    }

    #[test]
    fn where_every_page_was_looked_at_the_share_is_exact() {
        let whole = pages(&[1; 10], 9).unwrap();
        assert_eq!((whole.looked_at, whole.zero, whole.share, whole.low, whole.high), (10, 9, 0.9, 0.9, 0.9));
        assert_eq!(pages(&[], 0), None);
    }

    #[test]
    fn a_sample_has_an_interval_and_pages_count_for_what_they_stand_for() {
        // Wilson's interval of 90 of 100.
        let sample = pages(&[40; 100], 90).unwrap();
        assert!((sample.low - 0.8256).abs() < 1e-4 && (sample.high - 0.9448).abs() < 1e-4, "{sample:?}");
        let mixed = pages(&[30, 10, 10, 10], 1).unwrap();
        assert_eq!(mixed.share, 0.5);
        let even = pages(&[10, 10, 10, 10], 2).unwrap();
        assert!(mixed.high - mixed.low > even.high - even.low, "{mixed:?} {even:?}");
    }
}
