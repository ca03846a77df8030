//! `slowpath zygote advise`: records a program, or takes a recording of it. What that says of its children is `analysis`'s.

use crate::arguments::zygote::ZygoteAdviseArguments;
use crate::command_target;
use crate::failure::Failure;
use crate::printing::show;
use crate::standard_output::OutputToError;
use slowpath_analysis::starts::zygote_advice::ZygoteAdvice;
use slowpath_diagnose::child_starts::{of_launch, of_recording};
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::output_directory::unless_empty;
use slowpath_session::recorded_launch;
use slowpath_session::target::invoker;
use slowpath_zygote::preload::single_threaded;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &ZygoteAdviseArguments) -> Result<ExitCode, Failure> {
    let advice = match &arguments.recording {
        Some(directory) => of_recording(directory, &invoker()?, &Progress::new(arguments.quiet))?,
        None => unless_empty(|| recorded(arguments))?,
    };
    show(arguments.json, &advice, |advice, _| terminal::zygote_advice(advice));
    Ok(ExitCode::SUCCESS)
}

fn recorded(arguments: &ZygoteAdviseArguments) -> Result<ZygoteAdvice, Failure> {
    recorded_launch::require("zygote advise", [])?;
    let target = command_target::of(&arguments.invocation, &arguments.command, None)?;
    let set = target.variables();
    let target = target.with(&single_threaded(|name| set.iter().any(|(one, _)| one == name)));
    let _elsewhere = arguments.json.then(OutputToError::divert).transpose()?;
    let duration = arguments.duration.map(Duration::from_secs_f64);
    of_launch(&target, arguments.output.as_deref(), duration, &Progress::new(arguments.quiet))
}
