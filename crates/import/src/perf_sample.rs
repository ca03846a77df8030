//! Samples that perf took, in either of its forms, and simpleperf: which of their events are the CPU samples of an import, and for how
//! many page faults a sample stands.

use crate::kernel_event::Circumstances;
use crate::problem::ImportError;
use crate::trace::Trace;
use slowpath_tables::CpuSample;

/// An event whose samples show what the CPU ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuEvent {
    /// `cpu-clock`: time.
    CpuClock,
    /// `task-clock`: time.
    TaskClock,
    /// `cycles`.
    Cycles,
    /// `ref-cycles`.
    ReferenceCycles,
}

impl CpuEvent {
    /// The event of this name with its modifiers. `cpu_core/cycles/` and `cpu_atom/cycles/` are one: each counts on its own kind of core.
    pub fn of(name: &str) -> Option<Self> {
        name.split([':', '/', ',']).find_map(|word| match word {
            "cpu-clock" => Some(Self::CpuClock),
            "task-clock" => Some(Self::TaskClock),
            "cycles" | "cpu-cycles" => Some(Self::Cycles),
            "ref-cycles" => Some(Self::ReferenceCycles),
            _ => None,
        })
    }

    /// Whether its periods are in ns.
    pub fn is_clock(self) -> bool {
        matches!(self, Self::CpuClock | Self::TaskClock)
    }

    /// What its samples are counted as where they are left out.
    fn name(self) -> &'static str {
        match self {
            Self::CpuClock => "cpu-clock",
            Self::TaskClock => "task-clock",
            Self::Cycles => "cycles",
            Self::ReferenceCycles => "ref-cycles",
        }
    }
}

/// Which event is the CPU samples of an import. Each event samples all CPU time: rows of two would say that it was twice as much.
#[derive(Debug, Default)]
pub struct CpuSamples {
    event: Option<CpuEvent>,
    is_settled: bool,
}

impl CpuSamples {
    /// Whether a sample was seen: what is announced from now on is too late.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A trace says before its samples that it has some of this event. A clock goes before cycles, which stand for no time.
    pub fn announce(&mut self, event: CpuEvent) {
        let is_better = self.event.is_none_or(|known| event.is_clock() && !known.is_clock());
        if is_better && !self.is_settled {
            self.event = Some(event);
        }
    }
}

/// Whether a sample of this event is a CPU sample of the import: those of the event that was announced are, or else of the first that
/// comes. Others are counted as left out.
pub fn is_cpu_sample(trace: &mut Trace<'_>, event: CpuEvent) -> bool {
    let samples = &mut trace.facts.cpu_samples;
    samples.is_settled = true;
    if *samples.event.get_or_insert(event) == event {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_with_its_modifiers_and_on_either_kind_of_core() {
        for (name, event) in [
            ("cpu-clock:ppp", CpuEvent::CpuClock),
            ("cpu-clock/period=1000000/", CpuEvent::CpuClock),
            ("task-clock", CpuEvent::TaskClock),
            ("cycles:P", CpuEvent::Cycles),
            ("cpu_core/cycles/P", CpuEvent::Cycles),
            ("cpu_atom/cpu-cycles,period=7/", CpuEvent::Cycles),
            ("ref-cycles:u", CpuEvent::ReferenceCycles),
        ] {
            assert_eq!(CpuEvent::of(name), Some(event), "{name}");
        }
        for other in ["", "cpu_core/instructions/", "cache-misses", "cycles-ct", "minor-faults"] {
            assert_eq!(CpuEvent::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_clock_goes_before_cycles_until_samples_come() {
        let mut samples = CpuSamples::default();
        for event in [CpuEvent::Cycles, CpuEvent::TaskClock, CpuEvent::CpuClock, CpuEvent::Cycles] {
            samples.announce(event);
        }
        assert_eq!(samples.event, Some(CpuEvent::TaskClock));
        let mut settled = CpuSamples { event: Some(CpuEvent::Cycles), is_settled: true };
        settled.announce(CpuEvent::CpuClock);
        assert_eq!(settled.event, Some(CpuEvent::Cycles));
    }
}
