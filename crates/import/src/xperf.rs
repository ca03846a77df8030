//! The text of `xperf -i trace.etl -a dumper`: events of Windows, one a line, with comma-separated columns.
//!
//! A dump begins with a list of its events and their columns, which differ between versions: columns are found by name ([`columns`]).
//! Call stacks are lines of their own with the time and the thread of their event. What has the same time is put together before
//! rows are written. Times are microseconds since the trace began.

pub(crate) mod columns;
pub(crate) mod events;
pub(crate) mod group;

use crate::declaration::{Importer, head_lines};
use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use columns::{Columns, split};
use events::Events;

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "xperf",
    title: "xperf -a dumper: samples, file I/O, hard faults, VirtualAlloc of Windows",
    made_by: "xperf -on PROC_THREAD+LOADER+PROFILE+CSWITCH+DISPATCHER+HARD_FAULTS+ALL_FAULTS+FILE_IO+FILE_IO_INIT+DISK_IO+VIRT_ALLOC \
              -stackwalk Profile+PageFault+VirtualAlloc+VirtualFree, then xperf -i trace.etl -symbols -o FILE -a dumper",
    reads: "CPU samples, page faults and hard faults, file and disk reads, VirtualAlloc and VirtualFree, switches, processes, call stacks",
    lacks: "Windows has no page cache events, no device and inode of a file, and xperf prints no content of memory",
    probes: &["block", "cpu_sample", "fault", "memory", "off_cpu", "page_cache", "process", "read"],
    detects,
    import,
};

const COLUMNS: &str = "as many columns as the begin of the dump lists for this event";
const KNOWN: &str = "an event of xperf's dumper: NAME, TIME, COLUMNS, as the begin of the dump lists it";
const VALUE: &str = "numbers where the columns of this event have them, and times that do not go back";

fn detects(head: &[u8]) -> bool {
    let mut lines = head_lines(head).map(str::trim).filter(|line| !line.is_empty());
    lines.next().is_some_and(|line| line == "BeginHeader" || Columns::of_header(line).is_some())
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut events = Events::new(trace);
    let read = lines(input, trace, &mut events);
    events.finish(trace)?;
    read
}

fn lines(input: &mut Input<'_>, trace: &mut Trace<'_>, events: &mut Events) -> Result<(), ImportError> {
    let mut columns = Columns::default();
    let mut line = String::new();
    while input.next_line(&mut line)? {
        let text = line.trim();
        if text.is_empty() || matches!(text, "BeginHeader" | "EndHeader") || about(trace, text) {
            continue;
        }
        if let Some((name, list)) = Columns::of_header(text) {
            columns.add(name, list);
            continue;
        }
        let fields = split(text);
        let Some(name) = fields.first().filter(|name| !name.is_empty() && fields.len() > 1) else {
            return Err(input.wrong(KNOWN, &line));
        };
        let Some(list) = columns.of(name) else {
            // Events that the list does not have are those that nothing is made of, unless it is no event at all.
            if fields.get(1).is_none_or(|time| time.parse::<u64>().is_err()) {
                return Err(input.wrong(KNOWN, &line));
            }
            trace.facts.leave_out(name);
            continue;
        };
        let Some(row) = list.row(text, &fields) else { return Err(input.wrong(COLUMNS, &line)) };
        if events.event(trace, name, &row)?.is_none() {
            return Err(input.wrong(VALUE, &line));
        }
    }
    Ok(())
}

/// The line about the whole trace: `OS Version: 10.0.19041, Trace Size: ..., Events Lost: 0, ...`.
fn about(trace: &mut Trace<'_>, line: &str) -> bool {
    if !line.starts_with("OS Version: ") {
        return false;
    }
    for (key, value) in line.split(", ").filter_map(|part| part.split_once(": ")) {
        match key {
            "OS Version" => trace.facts.kernel = Some(format!("Windows {value}")),
            "Events Lost" | "Buffers lost" => {
                // A buffer holds one event at least.
                let name = if key == "Events Lost" { "xperf.any" } else { "xperf_buffers.any" };
                trace.facts.losses.add(name, value.parse().unwrap_or(0));
            }
            "Number of Processors" | "NumProcs" => trace.facts.cpus = value.parse().ok(),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
pub(crate) mod tests;
