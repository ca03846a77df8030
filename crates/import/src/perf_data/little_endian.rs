//! Fields of a record, one after the other: numbers whose lowest byte comes first, and text that ends at a zero.

/// The bytes that follow.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes; none where there are fewer.
    pub fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// Without the next `count` numbers of 64 bits.
    pub fn skip_numbers(&mut self, count: u64) -> Option<()> {
        self.take(count.checked_mul(8)?).map(|_| ())
    }

    /// A number of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// The id of a process or thread: 0 for one that is gone (-1), as for the idle task.
    pub fn task(&mut self) -> Option<u32> {
        self.u32().map(|id| if id > i32::MAX as u32 { 0 } else { id })
    }

    /// Text up to its zero, which is left out; none where there is no zero.
    pub fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = text(&self.0[..end]);
        self.0 = &self.0[end + 1..];
        Some(text)
    }

    /// Text with its length before it, as in the sections behind the records.
    pub fn counted_text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(u64::from(length)).map(text)
    }
}

/// Text that ends at the first zero, or with the bytes. Foreign: what is no UTF-8 in it is replaced.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The number in these 1, 2, 4 or 8 bytes.
pub fn number(bytes: &[u8]) -> Option<u64> {
    if !matches!(bytes.len(), 1 | 2 | 4 | 8) {
        return None;
    }
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
