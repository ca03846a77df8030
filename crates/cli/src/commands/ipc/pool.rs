//! `slowpath ipc latency -w N`: the worker pool.

use super::{available, figure, interrupted, ipc_failure, too_little};
use crate::arguments::LatencyArguments;
use crate::commands::print_json;
use crate::failure::Failure;
use crate::interrupt;
use slowpath_ipc::latency::pool::{Plan, Pool, run as run_pool};
use std::process::ExitCode;

/// Calls of each worker, as in the original.
const ITERATIONS: u32 = 10_000;

/// Runs the command.
pub(super) fn run(arguments: &LatencyArguments) -> Result<ExitCode, Failure> {
    let plan = Plan {
        transport: available(arguments.transport)?,
        workers: arguments.workers.unwrap_or_default() as usize,
        iterations: arguments.iterations.unwrap_or(ITERATIONS),
        payload: arguments.payload as usize,
        pairs: arguments.split,
        most_us: arguments.most_us,
        training: arguments.training,
        seed: 1,
    };
    let pool = run_pool(&plan, &interrupt::requested).map_err(ipc_failure)?;
    if interrupt::requested() && pool.percentiles.get("50").is_none_or(|median| median.low.is_none()) {
        return Err(too_little());
    }
    if arguments.json {
        print_json(&pool);
    } else {
        print!("{}", text(&pool));
    }
    if interrupt::requested() {
        return Ok(interrupted());
    }
    Ok(ExitCode::from(u8::from(!pool.ended.is_empty())))
}

fn text(pool: &Pool) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let _ = writeln!(text, "{} workers, {}, {} bytes", pool.workers, pool.transport, pool.payload_bytes);
    if let (Some(rate), Some(average), Some(worst), Some(best)) =
        (pool.iterations_per_sec, &pool.average, &pool.worst, &pool.best)
    {
        let _ = writeln!(text, "iterations per sec: {rate:.1}");
        let (average, worst, best) = (average.value, worst.value, best.value);
        let _ = writeln!(text, "average:{average:.4}ms worst:{worst:.4}ms best:{best:.4}ms");
    }
    for (percentile, quantity) in &pool.percentiles {
        if quantity.low.is_some() {
            let _ = writeln!(text, "{percentile:>5} %  {} ms", figure(quantity));
        }
    }
    if let Some(beyond) = &pool.beyond {
        let origin = if beyond.trained { " (twice the worst of the training round)" } else { "" };
        let _ = writeln!(text, "beyond {} us{origin}: {} of {} calls", beyond.expected_us, beyond.calls, pool.calls);
    }
    for ended in &pool.ended {
        let _ = writeln!(text, "{ended}; the figures are of what was done before");
    }
    text
}
