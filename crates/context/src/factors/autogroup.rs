//! The autogroup of a process's session (sched(7)): nice values count inside it, and the group's own nice value between sessions.

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const AUTOGROUP: Factor =
    Factor { name: "autogroup", title: "autogroup of the session", scope: Scope::Process, moves: false, read, known };

fn read(subject: &Subject<'_>) -> Reading {
    let enabled = subject.place().read("proc/sys/kernel/sched_autogroup_enabled");
    let own = subject.file("autogroup").map(|text| text.trim().to_owned());
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
            "another session: both get the same share of a contended processor, whatever the nice values inside are",
            "sched(7), \"The autogroup feature\"",
        );
    }
    Known::new(
        Weight::Heavy,
        "where processors are contended: a session's nice value decides between sessions, and a thread's only inside its own",
        "sched(7), \"The autogroup feature\"",
    )
}
