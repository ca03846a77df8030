//! A diagnosis of cold and of warm launches: what leads, what belongs to which, and what a screen says of both.

use crate::samples;
use slowpath_report::terminal::{self, Style};
use slowpath_report::{Decision, Diagnosis, Outcome, Verdict};
use slowpath_verify::Metric;

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
    let printed = terminal::diagnosis(&both, &Style::PLAIN);
    assert!(printed.contains("No hidden cost was found in a warm launch of chromium."), "{printed}");
}

fn no_arms(diagnosis: &Diagnosis) -> slowpath_report::LaunchSummary {
    slowpath_report::LaunchSummary { arms: Vec::new(), ..diagnosis.launch.clone() }
}

#[test]
fn a_screen_tells_both_and_what_was_not_tried() {
    let both = Diagnosis::of_both(cold(), warm());
    let printed = terminal::diagnosis(&both, &Style::PLAIN);
    assert!(printed.lines().count() <= 29, "{printed}");
    for told in ["ready 2335 ms after a cold launch", "Proved: allocator_tunables", "change of CPU time", "verdict  "] {
        assert!(printed.contains(told), "{told}: {printed}");
    }
    let not_tried = |verdict: Verdict| Verdict {
        decision: Some(Decision::NotTried),
        outcome: Outcome::NotTestable,
        measured: None,
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
