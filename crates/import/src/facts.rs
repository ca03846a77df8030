//! What is known of a trace as a whole, and what it lacks. [`manifest`] says it in the recording.

mod manifest;

use crate::cpu_event::CpuSamples;
use slowpath_recording::Clock;
use slowpath_tables::{Losses, Nanos, OffCpuReason, PAGE_SIZE};
use std::collections::BTreeMap;

/// What a trace lacks whose waits have no wake-ups.
pub const WAKE_UPS: &str = "the wake-ups of threads";

/// Kinds of events that are counted one by one.
const MOST_KINDS: usize = 64;

/// What is known of a trace so far.
#[derive(Debug, Default)]
pub struct Facts {
    /// Time of the first and of the last event.
    pub span: Option<(Nanos, Nanos)>,
    /// Highest number of a CPU that was seen.
    pub last_cpu: Option<u32>,
    /// CPUs, where the trace says how many there are.
    pub cpus: Option<u32>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Architecture.
    pub machine: Option<String>,
    /// Bytes of a page.
    pub page_size: Option<u64>,
    /// The trace's clock and the time of day at one moment.
    pub clock: Option<Clock>,
    /// CPU samples a second on each CPU.
    pub sample_hz: Option<u64>,
    /// Which event of perf the CPU samples are of.
    pub cpu_samples: CpuSamples,
    /// The command, where the trace says that it launched one.
    pub command: Vec<String>,
    /// Probes whose rows were seen.
    seen: Vec<&'static str>,
    /// Whether threads waited, and whether one was seen to be woken.
    has_waits: bool,
    has_wake_ups: bool,
    /// Events that nothing is made of, by kind.
    unused: BTreeMap<String, u64>,
    /// Events that were lost.
    pub losses: Losses,
    /// What else is missing: what, why, what helps.
    gaps: BTreeMap<&'static str, (String, String)>,
}

impl Facts {
    /// There was an event at this time.
    pub fn see_time(&mut self, ts: Nanos) {
        let (first, last) = self.span.get_or_insert((ts, ts));
        *first = (*first).min(ts);
        *last = (*last).max(ts);
    }

    /// There was an event of this probe's.
    pub fn see_probe(&mut self, probe: &'static str) {
        if !self.seen.contains(&probe) {
            self.seen.push(probe);
        }
    }

    /// A thread left its CPU for this reason.
    pub fn see_wait(&mut self, reason: OffCpuReason) {
        self.see_probe("off_cpu");
        self.has_waits |= reason != OffCpuReason::Runnable;
    }

    /// The trace says when a thread was woken.
    pub fn see_wake_up(&mut self) {
        self.has_wake_ups = true;
    }

    /// How many pages of the tables one of the kernel's is: 1 where the trace does not say how large those are.
    pub fn pages_each(&self) -> u64 {
        self.page_size.map_or(1, |size| (size / PAGE_SIZE).max(1))
    }

    /// There was an event on this CPU.
    pub fn see_cpu(&mut self, cpu: u32) {
        self.last_cpu = Some(self.last_cpu.map_or(cpu, |last| last.max(cpu)));
    }

    /// There was an event of which nothing is made.
    pub fn leave_out(&mut self, kind: &str) {
        if let Some(count) = self.unused.get_mut(kind) {
            *count += 1;
        } else {
            let kind = if self.unused.len() < MOST_KINDS { kind } else { "others" };
            *self.unused.entry(kind.chars().take(64).collect()).or_default() += 1;
        }
    }

    /// The trace lacks this, for this reason. Importers say it at each event that shows it: only the first time takes memory.
    pub fn lack(&mut self, what: &'static str, reason: impl Into<String>, remedy: impl Into<String>) {
        self.gaps.entry(what).or_insert_with(|| (reason.into(), remedy.into()));
    }
}
