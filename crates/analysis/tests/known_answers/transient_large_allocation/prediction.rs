//! The predicted saving where it was measured beside the recording what blocks cost.

use super::*;
use slowpath_recording::{BlockCost, MemoryCost};
use slowpath_tables::{Quantity, Unit};

/// What was measured for blocks of 1 and 4 MiB alike: a page costs so much, a fault lacks so much; value, low, high in ns.
fn measured(per_page: [f64; 3], unseen: Option<[f64; 3]>) -> impl Fn(&mut Tables) {
    let quantity = |[value, low, high]: [f64; 3]| Quantity::interval(value, low, high, Unit::Ns);
    let block = move |bytes: u64| BlockCost {
        bytes: Bytes(bytes),
        displaced: false,
        after: false,
        operations: 8,
        faults: 8 * bytes / PAGE_SIZE,
        huge_pages: false,
        advised: false,
        per_page: quantity(per_page),
        unseen: unseen.map(quantity),
    };
    move |tables| {
        let blocks = [1, 4].map(|mib| block(mib << 20)).to_vec();
        tables.manifest.memory_cost = Some(MemoryCost { took: Nanos(100 * MS), blocks });
    }
}

#[track_caller]
fn assert_saving(finding: &Finding, expected: [f64; 3]) {
    let saving = finding.predicted_saving.unwrap();
    let found = [saving.value, saving.low.unwrap(), saving.high.unwrap()];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}, expected {expected:?}");
}

/// Faults of all operations but the first.
const LEFT_OUT: f64 = 299.0 * 338.0;

#[test]
fn what_durations_lack_is_added_and_the_interval_holds_what_was_measured() {
    let edit = measured([1700.0, 1600.0, 1800.0], Some([500.0, 400.0, 600.0]));
    let finding = Program::new().frames(300).edited(edit).found().unwrap();
    // What is seen in events stays what it is.
    assert_eq!((finding.cost.low, finding.cost.high), (Some(119.4), Some(119.4)));
    let recorded = 0.398 * 299.0;
    let (pages, faults) = (LEFT_OUT / 1e6, LEFT_OUT / 1e6);
    assert_saving(&finding, [recorded + 500.0 * faults, recorded + 400.0 * faults, 1800.0 * pages]);
    assert!(finding.reasons.iter().any(|reason| reason.contains("500 ns (400 to 600)")), "{:?}", finding.reasons);
    assert!(!finding.reasons.iter().any(|reason| reason.contains("neither is calibrated")), "{:?}", finding.reasons);
    let parts: Vec<&str> =
        finding.evidence.iter().flat_map(|one| &one.rows).filter_map(|row| row.get("source")?.as_str()).collect();
    assert_eq!(parts, ["recorded", "calibrated", "recorded and calibrated", "calibrated", "all of these"]);
    assert_eq!(row(&finding, "ns_per_page")["pages"], LEFT_OUT as u64);
    assert_eq!(row(&finding, "ns_per_fault")["ns_per_fault"], 500.0);
    assert_eq!(finding.confidence, Confidence::High, "{:?}", finding.reasons);
}

#[test]
fn a_prediction_says_whether_it_was_measured_after_the_recording_too() {
    let texts = |after: bool, unseen: Option<[f64; 3]>| {
        let measure = measured([1700.0, 1600.0, 1800.0], unseen);
        let cut_short = move |tables: &mut Tables| {
            measure(tables);
            let blocks = &mut tables.manifest.memory_cost.as_mut().unwrap().blocks;
            let again: Vec<BlockCost> = blocks.iter().map(|block| BlockCost { after: true, ..block.clone() }).collect();
            blocks.extend(again.into_iter().filter(|_| after));
        };
        let finding = Program::new().frames(300).edited(cut_short).found().unwrap();
        let evidence = finding.evidence.iter().map(|one| one.text.clone());
        finding.reasons.into_iter().chain(evidence).filter(|text| text.contains("measured before")).collect::<Vec<_>>()
    };
    for unseen in [Some([500.0, 400.0, 600.0]), None] {
        for (after, words) in
            [(true, "measured before and after the recording"), (false, "measured before the recording only")]
        {
            let texts = texts(after, unseen);
            assert!(texts.len() == 2 && texts.iter().all(|text| text.contains(words)), "{texts:?}");
        }
    }
}

#[test]
fn threads_that_were_displaced_in_faults_move_the_value_by_little_and_the_upper_end_by_all_of_it() {
    let measure = measured([1700.0, 1600.0, 1800.0], Some([500.0, 400.0, 600.0]));
    // One fault of each operation but the first lasts for 4 ms: ten times what all others take together.
    let displaced = |tables: &mut Tables| {
        let many = tables.faults.iter_mut().skip(338).step_by(338);
        many.for_each(|fault| fault.duration = Some(Nanos(4 * MS)));
    };
    let finding = Program::new().frames(300).edited(measure).edited(displaced).found().unwrap();
    let (faults, calls) = (LEFT_OUT / 1e6, 0.06 * 299.0);
    let saving = finding.predicted_saving.unwrap();
    let quiet = faults * (1000.0 + 500.0) + calls;
    assert!((saving.value - quiet).abs() < quiet * 0.02, "{saving:?}, expected {quiet}");
    assert!(saving.high.unwrap() > 4.0 * 299.0 && saving.low.unwrap() < quiet, "{saving:?}");
}

#[test]
fn recording_can_add_more_than_durations_lack() {
    let edit = measured([1000.0, 900.0, 1100.0], Some([-200.0, -300.0, -100.0]));
    let finding = Program::new().frames(300).edited(edit).found().unwrap();
    let recorded = 0.398 * 299.0;
    let expected = [recorded - 200.0 * LEFT_OUT / 1e6, recorded - 300.0 * LEFT_OUT / 1e6, 1100.0 * LEFT_OUT / 1e6];
    assert_saving(&finding, expected);
    // Never below nothing.
    let edit = measured([1000.0, 900.0, 1100.0], Some([-90_000.0, -95_000.0, -85_000.0]));
    let finding = Program::new().frames(300).edited(edit).found().unwrap();
    assert_saving(&finding, [0.0, 0.0, 1100.0 * LEFT_OUT / 1e6]);
}

#[test]
fn faults_that_are_dearer_than_those_that_were_measured_widen_the_interval_to_hold_both() {
    let edit = measured([300.0, 290.0, 310.0], Some([500.0, 400.0, 600.0]));
    let finding = Program::new().frames(300).edited(edit).found().unwrap();
    let recorded = 0.398 * 299.0;
    let at = |ns: f64| recorded + ns * LEFT_OUT / 1e6;
    assert_saving(&finding, [at(500.0), 290.0 * LEFT_OUT / 1e6, at(600.0)]);
    let names_both = |reason: &String| reason.contains("durations say 169.5 ms and the measurement 30.3 ms");
    assert!(finding.reasons.iter().any(names_both), "{:?}", finding.reasons);
}

#[test]
fn where_no_recorder_watched_the_measurement_is_the_value_and_durations_are_in_the_interval() {
    let edit = measured([1700.0, 1600.0, 1800.0], None);
    let finding = Program::new().frames(300).edited(edit).found().unwrap();
    assert_saving(&finding, [1700.0 * LEFT_OUT / 1e6, 0.398 * 299.0, 1800.0 * LEFT_OUT / 1e6]);
}

#[test]
fn without_a_measurement_that_can_be_believed_or_applies_durations_alone_predict() {
    let saving = |edit: &dyn Fn(&mut Tables)| {
        let finding = Program::new().frames(300).edited(edit).found().unwrap();
        let reason = finding.reasons.iter().any(|reason| reason.contains("neither is calibrated"));
        let rows = finding.evidence.iter().flat_map(|one| &one.rows).any(|row| row.contains_key("source"));
        assert!(reason && !rows, "{finding:#?}");
        finding.predicted_saving.unwrap().value
    };
    let alone = saving(&|_| ());
    assert!((alone - 0.398 * 299.0).abs() < 1e-9, "{alone}");
    for nonsense in [[0.0; 3], [f64::NAN; 3], [-5.0, -6.0, -4.0], [1e300, 1e300, 1e300], [1700.0, 1800.0, 1600.0]] {
        assert_eq!(saving(&measured(nonsense, Some([500.0, 400.0, 600.0]))), alone, "{nonsense:?}");
    }
    let populated = |tables: &mut Tables| {
        measured([1700.0, 1600.0, 1800.0], None)(tables);
        let mapped = tables.memory_calls.iter_mut().filter(|call| call.call == MemoryCallKind::Mmap);
        mapped.for_each(|call| call.argument |= 0x8000);
    };
    assert_eq!(saving(&populated), alone);
    // Nonsense in what a fault lacks leaves the rest.
    let edit = measured([1700.0, 1600.0, 1800.0], Some([f64::INFINITY, 0.0, 1e308]));
    let finding = Program::new().frames(300).edited(edit).found().unwrap();
    assert!((finding.predicted_saving.unwrap().value - 1700.0 * LEFT_OUT / 1e6).abs() < 1e-6);
}

#[test]
fn several_launches_are_not_surer_than_one_of_them() {
    let launch = |frames: u64| {
        let edit = measured([1700.0, 1600.0, 1800.0], Some([500.0, 400.0, 600.0]));
        let mut tables = Program::new().frames(frames).edited(edit).0;
        tables.exits[0].min_flt = tables.faults.len() as u64;
        tables
    };
    let launches = [300, 300, 300].map(launch);
    let found = of_recordings(&launches.each_ref(), None);
    assert_saving(&found[0], {
        let recorded = 0.398 * 299.0;
        [recorded + 500.0 * LEFT_OUT / 1e6, recorded + 400.0 * LEFT_OUT / 1e6, 1800.0 * LEFT_OUT / 1e6]
    });
}
