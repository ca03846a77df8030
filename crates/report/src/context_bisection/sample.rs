//! A bisection, made up for tests.

use crate::{
    BisectedAnswer, BisectedCandidate, BisectedCause, BisectedCounterShift, BisectedReproduction, BisectedSide,
    BisectedTotal, BisectionEnd, CONTEXT_BISECT_SCHEMA, CandidateVerdict, CauseKind, ComparedContext, ContextBisection,
    RemainingDifference,
};
use slowpath_context::factor::Known;
use slowpath_context::{Remedy, Weight};
use slowpath_tables::{Quantity, Unit};
use slowpath_verify::Metric;

fn percent(value: f64, low: f64, high: f64) -> Option<Quantity> {
    Some(Quantity::interval(value, low, high, Unit::Percent))
}

fn candidate(name: &str, verdict: CandidateVerdict) -> BisectedCandidate {
    BisectedCandidate {
        name: name.to_owned(),
        factor: "environment".to_owned(),
        title: "environment".to_owned(),
        fast: "none".to_owned(),
        slow: "165".to_owned(),
        known: Known::new(Weight::Heavy, "much", "mallopt(3)"),
        irreversible: false,
        mechanism: "each block is filled".to_owned(),
        sham: "no variable".to_owned(),
        verdict,
        reason: None,
        tried_with: Vec::new(),
        sufficient: percent(62.0, 58.0, 66.0),
        necessary: percent(61.0, 57.0, 65.0),
        pairs: 12,
    }
}

/// With its answer in a sentence.
pub(crate) fn concluded(found: ContextBisection) -> ContextBisection {
    ContextBisection { conclusion: super::conclusion::of(&found), ..found }
}

/// One cause, one harmless candidate, one difference that remains.
pub(crate) fn bisection() -> ContextBisection {
    let side = |given: &str| BisectedSide {
        given: given.to_owned(),
        context: ComparedContext {
            origin: "this machine".to_owned(),
            pid: Some(7),
            name: "work".to_owned(),
            command: vec![],
        },
    };
    let counter = BisectedCounterShift {
        metric: Metric::User,
        without: Quantity::exact(30.0, Unit::Ms),
        with: Quantity::exact(49.0, Unit::Ms),
        p: 0.0005,
    };
    ContextBisection {
        schema: CONTEXT_BISECT_SCHEMA,
        conclusion: String::new(),
        command: vec!["work".to_owned()],
        fast: side(""),
        slow: side("env MALLOC_PERTURB_=165 LANG=C"),
        metric: Metric::Wall,
        total: BisectedTotal {
            answer: BisectedAnswer::Slower,
            difference: percent(63.0, 60.0, 66.0),
            fast: Some(Quantity::exact(100.0, Unit::Ms)),
            slow: Some(Quantity::exact(163.0, Unit::Ms)),
            pairs: 12,
            enough: None,
        },
        reproduction: Some(BisectedReproduction {
            difference: percent(62.0, 59.0, 65.0),
            unexplained: percent(0.5, -1.0, 2.0),
            is_shown: true,
            failure: None,
        }),
        causes: vec![BisectedCause {
            names: vec!["environment MALLOC_PERTURB_".to_owned()],
            kind: CauseKind::Alone,
            is_bundled: false,
            sufficient: percent(62.0, 58.0, 66.0),
            necessary: percent(61.0, 57.0, 65.0),
            counters: vec![counter],
            mechanism: "each block is filled".to_owned(),
            remedies: vec![Remedy { what: "take it out".to_owned(), price: "errors are found less often".to_owned() }],
        }],
        effects: Vec::new(),
        candidates: vec![
            candidate("environment MALLOC_PERTURB_", CandidateVerdict::Cause),
            BisectedCandidate {
                sufficient: percent(0.1, -1.0, 1.2),
                necessary: None,
                tried_with: vec!["timer_slack_ns".to_owned()],
                ..candidate("environment LANG", CandidateVerdict::NotNeeded)
            },
        ],
        remaining: vec![RemainingDifference {
            name: "kernel".to_owned(),
            title: "kernel".to_owned(),
            fast: "6.1".to_owned(),
            slow: "6.6".to_owned(),
            known: Known::new(Weight::Unknown, "nothing is known", "none"),
            why: "it is the same for all programs of a machine".to_owned(),
        }],
        follows: Vec::new(),
        lacking: Vec::new(),
        rest: percent(0.4, -1.0, 1.9),
        margin: Quantity::exact(5.0, Unit::Percent),
        ended: BisectionEnd::Decided,
        launches: 120,
        took: Quantity::exact(21.5, Unit::S),
        seed: 1,
        notes: Vec::new(),
        unavailable: Vec::new(),
    }
}
