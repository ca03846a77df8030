//! Sizes, times and shares as people write them.

use crate::Bytes;
use std::str::FromStr;
use std::time::Duration;

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

fn number(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%').trim().parse().map_err(|_| format!("{text:?} is no number"))
}

/// A share from a number of percent.
///
/// # Errors
/// What is wrong, in a sentence.
pub fn percent(text: &str) -> Result<f64, String> {
    match number(text)? {
        value if value > 0.0 && value <= 100.0 => Ok(value / 100.0),
        _ => Err("expected more than 0 and at most 100 percent".to_owned()),
    }
}

/// A quantile from its number in percent.
///
/// # Errors
/// What is wrong, in a sentence.
pub fn quantile(text: &str) -> Result<f64, String> {
    match number(text)? {
        value if value > 0.0 && value < 100.0 => Ok(value / 100.0),
        _ => Err("expected more than 0 and less than 100".to_owned()),
    }
}

/// A time such as `90`, `300ms`, `90s`, `10m` (or `10min`) or `1.5h`.
///
/// # Errors
/// What is wrong, in a sentence.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 500ms, 30s, 10m or 1h".to_owned();
    let (digits, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    match digits.trim_end().parse::<f64>().map(|value| value * seconds) {
        Ok(value) if (0.001..1e7).contains(&value) => Ok(Duration::from_secs_f64(value)),
        _ => Err(wrong()),
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

    #[test]
    fn times_and_shares_have_units_and_limits() {
        assert_eq!(duration("1.5h").unwrap().as_secs(), 5400);
        assert_eq!(duration("90").unwrap(), duration("90s").unwrap());
        assert_eq!((percent("2%"), percent("0.5")), (Ok(0.02), Ok(0.005)));
        assert_eq!(quantile("95"), Ok(0.95));
        assert_eq!(duration("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!((duration("10min"), duration("10 m")), (duration("10m"), duration("600")));
        for bad in ["", "m", "-3s", "0", "0.1ms", "1e99", "1e3", "nan", "inf", "5d", "5 ms x", "3hours"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
        assert!(percent("0").is_err() && percent("nan").is_err() && quantile("100").is_err());
    }
}
