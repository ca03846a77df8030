//! `slowpath ipc latency`: pairs of processes.

use super::latency_text::text;
use super::{available, interrupted, ipc_failure, too_little};
use crate::arguments::LatencyArguments;
use crate::commands::{invoker, print_json};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::unprivileged::{Work, as_user};
use slowpath_experiment::{Level, quantile};
use slowpath_ipc::conditions::{Conditions, warnings};
use slowpath_ipc::latency::inheritance::{Inheritance, probe};
use slowpath_ipc::latency::outcome::{Latency, latency};
use slowpath_ipc::latency::placement;
use slowpath_ipc::latency::sample::{Caller, Sample};
use slowpath_ipc::latency::{PairSamples, Placement, Plan, run as run_pairs};
use slowpath_ipc::trace::explain::{Explanation, explain_text};
use slowpath_ipc::trace::{self, Instance, TraceError};
use slowpath_ipc::transport::IpcError;
use slowpath_process::Duty;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::process::ExitCode;
use std::time::Duration;

/// Iterations by default, as in the original.
const ITERATIONS: u32 = 100;

/// Runs the command.
pub(super) fn run(arguments: &LatencyArguments) -> Result<ExitCode, Failure> {
    let plan = Plan {
        iterations: arguments.iterations.unwrap_or(ITERATIONS),
        places: vec![Placement::default(); arguments.pair as usize],
        deadline: Duration::from_micros(arguments.deadline_us),
        rate: arguments.rate,
        load: arguments.load as usize,
        ..Plan::new(available(arguments.transport)?)
    };
    let instance = match arguments.trace {
        false => None,
        true => Some(start_trace().map_err(|error| Failure::unavailable("trace a miss", &[no_trace(&error)]))?),
    };
    let conditions = Conditions::here();
    let measured =
        run_pairs(&plan, instance.as_ref().and_then(Instance::stopper), &interrupt::requested).map_err(ipc_failure)?;
    if interrupt::requested() && !is_enough(&measured) {
        return Err(too_little());
    }
    let explanation = explained(instance.as_ref(), &measured)?;
    if arguments.verbose {
        measured.iter().enumerate().for_each(|(pair, measured)| say_parties(pair, measured));
    }
    let judged = match probe(plan.transport, &conditions, &interrupt::requested) {
        Err(IpcError::Interrupted) => Inheritance::interrupted(),
        judged => judged.map_err(ipc_failure)?,
    };
    let real_time = if measured.iter().all(|pair| pair.fifo_refused.is_some()) { 0 } else { plan.places.len() };
    let warnings = warnings(&conditions, plan.places.len() + plan.load, real_time);
    let mut result = latency(&plan, &measured, judged, conditions, warnings);
    match explanation {
        Some(Ok(explanation)) => result.trace = Some(explanation),
        Some(Err(gap)) => result.unavailable.push(gap),
        None => {}
    }
    if let Some(instance) = &instance {
        result.unavailable.extend(instance.unavailable.iter().cloned());
    }
    if result.pairs.values().any(|pair| pair.sync == Some("POOR")) && result.complete {
        match placement::unavailable(&plan, result.conditions.cpus) {
            None => result.placement_effect = placement::measure(&plan, &interrupt::requested).map_err(ipc_failure)?,
            Some(gap) => result.unavailable.push(gap),
        }
    }
    result.complete &= !interrupt::requested();
    if arguments.json {
        print_json(&result);
    } else {
        print!("{}", text(&result));
    }
    if interrupt::requested() {
        return Ok(interrupted());
    }
    Ok(ExitCode::from(u8::from(has_failed(&result))))
}

/// Whether some pair has the transactions of one caller of which a median has an interval.
fn is_enough(measured: &[PairSamples]) -> bool {
    let Some(fewest) = quantile::needed(0.5, Level::P95) else { return false };
    let of = |pair: &PairSamples, caller| pair.samples.iter().filter(|sample| sample.caller == caller).count();
    measured.iter().any(|pair| [Caller::Fifo, Caller::Normal].iter().any(|caller| of(pair, *caller) >= fewest))
}

fn start_trace() -> Result<Instance, TraceError> {
    // What a killed run left. What stays is said by `doctor`.
    drop(trace::clean());
    Instance::start()
}

/// Whether a verdict failed: a fault of the original is that a failed inheritance ends with 0.
fn has_failed(result: &Latency) -> bool {
    result.inheritance == "FAIL" || !result.complete
}

/// Why there is no trace.
pub(super) fn no_trace(error: &TraceError) -> Unavailable {
    let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    declared::TRACE.because(format!("{error}{cause}"), "run as root on a kernel with CONFIG_TRACING")
}

/// The explanation of the miss that stopped the trace, or why there is none. Its text is full of names that other programs chose: read
/// as the user.
fn explained(
    instance: Option<&Instance>,
    measured: &[PairSamples],
) -> Result<Option<Result<Explanation, Unavailable>>, Failure> {
    let (Some(instance), Some(missed)) = (instance, measured.iter().find_map(|pair| pair.missed.as_ref())) else {
        return Ok(None);
    };
    let text = instance.text().map_err(|error| Failure::from_error(Kind::Machine, &error))?;
    let work = Work::new("explanation of the miss", Duty::Parse).silent();
    as_user(&invoker()?, &work, || Ok(explain_text(&text, missed))).map(Some)
}

fn say_parties(pair: usize, measured: &PairSamples) {
    for (number, sample) in measured.samples.iter().enumerate() {
        let Sample { client_thread, server_thread, client_cpu, server_cpu, .. } = sample;
        let caller = match sample.caller {
            Caller::Fifo => "fifo-caller SCHED_FIFO 99",
            Caller::Normal => "other-caller SCHED_OTHER 0",
        };
        let policy = match i32::from(sample.server_policy) {
            libc::SCHED_FIFO => "SCHED_FIFO",
            libc::SCHED_RR => "SCHED_RR",
            libc::SCHED_BATCH => "SCHED_BATCH",
            libc::SCHED_IDLE => "SCHED_IDLE",
            _ => "SCHED_OTHER",
        };
        eprintln!(
            "P{pair} {number}: {caller} tid {client_thread} cpu {client_cpu}; server {policy} {} nice {} tid {server_thread} \
             cpu {server_cpu}; {:.4} ms",
            sample.server_priority,
            sample.server_nice,
            sample.latency() as f64 / 1e6
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_of_both_callers_are_not_counted_together() {
        let sample = |caller| Sample {
            caller,
            intended: 0,
            start: 0,
            served: 0,
            end: 1,
            client_thread: 1,
            server_thread: 2,
            client_cpu: 0,
            server_cpu: 0,
            server_policy: 0,
            server_priority: 0,
            server_nice: 0,
        };
        let of = |fifo: usize, normal: usize| {
            let samples = [vec![sample(Caller::Fifo); fifo], vec![sample(Caller::Normal); normal]].concat();
            is_enough(&[PairSamples { samples, ended: None, fifo_refused: None, missed: None }])
        };
        assert!(!of(5, 5), "five of each have no interval");
        assert!(of(0, 6) && of(6, 5));
    }
}
