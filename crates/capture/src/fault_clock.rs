//! The durations of faults as the recorder takes them, of a process that is not recorded: what its clock makes of faults whose
//! whole cost somebody measures by other means.

use crate::capture_error::CaptureError;
use crate::events;
use crate::recorder::{Recorder, io_error};
use crate::running_processes::pidfd;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use slowpath_tables::Nanos;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const PROBE: &str = "fault";
const MAP: &str = "clocks";

/// Faults and the sum of their durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedFaults {
    /// Faults that ended.
    pub faults: u64,
    /// Their durations, as they would have been recorded.
    pub time: Nanos,
}

impl TimedFaults {
    /// What came since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { faults: self.faults.saturating_sub(before.faults), time: self.time - before.time }
    }
}

/// The main thread of a process whose faults are timed, until this is dropped.
pub struct FaultClock {
    map: MapHandle,
    process: OwnedFd,
}

impl Recorder {
    /// Times the faults of the main thread of a process; nothing of it is recorded. For a process that is not followed.
    ///
    /// # Errors
    /// The process is gone, or the kernel refuses its page-fault events.
    pub fn time_faults(&mut self, pid: u32) -> Result<FaultClock, CaptureError> {
        self.attach_cpus()?;
        let problem = || CaptureError::Program { probe: PROBE, problem: format!("map {MAP} is missing") };
        let loaded = self.loaded(PROBE).ok_or_else(problem)?;
        let map = loaded.object.maps().find(|map| map.name() == MAP).ok_or_else(problem)?;
        let map = MapHandle::try_from(&map).map_err(|source| CaptureError::Load { probe: PROBE, source })?;
        let attach = |source: io::Error| CaptureError::Attach {
            probe: PROBE,
            event: format!("the clock of process {pid}"),
            source,
        };
        let process = pidfd(pid.cast_signed()).map_err(attach)?;
        let clock = events::fault_clock::default();
        map.update(&process.as_raw_fd().to_ne_bytes(), events::view(&clock), MapFlags::ANY)
            .map_err(|error| attach(io_error(error)))?;
        Ok(FaultClock { map, process })
    }
}

impl FaultClock {
    /// What was timed so far; `None` when the process is gone.
    pub fn read(&self) -> Option<TimedFaults> {
        let bytes = self.map.lookup(&self.process.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok().flatten()?;
        let clock: events::fault_clock = events::record(&bytes)?;
        Some(TimedFaults { faults: clock.faults, time: Nanos(clock.time) })
    }
}

impl Drop for FaultClock {
    fn drop(&mut self) {
        // With the process it is gone anyway.
        let _ = self.map.delete(&self.process.as_raw_fd().to_ne_bytes());
    }
}
