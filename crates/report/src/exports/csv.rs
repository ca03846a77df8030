//! A row a launch: what spreadsheets, R and pandas read.

use crate::Benchmark;
use slowpath_verify::Metric;
use std::borrow::Cow;

/// Columns before the metrics.
const COLUMNS: [&str; 3] = ["arm", "block", "position"];

/// The table (RFC 4180), with a header. Times are in milliseconds, sizes in bytes; an empty field was not measured, and a
/// launch that does not count has no row. A name that a spreadsheet would take for a formula is quoted by a leading `'`.
pub fn table(benchmark: &Benchmark) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let metrics = Metric::ALL;
    let header = COLUMNS.into_iter().map(str::to_owned).chain(metrics.map(|metric| metric.name().to_owned()));
    // Writing into memory does not fail, and every row has as many fields as the header.
    let _ = writer.write_record(header);
    for arm in &benchmark.arms {
        for (block, launch) in arm.launches.iter().enumerate() {
            let Some(launch) = launch else { continue };
            let place = [harmless(&arm.name).into_owned(), block.to_string(), launch.position.to_string()];
            let numbers =
                metrics.map(|metric| launch.measures.get(&metric).map(ToString::to_string).unwrap_or_default());
            let _ = writer.write_record(place.into_iter().chain(numbers));
        }
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Text that no spreadsheet takes for a formula, also not one that ends fields or rows at semicolons, tabs and newlines of its own: a
/// `'` stands before what would begin a formula at the begin of the text and behind each of these. A `'` there is doubled, so
/// that taking one away gives the text back.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let mut at_begin = true;
    let mut is_changed = false;
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        if at_begin && begins_formula(c) {
            if !is_changed {
                out.push_str(&text[..at]);
                is_changed = true;
            }
            out.push('\'');
        }
        if is_changed {
            out.push(c);
        }
        at_begin = matches!(c, ';' | '\t' | '\r' | '\n');
    }
    if is_changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// What spreadsheets begin a formula at, and what they pass over before one; the wide forms count in Chinese and Japanese ones.
fn begins_formula(c: char) -> bool {
    matches!(c, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '\'' | '＝' | '＋' | '－' | '＠')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::sample;

    #[test]
    fn every_launch_that_counts_has_a_row_and_names_are_quoted() {
        let mut benchmark = sample::benchmark();
        benchmark.arms[1].name = "=a,\"b\"".to_owned();
        let text = table(&benchmark);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("arm,block,position,wall,cpu,"), "{}", lines[0]);
        assert!(lines[1].starts_with("old,0,0,10,"), "{}", lines[1]);
        assert_eq!(lines.len(), 1 + 2 + 1);
        assert!(lines[3].starts_with("\"'=a,\"\"b\"\"\",0,1,12,"), "{}", lines[3]);
    }

    #[test]
    fn no_field_of_any_separator_begins_as_a_formula_and_the_text_comes_back() {
        let back = |text: &str| {
            let (mut at_begin, mut out) = (true, String::new());
            for c in text.chars() {
                if !(at_begin && c == '\'') {
                    out.push(c);
                }
                // What was taken away is no begin of its own: what follows it stays.
                at_begin = matches!(c, ';' | '\t' | '\r' | '\n');
            }
            out
        };
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("a;=b;-c, -d", "a;'=b;'-c, -d"),
            ("'a", "''a"),
            ("a\n\t@x", "a\n'\t'@x"),
            ("＝1", "'＝1"),
            ("a=b-c+d@e", "a=b-c+d@e"),
            ("", ""),
        ] {
            let found = harmless(text);
            assert_eq!(found, expected);
            assert_eq!(back(&found), text);
            let fields = found.split([';', '\t', '\r', '\n']);
            assert!(fields.into_iter().all(|field| !field.starts_with(['=', '+', '-', '@', '＝'])), "{found:?}");
        }
    }
}
