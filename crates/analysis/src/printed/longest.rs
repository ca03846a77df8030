//! Bounding what an export shows of a table with millions of rows: the longest are kept.

use std::cmp::Reverse;

/// `rows` with their length in ns (0 where it is not known), or the longest of them where there are more than `limit`; in their
/// order. A sentence says what is missing.
pub fn longest<T>(rows: Vec<(u64, T)>, limit: usize, what: &str, notes: &mut Vec<String>) -> Vec<T> {
    if rows.len() <= limit {
        return rows.into_iter().map(|(_, row)| row).collect();
    }
    let mut order: Vec<(u64, Reverse<usize>)> =
        rows.iter().enumerate().map(|(index, (length, _))| (*length, Reverse(index))).collect();
    let cut = order.len() - limit;
    let (shorter, shortest, _) = order.select_nth_unstable(cut);
    let (longest_left_out, shortest) = (shorter.iter().map(|one| one.0).max().unwrap_or_default(), *shortest);
    let which = match longest_left_out {
        0 => "some of no known length".to_owned(),
        length => format!("those of up to {length} ns"),
    };
    notes.push(format!("{cut} of {} {what} are left out: {which} (limit {limit}).", rows.len()));
    let kept = rows.into_iter().enumerate().filter(|(index, (length, _))| (*length, Reverse(*index)) >= shortest);
    kept.map(|(_, (_, row))| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_rows_the_longest_are_kept_in_their_order_and_that_is_said() {
        let mut notes = Vec::new();
        let rows = vec![(5, 'a'), (9, 'b'), (5, 'c'), (1, 'd'), (7, 'e')];
        assert_eq!(longest(rows.clone(), 3, "rows", &mut notes), ['a', 'b', 'e'], "of equal ones the first");
        assert_eq!(notes, ["2 of 5 rows are left out: those of up to 5 ns (limit 3)."]);
        assert_eq!(longest(rows, 5, "rows", &mut notes).len(), 5);
        assert_eq!(notes.len(), 1);
    }
}
