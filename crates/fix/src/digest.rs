//! The digest by which a text is known again: SHA-256 (FIPS 180-4), as sha256sum(1) prints it.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of these bytes, 64 hexadecimal digits in lower case.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_sha256sum() {
        // FIPS 180-4, its examples for the empty message and for "abc".
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
