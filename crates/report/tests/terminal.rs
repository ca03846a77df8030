//! The summary fits a screen, says the answer first, and shows nothing that a terminal would obey.

mod samples;

use proptest::prelude::*;
use slowpath_report::terminal::{Style, analysis, diagnosis};
use slowpath_report::{ANALYZE_SCHEMA, Analysis, Diagnosis};
use slowpath_tables::{Losses, Quantity, Unit};

const UNICODE: Style = Style { unicode: true, ..Style::PLAIN };
const COLOUR: Style = Style { unicode: true, colour: true, ..Style::PLAIN };

fn check_screen(printed: &str) {
    assert!(printed.lines().count() <= 23, "{} lines and the prompt:\n{printed}", printed.lines().count());
    for line in printed.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        assert!(!line.ends_with(' '));
    }
}

#[test]
fn the_summary_reads_from_the_answer_to_the_doubts() {
    let printed = diagnosis(&samples::diagnosis(), &UNICODE);
    check_screen(&printed);
    let expected = include_str!("samples/summary.txt");
    assert!(printed == expected, "the summary changed:\n{printed}");
}

#[test]
fn without_a_utf8_locale_the_summary_is_ascii() {
    let printed = diagnosis(&samples::diagnosis(), &Style::PLAIN);
    check_screen(&printed);
    assert!(printed.is_ascii(), "{printed}");
    assert!(printed.contains("o|"), "the sketch is missing:\n{printed}");
}

#[test]
fn colour_adds_codes_and_changes_no_text() {
    let coloured = diagnosis(&samples::diagnosis(), &COLOUR);
    assert!(coloured.contains("\x1b[32mhelps"), "{coloured}");
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&plain), trimmed(&diagnosis(&samples::diagnosis(), &UNICODE)));
}

#[test]
fn what_does_not_fit_is_counted() {
    let printed = diagnosis(&samples::hostile("x", 30, 30), &UNICODE);
    check_screen(&printed);
    assert_eq!(printed.lines().count(), 23, "room was left unused:\n{printed}");
    for what in ["arms", "findings", "verdicts", "remarks"] {
        assert!(printed.contains(&format!("more {what} in the report")), "{what}:\n{printed}");
    }
}

#[test]
fn an_empty_diagnosis_says_what_is_missing() {
    let mut empty = samples::diagnosis();
    empty.launch.arms.clear();
    empty.findings.clear();
    empty.verdicts.clear();
    empty.command.clear();
    empty.losses = Losses::default();
    empty.unavailable.clear();
    let printed = diagnosis(&empty, &Style::PLAIN);
    assert!(printed.starts_with("No cold launch of the program could be measured. No fix was tried.\n"), "{printed}");
    assert!(printed.contains("No hidden cost was found."));
    assert!(printed.contains("Lost events: none."));
}

#[test]
fn a_fix_that_did_not_help_is_not_praised() {
    let mut unhelped = samples::diagnosis();
    unhelped.verdicts.remove(0);
    let printed = diagnosis(&unhelped, &Style::PLAIN);
    assert!(printed.replace('\n', " ").contains("Nothing that was tried made it measurably faster."), "{printed}");
    // The sham arm alone is no attempt at a cure.
    unhelped.verdicts.truncate(1);
    assert!(diagnosis(&unhelped, &Style::PLAIN).replace('\n', " ").contains("No fix was tried."));
}

#[test]
fn an_analysis_names_the_time_to_ready_and_the_top_finding() {
    let sample = samples::diagnosis();
    let printed = analysis(
        &Analysis {
            schema: ANALYZE_SCHEMA.to_owned(),
            command: sample.command,
            recording: sample.recording,
            time_to_ready: Some(Quantity::exact(2335.0, Unit::Ms)),
            findings: sample.findings,
            losses: sample.losses,
            unavailable: sample.unavailable,
        },
        &Style::PLAIN,
    );
    check_screen(&printed);
    assert!(printed.starts_with("chromium was ready after 2335 ms."), "{printed}");
    assert!(printed.replace('\n', " ").contains("Waiting for reads of 218 files, 1830 ms."), "{printed}");
}

fn no_obedience(diagnosis_data: &Diagnosis, style: &Style) {
    let printed = diagnosis(diagnosis_data, style);
    check_screen(&printed);
    for c in printed.chars().filter(|c| *c != '\n') {
        let directional = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
        assert!(!c.is_control() && !directional, "{c:?} reached the terminal");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn hostile_names_neither_break_the_screen_nor_reach_the_terminal(
        text in "[\u{0}-\u{9f}\u{200e}\u{202e}\u{2066}漢a-c -]{0,120}",
        arms in 0usize..9,
        findings in 0usize..9,
    ) {
        no_obedience(&samples::hostile(&text, arms, findings), &UNICODE);
        no_obedience(&samples::hostile(&text, arms, findings), &Style::PLAIN);
    }
}
