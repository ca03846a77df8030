//! Probe `system_calls`: two programs, at entry and return of every system call of the machine. They record nothing and tail-call the
//! program of the probe that records the call (`bpf/system_calls.bpf.h`).

use crate::options::Options;
use crate::probe::{Probe, SYSTEM_CALLS};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "system_calls",
    title: "entry and return of system calls",
    what: "Dispatches system calls to the probes that record them (`open`, `read`, `memory`, `page_content`). It records nothing itself.",
    asked_for: "with any of those probes",
    price: "some 120 ns at each system call of the machine, recorded or not",
    is_wanted: |options: &Options| (options.files || options.memory_calls) && !options.processes_only,
    tracepoints: SYSTEM_CALLS,
    ..Probe::USUAL
};
