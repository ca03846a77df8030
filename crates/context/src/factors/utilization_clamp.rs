//! Bounds for the utilisation that the scheduler assumes of a thread (Documentation/scheduler/sched-util-clamp.rst).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;
use crate::system_calls;

/// The factor.
pub const UTILIZATION_CLAMP: Factor = Factor {
    name: "utilization_clamp",
    title: "bounds of the assumed utilisation",
    scope: Scope::Thread,
    moves: false,
    read,
    known,
};

fn read(subject: &Subject<'_>) -> Reading {
    if let Err(missing) = subject.place().read("proc/sys/kernel/sched_util_clamp_max") {
        return Reading::missing(&missing, "this kernel has no utilisation clamps (CONFIG_UCLAMP_TASK)");
    }
    let Some(tid) = subject.number_here() else {
        return Reading::unavailable(
            "it is told by a system call, and no file holds it",
            "read the context on the machine itself",
        );
    };
    match system_calls::utilization_clamp(tid) {
        Ok((low, high)) => Reading::known(Value::table([("min", low.to_string()), ("max", high.to_string())])),
        Err(error) => Reading::unavailable(error.to_string(), "run it as the user of the process, or as root"),
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "a low maximum keeps a thread on small or slowly clocked processors, a high minimum makes it start on fast ones; 20 to 50 % on \
         phones, nothing where the frequency is fixed",
        "Documentation/scheduler/sched-util-clamp.rst",
    )
}
