//! Finding `thp_missed` on the real program of `cases/huge-pages`, its near misses, and `diagnose --warm` from it to a verdict. What is
//! compared here are counts, which do not depend on how busy the machine is.

use crate::recorded_case::{ABOUT_MEMORY, MEMORY, RecordedCase, built, row};
use crate::running::*;
use crate::traces::assert_nothing_left;
use serde_json::Value;

const FINDING: &str = "thp_missed";
const MIB: &str = "64";

/// The program, on a machine that gives huge pages to who asks for them; what it prints holds nowhere else.
fn program() -> Option<tempfile::TempDir> {
    let setting = slowpath_recording::HugePages::of_this_machine();
    if !root() || setting.is_none_or(|setting| setting.enabled != "madvise") {
        println!("skipped: no root, or huge pages are not given to who asks for them");
        return None;
    }
    Some(built("huge-pages"))
}

#[test]
fn memory_filled_in_small_pages_is_found_with_its_counts_and_what_has_or_holds_no_huge_pages_is_not() {
    let Some(place) = program() else { return };
    let program = place.path().join("huge-pages");
    let recorded = |variant: &str| {
        let target = [program.to_str().unwrap(), variant, MIB];
        RecordedCase::record(&place.path().join(variant), &MEMORY, &target, &ABOUT_MEMORY)
    };
    for (variant, fixes) in [("heap", &["huge_pages", "advise_huge_pages"][..]), ("own", &["advise_huge_pages"])] {
        let recorded = recorded(variant);
        let finding = recorded.one();
        assert_eq!((&finding["name"], &finding["subject"]["mode"]), (&FINDING.into(), &"madvise".into()));
        assert!(finding["subject"]["function"].as_str().unwrap().contains("make_part"), "{finding:#}");
        let spans = row(finding, "spans");
        assert!(recorded.number("spans") >= 30.0, "{:?}", recorded.numbers);
        recorded.assert_counts(spans, "spans", "spans");
        recorded.assert_counts(spans, "faults", "pages");
        assert_eq!(finding["fixes"], serde_json::json!(fixes));
        assert_ne!(finding["confidence"], "low", "{:#}", finding["reasons"]);
        let (cost, saving) = (finding["cost"]["value"].as_f64().unwrap(), &finding["predicted_saving"]["value"]);
        assert!(saving.is_null() || saving.as_f64().unwrap() <= cost, "{finding:#}");
        let touching = row(finding, "fault_ms");
        assert!(touching["fault_ms"].as_f64().unwrap() > 0.0, "{touching:#}");
    }
    for variant in ["advised", "refused", "half"] {
        println!("{variant}");
        recorded(variant).none();
    }
    // What the machine was and what its huge pages cost stands in the recording.
    let manifest = tables(&place.path().join("own")).manifest;
    assert_eq!(manifest.host.huge_pages.unwrap().size.0, 2 << 20);
    let blocks = manifest.memory_cost.map(|measured| measured.blocks).unwrap_or_default();
    println!("{blocks:#?}");
    assert!(blocks.iter().all(|block| !block.advised || block.unseen.is_none()), "{blocks:#?}");
}

#[test]
fn the_allocators_setting_is_tried_and_takes_the_faults_away() {
    let Some(place) = program() else { return };
    let program = place.path().join("huge-pages");
    let out = place.path().join("out");
    let mut command = slowpath(["diagnose", "--warm", "--json", "--blocks", "9", "--max-time", "20m", "-o"]);
    let done = run(command.arg(&out).arg("--").arg(&program).args(["heap", MIB]));
    done.succeeds();
    assert_nothing_left(&done);
    let diagnosis = done.json();
    let named = |list: &Value, key: &str, name: &str| -> Value {
        let all = list.as_array().unwrap();
        all.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("no {name} in {list:#}")).clone()
    };
    let faults =
        |arm: &str| named(&diagnosis["launch"]["arms"], "name", arm)["minor_faults"]["value"].as_f64().unwrap();
    let (before, with) = (faults("untreated"), faults("huge_pages"));
    println!("faults: untreated {before}, huge_pages {with}");
    assert!(before > 16_000.0 && with <= before / 5.0, "{before} {with}");
    let verdict = named(&diagnosis["verdicts"], "arm", "huge_pages");
    println!("{verdict:#}");
    assert!(["proved", "withdrawn", "not_shown"].iter().any(|word| verdict["decision"] == *word), "{verdict:#}");
    assert!(verdict["measured"]["low"].is_f64() && verdict["pairs"] == 9, "{verdict:#}");
    let fewer = named(&verdict["beside"], "metric", "minor_faults");
    assert!(fewer["outcome"] == "helps" && fewer["change"]["high"].as_f64().unwrap() < 0.0, "{verdict:#}");
    let source = named(&diagnosis["verdicts"], "fix", "advise_huge_pages");
    assert!(
        source["decision"] == "not_tried" && source["reason"].as_str().unwrap().contains("make_part"),
        "{source:#}"
    );
}
