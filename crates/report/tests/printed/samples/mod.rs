//! A diagnosis as `diagnose` makes it, and one whose every text is hostile.

use slowpath_analysis::finding::{Confidence, Evidence, Finding};
use slowpath_analysis::fix_inputs::FixInputs;
use slowpath_analysis::printed::looked_for::{LargestUnseen, LookedFor, LookedForFinding};
use slowpath_analysis::printed::time_spent::Condition;
use slowpath_fix::{Change, FixPlan, Privilege, Scope, Treatment, Trial};
use slowpath_report::{
    ArmRole, ArmSummary, DIAGNOSE_SCHEMA, Decision, Diagnosis, GapShare, LaunchSummary, Machine, MetricChange, Outcome,
    REPORT_SCHEMA, ReportData, Verdict,
};
use slowpath_tables::{Losses, Quantity, Unavailable, Unit};
use slowpath_verify::Metric;
use std::collections::BTreeMap;

fn ms(value: f64, low: f64, high: f64) -> Quantity {
    Quantity::interval(value, low, high, Unit::Ms)
}

pub fn finding(name: &str, title: &str, cost: f64) -> Finding {
    Finding {
        name: name.to_owned(),
        former_name: None,
        title: title.to_owned(),
        subject: BTreeMap::from([("file".to_owned(), "/usr/lib/chromium/chromium".into())]),
        cost: ms(cost, cost * 0.9, cost * 1.1),
        predicted_saving: None,
        confidence: Confidence::High,
        reasons: Vec::new(),
        evidence: vec![Evidence { text: "The files that launches waited for.".to_owned(), rows: Vec::new() }],
        fixes: vec!["preload_plan".to_owned()],
        fix_inputs: FixInputs::default(),
        see_by_hand: "perf trace -F maj".to_owned(),
    }
}

pub fn arm(name: &str, role: ArmRole, median: Option<(f64, f64, f64)>, read_mb: f64) -> ArmSummary {
    ArmSummary {
        name: name.to_owned(),
        title: name.to_owned(),
        role,
        samples_ms: (0..20).map(|i| median.map(|(value, ..)| value + f64::from(i)).filter(|_| i != 3)).collect(),
        median: median.map(|(value, low, high)| ms(value, low, high)),
        cpu_samples_ms: Vec::new(),
        cpu: None,
        lacks_children: false,
        minor_faults: None,
        peak_rss: None,
        bytes_read: median.map(|_| Quantity::exact(read_mb * 1e6, Unit::Bytes)),
        discarded: 1,
        failed: 0,
        discard_reasons: Vec::new(),
    }
}

pub fn verdict(arm: &str, outcome: Outcome, predicted: Option<f64>, measured: Option<(f64, f64, f64)>) -> Verdict {
    Verdict {
        arm: arm.to_owned(),
        fix: None,
        judged_by: None,
        outcome,
        decision: None,
        predicted: predicted.map(|value| Quantity::exact(value, Unit::Ms)),
        measured: measured.map(|(value, low, high)| ms(value, low, high)),
        against_sham: None,
        interval_level: None,
        minimum_detectable_effect: Some(Quantity::exact(40.0, Unit::Ms)),
        pairs: 19,
        discarded: 1,
        reason: "fewer than 6 pairs".to_owned(),
        beside: Vec::new(),
    }
}

/// What was looked for: one finding whose cost would have been seen from `least` ms on, and one that could hide any.
pub fn looked_for(condition: Condition, name: &str, least: f64) -> LookedFor {
    let one = |name: &str, least_visible: Option<f64>| LookedForFinding {
        name: name.to_owned(),
        title: format!("the pattern {name}"),
        reported_from: "2 % of the time to ready".to_owned(),
        least_visible: least_visible.map(|least| Quantity::exact(least, Unit::Ms)),
        within: None,
        hidden_by: if least_visible.is_some() { Vec::new() } else { vec!["opens: not recorded".to_owned()] },
    };
    let cost = Quantity::exact(least, Unit::Ms);
    LookedFor {
        condition,
        findings: vec![one(name, Some(least)), one("many_libraries", None)],
        largest_unseen: Some(LargestUnseen { finding: name.to_owned(), cost }),
    }
}

pub fn diagnosis() -> Diagnosis {
    Diagnosis {
        schema: DIAGNOSE_SCHEMA.to_owned(),
        warm: false,
        running: None,
        time: Vec::new(),
        looked_for: vec![looked_for(Condition::Cold, "cold_file_reads", 46.7)],
        command: vec!["/usr/bin/chromium".to_owned(), "--headless".to_owned()],
        recording: "/home/me/slowpath-chromium".to_owned(),
        launch: LaunchSummary {
            ready: "the first script ran".to_owned(),
            seed: 7,
            blocks: 20,
            conditions: vec!["ext4 on a loop device".to_owned()],
            judged_by: Metric::Wall,
            error_rate: Some(0.05),
            interval_level: Some(0.99),
            arms: vec![
                arm("cold", ArmRole::Baseline, Some((2335.0, 2290.0, 2391.0)), 386.0),
                arm("preload_plan", ArmRole::Fix, Some((1514.0, 1460.0, 1590.0)), 147.0),
                arm("empty_plan", ArmRole::Sham, Some((2341.0, 2280.0, 2410.0)), 386.0),
                arm("readahead_512", ArmRole::Rival, None, 0.0),
                arm("warm", ArmRole::Warm, Some((396.0, 380.0, 402.0)), 0.0),
            ],
        },
        other: None,
        shared_findings: 0,
        findings: vec![
            finding("cold_file_reads", "Waiting for reads of 218 files", 1830.0),
            finding("backward_reads", "A large library is read backwards", 240.5),
        ],
        fixes: Vec::new(),
        verdicts: vec![
            Verdict {
                fix: Some("preload_plan".to_owned()),
                against_sham: Some(ms(-815.0, -893.0, -744.0)),
                interval_level: Some(0.99),
                ..verdict("preload_plan", Outcome::Helps, Some(-700.0), Some((-821.0, -900.0, -750.0)))
            },
            verdict("empty_plan", Outcome::Inconclusive, None, Some((6.0, -50.0, 61.0))),
            verdict("readahead_512", Outcome::NotTestable, Some(-100.0), None),
        ],
        round_trips: Vec::new(),
        hidden_by_root: None,
        share_of_gap_removed: vec![GapShare {
            arm: "preload_plan".to_owned(),
            share: Quantity::interval(0.423, 0.39, 0.46, Unit::Ratio),
            blocks: Some(20),
            interval_level: Some(0.99),
        }],
        losses: Losses(BTreeMap::from([("faults".to_owned(), 0), ("reads".to_owned(), 12)])),
        unavailable: vec![Unavailable {
            what: "instruction counts".to_owned(),
            reason: "the CPU's counters are not exposed here".to_owned(),
            remedy: "run on the host".to_owned(),
        }],
        notes: vec!["libc was shared with other programs and stayed warm".to_owned()],
    }
}

/// An arm of a warm diagnosis: CPU time in ms, faults.
pub fn warm_arm(name: &str, role: ArmRole, cpu: (f64, f64, f64), faults: f64) -> ArmSummary {
    ArmSummary {
        cpu_samples_ms: vec![Some(cpu.0); 20],
        cpu: Some(ms(cpu.0, cpu.1, cpu.2)),
        lacks_children: false,
        minor_faults: Some(Quantity::interval(faults, faults - 2.0, faults + 1.0, Unit::Count)),
        peak_rss: Some(Quantity::exact(9e6, Unit::Bytes)),
        ..arm(name, role, Some((1005.0, 1004.0, 1007.0)), 0.0)
    }
}

/// A warm diagnosis in which one fix is proved, one withdrawn, one could not be tried.
pub fn warm() -> Diagnosis {
    let plan = |name: &str, possible| FixPlan {
        fix: name.to_owned(),
        name: name.to_owned(),
        title: format!("the fix {name}"),
        changes: vec![Change { what: "GLIBC_TUNABLES".to_owned(), from: None, to: "a=1".to_owned() }],
        scope: Scope::Launch,
        privilege: Privilege::User,
        side_effects: vec!["children inherit it".to_owned()],
        price: "resident memory".to_owned(),
        security_cost: "none".to_owned(),
        undo: "unset it".to_owned(),
        trial: Trial { possible, how: "change the source: copy_frame (frame_buffer.cpp:137)".to_owned() },
        treatment: Treatment::None,
    };
    let count = |value: f64| Quantity::interval(value, value - 9.0, value + 9.0, Unit::Count);
    let beside = |wall: Quantity, faults: f64| {
        [(Metric::Wall, wall), (Metric::MinorFaults, count(faults)), (Metric::PeakRss, count(faults))]
            .map(|(metric, change)| MetricChange { metric, change: Some(change), outcome: Outcome::Helps })
            .to_vec()
    };
    let judged =
        |arm: &str, outcome, predicted, measured: (f64, f64, f64), faults: f64, decision: Option<Decision>| Verdict {
            fix: decision.map(|_| arm.to_owned()),
            decision,
            against_sham: decision.map(|_| ms(measured.0 + 0.7, measured.1 - 0.5, measured.2 + 1.2)),
            interval_level: Some(0.99),
            beside: beside(ms(-0.4, -3.0, 2.0), faults),
            ..verdict(arm, outcome, predicted, Some(measured))
        };
    let untried = Verdict {
        decision: Some(Decision::NotTried),
        reason: "change the source: copy_frame (frame_buffer.cpp:137)".to_owned(),
        ..verdict("reuse_buffer", Outcome::NotTestable, Some(-60.1), None)
    };
    Diagnosis {
        warm: true,
        launch: LaunchSummary {
            judged_by: Metric::Cpu,
            arms: vec![
                warm_arm("untreated", ArmRole::Baseline, (216.0, 210.0, 222.0), 42_131.0),
                warm_arm("allocator_tunables", ArmRole::Fix, (154.0, 151.0, 159.0), 1_902.0),
                warm_arm("replace_allocator", ArmRole::Fix, (217.0, 212.0, 223.0), 42_300.0),
                warm_arm("sham_environment", ArmRole::Sham, (215.0, 209.0, 221.0), 42_131.0),
            ],
            ..diagnosis().launch
        },
        command: vec!["/opt/frame-buffer".to_owned()],
        looked_for: vec![looked_for(Condition::Warm, "timed_wait", 100.0)],
        findings: vec![finding("transient_large_allocation", "frame-buffer maps 1.32 MiB anew in copy_frame", 61.0)],
        fixes: vec![plan("allocator_tunables", true), plan("reuse_buffer", false)],
        verdicts: vec![
            judged(
                "allocator_tunables",
                Outcome::Helps,
                Some(-60.1),
                (-62.1, -66.0, -58.0),
                -40_229.0,
                Some(Decision::Proved),
            ),
            judged(
                "replace_allocator",
                Outcome::NoDifference,
                None,
                (1.1, -2.0, 3.9),
                169.0,
                Some(Decision::Withdrawn),
            ),
            judged("sham_environment", Outcome::NoDifference, None, (-0.7, -3.0, 2.1), 0.0, None),
            untried,
        ],
        share_of_gap_removed: Vec::new(),
        round_trips: Vec::new(),
        hidden_by_root: None,
        losses: Losses::default(),
        unavailable: vec![Unavailable {
            what: "a trial of huge_pages".to_owned(),
            reason: "switched off".to_owned(),
            remedy: "switch them on".to_owned(),
        }],
        notes: vec!["findings come from another launch than those that judge them".to_owned()],
        recording: "/home/me/d/warm".to_owned(),
        ..diagnosis()
    }
}

/// The sample diagnosis with `text` in every place that a target or a file name can fill.
pub fn hostile(text: &str, arms: usize, findings: usize) -> Diagnosis {
    let mut diagnosis = diagnosis();
    let text = text.to_owned();
    diagnosis.command = vec![text.clone()];
    diagnosis.recording = text.clone();
    diagnosis.notes = vec![text.clone(); findings];
    diagnosis
        .launch
        .arms
        .extend((0..arms).map(|i| arm(&format!("{text}{i}"), ArmRole::Fix, Some((1e7, -1e7, 1e9)), 1e6)));
    diagnosis.findings.extend((0..findings).map(|_| finding(&text, &text, 1e9)));
    diagnosis.verdicts.extend((0..arms).map(|i| {
        let mut verdict = verdict(&format!("{text}{i}"), Outcome::Helps, Some(1e9), Some((-1e8, -1e9, -1.0)));
        verdict.fix = Some(text.clone());
        verdict.reason = text.clone();
        verdict
    }));
    diagnosis.losses.add(&text, 5);
    diagnosis.unavailable = vec![Unavailable { what: text.clone(), reason: text.clone(), remedy: text }; findings];
    diagnosis
}

pub fn report(diagnosis: Diagnosis) -> ReportData {
    ReportData {
        schema: REPORT_SCHEMA.to_owned(),
        title: diagnosis.command.join(" "),
        generated: "2026-01-02T03:04:05Z".to_owned(),
        machine: Machine { kernel: "6.18".to_owned(), cpus: 2, page_size: 4096, ..Machine::default() },
        findings: diagnosis.findings.clone(),
        losses: diagnosis.losses.clone(),
        unavailable: diagnosis.unavailable.clone(),
        io_map: None,
        ledger: None,
        flame_graphs: None,
        timeline: None,
        launches: None,
        siblings: None,
        diagnosis: Some(diagnosis),
    }
}
