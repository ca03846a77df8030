//! `slowpath ipc throughput`.

use super::chosen::{say_gaps, transports};
use super::ending::{interrupted, ipc_failure};
use crate::arguments::ipc::{BenchmarkFormat, ThroughputArguments};
use crate::failure::Failure;
use crate::printing;
use slowpath_ipc::conditions::{Conditions, warnings};
use slowpath_ipc::throughput::{Plan, google, measure};
use slowpath_session::{interrupt, recorded_launch::now_rfc3339};
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(arguments: &ThroughputArguments) -> Result<ExitCode, Failure> {
    let (transports, gaps) = transports(&arguments.transport)?;
    let plan = Plan {
        transports,
        sizes: arguments.size.0.clone(),
        min_time: arguments.benchmark_min_time,
        repetitions: arguments.benchmark_repetitions as usize,
        reference: arguments.reference,
    };
    say_gaps(&gaps);
    for warning in warnings(&Conditions::here(), 1, 0) {
        eprintln!("***WARNING*** {}", warning.text);
    }
    if arguments.reference {
        eprintln!(
            "reference_bytes_per_second is the figure of the original documentation: payload over time, times the iterations. \
             It is too large by their number; bytes_per_second is the bandwidth."
        );
    }
    let report = measure(&plan, now_rfc3339(), &interrupt::requested).map_err(ipc_failure)?;
    match arguments.format() {
        BenchmarkFormat::Json => printing::json(&report),
        BenchmarkFormat::Csv => print!("{}", google::csv(&report)),
        BenchmarkFormat::Console => print!("{}", google::console(&report)),
    }
    Ok(if report.context.complete { ExitCode::SUCCESS } else { interrupted() })
}
