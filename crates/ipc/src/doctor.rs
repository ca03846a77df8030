//! What of IPC can be measured on this machine.

use crate::conditions::{Conditions, Warning, warnings};
use crate::latency::inheritance::{FIFO_REMEDY, fifo_cause};
use crate::scheduling::{FIFO_PRIORITY, become_fifo};
use crate::trace::Instance;
use crate::transport::ALL;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;

/// Schema of [`IpcDoctor`].
pub const SCHEMA: &str = "slowpath-ipc-doctor/1";

/// What `slowpath ipc doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IpcDoctor {
    /// `slowpath-ipc-doctor/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// All transports.
    pub transports: Vec<TransportState>,
    /// Whether callers can be SCHED_FIFO 99.
    pub real_time: bool,
    /// Whether a miss can be traced.
    pub trace: bool,
    /// Conditions on this machine that affect results.
    pub warnings: Vec<Warning>,
    /// What was read of it.
    pub conditions: Conditions,
    /// What is missing, why, and what would change that.
    pub unavailable: Vec<Unavailable>,
}

/// A transport.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TransportState {
    /// Name.
    pub name: &'static str,
    /// A noun for headings.
    pub title: &'static str,
    /// What carries a round trip.
    pub documentation: &'static str,
    /// Whether it works here.
    pub available: bool,
}

/// Tries all of it.
pub fn examine() -> IpcDoctor {
    let conditions = Conditions::here();
    let mut unavailable = Vec::new();
    let mut works = |gap: Option<Unavailable>| {
        let none = gap.is_none();
        unavailable.extend(gap);
        none
    };
    let transports = ALL
        .iter()
        .map(|transport| TransportState {
            name: transport.name,
            title: transport.title,
            documentation: transport.documentation,
            available: works((transport.check)().err()),
        })
        .collect();
    // In a thread of its own, which ends with it.
    let fifo = std::thread::spawn(|| become_fifo(FIFO_PRIORITY)).join();
    let real_time = works(
        fifo.ok()
            .and_then(Result::err)
            .map(|error| declared::REAL_TIME.because(fifo_cause(&error, &conditions), FIFO_REMEDY)),
    );
    let trace = works(Instance::start().err().map(|error| error.unavailable()));
    IpcDoctor {
        schema: SCHEMA,
        transports,
        real_time,
        trace,
        warnings: warnings(&conditions, 1, 1),
        conditions,
        unavailable,
    }
}
