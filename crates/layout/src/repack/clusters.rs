//! Which pages of a file stand together in a copy of it, and what that makes of its segments. Knows numbers of pages only.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Pages that nobody needs between needed ones go along when they are so many in a row: as in a preload plan (docs/preload-plan.md),
/// where fewer requests are worth more than the bytes.
const HOLE: u64 = 2;

/// The pages of the file that a loaded segment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePages(pub Range<u64>);

/// Consecutive pages of a segment that stay consecutive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Their numbers in the file as it was.
    pub pages: Range<u64>,
    /// The place of the first one in the cluster; none: they stay where they are.
    pub place: Option<u64>,
}

/// Pages that stand together, in the order of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pages: Vec<u64>,
    places: BTreeMap<u64, u64>,
    needed: u64,
    runs: u64,
}

impl Cluster {
    /// Of pages in the order of use, those that segments have. Larger holes go along where the segments would be in more than `room`
    /// pieces. None where they are in more whatever goes along.
    pub fn of(segments: &[FilePages], order: &[u64], room: usize) -> Option<Self> {
        let is_loaded = |page: &u64| segments.iter().any(|FilePages(pages)| pages.contains(page));
        let mut ranks: BTreeMap<u64, usize> = BTreeMap::new();
        for (rank, page) in order.iter().enumerate().filter(|(_, page)| is_loaded(page)) {
            ranks.entry(*page).or_insert(rank);
        }
        let fits = |cluster: &Self| {
            segments.iter().map(|one| cluster.pieces(one.0.clone()).len().max(1)).sum::<usize>() <= room
        };
        let mut found = Some(Self::with_holes(segments, &ranks, HOLE)).filter(fits);
        if found.is_some() {
            return found;
        }
        // The larger the holes that go along, the fewer the pieces.
        let (mut too_small, mut large) = (HOLE, segments.iter().map(|FilePages(pages)| pages.end - pages.start).max()?);
        while too_small < large {
            let middle = too_small + (large - too_small) / 2;
            let cluster = Self::with_holes(segments, &ranks, middle);
            if fits(&cluster) {
                (found, large) = (Some(cluster), middle);
            } else {
                too_small = middle + 1;
            }
        }
        found.or_else(|| Some(Self::with_holes(segments, &ranks, large)).filter(fits))
    }

    fn with_holes(segments: &[FilePages], ranks: &BTreeMap<u64, usize>, hole: u64) -> Self {
        let mut moved: BTreeSet<u64> = BTreeSet::new();
        for FilePages(segment) in segments.iter().filter(|one| !one.0.is_empty()) {
            let mut last: Option<u64> = None;
            for (page, _) in ranks.range(segment.clone()) {
                let from = last.filter(|last| page - last - 1 <= hole).map_or(*page, |last| last + 1);
                moved.extend(from..=*page);
                last = Some(*page);
            }
        }
        let mut runs: Vec<Range<u64>> = Vec::new();
        for page in moved {
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        runs.sort_by_key(|run| ranks.range(run.clone()).map(|(_, rank)| *rank).min());
        let count = runs.len() as u64;
        let pages: Vec<u64> = runs.into_iter().flatten().collect();
        let places = pages.iter().copied().zip(0..).collect();
        Self { pages, places, needed: ranks.len() as u64, runs: count }
    }

    /// Its pages, by their numbers in the file.
    pub fn pages(&self) -> &[u64] {
        &self.pages
    }

    /// How many of them were asked for.
    pub fn needed(&self) -> u64 {
        self.needed
    }

    /// Runs of consecutive pages that they were.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// The pieces of a segment.
    pub fn pieces(&self, segment: Range<u64>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for page in segment {
            let place = self.places.get(&page).copied();
            match pieces.last_mut() {
                Some(piece) if place == piece.place.map(|first| first + (page - piece.pages.start)) => {
                    piece.pages.end += 1
                }
                _ => pieces.push(Piece { pages: page..page + 1, place }),
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segments(ranges: &[Range<u64>]) -> Vec<FilePages> {
        ranges.iter().cloned().map(FilePages).collect()
    }

    #[test]
    fn pages_stand_in_the_order_of_use_and_small_holes_go_along() {
        let cluster = Cluster::of(&[FilePages(0..100)], &[50, 10, 13, 90, 50, 7000], 100).unwrap();
        assert_eq!(cluster.pages(), [50, 10, 11, 12, 13, 90]);
        assert_eq!((cluster.needed(), cluster.runs()), (4, 3));
        let places: Vec<_> = cluster.pieces(0..100).into_iter().map(|piece| (piece.pages, piece.place)).collect();
        let expected = [
            (0..10, None),
            (10..14, Some(1)),
            (14..50, None),
            (50..51, Some(0)),
            (51..90, None),
            (90..91, Some(5)),
            (91..100, None),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn larger_holes_go_along_where_there_is_room_for_few_pieces() {
        let cluster = Cluster::of(&[FilePages(0..100)], &[50, 10, 90], 3).unwrap();
        assert_eq!(cluster.pages(), (10..=90).collect::<Vec<_>>());
        assert_eq!(cluster.pieces(0..100).len(), 3);
        assert_eq!(Cluster::of(&segments(&[0..1, 2..3]), &[0], 1), None, "two segments are two pieces");
    }

    #[test]
    fn a_page_of_two_segments_is_there_once() {
        let cluster = Cluster::of(&segments(&[0..5, 4..9]), &[4, 8], 9).unwrap();
        assert_eq!(cluster.pages(), [4, 8]);
        assert_eq!(cluster.pieces(0..5).last().map(|piece| piece.place), Some(Some(0)));
        assert_eq!(cluster.pieces(4..9).first().map(|piece| piece.place), Some(Some(0)));
    }

    proptest! {
        #[test]
        fn every_page_of_a_segment_is_in_one_piece_and_every_needed_one_in_the_cluster(
            first in 1u64..200, second in 1u64..200, order in prop::collection::vec(0u64..420, 0..80), room in 6usize..60,
        ) {
            let segments = segments(&[0..first, first..first + second]);
            let cluster = Cluster::of(&segments, &order, room).unwrap();
            for page in order.iter().filter(|page| **page < first + second) {
                prop_assert!(cluster.pages().contains(page));
            }
            let mut pieces = 0;
            for FilePages(segment) in &segments {
                let parts = cluster.pieces(segment.clone());
                pieces += parts.len();
                let pages: Vec<u64> = parts.iter().flat_map(|part| part.pages.clone()).collect();
                prop_assert_eq!(pages, segment.clone().collect::<Vec<_>>());
                for part in &parts {
                    if let Some(place) = part.place {
                        for (page, place) in part.pages.clone().zip(place..) {
                            prop_assert_eq!(cluster.pages()[place as usize], page);
                        }
                    }
                }
            }
            prop_assert!(pieces <= room);
        }
    }
}
