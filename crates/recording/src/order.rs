//! Putting rows in order that nearly are.
//!
//! Recorded rows come in pieces, each of them in order, that overlap by little: what one CPU reports waits for nobody. A
//! general sort merges all pieces, a dozen passes over gigabytes; here only the rows at the seams move.

/// Sorts rows by a key; rows of the same key keep their order.
pub(crate) fn sort_pieces<R, K: Ord + Copy>(rows: &mut [R], key: impl Fn(&R) -> K) {
    // Rows before `sorted` are in order.
    let (mut sorted, mut moved) = (1, 0);
    while sorted < rows.len() {
        let (last, first) = (key(&rows[sorted - 1]), key(&rows[sorted]));
        if last <= first {
            sorted += 1;
            continue;
        }
        // The next piece, as far as its rows belong before those that are there.
        let mut end = sorted + 1;
        while end < rows.len() && key(&rows[end]) < last && key(&rows[end - 1]) <= key(&rows[end]) {
            end += 1;
        }
        let from = rows[..sorted].partition_point(|row| key(row) <= first);
        moved += end - from;
        if moved > rows.len() {
            // No pieces, or pieces that overlap by much.
            rows.sort_by_key(key);
            return;
        }
        rows[from..end].sort_by_key(&key);
        sorted = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_rows_are_sorted_as_by_the_standard_library(
            pieces in proptest::collection::vec(proptest::collection::vec(0u64..40, 0..20), 0..12),
            apart in 0u64..60,
            are_in_order in any::<bool>(),
        ) {
            let mut rows: Vec<(u64, usize)> = Vec::new();
            for (number, mut piece) in (0u64..).zip(pieces) {
                if are_in_order {
                    piece.sort_unstable();
                }
                for key in piece {
                    rows.push((key + number * apart, rows.len()));
                }
            }
            let mut expected = rows.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_pieces(&mut rows, |(key, _)| *key);
            prop_assert_eq!(rows, expected);
        }
    }
}
