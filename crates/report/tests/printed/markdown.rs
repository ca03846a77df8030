//! Summaries in Markdown, read by pulldown-cmark: every table has the cells that were put in, and no text of others is markup.

use crate::samples;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use slowpath_analysis::metrics::recorded_metrics;
use slowpath_recording::Tables;
use slowpath_report::markdown::{self, of_comparison};
use slowpath_report::recording_exports::{Destination, ExportOptions};
use slowpath_report::{Compared, compare_recordings};

/// All that ends a cell, a code span or a line, starts markup, mentions somebody, or misleads an eye.
const HOSTILE: &str = "a|b`c``d\n| x | y |\n# h\n<img src=x onerror=alert(1)>[l](http://e.vil)![i](u)@you #1 \\| \\` &lt; \
                       www.e.vil a@b.cd $x$ :smile: *b* _u_ ~~s~~ \u{202e}\u{9b}31m\u{1b}]8;;\u{200b}\r\t<!-- ";

fn text_of(tables: &Tables) -> String {
    let mut out = Vec::new();
    let to = Destination { name: "x".to_owned(), is_terminal: false };
    (markdown::EXPORT.prepare)(tables, &ExportOptions::default()).unwrap()(&mut out, &to).unwrap();
    String::from_utf8(out).unwrap()
}

/// Text of the cells of each table, by the heading above it.
fn read(text: &str) -> Vec<(String, Vec<Vec<String>>)> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_MATH;
    let mut found: Vec<(String, Vec<Vec<String>>)> = vec![(String::new(), Vec::new())];
    let (mut is_heading, mut is_row) = (false, false);
    for event in Parser::new_ext(text, options) {
        let rows = &mut found.last_mut().unwrap().1;
        match event {
            Event::Start(Tag::Heading { .. }) => {
                found.push((String::new(), Vec::new()));
                is_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => is_heading = false,
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                rows.push(Vec::new());
                is_row = true;
            }
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => is_row = false,
            Event::Start(Tag::TableCell) => rows.last_mut().unwrap().push(String::new()),
            Event::Text(text) | Event::Code(text) if is_heading => found.last_mut().unwrap().0.push_str(&text),
            Event::Text(text) | Event::Code(text) if is_row => {
                rows.last_mut().unwrap().last_mut().unwrap().push_str(&text);
            }
            Event::Start(Tag::Table(_) | Tag::Paragraph | Tag::List(None) | Tag::Item | Tag::Strong) => {}
            Event::End(TagEnd::Table | TagEnd::Paragraph | TagEnd::List(false) | TagEnd::Item | TagEnd::Strong) => {}
            Event::End(TagEnd::TableCell) | Event::Text(_) | Event::Code(_) => {}
            other => panic!("{other:?} is no part of a summary:\n{text}"),
        }
    }
    found
}

fn table<'a>(found: &'a [(String, Vec<Vec<String>>)], heading: &str) -> &'a [Vec<String>] {
    let one = found.iter().find(|(name, _)| name == heading);
    one.map_or_else(|| panic!("no table {heading:?} in {found:#?}"), |(_, rows)| rows.as_slice())
}

/// Nothing in it is obeyed by a terminal or hidden from an eye.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !slowpath_tables::is_dangerous(c))
}

fn recording(name: &str) -> Tables {
    let path = serde_json::to_string(name).unwrap();
    let mut tables = Tables::from_text(
        r#"
== manifest
{"command": ["/usr/bin/app"], "started": 0, "ended": 1000000000, "losses": {"reads": 3, "faults": 0},
 "unavailable": [{"what": "stacks", "reason": "none", "remedy": "record with --stacks all"}],
 "host": {"kernel": "6.1.0", "machine": "x86_64", "page_size": 4096, "cpus": 2, "memory_bytes": 8000000000}}
== execs
ts present pid start filename command_line run_time min_flt
0 false 7 1 /bin/app app 0 0
== files
dev ino path
1 42 /data/one
1 43 /data/two
== faults
ts duration pid start tid address kind
10 1000000 7 1 7 0x1000 minor
20 2000000 7 1 7 0x2000 major
30 2000000 7 1 7 0x3000 minor
== reads
ts duration pid start tid dev ino offset result
40 1000 7 1 7 1 42 0 4096
50 1000 7 1 7 1 42 4096 4096
60 1000 7 1 7 1 43 0 100
70 1000 7 1 7 1 43 0 -5
"#,
    )
    .unwrap_or_else(|error| panic!("{error} {path}"));
    if !name.is_empty() {
        tables.manifest.command = vec![name.to_owned()];
        tables.execs[0].filename = name.to_owned();
        tables.execs[0].command_line = name.to_owned();
        tables.files[0].path = name.to_owned();
        tables.manifest.losses.add(name, 4);
        let gap = &mut tables.manifest.unavailable[0];
        (gap.what, gap.reason, gap.remedy) = (name.to_owned(), name.to_owned(), name.to_owned());
        tables.manifest.host.kernel = name.to_owned();
    }
    tables
}

#[test]
fn tables_of_a_recording_have_the_cells_that_were_put_in() {
    let text = text_of(&recording(""));
    let found = read(&text);
    assert_eq!(found[1].0, "slowpath: /usr/bin/app");
    assert!(text.contains("Recorded for 1.00 s; no launch got ready in it. No hidden cost was found."), "{text}");
    let files = [["File", "Read", "Calls"], ["/data/one", "8.19 kB", "2"], ["/data/two", "100 B", "1"]];
    assert_eq!(table(&found, "Files with most bytes read by calls"), files);
    assert_eq!(table(&found, "Page faults by process")[1], ["app", "7", "2", "1", "5.00 ms", "–"]);
    assert_eq!(table(&found, "Lost events"), [["Events", "Lost"], ["reads", "3"]]);
    assert_eq!(table(&found, "Not observed")[1], ["stacks", "none", "record with --stacks all"]);
    assert!(text.ends_with("\nRecorded on a machine with kernel `6.1.0`, 2 CPUs, 8000 MB of memory.\n"), "{text}");
}

/// Rows of each table of a summary, without those that are repeated for each launch.
fn shape(text: &str) -> Vec<(usize, Vec<usize>)> {
    read(text).iter().map(|(_, rows)| (rows.len(), rows.iter().map(Vec::len).collect())).collect()
}

#[test]
fn hostile_names_stay_in_their_cells_in_every_kind_of_summary() {
    let (tame, hostile) = (text_of(&recording("tame")), text_of(&recording(HOSTILE)));
    assert!(is_plain(&hostile), "{hostile:?}");
    assert_eq!(shape(&tame), shape(&hostile), "{hostile}");
    let found = read(&hostile);
    let shown =
        "a\\u{7c}b\\u{60}c\\u{60}\\u{60}d\\u{a}\\u{7c} x \\u{7c} y \\u{7c}\\u{a}# h\\u{a}<img src=x onerror=alert(1)>";
    let path = &table(&found, "Files with most bytes read by calls")[1][0];
    assert!(path.starts_with(shown), "{path}");
    assert!(path.ends_with("~~s~~ \\u{202e}\\u{9b}31m\\u{1b}]8;;\\u{200b}\\u{d}\\u{9}<!--\\u{20}"), "{path}");

    let tables = recording("");
    let summary = |diagnosis| {
        let mut out = Vec::new();
        let to = Destination { name: "x".to_owned(), is_terminal: false };
        (markdown::EXPORT.of_diagnosis.unwrap())(diagnosis, &tables)(&mut out, &to).unwrap();
        String::from_utf8(out).unwrap()
    };
    let (tame, hostile) = (samples::hostile("tame", 3, 4), samples::hostile(HOSTILE, 3, 4));
    let (tame, hostile) = (summary(&tame), summary(&hostile));
    assert!(is_plain(&hostile), "{hostile:?}");
    assert_eq!(shape(&tame), shape(&hostile), "{hostile}");

    let compared = |name| {
        let one = |tables: &Tables| Compared { recording: "a".to_owned(), costs: recorded_metrics(tables) };
        let (before, after) = (recording(name), recording(name));
        of_comparison(&compare_recordings(&[one(&before)], &[one(&after)], false))
    };
    let (tame, hostile) = (compared("tame"), compared(HOSTILE));
    assert!(is_plain(&hostile), "{hostile:?}");
    assert_eq!(shape(&tame), shape(&hostile), "{hostile}");
    assert_eq!(table(&read(&tame), "Lost events")[2], ["tame", "4", "4"]);
}

#[test]
fn a_diagnosis_has_its_answer_arms_verdicts_and_findings_with_intervals() {
    let (diagnosis, tables) = (samples::diagnosis(), recording(""));
    let mut out = Vec::new();
    let to = Destination { name: "x".to_owned(), is_terminal: false };
    (markdown::EXPORT.of_diagnosis.unwrap())(&diagnosis, &tables)(&mut out, &to).unwrap();
    let text = String::from_utf8(out).unwrap();
    let found = read(&text);
    assert_eq!(found[1].0, "slowpath diagnose: /usr/bin/chromium --headless");
    assert!(text.contains("chromium is ready 2335 ms after a cold launch, 396 ms after a warm one."), "{text}");
    let arms = table(&found, "Arms, cold launches");
    assert_eq!(arms[2], ["preload_plan", "1.51 s", "1.46 s … 1.59 s", "–", "", "19 of 20", "147 MB"]);
    assert_eq!(arms[4], ["readahead_512", "–", "", "–", "", "0 of 20", "–"]);
    let verdicts = table(&found, "Verdicts, cold launches");
    assert_eq!(
        verdicts[1],
        [
            "preload_plan",
            "helps",
            "wall",
            "−821 ms",
            "−900 ms … −750 ms",
            "−815 ms",
            "−893 ms … −744 ms",
            "−700 ms",
            "40.0 ms",
            "19"
        ]
    );
    assert_eq!(verdicts[2][5..7], ["–", ""], "a sham has no sham");
    assert!(verdicts[3][1].ends_with(": fewer than 6 pairs"), "{verdicts:?}");
    let findings = table(&found, "Findings");
    assert_eq!(findings[0][1..3], ["Cost", "From … to"], "of one recording it is no confidence interval");
    assert_eq!(findings[1][..4], ["cold_file_reads", "1.83 s", "1.65 s … 2.01 s", "high"]);
    assert_eq!(findings[1][4..], ["Waiting for reads of 218 files", "preload_plan"]);
    assert_eq!(table(&found, "Lost events")[1], ["reads", "12"]);
    assert!(text.contains("- Note: libc was shared with other programs and stayed warm\n"), "{text}");
}

proptest! {
    #[test]
    fn any_name_is_one_cell(name in "[ -~\u{80}-\u{a0}\u{2020}-\u{2030}\\n|`\\\\]{0,40}") {
        let text = text_of(&recording(&format!("x{name}")));
        prop_assert!(is_plain(&text));
        prop_assert_eq!(shape(&text), shape(&text_of(&recording("tame"))));
    }
}
