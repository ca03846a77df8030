//! The table and the search in it. Making it is for its neighbours.

use super::row::Row;

/// Bytes of a page of the table: the smallest page, whatever the machine maps files with.
pub const PAGE: u64 = 4096;

/// More rows than this are refused: 128 MiB, six times what the largest library known here (Firefox's libxul) needs.
pub const MAX_ROWS: usize = 16 << 20;

/// The unwinding table of one ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindTable {
    /// File offset of the first page divided by 4096.
    pub first_page: u32,
    /// For each page the number of its first row; one more at the end, the number of all rows.
    pub pages: Vec<u32>,
    /// All rows.
    pub rows: Vec<Row>,
}

impl UnwindTable {
    /// The row that holds at a file offset; [`Row::UNKNOWN`] outside of the table.
    ///
    /// This is the reference of the search that the program in the kernel does.
    pub fn lookup(&self, offset: u64) -> Row {
        self.find(offset).unwrap_or(Row::UNKNOWN)
    }

    fn find(&self, offset: u64) -> Option<Row> {
        let page = usize::try_from((offset / PAGE).checked_sub(u64::from(self.first_page))?).ok()?;
        let first = usize::try_from(*self.pages.get(page)?).ok()?;
        let end = usize::try_from(*self.pages.get(page.checked_add(1)?)?).ok()?;
        let rows = self.rows.get(first..end)?;
        let later = rows.partition_point(|row| u64::from(row.at) <= offset % PAGE);
        rows.get(later.checked_sub(1)?).copied()
    }

    /// Bytes that the table takes in memory.
    pub fn size(&self) -> u64 {
        (size_of_val(self.rows.as_slice()) + size_of_val(self.pages.as_slice())) as u64
    }
}
