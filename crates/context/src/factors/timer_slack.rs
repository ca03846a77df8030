//! By how much the kernel may delay a thread's timers (PR_SET_TIMERSLACK, prctl(2)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// What is read of a real-time thread.
const REAL_TIME: u64 = 0;

/// The factor.
pub const TIMER_SLACK: Factor = Factor {
    name: "timer_slack_ns",
    former: Former::NONE,
    title: "timer slack",
    what: "By how much the kernel may end the thread's sleeps and timed waits later than asked for, so that several \
           timers expire in one interrupt: 50 us by default, none for real-time threads.",
    why: "Each sleep, poll and timed wait ends later by up to this time. Work that goes on in short sleeps pays it \
          each time.",
    by_hand: "`cat /proc/PID/timerslack_ns`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "set its timer slack to that of the fast context (PR_SET_TIMERSLACK, or /proc/PID/timerslack_ns)",
        "energy: fewer wake-ups fall together, so CPUs sleep less",
    )]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let number = |text: &str| text.trim().parse().map(Value::Number);
    let read = task.file_of_process("timerslack_ns");
    let read = read.and_then(|text| number(&text).map_err(|_| Missing::Failed("it is not a number".to_owned())));
    Reading::of(read, "this kernel does not report it (before 4.6)")
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

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    // Real-time threads have none, whatever was asked for (kernel/sched/syscalls.c, __setscheduler_params). What the same thread would have
    // without its priority cannot be read: the launcher's own, as long as nobody set one.
    let number = |value: Option<&Value>| value.and_then(Value::number).and_then(|ns| u64::try_from(ns).ok());
    let own = number(contrast.here.value(TIMER_SLACK.name));
    let without_priority = |value: Option<&Value>| number(value).filter(|ns| *ns != REAL_TIME).or(own);
    if without_priority(contrast.fast) == without_priority(contrast.slow) {
        let why = "real-time threads have no slack: it follows from the scheduling policy".to_owned();
        return contrast.not(Outcome::Follows(why));
    }
    contrast.whole(&HOW, |value| {
        let ns = number(value).ok_or("it is no time")?;
        Ok(vec![Setting::Step(ContextStep::TimerSlack { ns })])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use crate::toggles::Here;

    #[test]
    fn slack_follows_from_a_priority_only_where_it_is_the_one_that_all_threads_have() {
        let here = Here::now().unwrap();
        let own = here.value(TIMER_SLACK.name).and_then(Value::number).unwrap();
        let nothing = Snapshot::nothing();
        let of = |fast: i64, slow: i64| {
            let (fast, slow) = (Value::Number(fast), Value::Number(slow));
            let contexts = (&nothing, &nothing);
            parts(&Contrast { fast: Some(&fast), slow: Some(&slow), contexts, here: &here }).remove(0).outcome
        };
        assert!(matches!(of(0, own), Outcome::Follows(_)) && matches!(of(own, 0), Outcome::Follows(_)));
        assert!(matches!(of(0, own + 1), Outcome::Set { .. }) && matches!(of(own + 1, 0), Outcome::Set { .. }));
        assert!(matches!(of(own, own + 1), Outcome::Set { .. }));
    }
}
