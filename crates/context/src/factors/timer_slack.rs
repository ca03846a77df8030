//! By how much the kernel may delay a thread's timers (PR_SET_TIMERSLACK, prctl(2)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::place::Missing;
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const TIMER_SLACK: Factor =
    Factor { name: "timer_slack_ns", title: "slack of timers", scope: Scope::Thread, moves: false, read, known };

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
