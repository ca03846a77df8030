//! `slowpath ipc doctor`: what of IPC can be measured here.

use crate::commands::print_json;
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_ipc::conditions::{Conditions, Warning, warnings};
use slowpath_ipc::latency::inheritance::{FIFO_REMEDY, fifo_cause};
use slowpath_ipc::scheduling::{FIFO_PRIORITY, become_fifo};
use slowpath_ipc::trace::Instance;
use slowpath_ipc::transport::ALL;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::process::ExitCode;

/// What `slowpath ipc doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IpcDoctor {
    schema: &'static str,
    /// All transports.
    transports: Vec<TransportState>,
    /// Whether callers can be SCHED_FIFO 99.
    real_time: bool,
    /// Whether a miss can be traced.
    trace: bool,
    /// Conditions on this machine that affect results.
    warnings: Vec<Warning>,
    /// What was read of it.
    conditions: Conditions,
    /// What is missing, why, and what would change that.
    unavailable: Vec<Unavailable>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TransportState {
    name: &'static str,
    title: &'static str,
    documentation: &'static str,
    available: bool,
}

/// Runs the command.
pub(super) fn run(json: bool) -> Result<ExitCode, Failure> {
    let doctor = examine();
    if json {
        print_json(&doctor);
    } else {
        for transport in &doctor.transports {
            let state = if transport.available { "yes" } else { "no" };
            println!("{:<16} {state:<4} {}", transport.name, transport.title);
        }
        println!("{:<16} {}", "real-time", if doctor.real_time { "yes  callers can be SCHED_FIFO 99" } else { "no" });
        println!("{:<16} {}", "trace", if doctor.trace { "yes  a missed deadline can be explained" } else { "no" });
        for gap in &doctor.unavailable {
            println!();
            println!("{} unavailable: {}", gap.what, gap.reason);
            println!("  remedy: {}", gap.remedy);
        }
        for warning in &doctor.warnings {
            println!();
            println!("warning: {}", warning.text);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn examine() -> IpcDoctor {
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
    let trace = works(Instance::start().err().map(|error| super::latency::no_trace(&error)));
    IpcDoctor {
        schema: "slowpath-ipc-doctor/1",
        transports,
        real_time,
        trace,
        warnings: warnings(&conditions, 1, 1),
        conditions,
        unavailable,
    }
}
