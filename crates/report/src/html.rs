//! The report as one self-contained page.
//!
//! Owns putting data into the page so that they stay data. Leaves the page itself to `report-ui`, whose policy
//! (Content-Security-Policy) names script and style by their hashes; they are not touched here.

use crate::html_comparison::HtmlComparison;
use crate::page::ReportData;
use serde::Serialize;

/// Stands in the page's data block, once.
const PLACEHOLDER: &str = "__SLOWPATH_DATA__";

/// The page as `report-ui` built it.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The data cannot be written as JSON.
    #[error("the report's data cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// Data that the page can show; it distinguishes them by their schema.
pub trait PageData: Serialize {}

impl PageData for ReportData {}
impl PageData for HtmlComparison {}

/// The page with its data.
///
/// # Errors
/// The data cannot be written as JSON.
pub fn render(report: &impl PageData) -> Result<String, HtmlError> {
    let data = escape_json(&serde_json::to_string(report)?);
    // By position and not by a replacement pattern: nothing in the data is special.
    let (before, after) = TEMPLATE.split_once(PLACEHOLDER).unwrap_or((TEMPLATE, ""));
    Ok([before, &data, after].concat())
}

/// JSON that can stand in an HTML element without ending it: `<`, `>`, `&` and the line separators occur in JSON only
/// inside strings, where an escape means the same.
pub fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_means_the_same_and_cannot_end_its_element() {
        let text = "</script><!-- &amp; \u{2028}\u{2029} \\u003c \" é";
        let escaped = escape_json(&serde_json::to_string(text).unwrap());
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }
}
