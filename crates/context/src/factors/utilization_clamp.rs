//! Bounds for the utilisation that the scheduler assumes of a thread (Documentation/scheduler/sched-util-clamp.rst).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::Metric;
use slowpath_launch::{ContextStep, SchedulingAttributes};

/// The factor.
pub const UTILIZATION_CLAMP: Factor = Factor {
    name: "utilization_clamp",
    former: Former::NONE,
    title: "utilization clamp (uclamp)",
    what: "Bounds between which the scheduler takes the thread's utilization to be, from 0 to 1024 (uclamp.min, \
           uclamp.max). CPU and frequency are chosen by it.",
    why: "A low maximum keeps the thread on small or slowly clocked CPUs, a high minimum starts it on fast ones: 20 \
          to 50 % on phones, nothing where the frequency is fixed.",
    by_hand: "`uclampset -p PID`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "lift its upper bound of utilisation (uclamp.max)",
        "energy: the CPU runs at higher frequencies",
    )]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    if let Err(missing) = task.kernel_files().read("proc/sys/kernel/sched_util_clamp_max") {
        return Reading::missing(&missing, "this kernel has no utilisation clamps (CONFIG_UCLAMP_TASK)");
    }
    let Some(tid) = task.number_here() else {
        return Reading::unavailable(
            "only a system call reads it, no file in /proc",
            "read the context on the machine itself",
        );
    };
    match SchedulingAttributes::of_thread(tid) {
        Ok(attributes) => Reading::known(Value::table([
            ("min", attributes.clamp_min.to_string()),
            ("max", attributes.clamp_max.to_string()),
        ])),
        Err(error) => Reading::unavailable(error.to_string(), "run it as the user of the process, or as root"),
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "a low maximum keeps a thread on small or slowly clocked CPUs, a high minimum makes it start on fast ones; 20 to 50 % on \
         phones, nothing where the frequency is fixed",
        "Documentation/scheduler/sched-util-clamp.rst",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::User, Metric::Cpu],
    mechanism: "the thread runs on slower CPUs, or at lower frequencies",
    sham: "the bounds of the fast context, set in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let value = value.ok_or("this kernel has no utilisation clamps (CONFIG_UCLAMP_TASK)")?;
        if contrast.here.value("utilization_clamp").is_none() {
            return Err("this kernel has no utilisation clamps (CONFIG_UCLAMP_TASK)".to_owned());
        }
        let bound = |part: &str| value.part(part).and_then(|text| text.parse().ok()).ok_or("it is no bound");
        Ok(vec![Setting::Step(ContextStep::UtilizationClamp { min: bound("min")?, max: bound("max")? })])
    })
}
