//! A moment of the calendar as text.

use chrono::{DateTime, SecondsFormat};

/// The first and the last second that RFC 3339 can write: years have four digits, and there is none before 0.
const YEARS: (i64, i64) = (-62_167_219_200, 253_402_300_799);

/// Seconds since 1970 in UTC, as RFC 3339; what it cannot write is the nearest moment that it can.
pub fn rfc3339(seconds: i64) -> String {
    let seconds = seconds.clamp(YEARS.0, YEARS.1);
    // Within these years there is always such a moment.
    DateTime::from_timestamp(seconds, 0).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_the_date_that_the_calendar_has() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (-62_167_219_200, "0000-01-01T00:00:00Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
