//! The core-scheduling cookie of a thread (Documentation/admin-guide/hw-vuln/core-scheduling.rst): who may run on the sibling.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::system_calls;
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const CORE_SCHEDULING: Factor = Factor {
    name: "core_scheduling",
    former: Former::NONE,
    title: "core-scheduling cookie",
    what: "A cookie, set with prctl(PR_SCHED_CORE). Threads with different cookies never run on the SMT siblings of \
           one core at the same time.",
    why: "A sibling stays idle (forced idle) while no runnable task has the same cookie: up to half the throughput \
          of a core.",
    by_hand: "`coresched get -p PID` (util-linux 2.40)",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "give it the cookie of the tasks that it may share a core with",
        "security: side channels of the shared core are open between them",
    )]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let Some(tid) = task.number_here() else {
        return Reading::unavailable(
            "only a system call reads it, no file in /proc",
            "read the context on the machine itself",
        );
    };
    match system_calls::core_cookie(tid) {
        // The value itself is a number without meaning that differs from start to start.
        Ok(0) => Reading::known(Value::text("none")),
        Ok(_) => Reading::known(Value::text("set")),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINVAL) => Reading::absent("this kernel has no core scheduling (CONFIG_SCHED_CORE)"),
            Some(libc::ENODEV) => Reading::absent("no CPU here has a sibling"),
            _ => Reading::unavailable(error.to_string(), "run it as the user of the process, or as root"),
        },
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "the sibling of a CPU stays idle where nobody with the same cookie wants to run: up to half the throughput",
        "Documentation/admin-guide/hw-vuln/core-scheduling.rst",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::RunDelay],
    mechanism: "the sibling of a CPU stays idle, and the thread waits until it may",
    sham: "nothing: no call creates a cookie without effect",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let own = contrast.here.value("core_scheduling");
        let Some(own) = own else { return Err("this kernel or its CPUs have no core scheduling".to_owned()) };
        match value {
            Some(Value::Text(word)) if word == "set" => Ok(vec![Setting::Step(ContextStep::CoreCookie)]),
            _ if *own == Value::text("none") => Ok(Vec::new()),
            _ => Err("the caller has a cookie itself, and cannot give it back".to_owned()),
        }
    })
}
