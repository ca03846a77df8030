//! `slowpath ipc doctor` in a terminal.

use crate::terminal::escape_terminal;
use slowpath_ipc::doctor::IpcDoctor;
use std::fmt::Write;

/// The whole result.
pub fn text(doctor: &IpcDoctor) -> String {
    let mut text = String::new();
    for transport in &doctor.transports {
        let state = if transport.available { "yes" } else { "no" };
        let _ = writeln!(text, "{:<16} {state:<4} {}", transport.name, transport.title);
    }
    let real_time = if doctor.real_time { "yes  callers can be SCHED_FIFO 99" } else { "no" };
    let _ = writeln!(text, "{:<16} {real_time}", "real-time");
    let trace = if doctor.trace { "yes  a missed deadline can be explained" } else { "no" };
    let _ = writeln!(text, "{:<16} {trace}", "trace");
    for gap in &doctor.unavailable {
        let _ =
            writeln!(text, "\n{} unavailable: {}\n  remedy: {}", gap.what, escape_terminal(&gap.reason), gap.remedy);
    }
    for warning in &doctor.warnings {
        let _ = writeln!(text, "\nwarning: {}", escape_terminal(&warning.text));
    }
    text
}
