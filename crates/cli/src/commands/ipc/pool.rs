//! `slowpath ipc latency -w N`: the worker pool.

use super::ending::{interrupted, ipc_failure, not_here, too_little};
use crate::arguments::ipc::LatencyArguments;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_ipc::latency::pool::{Plan, run as run_pool};
use slowpath_ipc::transport::choice::available;
use slowpath_report::ipc::pool::text;
use slowpath_session::interrupt;
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(arguments: &LatencyArguments) -> Result<ExitCode, Failure> {
    let plan = Plan {
        transport: available(arguments.transport).map_err(not_here)?,
        workers: arguments.workers.unwrap_or_default() as usize,
        iterations: arguments.iterations.unwrap_or(Plan::ITERATIONS),
        payload: arguments.payload as usize,
        pairs: arguments.split,
        most_us: arguments.most_us,
        training: arguments.training,
        seed: 1,
    };
    let pool = run_pool(&plan, &interrupt::requested).map_err(ipc_failure)?;
    if interrupt::requested() && !pool.is_enough() {
        return Err(too_little());
    }
    show(arguments.json, &pool, |pool, _| text(pool));
    if interrupt::requested() {
        return Ok(interrupted());
    }
    Ok(ExitCode::from(u8::from(!pool.ended.is_empty())))
}
