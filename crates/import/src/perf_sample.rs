//! Samples that perf took, in either of its forms, and simpleperf: what rows they are, and for how many page faults one stands. Which
//! event the CPU samples of an import are of is in [`crate::cpu_event`].

use crate::cpu_event::CpuEvent;
use crate::kernel_event::Circumstances;
use crate::problem::ImportError;
use crate::trace::Trace;
use slowpath_tables::CpuSample;

/// Whether a sample of this event is a CPU sample of the import: those of the event that was announced are, or else of the first that
/// comes. Others are counted as left out.
pub fn is_cpu_sample(trace: &mut Trace<'_>, event: CpuEvent) -> bool {
    if trace.facts.cpu_samples.takes(event) {
        return true;
    }
    trace.facts.leave_out(event.name());
    trace.facts.lack(
        "the CPU samples of further events",
        "several events sampled the CPU, each of them all of its time: only those of one, of a clock where the trace says in time that \
         there is one, are CPU samples",
        "none is needed; perf record -e cpu-clock alone costs the program less",
    );
    false
}

/// What perf says of a sample besides its circumstances.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    /// Where, if that is known.
    pub cpu: Option<u32>,
    /// What it counts for, if that is known: ns of a clock, or cycles.
    pub period: Option<u64>,
    /// Of which event it is.
    pub event: CpuEvent,
    /// Whether the kernel ran.
    pub kernel: bool,
}

/// Writes a sample of the running thread, if it is one of the import's CPU samples; none for the idle task.
///
/// # Errors
/// The recording cannot be written.
pub fn cpu_sample(trace: &mut Trace<'_>, at: &Circumstances, sampled: Sampled) -> Result<(), ImportError> {
    if !is_cpu_sample(trace, sampled.event) {
        return Ok(());
    }
    trace.facts.see_probe("cpu_sample");
    match sampled.period {
        Some(period @ 1..) if sampled.event.is_clock() => {
            trace.facts.sample_hz = Some((1_000_000_000 / period).max(1));
        }
        _ if trace.facts.sample_hz.is_none() => trace.facts.lack(
            "the time that a CPU sample stands for",
            "the samples are of cycles, or have no period",
            "perf record -e cpu-clock -c 1000000 (and perf script -F +period)",
        ),
        _ => {}
    }
    let Some(thread) = at.thread else { return Ok(()) };
    trace.row(CpuSample {
        ts: at.ts,
        pid: thread.process.pid,
        start: thread.process.start,
        tid: thread.tid,
        cpu: sampled.cpu.unwrap_or(0),
        kernel: sampled.kernel,
        stack: at.stack,
        first_argument: None,
        second_argument: None,
        copies: None,
    })
}

/// A sample of page faults has this period: it stands for so many of them, and only its own has a row. perf samples at a frequency
/// unless it is told a period.
pub fn stands_for_faults(trace: &mut Trace<'_>, period: Option<u64>) {
    let reason = match period {
        Some(0 | 1) => return,
        Some(faults) => {
            trace.facts.losses.add("not_sampled.faults", faults - 1);
            "they were sampled: a sample stands for as many page faults as its period says, and only its own has a row"
        }
        None => "the samples have no period: each counts as one page fault, and may stand for many",
    };
    trace.facts.lack(
        "the page faults between samples",
        reason,
        "perf record -c 1, which makes a sample of every page fault (and perf script -F +period)",
    );
}
