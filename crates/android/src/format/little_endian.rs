//! Numbers in foreign bytes, one after the other.

use super::FormatError;

/// Bytes, and how far they are read.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    rest: &'a [u8],
    /// What is read, for the error.
    what: &'static str,
}

impl<'a> Bytes<'a> {
    /// From the begin.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(FormatError::Short(self.what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(FormatError::Short(self.what))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }
}
