//! A recording in Chrome's trace event format (JSON), for chrome://tracing, Perfetto's UI and scripts.
//!
//! Owns which rows become which events. Faults, reads and memory calls are complete events of their threads. Intervals off the CPU may
//! begin before such an event and end in it: they are asynchronous events, which have tracks of their own. CPU samples refer to a
//! tree of stack frames. Times are microseconds of the recording's clock.

use crate::gaps;
use crate::perfetto::{MINOR_FAULT_LIMIT, WAIT_LIMIT};
use crate::recording_exports::{ExportOptions, Exported, NotExported, RecordingExport, Work};
use serde_json::{Map, Value, json};
use slowpath_analysis::printed::longest::longest;
use slowpath_analysis::processes::Processes;
use slowpath_analysis::stacks::call_stacks::{CallStacks, StackPath};
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, FileKey, Nanos, escape_json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "chrome",
    title: "Chrome's trace event format (JSON), for chrome://tracing and scripts",
    what: "Page faults, reads, memory calls, execs, waits and CPU samples with their call stacks, on threads.",
    lacks: "Page cache, block I/O and counters; of minor faults and waits only the longest where there are very many.",
    read_by: "ui.perfetto.dev, chrome://tracing, trace_processor",
    is_text: true,
    takes: None,
    of_diagnosis: None,
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, _: &ExportOptions) -> Result<Work<'a>, NotExported> {
    Ok(Box::new(move |out, to| {
        let notes = write(tables, out)?;
        Ok(Exported { notes, next: format!("open {} in https://ui.perfetto.dev", to.name) })
    }))
}

fn micros(time: Nanos) -> Value {
    json!(time.0 as f64 / 1e3)
}

/// Events, each on a line of its own.
struct Events<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn write(&mut self, event: &Value) -> io::Result<()> {
        let before = if std::mem::replace(&mut self.is_first, false) { "\n" } else { ",\n" };
        self.out.write_all(before.as_bytes())?;
        self.out.write_all(escape_json(&event.to_string()).as_bytes())
    }
}

/// Writes the trace; what a reader must know, one sentence each.
///
/// # Errors
/// Those of `out`.
pub fn write(tables: &Tables, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut notes = gaps::notes(&tables.manifest);
    let stacks = CallStacks::new(tables);
    let paths: HashMap<FileKey, &str> = tables.files.iter().map(|file| (file.file(), file.path.as_str())).collect();
    out.write_all(b"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [")?;
    let mut events = Events { out, is_first: true };
    names(tables, &mut events)?;
    for exec in &tables.execs {
        events.write(&json!({
            "ph": "i", "s": "p", "cat": "process", "name": "exec", "ts": micros(exec.ts), "pid": exec.pid, "tid": exec.pid,
            "args": {"program": exec.filename, "command": exec.command_line},
        }))?;
    }
    let (minor, major): (Vec<_>, Vec<_>) = tables.faults.iter().partition(|fault| fault.kind == FaultKind::Minor);
    let minor = minor.into_iter().map(|fault| (fault.duration.unwrap_or_default().0, fault)).collect();
    for row in major.into_iter().chain(longest(minor, MINOR_FAULT_LIMIT, "minor faults", &mut notes)) {
        let name = if row.kind == FaultKind::Minor { "minor fault" } else { "major fault" };
        let mut event = json!({
            "ph": "X", "cat": "fault", "name": name, "ts": micros(row.ts), "dur": micros(row.duration.unwrap_or_default()),
            "pid": row.pid, "tid": row.tid, "args": {"address": format!("{:#x}", row.address)},
        });
        frame(&mut event, stacks.path(row.stack));
        events.write(&event)?;
    }
    for row in &tables.reads {
        let path = paths.get(&row.file()).map_or_else(|| row.file().to_string(), |path| (*path).to_owned());
        events.write(&json!({
            "ph": "X", "cat": "read", "name": "read", "ts": micros(row.ts), "dur": micros(row.duration), "pid": row.pid,
            "tid": row.tid, "args": {"file": path, "offset": row.offset.0, "result": row.result},
        }))?;
    }
    for row in &tables.memory_calls {
        let mut event = json!({
            "ph": "X", "cat": "memory", "name": row.call.as_str(), "ts": micros(row.ts), "dur": micros(row.duration),
            "pid": row.pid, "tid": row.tid, "args": {"length": row.length.0, "result": row.result},
        });
        frame(&mut event, stacks.path(row.stack));
        events.write(&event)?;
    }
    let waits = tables.off_cpu.iter().map(|row| (row.duration.0, row)).collect();
    for row in longest(waits, WAIT_LIMIT, "intervals off the CPU", &mut notes) {
        let id = format!("off-cpu {}", row.tid);
        let both = |phase: &str, ts: Nanos| {
            json!({
                "ph": phase, "cat": "off_cpu", "id": id, "name": row.reason.as_str(), "ts": micros(ts), "pid": row.pid,
                "tid": row.tid, "args": {"runnable_us": micros(row.runnable), "waker_tid": row.waker_tid},
            })
        };
        events.write(&both("b", row.ts))?;
        events.write(&both("e", row.ts + row.duration))?;
    }
    for row in &tables.cpu_samples {
        let mut event = json!({
            "ph": "P", "cat": "cpu", "name": "sample", "ts": micros(row.ts), "pid": row.pid, "tid": row.tid, "id": row.cpu,
        });
        frame(&mut event, stacks.path(row.stack));
        events.write(&event)?;
    }
    events.out.write_all(b"\n], \"stackFrames\": ")?;
    let frames = stack_frames(&stacks).to_string();
    events.out.write_all(escape_json(&frames).as_bytes())?;
    let about = json!({"command": tables.manifest.command, "notes": notes}).to_string();
    events.out.write_all(format!(", \"otherData\": {}}}\n", escape_json(&about)).as_bytes())?;
    Ok(notes)
}

fn names(tables: &Tables, events: &mut Events<'_>) -> io::Result<()> {
    let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    // A pid that was used again is one process here: the format knows no other.
    let named: BTreeMap<u32, &str> = processes.iter().map(|one| (one.key.pid, one.name.as_str())).collect();
    for (pid, name) in named {
        events.write(&json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}))?;
    }
    let threads: BTreeSet<(u32, u32, &str)> =
        tables.thread_counters.iter().map(|row| (row.pid, row.tid, row.name.as_str())).collect();
    for (pid, tid, name) in threads {
        events.write(&json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}))?;
    }
    Ok(())
}

fn frame(event: &mut Value, path: Option<StackPath>) {
    if let (Some(path), Some(event)) = (path, event.as_object_mut()) {
        event.insert("sf".to_owned(), json!(path.to_string()));
    }
}

/// The tree of stacks, by number. What the compiler inlined is one name with its holder: `inner < outer`.
fn stack_frames(stacks: &CallStacks<'_>) -> Value {
    let mut frames = Map::new();
    for path in 0..stacks.len() as StackPath {
        let code = &stacks.frames()[stacks.frame_number(path) as usize];
        let names: Vec<&str> = code.functions.iter().map(|function| &*function.name).collect();
        let mut one = json!({"category": code.place.name(), "name": names.join(" < ")});
        if let (Some(caller), Some(one)) = (stacks.caller(path), one.as_object_mut()) {
            one.insert("parent".to_owned(), json!(caller.to_string()));
        }
        frames.insert(path.to_string(), one);
    }
    Value::Object(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_what_the_format_demands_and_a_hostile_name_stays_a_string() {
        let text = "== manifest\n{\"command\": [\"app\"], \"losses\": {\"ring_buffer\": 3}}\n\
            == execs\nts pid start filename command_line\n1000 7 1 \"/bin/a\\\"]}\\u001b\" app\n\
            == stacks\nid parent frame\n0 - 0\n1 0 1\n== frames\nid kind\n0 kernel\n1 kernel\n\
            == symbols\nframe level function\n0 0 main\n1 0 inner\n1 1 outer\n\
            == cpu_samples\nts pid start tid stack\n2000 7 1 8 1\n\
            == faults\nts duration pid start tid kind stack\n3000 500 7 1 8 major -\n\
            == reads\nts duration pid start tid dev ino result\n3000 500 7 1 8 1 5 9\n\
            == memory_calls\nts duration pid start tid call length\n4000 10 7 1 8 mmap 4096\n\
            == off_cpu\nts duration pid start tid reason\n5000 1500 7 1 8 futex\n";
        let mut out = Vec::new();
        let notes = write(&Tables::from_text(text).unwrap(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains('\u{1b}'), "{text}");
        let trace: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(trace["otherData"]["notes"].as_array().unwrap().len(), notes.len());
        let events = trace["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
        assert_eq!((of("X").len(), of("b").len(), of("e").len(), of("P").len()), (3, 1, 1, 1));
        assert!(of("X").iter().all(|event| event["ts"].is_f64() && event["dur"].is_f64() && event["tid"] == 8));
        assert_eq!((of("b")[0]["ts"].as_f64(), of("e")[0]["ts"].as_f64()), (Some(5.0), Some(6.5)));
        assert_eq!(of("M")[0]["args"]["name"], "a\"]}\u{1b}");
        let inner = &trace["stackFrames"][of("P")[0]["sf"].as_str().unwrap()];
        assert_eq!(inner["name"], "inner < outer");
        assert_eq!(trace["stackFrames"][inner["parent"].as_str().unwrap()]["name"], "main");
    }

    #[test]
    fn an_empty_recording_is_a_trace_without_events() {
        let mut out = Vec::new();
        write(&Tables::default(), &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 0);
    }
}
