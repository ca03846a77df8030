//! Columns of a page as text: bytes and numbers of any length (LEB128), in base64.
//!
//! A million spans are 5 MB so, and a page reads them in some hundredths of a second; as JSON they would be numbers of ten digits.

/// Numbers, each in as few bytes as it needs: seven bits a byte, the lowest first, the highest bit set where more follow.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Vec<u8>);

impl Numbers {
    pub(crate) fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn text(&self) -> String {
        base64(&self.0)
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64 (RFC 4648, section 4), with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from(word[0]) << 16 | u32::from(word[1]) << 8 | u32::from(word[2]);
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place) & 0x3f) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bytes of base64.
    pub(crate) fn bytes(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(4) {
            let digits = chunk.iter().filter(|digit| **digit != b'=');
            let digits: Vec<u32> = digits.map(|d| ALPHABET.iter().position(|a| a == d).unwrap() as u32).collect();
            let bits = digits.iter().enumerate().fold(0, |sum, (at, digit)| sum | digit << (18 - 6 * at));
            out.extend((0..digits.len() - 1).map(|at| (bits >> (16 - 8 * at)) as u8));
        }
        out
    }

    /// The numbers of a column.
    pub(crate) fn numbers(text: &str) -> Vec<u64> {
        let (mut out, mut number, mut shift) = (Vec::new(), 0, 0);
        for byte in bytes(text) {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                out.push(number);
                (number, shift) = (0, 0);
            }
        }
        out
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        let vectors = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in vectors.iter().enumerate() {
            let plain = &b"foobar"[..length];
            assert_eq!(base64(plain), *text);
            assert_eq!(bytes(text), plain);
        }
    }

    #[test]
    fn numbers_of_any_length_come_back() {
        let all = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), 1 << 53, u64::MAX];
        let mut column = Numbers::default();
        all.iter().for_each(|number| column.push(*number));
        assert_eq!(numbers(&column.text()), all);
    }
}
