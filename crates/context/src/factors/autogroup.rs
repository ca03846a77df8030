//! The autogroup of a process's session (sched(7)): nice values count inside it, and the group's own nice value between sessions.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, SYS_NICE, Setting, Toggle, both};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const AUTOGROUP: Factor = Factor {
    name: "autogroup",
    former: Former::NONE,
    title: "autogroup of the session",
    what: "The scheduler's group of a session (setsid). With kernel.sched_autogroup_enabled=1 CPU time is divided \
           between sessions first, and inside each by the nice values of its threads.",
    why: "Where CPUs are contended, the nice value of the group decides between sessions. `nice` changes nothing \
          against threads of another session.",
    by_hand: "`cat /proc/PID/autogroup`",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "start it in the session of the fast context, or write its nice value to /proc/PID/autogroup",
        "fairness: its session then gets more than others",
    )]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let enabled = task.kernel_files().read("proc/sys/kernel/sched_autogroup_enabled");
    let own = task.file("autogroup").map(|text| text.trim().to_owned());
    match (own, enabled) {
        (Ok(own), enabled) => {
            // `/autogroup-4 nice 0`
            let (group, nice) = own.split_once(" nice ").unwrap_or((&own, "0"));
            let mut parts = vec![("group", group.to_owned()), ("nice", nice.to_owned())];
            if let Ok(enabled) = enabled {
                parts.push(("enabled", if enabled.trim() == "1" { "yes" } else { "no" }.to_owned()));
            }
            Reading::known(Value::table(parts))
        }
        (Err(missing), _) => Reading::missing(&missing, "this kernel has no autogroups"),
    }
}

fn known(a: &Value, b: &Value) -> Known {
    let parts = |value: &Value| (value.part("nice").map(str::to_owned), value.part("enabled").map(str::to_owned));
    if parts(a) == parts(b) {
        return Known::new(
            Weight::Light,
            "another session: both get the same share of a contended CPU, whatever the nice values inside are",
            "sched(7), \"The autogroup feature\"",
        );
    }
    Known::new(
        Weight::Heavy,
        "where CPUs are contended: a session's nice value decides between sessions, and a thread's only inside its own",
        "sched(7), \"The autogroup feature\"",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::RunDelay, Metric::InvoluntarySwitches],
    mechanism: "contended CPUs are divided between sessions first: a thread waits longer for its turn",
    sham: "the session of the fast context: the caller's, or one of its own with the nice value that it has anyway",
};

/// The session that a launch would have, and its nice value.
#[derive(PartialEq)]
enum Session {
    /// The caller's.
    Callers,
    /// One of its own.
    Own { nice: i32 },
}

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let own = contrast.here.value(AUTOGROUP.name);
    let session = |value: Option<&Value>| match value {
        Some(value)
            if value.part("group").is_some() && value.part("group") == own.and_then(|own| own.part("group")) =>
        {
            Session::Callers
        }
        value => Session::Own {
            nice: value.and_then(|value| value.part("nice")).and_then(|nice| nice.parse().ok()).unwrap_or(0),
        },
    };
    let session_in_words = |value: Option<&Value>| match session(value) {
        Session::Callers => format!("the caller's session ({})", crate::toggles::words(value)),
        Session::Own { nice } => format!("a session of its own, nice {nice}"),
    };
    let (fast, slow) = (contrast.fast, contrast.slow);
    let off = [fast, slow, own].into_iter().any(|value| value.is_none_or(|value| value.part("enabled") == Some("no")));
    let outcome = if contrast.is_same() {
        return Vec::new();
    } else if off {
        Outcome::Not("autogroups are switched off, here or there, for all programs of the machine".to_owned())
    } else if session(fast) == session(slow) {
        Outcome::Follows("each launch gets a session of its own, as both have".to_owned())
    } else {
        let set = |value: Option<&Value>| match session(value) {
            Session::Callers => Ok(vec![Setting::Session(false)]),
            Session::Own { nice } if nice < 0 && !contrast.here.may(SYS_NICE) => {
                Err(contrast.here.lacks(SYS_NICE, "CAP_SYS_NICE"))
            }
            Session::Own { nice } => {
                Ok(vec![Setting::Session(true), Setting::Step(ContextStep::AutogroupNice { nice })])
            }
        };
        both(set(fast), set(slow), &HOW)
    };
    vec![DifferingPart::whole(session_in_words(fast), session_in_words(slow), outcome)]
}
