//! The manifest of an imported trace: what the trace says, and why it says no more. What is known is [`Facts`]' own.

use super::{Facts, WAKE_UPS};
use crate::declaration::Importer;
use slowpath_recording::{CPU_SAMPLE_HZ, Manifest, Probe, ProbeState};
use slowpath_tables::missing::declared;

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

impl Facts {
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
