//! The core-scheduling cookie of a thread (Documentation/admin-guide/hw-vuln/core-scheduling.rst): who may run on the sibling.

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;
use crate::system_calls;

/// The factor.
pub const CORE_SCHEDULING: Factor = Factor {
    name: "core_scheduling",
    title: "core-scheduling cookie",
    scope: Scope::Thread,
    moves: false,
    read,
    known,
};

fn read(subject: &Subject<'_>) -> Reading {
    let Some(tid) = subject.number_here() else {
        return Reading::unavailable(
            "it is told by a system call, and no file holds it",
            "read the context on the machine itself",
        );
    };
    match system_calls::core_cookie(tid) {
        // The value itself is a number without meaning that differs from start to start.
        Ok(0) => Reading::known(Value::text("none")),
        Ok(_) => Reading::known(Value::text("set")),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINVAL) => Reading::absent("this kernel has no core scheduling (CONFIG_SCHED_CORE)"),
            Some(libc::ENODEV) => Reading::absent("no processor here has a sibling"),
            _ => Reading::unavailable(error.to_string(), "run it as the user of the process, or as root"),
        },
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "the sibling of a processor stays idle where nobody with the same cookie wants to run: up to half the throughput",
        "Documentation/admin-guide/hw-vuln/core-scheduling.rst",
    )
}
