//! Settings of the scheduler that concern all: budget of real-time tasks, and the machine's slack for new sessions.

use super::parts_of_files;
use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;

/// The factor.
pub const SCHEDULER: Factor = Factor {
    name: "scheduler",
    former: Former::NONE,
    title: "scheduler settings of the machine",
    what: "Settings of the scheduler for all tasks: budget and period of real-time tasks, autogroups, base slice, \
           upper bound of utilization clamps.",
    why: "Real-time threads are throttled for the rest of each period when the budget is used up, 0.95 s of 1 s by \
          default. With autogroups nice values count inside a session only. A longer slice lets others wait longer \
          on a contended CPU.",
    by_hand: "`sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us kernel.sched_autogroup_enabled`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "set what differs as on the fast machine (sysctl kernel.sched_*)",
        "fairness; with a larger real-time budget safety: a real-time thread that loops blocks its CPU",
    )]),
    toggle: OF_MACHINE,
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let files = [
        ("real-time budget us", "proc/sys/kernel/sched_rt_runtime_us"),
        ("real-time period us", "proc/sys/kernel/sched_rt_period_us"),
        ("autogroups", "proc/sys/kernel/sched_autogroup_enabled"),
        ("base slice ns", "sys/kernel/debug/sched/base_slice_ns"),
        ("clamp max", "proc/sys/kernel/sched_util_clamp_max"),
    ];
    parts_of_files(task.kernel_files(), &files, "this kernel does not report it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "real-time threads are stopped for the rest of each period when the budget is used up; with autogroups nice values count inside a \
         session only",
        "Documentation/scheduler/sched-rt-group.rst; sched(7)",
    )
}
