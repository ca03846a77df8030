//! Sizes and times as people write them.

use slowpath_tables::Bytes;
use slowpath_tables::written::duration;

/// Bytes of a size such as `128K` or `4G`.
pub fn bytes(text: &str) -> Result<u64, String> {
    text.parse().map(|Bytes(bytes)| bytes)
}

/// Seconds of a time such as `30`, `30s`, `0.5s` or `10m`.
pub fn seconds(text: &str) -> Result<f64, String> {
    duration(text).map(|time| time.as_secs_f64())
}
