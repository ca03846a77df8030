//! How often the kernel did not run programs of the recorder: where one ran on that CPU already. Before Linux 7 that was an event inside the
//! program's own; since then tasks are preempted in tracepoints too, and another task's event goes untold meanwhile (kernel/trace/bpf_trace.c,
//! `__bpf_trace_run`).
//!
//! Whose event it was is not known: programs at events of the whole machine were perhaps of no use for it.

use crate::probe::{Loaded, Probe};
use libbpf_rs::libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Before the kind of events that were lost so.
const PREFIX: &str = "not_run";

/// Losses of a probe: their names, and how many at most.
pub(crate) fn of_probe(probe: &Loaded) -> impl Iterator<Item = (String, u64)> {
    probe.object.progs().filter_map(|program| {
        let missed = missed(program.as_fd()).filter(|missed| *missed > 0)?;
        Some((format!("{PREFIX}.{}", kind(probe.probe, &program.name().to_string_lossy())), missed))
    })
}

/// The events that a program reports, by the names of other losses.
fn kind(probe: &'static Probe, program: &str) -> &'static str {
    let by_program = probe.records.iter().find(|record| record.program == Some(program));
    by_program
        .or_else(|| probe.records.iter().find(|record| record.program.is_none()))
        .map_or(probe.name, |record| record.name)
}

/// Times that a program was not run; none where it is not loaded, or the kernel does not tell (before 5.12).
fn missed(program: BorrowedFd<'_>) -> Option<u64> {
    let mut info = bpf_prog_info::default();
    let mut size = u32::try_from(size_of::<bpf_prog_info>()).ok()?;
    // SAFETY: the kernel writes at most `size` bytes to a structure of ours; its pointers are null, so nothing else is written.
    let done = unsafe { bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &raw mut size) };
    (done == 0).then_some(info.recursion_misses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EVENT_KINDS;
    use crate::record_kinds::kind_name;

    #[test]
    fn each_program_of_processes_loses_the_events_that_it_tells_of() {
        let lost = ["on_fork", "on_exec", "on_exit"].map(|program| kind(&crate::process::PROBE, program));
        assert_eq!(lost, ["forks", "execs", "exits"]);
        assert_eq!(kind(&crate::off_cpu::PROBE, "on_switch"), "off_cpu");
        assert_eq!(kind(&crate::code_area::PROBE, "any"), "modules");
    }

    #[test]
    fn each_probe_loses_events_that_have_a_name() {
        let known: Vec<&str> = (0..EVENT_KINDS).map(kind_name).collect();
        for probe in crate::probes::declared() {
            let lost = kind(probe, "any");
            assert!(known.contains(&lost) || probe.records.is_empty(), "{} loses {lost}", probe.name);
        }
    }
}
