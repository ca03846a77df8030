//! Launches of apps and starts of their processes in Perfetto traces of a device.
//!
//! One trace is read from begin to end: [`event`] takes what is needed out of its packets, [`timeline`] puts processes, threads, their
//! slices (`atrace`), states and calls over binder together, [`launches`] finds launches by the rules of Perfetto's `android_startups`,
//! [`figures`] and [`children`] sum up. It is no recording: slices have no table there, and a launch is a question to a trace. The same
//! trace is a recording by `slowpath import`, with its waits, page cache and block I/O.

mod children;
mod event;
mod figures;
mod launches;
mod phases;
mod printed;
#[cfg(test)]
mod tests;
mod timeline;

pub use printed::{
    BinderWaits, BusyProcess, ChildStart, LongCall, Milestone, OpenedCode, Phase, ProcessStart, STARTUP_SCHEMA,
    Startup, StartupKind, ThreadTimes, TraceStartups, VerifiedClass,
};

use event::{Events, What};
use slowpath_import::Input;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use timeline::Timeline;

/// The data sources of which launches are read, as Perfetto's configuration has them.
const SOURCES: &str = "record with linux.ftrace (sched/sched_switch, sched/sched_waking, sched/sched_blocked_reason, task/task_newtask, \
                       task/task_rename, sched/sched_process_free, binder/*; atrace categories am, dalvik, view, wm) and \
                       linux.process_stats; `slowpath android launch` does";

/// Startups and child starts of a trace. A trace that is damaged is no error: [`TraceStartups::problem`] says where.
pub fn read(name: &str, input: &mut Input<'_>) -> TraceStartups {
    let (events, problem) = Events::read(input);
    let timeline = Timeline::new(&events);
    let startups = launches::launches(&timeline, &events);
    TraceStartups {
        schema: STARTUP_SCHEMA.to_owned(),
        trace: name.to_owned(),
        api_level: events.api_level,
        cpus: u32::try_from(timeline.cpus.len()).unwrap_or(u32::MAX),
        startups: startups.iter().map(|launch| figures::startup(launch, &timeline, &events)).collect(),
        children: children::children(&timeline, &events),
        unavailable: unavailable(&timeline, &events),
        problem: problem.map(|error| error.to_string()),
    }
}

fn unavailable(timeline: &Timeline, events: &Events) -> Vec<Unavailable> {
    let mut found = Vec::new();
    let mut lack = |what: &str, reason: String, remedy: &str| {
        found.push(declared::OF_IMPORTED.of(&[&what], reason, remedy));
    };
    let has = |is_one: fn(&What) -> bool| events.events.iter().any(|event| is_one(&event.what));
    if timeline.cpus.is_empty() {
        lack("states of threads", "it holds no switch of threads (sched_switch)".to_owned(), SOURCES);
    } else if !has(|what| matches!(what, What::Blocked(..))) {
        let reason =
            "it holds no sched_blocked_reason: whether an uninterruptible wait was for storage is not known".to_owned();
        lack("waits for storage", reason, SOURCES);
    }
    if !has(|what| matches!(what, What::Begin(..))) {
        lack("slices of apps", "it holds no slice of atrace".to_owned(), SOURCES);
    }
    if !has(|what| matches!(what, What::Sent(..))) {
        lack("waits for binder", "it holds no call over binder".to_owned(), SOURCES);
    }
    if !has(|what| matches!(what, What::New(..))) {
        lack("starts of processes", "it holds no task_newtask: when zygotes forked is not known".to_owned(), SOURCES);
    }
    lack(
        "page faults on files",
        "the source of the launches has no page faults with their files".to_owned(),
        "`slowpath import` of the same trace has its page cache and block I/O",
    );
    if events.lost > 0 {
        let reason = format!("the kernel lost events before {} of its packets", events.lost);
        lack("lost events", reason, "record with a larger buffer_size_kb");
    }
    if events.left_out > 0 {
        let reason = format!("{} events are more than there is room for", events.left_out);
        lack("further events", reason, "a shorter trace");
    }
    if events.is_compressed {
        lack("compressed packets", "they are not read".to_owned(), "record without compression_type");
    }
    found
}
