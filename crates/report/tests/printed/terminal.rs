//! The summary fits a screen, says the answer first, and shows nothing that a terminal would obey.

use crate::samples;
use proptest::prelude::*;
use slowpath_report::terminal::{Style, analysis, diagnosis, diagnosis_screen};
use slowpath_report::{ANALYZE_SCHEMA, Analysis, ArmRole, Diagnosis, Outcome, Verdict};
use slowpath_tables::{Losses, Quantity, Unavailable, Unit};

const UNICODE: Style = Style { unicode: true, ..Style::PLAIN };
const COLOUR: Style = Style { unicode: true, colour: true, ..Style::PLAIN };

fn check_screen(printed: &str) {
    check_lines(printed, 30);
}

fn check_lines(printed: &str, most: usize) {
    assert!(printed.lines().count() <= most, "{} lines:\n{printed}", printed.lines().count());
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
fn a_warm_diagnosis_tells_cpu_time_and_what_is_proved() {
    let printed = diagnosis(&samples::warm(), &UNICODE);
    check_screen(&printed);
    let expected = include_str!("samples/warm.txt");
    assert!(printed == expected, "the summary changed:\n{printed}");
    let plain = diagnosis(&samples::warm(), &Style::PLAIN);
    check_screen(&plain);
    assert!(plain.is_ascii(), "{plain}");
    assert!(diagnosis(&samples::warm(), &COLOUR).contains("\x1b[32mproved"));
    // A sham that changes something is a doubt about all of it.
    let mut loud = samples::warm();
    loud.verdicts[2].outcome = Outcome::Helps;
    let printed = diagnosis(&loud, &Style::PLAIN).replace('\n', " ");
    assert!(printed.contains("But a sham helps too: sham_environment."), "{printed}");
    let mut nothing = samples::warm();
    nothing.launch.arms.clear();
    nothing.verdicts.retain(|verdict| verdict.arm == "reuse_buffer");
    let printed = diagnosis(&nothing, &Style::PLAIN);
    assert!(printed.replace("\n", " ").contains("No fix of it can be tried by itself."), "{printed}");
    nothing.findings.clear();
    let printed = diagnosis(&nothing, &Style::PLAIN);
    assert!(printed.starts_with("No hidden cost was found in a warm launch of frame-buffer.\n"), "{printed}");
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
    assert_eq!(printed.lines().count(), 30, "room was left unused:\n{printed}");
    for what in ["arms", "findings", "verdicts", "remarks"] {
        assert!(printed.contains(&format!("{what} in the report")), "{what}:\n{printed}");
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
    let text = "No cold launch of the program could be measured. No hidden cost was found. No fix was tried.";
    let answer: Vec<&str> = printed.lines().take_while(|line| !line.is_empty() && !line.starts_with("Lost")).collect();
    assert_eq!(answer.join(" "), text, "{printed}");
    assert_eq!(printed.matches("No hidden cost").count(), 1, "{printed}");
    assert!(printed.contains("Lost events: none."));
}

#[test]
fn a_fix_that_did_not_help_is_not_praised() {
    let mut unhelped = samples::diagnosis();
    unhelped.verdicts[0].outcome = Outcome::Inconclusive;
    let printed = diagnosis(&unhelped, &Style::PLAIN);
    assert!(
        printed.replace('\n', " ").contains("Nothing that was tried made a cold launch measurably faster."),
        "{printed}"
    );
    // The sham arm alone is no attempt at a cure.
    unhelped.verdicts.remove(0);
    assert!(diagnosis(&unhelped, &Style::PLAIN).replace('\n', " ").contains("No fix was tried."));
}

#[test]
fn the_fix_of_the_tool_leads_before_faster_variants_and_rivals() {
    let mut tried = samples::diagnosis();
    for (name, role, change) in [
        ("other_order", ArmRole::Fix, -830.0),
        ("whole_files", ArmRole::Rival, -840.0),
        ("full", ArmRole::Rival, -835.0),
    ] {
        tried.launch.arms.push(samples::arm(name, role, Some((1500.0, 1450.0, 1550.0)), 200.0));
        let measured = Some((change, change - 50.0, change + 50.0));
        // None of them is a fix that can be kept.
        tried.verdicts.insert(0, Verdict { fix: None, ..samples::verdict(name, Outcome::Helps, None, measured) });
    }
    let answer = |tried: &Diagnosis| {
        let printed = diagnosis(tried, &Style::PLAIN);
        check_screen(&printed);
        printed.lines().take_while(|line| !line.is_empty() && !line.starts_with("arm")).collect::<Vec<_>>().join(" ")
    };
    let text = answer(&tried);
    assert!(
        text.contains("preload_plan makes it 821 ms faster (815 ms against the sham) and removes 42.3 %"),
        "{text}"
    );
    assert!(text.ends_with("Also faster: other_order -830 ms, whole_files -840 ms."), "{text}");
    // Where the interval is wide, it stands beside the number.
    let main = tried.verdicts.iter_mut().find(|verdict| verdict.arm == "preload_plan").unwrap();
    let known = main.measured.replace(Quantity { low: Some(-2839.0), high: Some(-273.0), ..main.measured.unwrap() });
    let text = answer(&tried);
    assert!(
        text.contains("preload_plan makes it 821 ms (273..2839) faster (815 ms against the sham) and removes"),
        "{text}"
    );
    tried.verdicts.iter_mut().find(|verdict| verdict.arm == "preload_plan").unwrap().measured = known;
    // A sham arm speaks up only when it changed something.
    tried.verdicts.iter_mut().find(|verdict| verdict.arm == "empty_plan").unwrap().outcome = Outcome::Hurts;
    assert!(
        answer(&tried).ends_with("A sham is slower, which takes nothing from a fix: empty_plan 6.00 ms."),
        "{}",
        answer(&tried)
    );
    // Without the tool's own fix the best other one leads; a rival alone is no fix.
    tried.verdicts.retain(|verdict| verdict.arm != "preload_plan");
    assert!(
        answer(&tried).contains("other_order makes it 830 ms faster. Also faster: whole_files -840 ms."),
        "{}",
        answer(&tried)
    );
    tried.verdicts.retain(|verdict| verdict.arm == "whole_files");
    assert!(answer(&tried).ends_with("No fix was tried. Also faster: whole_files -840 ms."), "{}", answer(&tried));
}

#[test]
fn sham_arms_that_changed_nothing_share_a_line() {
    let mut two = samples::diagnosis();
    two.launch.arms.push(samples::arm("unrelated", ArmRole::Sham, Some((2300.0, 2200.0, 2400.0)), 386.0));
    let measured = Some((20.0, -40.0, 70.0));
    two.verdicts.push(samples::verdict("unrelated", Outcome::Inconclusive, None, measured));
    let printed = diagnosis(&two, &Style::PLAIN);
    let line = printed.lines().find(|line| line.starts_with("2 shams")).unwrap_or_else(|| panic!("{printed}"));
    assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(" "), "2 shams inconclusive - +6.00 ms, +20.0 ms");
}

#[test]
fn remarks_and_titles_are_wrapped_while_the_screen_has_room() {
    let mut long = samples::diagnosis();
    long.findings.truncate(1);
    long.findings[0].title = "python3 waits 195 of 466 ms for file reads before it is ready".to_owned();
    long.notes = vec![
        "a launch needs at least 10.8 MB from storage; 0.00 % of the recorded cold launch's reads went past it"
            .to_owned(),
    ];
    let item = |what: &str| Unavailable { what: what.to_owned(), reason: "r".to_owned(), remedy: String::new() };
    long.unavailable = vec![item("a cold launch of files outside the lab")];
    let printed = diagnosis(&long, &Style::PLAIN);
    check_screen(&printed);
    assert!(printed.contains("python3 waits 195 of 466 ms for file reads\n"), "{printed}");
    assert!(printed.contains("recorded cold\n  launch's reads went past it\n"), "{printed}");
    assert!(!printed.contains("outside the lab") && !printed.contains('~'), "{printed}");
    // A title that nothing can shorten goes on below its start.
    long.findings[0].title =
        "a program with a long name waits for all of its files and does not say for which one".to_owned();
    let printed = diagnosis(&long, &Style::PLAIN);
    check_screen(&printed);
    assert!(printed.contains(&format!("and\n{}does not say for which one\n", " ".repeat(20))), "{printed}");
    // Without room the remark is counted, not cut.
    long.launch.arms.extend((0..13).map(|i| samples::arm(&format!("a{i}"), ArmRole::Fix, None, 0.0)));
    let printed = diagnosis(&long, &Style::PLAIN);
    check_screen(&printed);
    assert!(printed.contains("\n  1 remark in the report\n") && !printed.contains("of the recorded cold"), "{printed}");
}

#[test]
fn the_row_of_the_first_fix_stays_while_remarks_and_other_arms_can_be_left_out() {
    let mut long = samples::diagnosis();
    long.notes = (0..8).map(|number| format!("remark {number}")).collect();
    let sham = |number| samples::arm(&format!("sham{number}"), ArmRole::Sham, Some((2300.0, 2200.0, 2400.0)), 386.0);
    // As trials have them: both baselines first.
    long.launch.arms.sort_by_key(|arm| arm.role == ArmRole::Fix);
    long.launch.arms.extend((0..4).map(sham));
    let commands: Vec<String> = (0..3).map(|number| format!("slowpath fix show out fix{number}")).collect();
    let printed = diagnosis_screen(&long, "out/report.html", &commands, &Style::PLAIN);
    check_screen(&printed);
    let arms = printed.split("\narm ").nth(1).and_then(|rest| rest.split("more arms in the report").next());
    assert!(arms.unwrap_or_else(|| panic!("{printed}")).contains("\npreload_plan "), "{printed}");
    assert!(printed.contains("more remarks in the report"), "{printed}");
}

/// The analysis of a launch with what a diagnosis found.
fn of_launch(sample: Diagnosis) -> Analysis {
    Analysis {
        schema: ANALYZE_SCHEMA.to_owned(),
        command: sample.command,
        recording: sample.recording,
        time_to_ready: Some(Quantity::exact(2335.0, Unit::Ms)),
        findings: sample.findings,
        usage: slowpath_report::Usage::default(),
        ledger: None,
        critical_path: None,
        round_trips: Vec::new(),
        losses: sample.losses,
        unavailable: sample.unavailable,
    }
}

#[test]
fn what_the_time_ledger_of_a_launch_leaves_out_is_said() {
    let ledger = slowpath_report::Ledger { incomplete_threads: 3, lost_intervals: 1, ..Default::default() };
    let printed = analysis(&Analysis { ledger: Some(ledger), ..of_launch(samples::diagnosis()) }, &Style::PLAIN);
    check_lines(&printed, 23);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Note: 3 threads are not in the time ledger"), "{printed}");
    assert!(words.contains("Note: 1 interval off the CPU was lost"), "{printed}");
}

#[test]
fn what_does_not_fit_is_in_the_report_only_where_one_was_written() {
    let printed = analysis(&of_launch(samples::hostile("x", 30, 30)), &UNICODE);
    check_lines(&printed, 23);
    assert!(printed.contains("more findings with --json") && !printed.contains("in the report"), "{printed}");
}

#[test]
fn an_analysis_names_the_time_to_ready_and_the_top_finding() {
    let printed = analysis(&of_launch(samples::diagnosis()), &Style::PLAIN);
    check_lines(&printed, 23);
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
        let warm = Diagnosis { warm: true, ..samples::hostile(&text, arms, findings) };
        no_obedience(&warm, &UNICODE);
    }
}
