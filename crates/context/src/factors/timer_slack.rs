//! By how much the kernel may delay a thread's timers (PR_SET_TIMERSLACK, prctl(2)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::place::Missing;
use crate::reading::{Reading, Value};
use crate::subject::Subject;
use crate::toggles::{Contrast, How, Outcome, Part, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_verify::Metric;

/// The factor.
pub const TIMER_SLACK: Factor = Factor {
    name: "timer_slack_ns",
    title: "slack of timers",
    scope: Scope::Thread,
    moves: false,
    read,
    known,
    toggle: Toggle::Parts(parts),
};

fn read(subject: &Subject<'_>) -> Reading {
    let number = |text: &str| text.trim().parse().map(Value::Number);
    let read = subject.file_of_process("timerslack_ns");
    let read = read.and_then(|text| number(&text).map_err(|_| Missing::Failed("it is not a number".to_owned())));
    Reading::of(read, "this kernel does not tell it (before 4.6)")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "each sleep, poll and timed wait ends later by up to this time; work that goes on in small sleeps is slowed by as much each",
        "prctl(2), PR_SET_TIMERSLACK; time(7)",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::Waiting],
    mechanism: "the kernel may end each sleep and timed wait later by as much",
    sham: "the slack of the fast context, set in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<Part> {
    // Real-time threads have none, whatever was asked for (kernel/sched/syscalls.c, __setscheduler_params).
    if [contrast.fast, contrast.slow].iter().any(|value| value.and_then(Value::number) == Some(0)) {
        let why = "real-time threads have no slack: it follows from the scheduling policy".to_owned();
        return contrast.not(Outcome::Follows(why));
    }
    contrast.whole(&HOW, |value| {
        let ns = value.and_then(Value::number).and_then(|ns| u64::try_from(ns).ok());
        let ns = ns.ok_or("it is no time")?;
        Ok(vec![Setting::Step(ContextStep::TimerSlack { ns })])
    })
}
