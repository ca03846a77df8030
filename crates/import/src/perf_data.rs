//! `perf.data`: the file that `perf record` writes, in its form for files and in the one for pipes, compressed or not.
//!
//! Read: samples of the CPU, page faults, the kernel's events with the formats that the file holds, switches, processes, threads, names,
//! mappings with their build ids. The file holds addresses and no names of functions; frames have their file and the offset in it, and
//! `local_code` names those whose file is here.
//! [`header`] reads what stands around the records, [`records`] one record after the other, [`state`] makes rows of them: in order of
//! time, held back for as long as perf's rounds say, and at most 64 MiB of them.
//!
//! The crates `linux-perf-data` and `linux-perf-event-reader` read the same; docs/dependencies.md says why they are not used.

mod event;
mod header;
mod little_endian;
mod mapped;
mod recorded_events;
mod records;
mod sample;
mod state;
mod tracepoint;

use crate::declaration::Importer;
use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use header::Records;
use state::State;

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "perf-data",
    title: "perf.data of perf record: samples, scheduler, page faults, with call stacks by file",
    made_by: "perf record -a -g -d -k CLOCK_MONOTONIC -c 1 -e cpu-clock/period=1000000/,minor-faults,major-faults,sched:sched_switch,\
              sched:sched_wakeup",
    reads: "CPU samples (cpu-clock, task-clock, cycles), page faults, switches and wake-ups, page cache, block I/O, processes, \
            executable mappings with build ids, call stacks by file and offset",
    lacks: "perf's events have no duration, no result of a system call and no content of memory",
    probes: &["block", "cpu_sample", "fault", "off_cpu", "page_cache", "process"],
    detects,
    import,
};

const ENDED: &str = "the size of the records in the file's head, which perf record writes when it ends";

fn detects(head: &[u8]) -> bool {
    head.starts_with(header::MAGIC) || head.starts_with(header::MAGIC_BIG_ENDIAN)
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut state = State::default();
    let (records, around) = header::read(input, &mut state.events, trace)?;
    let length = match records {
        Records::Pipe | Records::File { length: 0, .. } => None,
        Records::File { length, .. } => Some(length),
    };
    let read = records::read(input, &mut state, trace, length);
    state.finish(trace)?;
    read?;
    state.wrong(input)?;
    match records {
        Records::File { length: 0, .. } => Err(input.wrong_bytes_at(SIZE_OF_RECORDS, ENDED)),
        _ => around,
    }
}

/// Where the head says how many bytes of records there are.
const SIZE_OF_RECORDS: u64 = 48;

#[cfg(test)]
pub(crate) mod tests;
