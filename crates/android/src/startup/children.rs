//! Starts of processes that zygotes made for apps: each loads an app (`bindApplication`), renderers as well as the app itself.

use super::event::Events;
use super::figures::{Gathered, binder};
use super::printed::{ChildStart, ThreadTimes};
use super::timeline::{Process, Slice, Thread, Timeline, app_id};

const SYSTEM_SERVER: &str = "system_server";
const START_PROCESS: &str = "Start proc:";
const BIND: &str = "bindApplication";
/// Users of isolated processes: from app zygotes, and others (android.os.Process).
const ISOLATED: std::ops::Range<u32> = 90_000..100_000;
/// Rows of a trace, and requests: what has more was made to take long.
const MOST_CHILDREN: usize = 1024;
const MOST_REQUESTS: usize = 4096;

/// Begin of the slice, what it makes, and its name in the rest of the slice's.
type Component = (&'static str, &'static str, fn(&str) -> &str);

/// What a process was started for: its slice, and how the component stands in its name.
const COMPONENTS: [Component; 3] = [
    ("performCreate:", "activity", str::trim),
    ("serviceCreate:", "service", service),
    ("broadcastReceiveComp:", "broadcast", str::trim),
];

/// `CreateServiceData{token=T className=C packageName=P intent=I}` (android.app.ActivityThread).
fn service(rest: &str) -> &str {
    let class = rest.split_once("className=").map_or(rest, |(_, class)| class);
    class.split_whitespace().next().unwrap_or_default()
}

/// All starts, by begin.
pub fn children(timeline: &Timeline, events: &Events) -> Vec<ChildStart> {
    let requests = requests(timeline, events);
    let starts = timeline.processes.iter().filter_map(|process| start(process, timeline, events, &requests));
    let mut starts: Vec<ChildStart> = starts.take(MOST_CHILDREN).collect();
    starts.sort_by_key(|start| start.begin);
    starts
}

/// Requests of the activity manager to zygotes, with the name of the process.
fn requests<'a>(timeline: &'a Timeline, events: &'a Events) -> Vec<(&'a str, &'a Slice)> {
    let is_system = |thread: &&Thread| {
        let process = thread.process.and_then(|at| timeline.processes.get(at));
        process.is_some_and(|process| process.name == SYSTEM_SERVER)
    };
    let slices = timeline.threads.iter().filter(is_system).flat_map(|thread| &thread.slices);
    let named = |one: &'a Slice| Some((events.names.text(one.name).strip_prefix(START_PROCESS)?.trim(), one));
    slices.filter_map(named).take(MOST_REQUESTS).collect()
}

fn start(process: &Process, timeline: &Timeline, events: &Events, requests: &[(&str, &Slice)]) -> Option<ChildStart> {
    let main = timeline.main_thread(process)?;
    let text = |one: &Slice| events.names.text(one.name);
    let bind = main.slices.iter().find(|one| text(one) == BIND)?;
    let bound = bind.end?;
    // What it was started for is what it makes first; a provider is made while the app is loaded.
    let component = main.slices.iter().filter(|one| one.ts > bind.ts).find_map(|one| {
        let name = text(one);
        let of = |(begin, reason, component): &Component| {
            Some((one, *reason, component(name.strip_prefix(begin)?).to_owned()))
        };
        COMPONENTS.iter().find_map(of)
    });
    let name = name_of(process, bind, requests);
    let request = requests.iter().filter(|(wanted, one)| *wanted == name && one.ts < bind.ts);
    let request = request.map(|(_, one)| *one).max_by_key(|one| one.ts);
    // A child was made by another process and asked for; what was there before the trace is none.
    if request.is_none() && process.made.is_none() {
        return None;
    }
    let made = process.made.map(|(ts, _)| ts).filter(|ts| *ts <= bind.ts);
    let begin = request.map(|one| one.ts).or(made).unwrap_or(bind.ts);
    let end = component.as_ref().and_then(|(one, ..)| one.end).unwrap_or(bound);
    let range = (begin, end);
    let mut gathered = Gathered::default();
    let mut main_thread = ThreadTimes::default();
    main_thread.add(main, range);
    for thread in process.threads.iter().filter_map(|at| timeline.threads.get(*at)) {
        gathered.thread(thread, thread.tid == process.pid, range, events);
    }
    Some(ChildStart {
        kind: kind_of(&name),
        process: name,
        pid: process.pid,
        is_isolated: process.uid.map(|uid| ISOLATED.contains(&app_id(uid))),
        begin,
        to_fork_ns: request.zip(made).map(|(request, made)| made.saturating_sub(request.ts)),
        request_ns: request.map(Slice::duration),
        bind_application_ns: bind.duration(),
        reason: component.as_ref().map_or("provider", |(_, reason, _)| reason).to_owned(),
        component_ns: component.as_ref().map(|(one, ..)| one.duration()),
        component: component.map(|(_, _, component)| component),
        duration_ns: end.saturating_sub(begin),
        main_thread,
        phases: gathered.phases.finish(),
        binder: binder(&[process], timeline, range),
        code: gathered.code(),
    })
}

/// The name of a process; where the trace listed it before it had one of its own, that of the request in which it was made.
fn name_of(process: &Process, bind: &Slice, requests: &[(&str, &Slice)]) -> String {
    let is_known = requests.iter().any(|(name, _)| *name == process.name);
    let is_own = process.name.contains('.') && !process.name.starts_with('<');
    let made = process.made.map(|(ts, _)| ts).filter(|_| !is_known && !is_own);
    let during = |ts: u64| {
        let within = requests.iter().filter(|(_, one)| one.ts <= ts && ts <= one.end.unwrap_or(bind.ts));
        within.max_by_key(|(_, one)| one.ts).map(|(name, _)| (*name).to_owned())
    };
    made.and_then(during).unwrap_or_else(|| process.name.clone())
}

/// `com.android.chrome:sandboxed_process0:org.chromium...SandboxedProcessService0:3` is a `sandboxed_process`.
fn kind_of(name: &str) -> String {
    let part = name.split(':').nth(1).unwrap_or("main");
    let part = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
    part.strip_suffix('_').unwrap_or(part).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_processes_are_what_stands_behind_the_package() {
        assert_eq!(kind_of("com.android.chrome"), "main");
        let renderer = "com.android.chrome:sandboxed_process12:org.chromium.content.app.SandboxedProcessService0:3";
        assert_eq!(kind_of(renderer), "sandboxed_process");
        assert_eq!(kind_of("com.android.chrome:privileged_process0"), "privileged_process");
        assert_eq!(kind_of("com.google.android.webview:webview_service"), "webview_service");
    }
}
