//! `slowpath layout trace`: a command under the tracer.

use crate::arguments::layout::LayoutTraceArguments;
use crate::arguments::target::InvocationArguments;
use crate::failure::{self, Failure, Kind};
use crate::standard_output::OutputToError;
use crate::{exit_code, printing};
use slowpath_layout::trace_file::Ended;
use slowpath_layout::traced;
use slowpath_report::terminal::{layout_trace_doubts, layout_traced};
use slowpath_session::{interrupt, target::Target};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &LayoutTraceArguments) -> Result<ExitCode, Failure> {
    let invocation = InvocationArguments::until_exit(&arguments.user, &arguments.env);
    let target = Target::of(&invocation, arguments.command.clone(), None)?;
    if !arguments.quiet {
        target.warnings.iter().for_each(|warning| eprintln!("slowpath: warning: {warning}"));
    }
    let path = arguments.output.as_path();
    let traced = {
        let _elsewhere = arguments.json.then(OutputToError::divert).transpose()?;
        traced::trace(&target, path, arguments.all_objects, arguments.duration.map(Duration::from_secs_f64))?
    };
    if !arguments.quiet {
        layout_trace_doubts(&traced).iter().for_each(|line| eprintln!("slowpath: {line}"));
    }
    if arguments.json {
        printing::json(&traced.summary(path));
    } else if !arguments.quiet {
        eprintln!("slowpath: {}", layout_traced(&traced, path));
    }
    if traced.trace.ended != Ended::Stopped {
        return Ok(exit_code::of_command(traced.exit));
    }
    if interrupt::requested() {
        let failure = Failure::new(Kind::Interrupted, "interrupted: what was traced until then is kept");
        return Ok(failure::report(&failure, false));
    }
    Ok(ExitCode::SUCCESS)
}
