//! Sizes as people write them.

use crate::Bytes;
use std::str::FromStr;

/// Bytes with an optional suffix K, M or G (powers of 1024).
impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let shift = match unit.trim_end_matches(['b', 'B']).trim_end_matches('i') {
            "" => 0,
            "k" | "K" => 10,
            "m" | "M" => 20,
            "g" | "G" => 30,
            _ => return Err(format!("unknown unit {unit:?}; use K, M or G")),
        };
        let value: u64 = digits.parse().map_err(|_| format!("{text:?} is no size"))?;
        value.checked_mul(1 << shift).map(Self).ok_or_else(|| "too large".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_the_usual_suffixes_and_refuse_others() {
        assert_eq!("128K".parse(), Ok(Bytes(131_072)));
        assert_eq!("120MiB".parse(), Ok(Bytes(120 << 20)));
        assert_eq!("0".parse(), Ok(Bytes(0)));
        for wrong in ["5x", "", "99999999999G"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }
}
