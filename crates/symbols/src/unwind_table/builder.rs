//! Rows in rising order, cut into pages.

use super::{MAX_ROWS, PAGE, Row, UnwindTable, UnwindTableError};

/// Takes changes of the rule by rising file offset.
#[derive(Debug)]
pub(super) struct Builder {
    table: UnwindTable,
    /// Rule that holds behind the last change.
    rule: Row,
    /// Number of the page being filled, counted from the first.
    page: u64,
    end_page: u64,
}

impl Builder {
    /// For the file offsets `from..to`, which are unknown until told otherwise.
    pub fn new(from: u64, to: u64) -> Result<Self, UnwindTableError> {
        let (first, end) = (from / PAGE, to.div_ceil(PAGE));
        let too_large = || UnwindTableError::TooLarge { what: "pages", limit: u64::from(u32::MAX) };
        let first_page = u32::try_from(first).map_err(|_| too_large())?;
        if end - first > MAX_ROWS as u64 {
            // Every page has a row.
            return Err(TOO_MANY_ROWS);
        }
        let table = UnwindTable { first_page, pages: vec![0], rows: vec![Row::UNKNOWN] };
        Ok(Self { table, rule: Row::UNKNOWN, page: first, end_page: end })
    }

    /// From `offset` on, `rule` holds. Offsets must not fall; one that stands outside of the range is an error of the caller and
    /// ignored.
    pub fn change(&mut self, offset: u64, rule: Row) -> Result<(), UnwindTableError> {
        let page = offset / PAGE;
        if page < self.page || page >= self.end_page {
            return Ok(());
        }
        self.fill_to(page)?;
        let at = (offset % PAGE) as u16;
        let rows = &mut self.table.rows;
        if rows.last().is_some_and(|last| last.at == at) {
            // What was set for this very offset is void; the row before it may now say the same.
            rows.pop();
            let before = rows.last().filter(|_| at != 0);
            if before.is_none_or(|before| !before.same_rule(&rule)) {
                rows.push(Row { at, ..rule });
            }
        } else if !self.rule.same_rule(&rule) {
            if rows.len() >= MAX_ROWS {
                return Err(TOO_MANY_ROWS);
            }
            rows.push(Row { at, ..rule });
        }
        self.rule = rule;
        Ok(())
    }

    /// The table.
    pub fn finish(mut self) -> Result<UnwindTable, UnwindTableError> {
        self.fill_to(self.end_page.saturating_sub(1))?;
        self.table.pages.push(self.table.rows.len() as u32);
        self.table.rows.shrink_to_fit();
        self.table.pages.shrink_to_fit();
        Ok(self.table)
    }

    /// Begins all pages up to one with the rule that holds.
    fn fill_to(&mut self, page: u64) -> Result<(), UnwindTableError> {
        while self.page < page {
            if self.table.rows.len() >= MAX_ROWS {
                return Err(TOO_MANY_ROWS);
            }
            self.page += 1;
            self.table.pages.push(self.table.rows.len() as u32);
            self.table.rows.push(Row { at: 0, ..self.rule });
        }
        Ok(())
    }
}

const TOO_MANY_ROWS: UnwindTableError = UnwindTableError::TooLarge { what: "rows", limit: MAX_ROWS as u64 };

#[cfg(test)]
mod tests {
    use super::super::{CfaRule, FramePointerRule};
    use super::*;

    fn rule(offset: i64) -> Row {
        Row::new(CfaRule::StackPointer, offset, FramePointerRule::Same, 0)
    }

    #[test]
    fn every_page_begins_with_the_rule_that_holds_there() {
        let mut builder = Builder::new(0x1800, 0x4001).unwrap();
        builder.change(0x1810, rule(8)).unwrap();
        builder.change(0x1811, rule(16)).unwrap();
        builder.change(0x3000, rule(8)).unwrap();
        builder.change(0x3004, Row::UNKNOWN).unwrap();
        let table = builder.finish().unwrap();
        assert_eq!(table.first_page, 1);
        assert_eq!(table.pages, [0, 3, 4, 6, 7]);
        let found: Vec<_> = [0xfff, 0x1000, 0x180f, 0x1810, 0x1811, 0x2fff, 0x3003, 0x3004, 0x4fff, 0x5000]
            .map(|offset| table.lookup(offset).cfa_offset)
            .into();
        assert_eq!(found, [0, 0, 0, 1, 2, 2, 1, 0, 0, 0]);
    }

    #[test]
    fn equal_neighbours_are_one_row_and_the_last_word_for_an_offset_holds() {
        let mut builder = Builder::new(0x1000, 0x2000).unwrap();
        builder.change(0x1010, rule(8)).unwrap();
        builder.change(0x1020, Row::UNKNOWN).unwrap();
        builder.change(0x1020, rule(8)).unwrap();
        builder.change(0x1030, rule(8)).unwrap();
        builder.change(0x1040, rule(16)).unwrap();
        let table = builder.finish().unwrap();
        assert_eq!(table.rows.iter().map(|row| row.at).collect::<Vec<_>>(), [0, 0x10, 0x40]);
    }

    #[test]
    fn a_range_of_too_many_pages_is_refused_before_memory_is_taken() {
        let wide = Builder::new(0, (MAX_ROWS as u64 + 1) * PAGE);
        assert!(matches!(wide, Err(UnwindTableError::TooLarge { .. })));
        assert!(matches!(Builder::new(1 << 60, (1 << 60) + 1), Err(UnwindTableError::TooLarge { .. })));
    }
}
