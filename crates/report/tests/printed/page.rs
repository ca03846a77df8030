//! The HTML page keeps its policy, and data stay data.

use crate::samples;
use proptest::prelude::*;
use slowpath_report::{ReportData, html};

const TEMPLATE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../report-ui/dist/report.html"));

/// The page without its data block's content, and that content.
fn split(page: &str) -> (String, &str) {
    let (before, after) = TEMPLATE.split_once("__SLOWPATH_DATA__").unwrap();
    let data = page.strip_prefix(before).expect("the page before the data is unchanged");
    let data = data.strip_suffix(after).expect("the page after the data is unchanged");
    (format!("{before}{after}"), data)
}

fn check(report: &ReportData) {
    let page = html::render(report).unwrap();
    let (rest, data) = split(&page);
    assert!(!data.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{data}");
    // Both are read by one reader: it need not keep the last bit of a fraction.
    let read = |json: &str| serde_json::from_str::<ReportData>(json).unwrap();
    assert!(read(data) == read(&serde_json::to_string(report).unwrap()), "the page holds another report");
    assert!(rest.contains("default-src 'none'"), "the page has no policy");
}

#[test]
fn the_page_holds_the_report_and_is_otherwise_the_template() {
    check(&samples::report(samples::diagnosis()));
}

#[test]
fn data_that_look_like_markup_or_like_the_placeholder_stay_data() {
    for text in ["</script><script>alert(1)</script>", "<!--", "__SLOWPATH_DATA__", "$&$1\\", "\u{2028}&lt;"] {
        check(&samples::report(samples::hostile(text, 2, 2)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_comes_back_from_the_page(text in any::<String>()) {
        check(&samples::report(samples::hostile(&text, 1, 1)));
    }
}
