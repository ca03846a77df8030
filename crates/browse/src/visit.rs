//! A visit, from what the page itself reports (W3C Navigation Timing Level 2, Paint Timing).

use serde::Deserialize;
use slowpath_tables::{Milestone, Visit};
use std::collections::BTreeMap;

/// A visit that takes longer is none; the numbers are a page's own, so they are not trusted.
const LONGEST_MS: f64 = 3_600_000.0;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigation {
    request_start: f64,
    response_start: f64,
    response_end: f64,
    dom_interactive: f64,
    dom_content_loaded_event_end: f64,
    load_event_end: f64,
    #[serde(default)]
    paint: BTreeMap<String, f64>,
}

/// From the entry of Navigation Timing as JSON, with the entries of Paint Timing by name under `paint`. `None` for
/// anything else, and for a page that was not loaded.
pub(crate) fn visit(json: &str) -> Option<Visit> {
    let navigation: Navigation = serde_json::from_str(json).ok()?;
    if navigation.load_event_end <= 0.0 {
        return None;
    }
    let paint = |name: &str| navigation.paint.get(name).copied().unwrap_or(0.0);
    let all = [
        (Milestone::Request, navigation.request_start),
        (Milestone::FirstByte, navigation.response_start),
        (Milestone::LastByte, navigation.response_end),
        (Milestone::Interactive, navigation.dom_interactive),
        (Milestone::ContentLoaded, navigation.dom_content_loaded_event_end),
        (Milestone::FirstPaint, paint("first-paint")),
        (Milestone::FirstContentfulPaint, paint("first-contentful-paint")),
        (Milestone::Load, navigation.load_event_end),
    ];
    // 0 is how the specification says "not reached".
    Some(all.into_iter().filter(|(_, ms)| *ms > 0.0 && *ms < LONGEST_MS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_left_out_and_nonsense_is_refused() {
        let json = r#"{"name":"x","requestStart":1.5,"responseStart":4,"responseEnd":5,"domInteractive":30.25,
            "domContentLoadedEventEnd":31,"loadEventEnd":44,"paint":{"first-paint":60.5}}"#;
        let visited = visit(json).unwrap();
        assert_eq!(visited.get(&Milestone::Interactive), Some(&30.25));
        assert_eq!(visited.get(&Milestone::FirstPaint), Some(&60.5));
        assert_eq!(visited.get(&Milestone::FirstContentfulPaint), None);
        assert_eq!(visit(&json.replace("\"loadEventEnd\":44", "\"loadEventEnd\":0")), None);
        let huge = visit(&json.replace("60.5", "1e300")).unwrap();
        assert_eq!(huge.get(&Milestone::FirstPaint), None);
        assert!(visit("{}").is_none() && visit("").is_none() && visit("[1]").is_none());
    }
}
