//! `slowpath zygote advise`: records a program, or takes a recording of it. What that says of its children is `analysis`'s.

use crate::arguments::ZygoteAdviseArguments;
use crate::commands::{analyze, invoker, show};
use crate::failure::{Failure, Kind, failed};
use crate::fresh_directory::FreshDirectory;
use crate::output_directory::unless_empty;
use crate::progress::Progress;
use crate::standard_output::OutputToError;
use crate::target::{Target, not_ready};
use crate::unprivileged::{Work, as_user};
use crate::{interrupt, output_directory, recorded_launch};
use slowpath_analysis::zygote_advice::ZygoteAdvice;
use slowpath_capture::Options;
use slowpath_launch::{EndPolicy, Identity, StdioPolicy};
use slowpath_report::terminal;
use slowpath_session::recorded_command;
use slowpath_session::running::Wanted;
use slowpath_tables::Bytes;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Most that a recording takes of the disk.
const MOST: u64 = 4 << 30;

/// Runs the command.
pub fn run(arguments: &ZygoteAdviseArguments) -> Result<ExitCode, Failure> {
    let advice = match &arguments.recording {
        Some(directory) => of_recording(directory, &invoker()?)?,
        None => unless_empty(|| recorded(arguments))?,
    };
    show(arguments.json, &advice, |advice, _| terminal::zygote_advice(advice));
    Ok(ExitCode::SUCCESS)
}

fn of_recording(directory: &Path, user: &Identity) -> Result<ZygoteAdvice, Failure> {
    as_user(user, &Work::reading("reading the recording"), || Ok(ZygoteAdvice::of_tables(&analyze::open(directory)?)))
}

/// Records the command, in a directory that goes with this command unless it is to be kept.
fn recorded(arguments: &ZygoteAdviseArguments) -> Result<ZygoteAdvice, Failure> {
    recorded_launch::require("zygote advise", [])?;
    let target = Target::of(&arguments.invocation, arguments.command.clone(), None)?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let fresh = FreshDirectory::new(&target.identity).map_err(failed(Kind::Machine))?;
    let place = arguments.output.clone().unwrap_or_else(|| fresh.path().join("recording"));
    let directory = output_directory::prepare(&place, &target.identity)?;
    interrupt::watch();
    let wanted = Wanted {
        options: Options { files: true, first_waits: true, waits: true, ..Options::default() },
        most: Bytes(MOST),
        duration: arguments.duration.map(Duration::from_secs_f64),
    };
    let recorded = {
        let _elsewhere = arguments.json.then(OutputToError::divert).transpose()?;
        let progress = Progress::new(arguments.quiet);
        recorded_command::record(&target, wanted, &directory, EndPolicy::KillTree, StdioPolicy::Inherit, &progress)?
    };
    if let Some(failure) = not_ready(&recorded.outcome).filter(|_| recorded.stop.is_none()) {
        return Err(failure);
    }
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    of_recording(&directory, &target.identity)
}
