//! Times as tools print them.

use slowpath_tables::Nanos;

/// The time in a decimal number of seconds, as `12.345678`: digits, a point, and 1 to 9 digits.
pub fn seconds(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - part.len() as u32);
    let part = part.parse::<u64>().ok()?.checked_mul(scale)?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part).map(Nanos)
}

/// A number in hexadecimal with `0x` before it, or in decimal.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_exactly_and_nothing_else_is() {
        assert_eq!(seconds("12.000001"), Some(Nanos(12_000_001_000)));
        assert_eq!(seconds("1700000000.123456789"), Some(Nanos(1_700_000_000_123_456_789)));
        for wrong in ["12", "12.", ".5", "-1.5", "1.5e3", "12.1234567890", "99999999999999999999.0", "1.+5"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
