//! What a segment may take, checked before anything of it is decoded.
//!
//! A recording may come from anybody, and Parquet compresses without a bound: some KB can claim gigabytes. Each limit is far above what
//! the writer makes and low enough that reading ends soon and in little memory. What is beyond one is damage of that segment; the others
//! are read.

use crate::page_header::{self, PageHeader};
use crate::read_error::Why;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Type;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Segments of a recording. One of each table every 5 s, later every minute, are some 20,000 in a day.
pub(crate) const MOST_SEGMENTS: usize = 200_000;

/// Bytes of a segment's file. The largest known, of 100,000 opens with long paths, has 4 MB.
const MOST_BYTES: u64 = 256 << 20;

/// Rows of a segment: four times what a writer ever holds of a table (250,000), and ten times what it usually writes at once.
pub const MOST_ROWS: usize = 1_000_000;

/// Bytes of its footer, which lists its columns; that of the widest table has 6 KB. The decoder reserves up to 500 times as much.
const MOST_FOOTER: u64 = 256 << 10;

/// Bytes of a page when it is decompressed; the writer ends one at 1 MiB and a few texts.
const MOST_PAGE: u64 = 32 << 20;

/// Bytes of all pages of a segment when they are decompressed: 100,000 rows of 2.5 KiB.
const MOST_PAGES: u64 = 256 << 20;

/// Bytes that are read at once to find a page's header, which has 20 to 100.
const HEADER: usize = 1 << 10;

/// Rows that are decoded at once: large enough to amortize the column dispatch, small enough to stay in the cache.
const BATCH_ROWS: u64 = 16 * 1024;

/// Text that is decoded at once in one column: a dictionary gives each row its longest word.
const BATCH_TEXT: u64 = 64 << 20;

/// PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED (levels only), DELTA_BINARY_PACKED, RLE_DICTIONARY of parquet.thrift: those that the writer
/// chooses from. The others let a text repeat the one before, so that a page becomes the square of its size.
const ENCODINGS: [i64; 6] = [0, 2, 3, 4, 5, 8];

/// Bytes in memory that each byte on disk may become. Tables of real recordings become up to 30; a column that never changes, more.
const MOST_GROWTH: u64 = 64;

/// Bytes in memory that a recording may become whatever its size on disk.
const GROWTH_BEGINS: u64 = 256 << 20;

/// Memory that one recording may take, counted over all its segments.
#[derive(Debug)]
pub(crate) struct Allowance {
    allowed: AtomicU64,
    taken: AtomicU64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { allowed: AtomicU64::new(GROWTH_BEGINS), taken: AtomicU64::new(0) }
    }
}

impl Allowance {
    /// A segment of so many bytes is there.
    fn grow(&self, bytes: u64) {
        self.allowed.fetch_add(bytes.saturating_mul(MOST_GROWTH), Ordering::Relaxed);
    }

    /// So many bytes more are in memory.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Why> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        at_most("bytes in memory, with the segments before it,", taken, self.allowed.load(Ordering::Relaxed))
    }
}

fn at_most(what: &'static str, found: u64, most: u64) -> Result<(), Why> {
    if found > most { Err(Why::TooLarge { what, found, most }) } else { Ok(()) }
}

/// A segment that keeps the limits.
pub(crate) struct Checked {
    /// What the decoder needs of its footer.
    pub footer: ArrowReaderMetadata,
    /// The columns that are wanted: others are not decoded.
    pub columns: ProjectionMask,
    /// Rows to decode at once.
    pub batch_rows: usize,
}

/// Checks a segment of `bytes` that the manifest says has `rows`.
pub(crate) fn check(
    file: &Arc<File>,
    bytes: u64,
    rows: u64,
    wanted: &[String],
    allowance: &Allowance,
) -> Result<Checked, Why> {
    at_most("bytes", bytes, MOST_BYTES)?;
    at_most("rows", rows, MOST_ROWS as u64)?;
    let mut tail = [0; 4];
    // The length of the footer, before the last four bytes, which are the magic number.
    file.read_exact_at(&mut tail, bytes.saturating_sub(8)).map_err(Why::Io)?;
    at_most("bytes of footer", u64::from(u32::from_le_bytes(tail)).min(bytes), MOST_FOOTER)?;
    let footer = ArrowReaderMetadata::load(&**file, Default::default()).map_err(Why::Parquet)?;
    let metadata = footer.metadata();
    let found = metadata
        .row_groups()
        .iter()
        .try_fold(0u64, |sum, group| sum.checked_add(u64::try_from(group.num_rows()).ok()?));
    match found {
        Some(found) if found == rows => {}
        found => return Err(Why::Rows { expected: rows, found: found.unwrap_or(u64::MAX) }),
    }
    let schema = metadata.file_metadata().schema_descr();
    let is_wanted = |name: &str| wanted.iter().any(|one| one == name);
    let columns = ProjectionMask::columns(schema, wanted.iter().map(String::as_str));
    let (mut pages, mut longest) = (0u64, 1u64);
    for group in metadata.row_groups() {
        for column in group.columns() {
            if !column.column_path().parts().first().is_some_and(|name| is_wanted(name)) {
                continue;
            }
            let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
            longest = longest.max(check_column(file, column, rows, bytes, &mut pages)?);
        }
    }
    allowance.grow(bytes);
    let batch_rows = (BATCH_TEXT / longest).clamp(1, BATCH_ROWS) as usize;
    Ok(Checked { footer, columns, batch_rows })
}

/// Walks the pages of a column; the length of the longest text in its dictionary.
fn check_column(
    file: &Arc<File>,
    column: &ColumnChunkMetaData,
    rows: usize,
    bytes: u64,
    pages: &mut u64,
) -> Result<u64, Why> {
    let (start, length) = column.byte_range();
    let end = start.checked_add(length).filter(|end| *end <= bytes);
    let end = end.ok_or(Why::TooLarge { what: "bytes of a column", found: length, most: bytes })?;
    let mut at = start;
    let mut longest = 1;
    while at < end {
        let header = header_at(file, at, end)?;
        at_most("bytes of a page", header.uncompressed, MOST_PAGE)?;
        *pages = pages.saturating_add(header.uncompressed);
        at_most("bytes of all pages", *pages, MOST_PAGES)?;
        at_most("values of a page", header.values, MOST_ROWS as u64)?;
        if let Some(encoding) = header.encoding.filter(|encoding| !ENCODINGS.contains(encoding)) {
            return Err(Why::Encoding(encoding));
        }
        // A short dictionary has no long text.
        if header.is_dictionary
            && column.column_type() == Type::BYTE_ARRAY
            && header.uncompressed > BATCH_TEXT / BATCH_ROWS
        {
            longest = longest.max(longest_word(file, column, rows)?);
        }
        // The header is not empty, so this goes on.
        at = at.saturating_add(header.length).saturating_add(header.compressed);
    }
    Ok(longest)
}

fn header_at(file: &File, at: u64, end: u64) -> Result<PageHeader, Why> {
    let mut bytes = [0; HEADER];
    let length = (end - at).min(HEADER as u64) as usize;
    let bytes = &mut bytes[..length];
    file.read_exact_at(bytes, at).map_err(Why::Io)?;
    page_header::read(bytes).ok_or(Why::Undecodable)
}

/// The length of the longest text in a dictionary: texts in the form PLAIN, each behind its length in four bytes.
fn longest_word(file: &Arc<File>, column: &ColumnChunkMetaData, rows: usize) -> Result<u64, Why> {
    let mut reader = SerializedPageReader::new(file.clone(), column, rows, None).map_err(Why::Parquet)?;
    let Some(Page::DictionaryPage { buf, .. }) = reader.get_next_page().map_err(Why::Parquet)? else {
        return Err(Why::Undecodable);
    };
    let mut rest: &[u8] = &buf;
    let mut longest = 0;
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(u64::from(length));
        rest = behind.get(length as usize..).ok_or(Why::Undecodable)?;
    }
    Ok(longest)
}
