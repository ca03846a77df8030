//! What is known of a trace as a whole, and what it lacks: the manifest of its recording.

use crate::declaration::Importer;
use crate::perf_sample::CpuSamples;
use slowpath_recording::{CPU_SAMPLE_HZ, Clock, Manifest, Probe, ProbeState};
use slowpath_tables::missing::declared;
use slowpath_tables::{Losses, Nanos, OffCpuReason, PAGE_SIZE};
use std::collections::BTreeMap;

/// What a trace lacks whose waits have no wake-ups.
pub const WAKE_UPS: &str = "the wake-ups of threads";

/// Kinds of events that are counted one by one.
const MOST_KINDS: usize = 64;

/// The probes that a recording's tables come from; `docs/reference/probes.md`.
const PROBES: &[&str] = &[
    "block",
    "cpu_sample",
    "fault",
    "mapping",
    "memory",
    "memory_work",
    "off_cpu",
    "open",
    "page_cache",
    "page_content",
    "process",
    "read",
    "readahead",
];

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

    /// Fills what the trace says into a manifest, and why it says no more.
    pub fn fill(mut self, importer: &Importer, stopped: Option<String>, manifest: &mut Manifest) {
        let (first, last) = self.span.unwrap_or_default();
        (manifest.started, manifest.ended) = (first, Some(last));
        manifest.command = std::mem::take(&mut self.command);
        manifest.host.kernel = self.kernel.take().unwrap_or_default();
        manifest.host.machine = self.machine.take().unwrap_or_default();
        self.host(manifest);
        for probe in PROBES {
            let is_seen = self.seen.contains(probe);
            let state = if is_seen { ProbeState::Attached } else { ProbeState::Unavailable };
            manifest.probes.push(Probe { name: (*probe).to_owned(), state });
            if !is_seen {
                let reason = if importer.probes.contains(probe) {
                    format!("the imported trace ({}) holds no event of it", importer.name)
                } else {
                    format!("a trace of this format ({}) cannot hold it: {}", importer.name, importer.lacks)
                };
                let remedy = format!("{}; or `slowpath record`", importer.made_by);
                manifest.unavailable.push(declared::PROBE.of(&[probe], reason, remedy));
            }
        }
        if self.has_waits && !self.has_wake_ups {
            self.lack(
                WAKE_UPS,
                "the trace has none: what a thread waited for a CPU after its wake-up counts as its wait, not as run-queue delay",
                format!("{}; or `slowpath record --off-cpu`", importer.made_by),
            );
        }
        for (what, (reason, remedy)) in &self.gaps {
            manifest.unavailable.push(declared::OF_IMPORTED.of(&[what], reason, remedy));
        }
        for (kind, count) in &self.unused {
            manifest.counters.insert(format!("not_imported.{kind}"), *count);
        }
        if let Some(hz) = self.sample_hz {
            manifest.counters.insert(CPU_SAMPLE_HZ.to_owned(), hz);
        }
        manifest.losses.merge(&self.losses);
        if let Some(reason) = stopped {
            let remedy = "import a whole trace; what was read until there is in the recording";
            manifest.unavailable.push(declared::END.because(reason.clone(), remedy));
            manifest.stop_reason = Some(reason);
        }
    }

    /// The machine and its clock: what the trace says, and otherwise why it is not known.
    fn host(&mut self, manifest: &mut Manifest) {
        let host = &mut manifest.host;
        match (self.cpus, self.last_cpu) {
            (Some(cpus), _) => host.cpus = cpus,
            (None, Some(last)) => {
                host.cpus = last.saturating_add(1);
                self.lack(
                    "the number of CPUs",
                    "the trace does not say it: the highest CPU that has an event counts as the last",
                    "none is needed where every CPU had work",
                );
            }
            (None, None) => self.lack(
                "the number of CPUs",
                "the trace does not say it, and its events name no CPU",
                "`slowpath record`",
            ),
        }
        match self.page_size {
            Some(size) => host.page_size = size,
            None => self.lack(
                "the page size",
                "the trace does not say it: pages are counted as 4 KiB",
                "none is needed on x86-64; elsewhere `getconf PAGE_SIZE` says it",
            ),
        }
        match self.clock {
            Some(clock) => manifest.clock = clock,
            None => self.lack(
                "the time of day",
                "the trace has one clock and does not say which time of day it stands for",
                "none is needed to analyse one trace",
            ),
        }
        self.lack(
            "the kernel's counters of processes",
            "they are read from the kernel while it records, and no trace of another tool holds them",
            "`slowpath record`: without them nobody can say whether events are missing",
        );
    }
}
