//! A sample of the CPU that perf took, in either of its forms.

use crate::kernel_event::Circumstances;
use crate::problem::ImportError;
use crate::trace::Trace;
use slowpath_tables::CpuSample;

/// What perf says of a sample besides its circumstances.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    /// Where, if that is known.
    pub cpu: Option<u32>,
    /// What it counts for, if that is known.
    pub period: Option<u64>,
    /// Whether the period is in ns: of a clock, not of cycles.
    pub is_time: bool,
    /// Whether the kernel ran.
    pub kernel: bool,
}

/// Writes a sample of the running thread; none for the idle task.
///
/// # Errors
/// The recording cannot be written.
pub fn cpu_sample(trace: &mut Trace<'_>, at: &Circumstances, sampled: Sampled) -> Result<(), ImportError> {
    trace.facts.see_probe("cpu_sample");
    match sampled.period {
        Some(period @ 1..) if sampled.is_time => trace.facts.sample_hz = Some((1_000_000_000 / period).max(1)),
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
