//! Pages that were read, as ranges: a trace from elsewhere can claim a request of any size, and what is kept of it grows with
//! the requests and never with their pages.

use std::ops::Range;

/// Ranges of page numbers in the order in which they were added; a page that was read twice is in two of them.
#[derive(Clone, Debug, Default)]
pub struct PageRanges {
    ranges: Vec<Range<u64>>,
}

impl PageRanges {
    /// Adds pages; an empty range is nothing.
    pub fn add(&mut self, pages: Range<u64>) {
        if pages.start < pages.end {
            self.ranges.push(pages);
        }
    }

    /// All pages; one that was added twice counts twice.
    pub fn count(&self) -> u64 {
        total(&self.ranges)
    }

    /// How many different pages are not among `others`, which may be in any order and repeat themselves.
    pub fn different_without(&self, others: &[u64]) -> u64 {
        let apart = self.disjoint();
        let mut others = others.to_vec();
        others.sort_unstable();
        others.dedup();
        let held = others.iter().filter(|page| {
            let after = apart.partition_point(|range| range.start <= **page);
            apart[..after].last().is_some_and(|range| **page < range.end)
        });
        total(&apart) - held.count() as u64
    }

    /// The same pages, each once, in their order in the file.
    fn disjoint(&self) -> Vec<Range<u64>> {
        let mut sorted = self.ranges.clone();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut apart: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        apart
    }
}

fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().fold(0, |sum, range| sum.saturating_add(range.end - range.start))
}

#[cfg(test)]
mod tests {
    use super::PageRanges;

    fn of(ranges: &[(u64, u64)]) -> PageRanges {
        let mut all = PageRanges::default();
        ranges.iter().for_each(|(from, to)| all.add(*from..*to));
        all
    }

    #[test]
    fn pages_that_were_read_twice_count_twice_and_are_wasted_once() {
        let read = of(&[(4, 8), (0, 2), (6, 10), (2, 3), (5, 5)]);
        assert_eq!(read.count(), 4 + 2 + 4 + 1);
        assert_eq!(read.different_without(&[]), 9);
        // 3 was never read, 9 is the last of its range, 10 lies behind it; 4 is named twice.
        assert_eq!(read.different_without(&[9, 4, 3, 10, 4, 0]), 6);
    }

    #[test]
    fn requests_of_any_size_are_counted_and_not_walked() {
        let read = of(&[(0, u64::MAX), (1, u64::MAX), (7, u64::MAX - 1)]);
        assert_eq!(read.count(), u64::MAX);
        assert_eq!(read.different_without(&[0, 1, u64::MAX]), u64::MAX - 2);
    }
}
