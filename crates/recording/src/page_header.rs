//! The headers of Parquet pages, as far as they say what decoding will take.
//!
//! The decoder allocates what a header claims, and has no limit of its own. So the headers are read before it runs: Thrift's compact
//! protocol (thrift/doc/specs/thrift-compact-protocol.md), `PageHeader` of apache/parquet-format's parquet.thrift. Total on any bytes.

/// Structures inside structures that are passed over; a page header has two levels.
const DEEPEST: u32 = 8;

/// What a header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Bytes of the header itself.
    pub length: u64,
    /// Bytes of the page behind it.
    pub compressed: u64,
    /// Bytes of the page when it is decompressed.
    pub uncompressed: u64,
    /// Values in it.
    pub values: u64,
    /// How they are encoded; none for an index.
    pub encoding: Option<i64>,
    /// Whether it is a dictionary.
    pub is_dictionary: bool,
}

/// Reads the header at the beginning of `bytes`; `None` where there is none that is whole.
pub(crate) fn read(bytes: &[u8]) -> Option<PageHeader> {
    let mut from = Compact { bytes, at: 0 };
    let mut header = PageHeader::default();
    let mut last = 0;
    while let Some(field) = from.field(&mut last)? {
        match (field.id, field.kind) {
            (2, I32) => header.uncompressed = u64::try_from(from.integer()?).ok()?,
            (3, I32) => header.compressed = u64::try_from(from.integer()?).ok()?,
            // DataPageHeader, DictionaryPageHeader, DataPageHeaderV2: number of values first; the encoding is the second field, or
            // the fourth.
            (5 | 7, STRUCT) => {
                header.is_dictionary |= field.id == 7;
                from.page(&mut header, 2)?;
            }
            (8, STRUCT) => from.page(&mut header, 4)?,
            (_, kind) => from.skip(kind, DEEPEST)?,
        }
    }
    header.length = from.at as u64;
    Some(header)
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

struct Field {
    id: i64,
    kind: u8,
}

struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number in zigzag form.
    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// The next field of a structure; `Some(None)` at its end.
    fn field(&mut self, last: &mut i64) -> Option<Option<Field>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        let id = match byte >> 4 {
            0 => self.integer()?,
            more => last.checked_add(i64::from(more))?,
        };
        *last = id;
        Some(Some(Field { id, kind: byte & 0x0f }))
    }

    /// Number of values and encoding out of the header of one kind of page.
    fn page(&mut self, header: &mut PageHeader, encoding: i64) -> Option<()> {
        let mut last = 0;
        while let Some(field) = self.field(&mut last)? {
            match (field.id, field.kind) {
                (1, I32) => header.values = u64::try_from(self.integer()?).ok()?,
                (id, I32) if id == encoding => header.encoding = Some(self.integer()?),
                (_, kind) => self.skip(kind, DEEPEST)?,
            }
        }
        Some(())
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => {}
            BYTE => self.pass(1)?,
            I16 | I32 | I64 => drop(self.varint()?),
            DOUBLE => self.pass(8)?,
            BINARY => {
                let length = self.varint()?;
                self.pass(length)?;
            }
            LIST | SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                self.skip_elements(head & 0x0f, length, depth)?;
            }
            MAP => {
                let length = self.varint()?;
                if length > 0 {
                    let kinds = self.byte()?;
                    for _ in 0..length {
                        self.skip_element(kinds >> 4, depth)?;
                        self.skip_element(kinds & 0x0f, depth)?;
                    }
                }
            }
            STRUCT => {
                let mut last = 0;
                while let Some(field) = self.field(&mut last)? {
                    self.skip(field.kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn skip_elements(&mut self, kind: u8, length: u64, depth: u32) -> Option<()> {
        (0..length).try_for_each(|_| self.skip_element(kind, depth))
    }

    /// An element takes a byte at least, so a list ends with the bytes that there are; true and false are a byte in a list.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, TRUE | FALSE) { self.pass(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// PLAIN page of 300 values, 1000 bytes that were 40 before.
    const HEADER: [u8; 17] =
        [0x15, 0x00, 0x15, 0xd0, 0x0f, 0x15, 0x50, 0x2c, 0x15, 0xd8, 0x04, 0x15, 0x00, 0x15, 0x06, 0x00, 0x00];

    #[test]
    fn a_header_is_read_and_a_cut_one_is_none() {
        let expected = PageHeader {
            length: 17,
            compressed: 40,
            uncompressed: 1000,
            values: 300,
            encoding: Some(0),
            is_dictionary: false,
        };
        assert_eq!(read(&HEADER), Some(expected));
        for cut in 0..HEADER.len() {
            assert_eq!(read(&HEADER[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn negative_sizes_and_lists_longer_than_the_bytes_are_refused() {
        // uncompressed_page_size -1; then a list of 2^40 elements in a field that is unknown here.
        assert_eq!(read(&[0x25, 0x01, 0x00]), None);
        assert_eq!(read(&[0x99, 0xf5, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 1, 1]), None);
        let nested: Vec<u8> = std::iter::repeat_n(0x1c, 100).collect();
        assert_eq!(read(&nested), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(header) = read(&bytes) {
                prop_assert!(header.length <= bytes.len() as u64);
            }
        }
    }
}
