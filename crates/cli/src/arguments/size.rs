//! Sizes on the command line.

/// Bytes with an optional suffix K, M or G (powers of 1024).
pub(super) fn bytes(text: &str) -> Result<u64, String> {
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
    value.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_take_the_usual_suffixes_and_refuse_others() {
        assert_eq!(bytes("128K"), Ok(131_072));
        assert_eq!(bytes("120MiB"), Ok(120 << 20));
        assert_eq!(bytes("0"), Ok(0));
        assert!(bytes("5x").is_err() && bytes("").is_err() && bytes("99999999999G").is_err());
    }
}
