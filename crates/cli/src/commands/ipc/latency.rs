//! `slowpath ipc latency`: pairs of processes.

use super::{interrupted, ipc_failure, not_here, too_little};
use crate::arguments::LatencyArguments;
use crate::commands::{invoker, print_json};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::unprivileged::{Work, as_user};
use slowpath_ipc::conditions::Conditions;
use slowpath_ipc::latency::judgement::{is_enough, judged};
use slowpath_ipc::latency::{PairSamples, Placement, Plan, run as run_pairs};
use slowpath_ipc::trace::Instance;
use slowpath_ipc::trace::explain::{Explanation, explain_text};
use slowpath_ipc::transport::choice::available;
use slowpath_process::Duty;
use slowpath_report::ipc::latency::{parties, text};
use slowpath_tables::Unavailable;
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
    let instance = arguments.trace.then(Instance::start_clean).transpose();
    let instance = instance.map_err(|error| Failure::unavailable("trace a miss", &[error.unavailable()]))?;
    let conditions = Conditions::here();
    let stopper = instance.as_ref().and_then(Instance::stopper);
    let measured = run_pairs(&plan, stopper, &interrupt::requested).map_err(ipc_failure)?;
    if interrupt::requested() && !is_enough(&measured) {
        return Err(too_little());
    }
    let explanation = explained(instance.as_ref(), &measured)?;
    if arguments.verbose {
        eprint!("{}", parties(&measured));
    }
    let result = judged(&plan, &measured, conditions, instance.as_ref(), explanation, &interrupt::requested)
        .map_err(ipc_failure)?;
    if arguments.json {
        print_json(&result);
    } else {
        print!("{}", text(&result));
    }
    if interrupt::requested() {
        return Ok(interrupted());
    }
    Ok(ExitCode::from(u8::from(result.has_failed())))
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
