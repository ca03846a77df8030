//! What the commands of a zygote print: one that served, a child, and how a zygote is.

use crate::client::Spawned;
use crate::message::{Ending, Status};
use crate::supervisor::{Event, Finish};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Version of what `slowpath zygote serve --json` prints.
const SERVE_SCHEMA: &str = "slowpath-zygote-serve/1";
/// Version of what `slowpath zygote spawn --json` prints.
const SPAWN_SCHEMA: &str = "slowpath-zygote-spawn/1";
/// Version of what `slowpath zygote status --json` prints.
const STATUS_SCHEMA: &str = "slowpath-zygote-status/1";

/// What `slowpath zygote serve --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Served {
    /// `slowpath-zygote-serve/1`.
    #[schemars(extend("const" = SERVE_SCHEMA))]
    schema: &'static str,
    /// Why it ended: `stopped` or `idle`.
    ended: &'static str,
    /// From the start of what is preloaded until it could fork, in ms, of each start.
    starts_ms: Vec<f64>,
    /// How often it ended without being told to, and was started again.
    crashes: u32,
    /// How often it was started anew, and why.
    renewals: Vec<String>,
}

impl Default for Served {
    fn default() -> Self {
        Self { schema: SERVE_SCHEMA, ended: "stopped", starts_ms: Vec::new(), crashes: 0, renewals: Vec::new() }
    }
}

impl Served {
    /// Takes in what happened.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Ready { after, .. } => self.starts_ms.push(after.as_secs_f64() * 1e3),
            Event::Crashed { .. } => self.crashes += 1,
            Event::Renewed { why } => self.renewals.push(why.clone()),
        }
    }
    /// Takes in why it ended.
    pub fn finish(&mut self, finish: Finish) {
        if finish == Finish::Idle {
            self.ended = "idle";
        }
    }
}

/// What `slowpath zygote spawn --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpawnedChild {
    /// `slowpath-zygote-spawn/1`.
    #[schemars(extend("const" = SPAWN_SCHEMA))]
    schema: &'static str,
    /// Its process id in the zygote's pid namespace.
    pid: i32,
    /// Whether it was a spare.
    from_spare: bool,
    /// From asking until it was what was asked for and began its work, in ms.
    started_ms: f64,
    /// Its exit code; null where a signal ended it.
    exit_code: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
}

/// What `slowpath zygote status --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ZygoteStatus {
    /// `slowpath-zygote-status/1`.
    #[schemars(extend("const" = STATUS_SCHEMA))]
    schema: &'static str,
    /// How it is.
    #[serde(flatten)]
    status: Status,
}

impl SpawnedChild {
    /// A child that took `started` to begin its work, and how it ended.
    pub fn new(child: &Spawned, started: Duration, ending: &Ending) -> Self {
        let (exit_code, signal) = match ending {
            Ending::Exited(code) => (Some(*code), None),
            Ending::Killed(signal) => (None, Some(*signal)),
        };
        Self {
            schema: SPAWN_SCHEMA,
            pid: child.pid,
            from_spare: child.from_spare,
            started_ms: started.as_secs_f64() * 1e3,
            exit_code,
            signal,
        }
    }

    /// Its end as a shell has it: its exit code, or 128 and the number of the signal.
    pub fn status(&self) -> u8 {
        (self.exit_code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0)) & 0xff) as u8
    }
}

impl From<Status> for ZygoteStatus {
    fn from(status: Status) -> Self {
        Self { schema: STATUS_SCHEMA, status }
    }
}

impl fmt::Display for ZygoteStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { pid, alive, started, refused, failed, spares, spares_wanted, .. } = self.status;
        let Status { arrivals_per_second, start_ms, from_spares, spares_dropped, .. } = self.status;
        writeln!(f, "process {pid}: {alive} children alive, {started} started, {refused} refused, {failed} failed")?;
        writeln!(
            f,
            "spares: {spares} ready, {spares_wanted} wanted at {arrivals_per_second:.1} requests/s and {start_ms:.1} ms per start; \
             {from_spares} children came from one, {spares_dropped} dropped under memory pressure"
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { pid, after } => {
                write!(f, "ready: process {pid} preloaded in {:.0} ms", after.as_secs_f64() * 1e3)
            }
            Self::Crashed { ending, again_in } => {
                write!(f, "the zygote {ending}, and its children with it; it restarts in {} ms", again_in.as_millis())
            }
            Self::Renewed { why } => write!(f, "preloading again: {why}; existing children stay with the old zygote"),
        }
    }
}
