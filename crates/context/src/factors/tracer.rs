//! Whether a thread is traced (ptrace(2)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const TRACER: Factor = Factor {
    name: "tracer",
    former: Former::NONE,
    title: "traced by another process (ptrace)",
    what: "Whether a process is attached to the thread with ptrace(2): a debugger, strace, a sandbox.",
    why: "The thread stops at signals, execs and new threads and, if the tracer asks for it, at begin and end of \
          each syscall, until the tracer lets it go on: two context switches a stop.",
    by_hand: "`grep TracerPid /proc/PID/status`: 0 is none",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[("detach or end the tracer", "what the tracer was for")]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let word = |pid: String| Value::text(if pid == "0" { "no" } else { "yes" });
    Reading::of(task.status("TracerPid").map(word), "this kernel does not report it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "a tracer can stop the thread at each system call, signal and new thread: two context switches each",
        "ptrace(2)",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::VoluntarySwitches, Metric::Switches],
    mechanism: "each system call stops twice until the tracer resumes it: two context switches each time",
    sham: "nothing: a tracer without effect does not exist",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| match value {
        Some(Value::Text(word)) if word == "yes" => Ok(vec![Setting::Step(ContextStep::Traced)]),
        Some(_) => Ok(Vec::new()),
        None => Err("it is not known".to_owned()),
    })
}
