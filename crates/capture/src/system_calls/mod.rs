//! Probe `system_calls`: the two programs that all system calls of the machine pass. It records nothing: it goes on to the programs of
//! the probes that look at a call (`bpf/system_calls.bpf.h`).

use crate::options::Options;
use crate::probes::{Probe, SYSTEM_CALLS};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "system_calls",
    title: "entry and return of system calls",
    what: "Hands the calls that other probes look at (`open`, `read`, `memory`, `page_content`) to them. It records nothing itself.",
    asked_for: "where one of those probes is",
    price: "some 120 ns at each system call of the machine, recorded or not",
    is_wanted: |options: &Options| (options.files || options.memory_calls) && !options.processes_only,
    tracepoints: SYSTEM_CALLS,
    ..Probe::USUAL
};
