//! `slowpath ipc latency`: pairs of processes.

use super::ending::{interrupted, ipc_failure, not_here, too_little};
use crate::arguments::ipc::LatencyArguments;
use crate::failure::{Failure, Kind, failed};
use crate::printing::show;
use slowpath_ipc::conditions::Conditions;
use slowpath_ipc::latency::judgement::{is_enough, judged};
use slowpath_ipc::latency::{Missed, PairSamples, Placement, Plan, run as run_pairs};
use slowpath_ipc::trace::explain::{Explanation, explain_text};
use slowpath_ipc::trace::recorded::{Owner, manifest_of, recorded, write};
use slowpath_ipc::trace::{Instance, Text};
use slowpath_ipc::transport::choice::available;
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_recording::Manifest;
use slowpath_report::ipc::latency::{parties, text};
use slowpath_session::interrupt;
use slowpath_session::output_directory::{prepare, remove_empty};
use slowpath_session::recorded_launch::{clock, host, now_rfc3339};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::Unavailable;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub(super) fn run(arguments: &LatencyArguments) -> Result<ExitCode, Failure> {
    let plan = Plan {
        iterations: arguments.iterations.unwrap_or(Plan::ITERATIONS),
        places: vec![Placement::default(); arguments.pair as usize],
        deadline: Duration::from_micros(arguments.deadline_us),
        rate: arguments.rate,
        load: arguments.load as usize,
        ..Plan::new(available(arguments.transport).map_err(not_here)?)
    };
    let invoker = invoker()?;
    let output = arguments.output.as_deref().map(|path| prepare(path, &invoker)).transpose()?;
    let instance = arguments.trace.then(Instance::start_clean).transpose();
    let instance = instance.map_err(|error| Failure::unavailable("trace a miss", &[error.unavailable()]))?;
    let conditions = Conditions::here();
    let stopper = instance.as_ref().and_then(Instance::stopper);
    let measured = run_pairs(&plan, stopper, &interrupt::requested).map_err(ipc_failure)?;
    if interrupt::requested() && !is_enough(&measured) {
        return Err(too_little());
    }
    let miss = missed(instance.as_ref(), &measured)?;
    let explanation = miss.as_ref().map(|(text, missed)| explained(text, missed, &invoker)).transpose()?;
    let recording = match (&miss, &output) {
        (Some((text, _)), Some(directory)) => Some(record(text, &measured, &plan, directory, &invoker)?),
        (None, Some(directory)) => {
            remove_empty();
            eprintln!("slowpath: no real-time caller missed the deadline: {} is not written", directory.display());
            None
        }
        (_, None) => None,
    };
    if arguments.verbose {
        eprint!("{}", parties(&measured));
    }
    let mut result = judged(&plan, &measured, conditions, instance.as_ref(), explanation, &interrupt::requested)
        .map_err(ipc_failure)?;
    result.recording = recording;
    show(arguments.json, &result, |result, _| text(result));
    if interrupt::requested() {
        return Ok(interrupted());
    }
    Ok(ExitCode::from(u8::from(result.has_failed())))
}

/// The miss that stopped the trace, with the text of the trace.
fn missed<'a>(instance: Option<&Instance>, measured: &'a [PairSamples]) -> Result<Option<(Text, &'a Missed)>, Failure> {
    let (Some(instance), Some(missed)) = (instance, measured.iter().find_map(|pair| pair.missed.as_ref())) else {
        return Ok(None);
    };
    let text = instance.text().map_err(|error| Failure::from_error(Kind::Machine, &error))?;
    Ok(Some((text, missed)))
}

/// The explanation, or why there is none. The text is full of names that other programs chose: read as the user.
fn explained(text: &Text, missed: &Missed, invoker: &Identity) -> Result<Result<Explanation, Unavailable>, Failure> {
    let work = Work::new("explanation of the miss", Duty::Parse).silent();
    as_user(invoker, &work, || Ok(explain_text(text, missed)))
}

/// Writes the trace as a recording of the user's.
fn record(
    text: &Text,
    measured: &[PairSamples],
    plan: &Plan,
    directory: &Path,
    invoker: &Identity,
) -> Result<String, Failure> {
    let of_plan = manifest_of(plan.transport, invoker.uid);
    let manifest = Manifest { created: now_rfc3339(), host: host(), clock: clock(), ..of_plan };
    let owner = Owner::this_process();
    let work = Work::writing_beneath("writing the recording of the miss", directory).silent();
    as_user(invoker, &work, || {
        let tables = recorded(&text.bytes, measured, plan.transport.waits, owner, manifest);
        write(directory, tables).map_err(failed(Kind::Machine))
    })?;
    Ok(directory.to_string_lossy().into_owned())
}
