//! A diagnosis of cold and of warm launches: what leads, what belongs to which, and what a screen says of both.

use crate::samples;
use slowpath_analysis::finding::Finding;
use slowpath_analysis::printed::time_spent::{Condition, TimeSpent, TimeSpentRow};
use slowpath_analysis::time::time_spent::Part;
use slowpath_report::terminal::{self, Style};
use slowpath_report::{ArmRole, Decision, Diagnosis, Outcome, Verdict};
use slowpath_tables::{Quantity, Unit};
use slowpath_verify::Metric;
use std::collections::BTreeSet;

fn judged_by(mut diagnosis: Diagnosis, metric: Metric) -> Diagnosis {
    diagnosis.verdicts.iter_mut().for_each(|verdict| verdict.judged_by = Some(metric));
    diagnosis
}

fn cold() -> Diagnosis {
    judged_by(samples::diagnosis(), Metric::Wall)
}

fn warm() -> Diagnosis {
    judged_by(Diagnosis { command: cold().command, ..samples::warm() }, Metric::Cpu)
}

#[test]
fn the_half_that_loses_more_leads_and_nothing_of_the_other_is_lost() {
    let both = Diagnosis::of_both(cold(), warm());
    assert!(!both.warm);
    let costs: Vec<f64> = both.findings.iter().map(|finding| finding.cost.value).collect();
    assert_eq!(costs, [1830.0, 240.5, 61.0]);
    assert_eq!(both.verdicts.len(), cold().verdicts.len() + warm().verdicts.len());
    assert_eq!((both.fixes.len(), both.notes.len()), (warm().fixes.len(), 2));
    let (leading, following) = (both.leading(), both.following().unwrap());
    assert_eq!((&leading.verdicts, &following.verdicts), (&cold().verdicts, &warm().verdicts));
    assert_eq!((following.warm, &following.launch, &following.recording), (true, &warm().launch, &warm().recording));

    let mut slight = cold();
    slight.findings.iter_mut().for_each(|finding| finding.cost.value = 9.0);
    let both = Diagnosis::of_both(slight, warm());
    assert!(both.warm && !both.other.as_ref().unwrap().warm);
    assert_eq!(both.following().unwrap().share_of_gap_removed, cold().share_of_gap_removed);
}

#[test]
fn what_both_show_is_told_once_and_a_half_that_found_nothing_says_so() {
    let mut same = warm();
    same.findings = cold().findings[..1].to_vec();
    same.findings[0].cost.value = 3.0;
    let both = Diagnosis::of_both(cold(), Diagnosis { launch: no_arms(&same), verdicts: Vec::new(), ..same });
    assert_eq!(both.findings.len(), 2);
    assert_eq!(both.other.as_ref().unwrap().shared_findings, [0]);
    let words =
        |both: &Diagnosis| terminal::diagnosis(both, &Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    let shared = "A warm launch of chromium has no hidden cost but those that a cold one has too.";
    assert!(words(&both).contains(shared) && !words(&both).contains("No hidden cost"), "{}", words(&both));
    let again = Diagnosis::of_json(serde_json::to_string(&both).unwrap().as_bytes()).unwrap();
    assert_eq!(words(&again), words(&both));

    let nothing = Diagnosis { findings: Vec::new(), verdicts: Vec::new(), launch: no_arms(&warm()), ..warm() };
    let both = Diagnosis::of_both(cold(), nothing);
    assert!(words(&both).contains("No hidden cost was found in a warm launch of chromium."), "{}", words(&both));
}

#[test]
fn a_function_that_only_the_other_launches_know_is_named_and_the_cost_stays() {
    let with = |server: &str, cost: f64, function: Option<&str>| {
        let mut finding = cold().findings[0].clone();
        finding.subject.insert("server".to_owned(), server.into());
        finding.cost.value = cost;
        if let Some(function) = function {
            finding.subject.insert("function".to_owned(), function.into());
        }
        finding
    };
    let both = |cold_findings, warm_findings| {
        let warm = Diagnosis { findings: warm_findings, verdicts: Vec::new(), ..warm() };
        Diagnosis::of_both(
            Diagnosis { findings: cold_findings, ..cold() },
            Diagnosis { launch: no_arms(&warm), ..warm },
        )
    };
    let seen = |both: &Diagnosis| {
        let of = |finding: &Finding| {
            (finding.subject["server"].clone(), finding.cost.value, finding.subject.get("function").cloned())
        };
        both.findings.iter().map(of).collect::<Vec<_>>()
    };
    let found =
        both(vec![with("auth", 900.0, None), with("db", 40.0, None)], vec![with("db", 20.0, Some("db::query(int)"))]);
    assert_eq!(seen(&found), [("auth".into(), 900.0, None), ("db".into(), 40.0, Some("db::query(int)".into()))]);
    assert!(found.findings[1].title.ends_with(" in db::query (as warm launches show)"), "{}", found.findings[1].title);
    assert_eq!(found.other.unwrap().shared_findings, [1]);

    // Which of two is meant, nobody knows.
    let two = vec![with("db", 20.0, Some("db::query(int)")), with("db", 10.0, Some("store"))];
    let found = both(vec![with("db", 40.0, None)], two);
    assert_eq!(seen(&found), [("db".into(), 40.0, None)]);
}

#[test]
fn beside_what_was_recorded_stands_what_launches_take_that_were_not() {
    let row = |diagnosis: &Diagnosis| {
        let printed = terminal::diagnosis(diagnosis, &Style { lines: 200, ..Style::PLAIN });
        let row = printed.lines().find(|line| line.starts_with("median without recording"));
        row.map(|line| line.split_whitespace().skip(3).collect::<Vec<_>>().join(" "))
    };
    let time = |condition| TimeSpent {
        condition,
        time_to_ready: Some(Quantity::exact(900.0, Unit::Ms)),
        cpu: Quantity::exact(400.0, Unit::Ms),
        recording: None,
        rows: Vec::new(),
        unexplained: None,
        uncounted_threads: 0,
        has_memory_calls: true,
    };
    let of_cold = || Diagnosis { time: vec![time(Condition::Cold)], ..cold() };
    let of_warm = || Diagnosis { time: vec![time(Condition::Warm)], ..warm() };
    // As the table has them: whole seconds read better than thousands of milliseconds.
    let figure = |quantity: Quantity| {
        let (value, unit) = (quantity.value, quantity.unit);
        let shown =
            if value >= 1000.0 { Quantity::exact(value / 1000.0, Unit::S) } else { Quantity::exact(value, unit) };
        terminal::with_interval(&shown, &Style::PLAIN)
    };
    let ready = |diagnosis: &Diagnosis, role| {
        figure(diagnosis.launch.arms.iter().find(|arm| arm.role == role).unwrap().median.unwrap())
    };
    let cpu = |diagnosis: &Diagnosis| figure(diagnosis.launch.arms[0].cpu.unwrap());
    let (cold_ready, warm_ready) = (ready(&cold(), ArmRole::Baseline), ready(&warm(), ArmRole::Baseline));
    assert_eq!(row(&of_cold()).unwrap(), format!("{cold_ready} -"));
    let both = Diagnosis::of_both(of_cold(), of_warm());
    assert_eq!(row(&both).unwrap(), format!("{cold_ready} - {warm_ready} {}", cpu(&warm())));
    // Without a warm trial it is the warm arm of the cold one.
    let untried = of_warm();
    let both = Diagnosis::of_both(of_cold(), Diagnosis { launch: no_arms(&untried), verdicts: Vec::new(), ..untried });
    assert_eq!(row(&both).unwrap(), format!("{cold_ready} - {} -", ready(&cold(), ArmRole::Warm)));
    // Where children are missing in it, its CPU time says nothing of what recording takes.
    let mut lacking = of_warm();
    lacking.launch.arms.iter_mut().for_each(|arm| arm.lacks_children = true);
    assert_eq!(row(&lacking).unwrap(), format!("{warm_ready} -"));
}

#[test]
fn the_largest_cost_that_could_have_gone_unseen_stands_on_the_screen_of_each_mode() {
    let printed = |diagnosis: &Diagnosis| {
        terminal::diagnosis(diagnosis, &Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (in_cold, in_warm) = ("46.7 ms cold (the pattern cold_file_reads)", "100 ms warm (the pattern timed_wait)");
    let hidden = "of any size: the pattern many_libraries";
    let both = printed(&Diagnosis::of_both(cold(), warm()));
    for (screen, told) in
        [(printed(&cold()), vec![in_cold]), (printed(&warm()), vec![in_warm]), (both, vec![in_cold, in_warm])]
    {
        let is_told = told.iter().all(|one| screen.contains(one));
        assert!(is_told && screen.contains("the largest cost of one pattern that could have gone unseen:"), "{screen}");
        assert!(screen.contains(hidden) && screen.contains("(opens: not recorded)"), "{screen}");
    }
}

#[test]
fn the_half_that_follows_answers_with_its_own_findings_only() {
    let no_trial = |findings| {
        let warm = Diagnosis { findings, verdicts: Vec::new(), ..warm() };
        Diagnosis::of_both(cold(), Diagnosis { launch: no_arms(&warm), ..warm })
    };
    // The finding of the cold half leads, and its fix is proved.
    let both = no_trial(Vec::new());
    assert!(both.following().unwrap().findings.is_empty());
    let printed = terminal::diagnosis(&both, &Style::PLAIN);
    assert!(printed.contains("preload_plan makes it 821 ms faster"), "{printed}");
    assert!(!printed.contains("No fix of it can be tried"), "{printed}");
    assert_eq!(printed.matches("Waiting for reads of 218 files").count(), 1, "{printed}");

    let both = no_trial(warm().findings);
    assert_eq!(both.other.as_ref().unwrap().own_findings, [2]);
    assert_eq!(both.following().unwrap().findings, warm().findings);
    let words = terminal::diagnosis(&both, &Style::PLAIN).replace('\n', " ");
    let own = "frame-buffer maps 1.32 MiB anew in copy_frame. No fix of it can be tried by itself.";
    assert!(words.contains(own), "{words}");
}

fn no_arms(diagnosis: &Diagnosis) -> slowpath_report::LaunchSummary {
    slowpath_report::LaunchSummary { arms: Vec::new(), ..diagnosis.launch.clone() }
}

#[test]
fn a_screen_tells_both_and_what_was_not_tried() {
    let both = Diagnosis::of_both(cold(), warm());
    let printed = terminal::diagnosis(&both, &Style::PLAIN);
    for told in ["ready 2335 ms after a cold launch", "Proved: allocator_tunables", "change of CPU time", "verdict  "] {
        assert!(printed.contains(told), "{told}: {printed}");
    }
    let not_tried = |verdict: Verdict| Verdict {
        decision: Some(Decision::NotTried),
        outcome: Outcome::NotTestable,
        measured: None,
        against_sham: None,
        interval_level: None,
        reason: "its launches take some 9 min".to_owned(),
        ..verdict
    };
    let mut untried = cold();
    untried.verdicts = untried.verdicts.into_iter().take(1).map(not_tried).collect();
    let printed = terminal::diagnosis(&Diagnosis::of_both(untried, warm()), &Style::PLAIN);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("No fix was tried.") && words.contains("its launches take some 9 min"), "{printed}");
}

#[test]
fn a_diagnosis_of_both_survives_its_json_and_one_of_an_older_version_is_read() {
    let both = Diagnosis::of_both(cold(), warm());
    let text = serde_json::to_string(&both).unwrap();
    let again = Diagnosis::of_json(text.as_bytes()).unwrap();
    assert_eq!((&again.other, &again.verdicts), (&both.other, &both.verdicts));
    assert_eq!(again.findings.len(), both.findings.len());
    let mut old = serde_json::to_value(samples::diagnosis()).unwrap();
    old["verdicts"].as_array_mut().unwrap().iter_mut().for_each(|verdict| {
        verdict.as_object_mut().unwrap().remove("judged_by");
    });
    let old = Diagnosis::of_json(old.to_string().as_bytes()).unwrap();
    assert_eq!(old.leading().verdicts, samples::diagnosis().verdicts);
    assert!(old.following().is_none());
}

/// A diagnosis with more of everything than a screen has room for.
fn crowded(mut half: Diagnosis) -> Diagnosis {
    let ms = |value| Quantity::exact(value, Unit::Ms);
    let row = |part: Part| TimeSpentRow {
        part,
        title: part.words().to_owned(),
        to_ready: Some(ms(160.0)),
        cpu: Some(ms(120.0)),
    };
    half.time = vec![TimeSpent {
        condition: if half.warm { Condition::Warm } else { Condition::Cold },
        time_to_ready: Some(ms(968.0)),
        cpu: ms(1050.0),
        recording: half.warm.then(|| ms(107.0)),
        rows: Part::ALL.into_iter().map(row).collect(),
        unexplained: Some(ms(1.9)),
        uncounted_threads: 2,
        has_memory_calls: half.warm,
    }];
    let long =
        "chromium maps 1.32 MiB anew in copy_frame_of_video, 120 times, and gives it back: 48.6 % of its CPU time";
    half.findings.extend((0..6).map(|i| samples::finding(&format!("{}{i}", half.warm), long, 50.0)));
    half.findings[0].title = long.to_owned();
    half.launch.arms.extend((0..6).map(|i| samples::arm(&format!("arm_{i}"), ArmRole::Rival, None, 0.0)));
    let untried = samples::warm().verdicts.into_iter().filter(|verdict| verdict.decision == Some(Decision::NotTried));
    let reason = "change the source: where the process that starts the children loads what they all need";
    let untried = untried.map(|verdict| Verdict { reason: reason.to_owned(), ..verdict });
    half.verdicts.splice(0..0, untried);
    half.notes
        .push("the plan was made from other launches than those that judge it; readahead was not changed".to_owned());
    half
}

/// All that the command prints has 30 lines, none of which ends within a word.
fn check_whole_screen(diagnosis: &Diagnosis) {
    for (columns, unicode, kept) in [(80, false, 0), (80, true, 1), (80, true, 3), (100, false, 1), (100, true, 3)] {
        let style = Style { columns, unicode, ..Style::PLAIN };
        let commands = vec!["slowpath fix show /tmp/chromium preload_plan".to_owned(); kept];
        let screen =
            |style: &Style| terminal::diagnosis_screen(diagnosis, "/tmp/chromium/report.html", &commands, style);
        let printed = screen(&style);
        assert!(printed.lines().count() <= 30, "{} lines:\n{printed}", printed.lines().count());
        assert!(printed.lines().all(|line| line.chars().count() <= columns), "{printed}");
        assert_eq!(printed.matches("\nnext: ").count(), kept, "{printed}");
        let word = |text: &str| text.trim_end_matches(['…', '~', ',', ';', ':', '.']).to_owned();
        let whole = screen(&Style { lines: usize::MAX, ..style });
        let words: BTreeSet<String> = whole.split_whitespace().map(word).collect();
        for line in printed.lines() {
            let is_whole = line.split_whitespace().next_back().is_none_or(|last| words.contains(&word(last)));
            assert!(is_whole, "{line}\n{printed}");
            assert!(!line.starts_with("  1 ") || !line.contains("s in the report"), "{line}");
        }
    }
}

#[test]
fn the_whole_screen_of_the_command_has_30_lines_and_no_line_ends_within_a_word() {
    let (cold, warm) = (judged_by(crowded(cold()), Metric::Wall), judged_by(crowded(warm()), Metric::Cpu));
    for half in [self::cold(), self::warm(), cold.clone(), warm.clone()] {
        check_whole_screen(&half);
    }
    let both = Diagnosis::of_both(cold.clone(), warm);
    check_whole_screen(&both);
    let no_trial = Diagnosis { launch: no_arms(&self::warm()), ..self::warm() };
    check_whole_screen(&Diagnosis::of_both(cold, judged_by(crowded(no_trial), Metric::Cpu)));
    let printed = terminal::diagnosis_screen(&both, "/tmp/report.html", &[], &Style::PLAIN);
    assert!(printed.ends_with("\nreport: /tmp/report.html\n") && printed.contains(" in the report\n"), "{printed}");
}
