//! Events that belong to a CPU: page faults and the timer of samples. They end with their CPU, and begin with one that
//! comes on line.

use crate::capture_error::CaptureError;
use crate::clock::monotonic_now;
use crate::cpus;
use crate::events;
use crate::perf::{self, FaultEvent};
use crate::recorder::{Recorder, attach_perf};
use libbpf_rs::Link;
use slowpath_tables::missing::declared;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

/// The programs of probe `fault`, their events, and the cookies of these.
const FAULT_PROGRAMS: [(&str, FaultEvent, u32); 3] = [
    ("fault_begin", FaultEvent::Begin, 0),
    ("fault_minor", FaultEvent::Minor, 0),
    ("fault_major", FaultEvent::Major, 0),
];

/// With call stacks it is one program for both ends. The cookie is the flags of the faults that end there.
const FAULT_PROGRAMS_WITH_STACKS: [(&str, FaultEvent, u32); 3] = [
    ("fault_begin", FaultEvent::Begin, 0),
    ("fault_end", FaultEvent::Minor, 0),
    ("fault_end", FaultEvent::Major, events::FLAG_MAJOR),
];

/// How often it is looked whether CPUs came or went.
const CHECK_NS: u64 = 1_000_000_000;

impl Recorder {
    /// Attaches the programs at the events of every CPU that has none yet.
    pub(crate) fn attach_cpus(&mut self) -> Result<(), CaptureError> {
        if self.options.processes_only {
            return Ok(());
        }
        let attached: BTreeSet<u32> = self.cpu_links.keys().copied().collect();
        let all = cpus::on_line().unwrap_or_else(|| (0..crate::machine::cpus().unsigned_abs()).collect());
        let mut new = all.into_iter().filter(|cpu| !attached.contains(cpu));
        new.try_for_each(|cpu| self.attach_cpu(cpu))
    }

    fn attach_cpu(&mut self, cpu: u32) -> Result<(), CaptureError> {
        let entry = self.loaded.iter().any(|one| one.name == "fault" && one.replaced.is_empty());
        let mut links = Vec::new();
        let programs = if self.options.stacks.faults { FAULT_PROGRAMS_WITH_STACKS } else { FAULT_PROGRAMS };
        let wanted = programs.into_iter().filter(|(_, event, _)| !(entry && *event == FaultEvent::Begin));
        let faults =
            wanted.map(|(program, event, cookie)| ("fault", program, cookie, perf::fault_of_cpu(event, cpu as i32)));
        let hertz = self.options.cpu_hertz;
        let samples = hertz.map(|hertz| ("cpu_sample", "cpu_sample", 0, perf::clock_of_cpu(hertz, cpu as i32)));
        for (probe, program, cookie, event) in faults.chain(samples) {
            match event {
                Ok(fd) => links.push(self.attach_event(probe, program, cookie, fd)?),
                // A CPU that is off line.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(()),
                Err(source) => return Err(CaptureError::Attach { probe, event: program.to_owned(), source }),
            }
        }
        self.cpu_links.insert(cpu, links);
        Ok(())
    }

    /// Attaches a program of a probe at a perf event, for which it finds the cookie.
    fn attach_event(&self, probe: &'static str, name: &str, cookie: u32, fd: OwnedFd) -> Result<Link, CaptureError> {
        let program = self
            .loaded
            .iter()
            .find(|one| one.name == probe)
            .and_then(|one| one.object.progs_mut().find(|program| program.name() == name))
            .ok_or(CaptureError::Program { probe, problem: format!("program {name} is missing") })?;
        let refused = |source: io::Error| CaptureError::Attach { probe, event: name.to_owned(), source };
        attach_perf(&program, cookie, fd).map_err(refused)
    }

    /// Looks once a second whether CPUs came or went. The events of one that goes off line end with it; one that comes
    /// gets its own, and what it did before is reported as missing.
    pub(crate) fn follow_cpus(&mut self) -> Result<(), CaptureError> {
        let now = monotonic_now();
        let since = now.0.saturating_sub(self.cpus_checked.0);
        if since < CHECK_NS || self.cpu_links.is_empty() {
            return Ok(());
        }
        self.cpus_checked = now;
        let Some(on_line) = cpus::on_line() else { return Ok(()) };
        let (went, came) = cpus::changes(&self.cpu_links.keys().copied().collect(), &on_line);
        for cpu in went {
            self.cpu_links.remove(&cpu);
        }
        for cpu in came {
            self.attach_cpu(cpu)?;
            self.unavailable.push(declared::FIRST_FAULTS.of(
                &[&cpu],
                format!("it came on line while recording went on: up to {} ms of it", since / 1_000_000),
                "record again with all CPUs on line",
            ));
        }
        Ok(())
    }
}
