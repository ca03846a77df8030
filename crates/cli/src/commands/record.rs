//! `slowpath record`: a command and its tree, from the first instruction to ready, exit, `--duration` or ctrl-C; or processes that
//! run already.

use crate::arguments::{RecordArguments, StackEvent};
use crate::failure::{self, Failure, Kind};
use crate::standard_output::OutputToError;
use crate::{command_target, printing};
use slowpath_capture::{Options, StackEvents};
use slowpath_launch::{EndPolicy, ReadyWhen, StdioPolicy};
use slowpath_recording::Manifest;
use slowpath_report::terminal::{recorded, stack_audit};
use slowpath_report::{Recorded, progress::Progress};
use slowpath_session::recorded_command::{self, RecordedCommand};
use slowpath_session::running::{self, Wanted};
use slowpath_session::target::{invoker, not_ready};
use slowpath_session::{interrupt, output_directory, recorded_launch};
use slowpath_tables::Bytes;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    recorded_launch::require("record", [])?;
    let has_stacks = arguments.sample.is_some() || !arguments.stacks.is_empty();
    if arguments.audit_stacks.is_some() && !has_stacks {
        return Err(Failure::new(Kind::Usage, "--audit-stacks without stacks")
            .hint("stacks are recorded with --sample HZ and with --stacks"));
    }
    if of_running(arguments) || has_stacks {
        recorded_launch::require_profile("record")?;
    }
    if of_running(arguments) {
        return record_running(arguments);
    }
    let target = command_target::of(&arguments.invocation, &arguments.command, None)?;
    let directory = output_directory::prepare(&arguments.output, &target.identity)?;
    let progress = Progress::new(arguments.quiet);
    interrupt::watch();
    // The target is the user's: it lives on when recording ends before it does.
    let end = if target.ready == ReadyWhen::Exit { EndPolicy::WaitExit } else { EndPolicy::LeaveRunning };
    let RecordedCommand { outcome, manifest, stop } = {
        let _elsewhere = arguments.json.then(OutputToError::divert).transpose()?;
        recorded_command::record(&target, wanted(arguments), &directory, end, StdioPolicy::Inherit, &progress)?
    };
    show_recorded(arguments, &directory, manifest, stop.as_deref());
    // The recording is there, and with `--json` the one object says how the launch ended: only the exit code and
    // standard error make it a failure.
    Ok(match not_ready(&outcome).filter(|_| stop.is_none()) {
        Some(failure) => failure::report(&failure.hint("what was recorded until then is kept"), false),
        None => ExitCode::SUCCESS,
    })
}

/// Records processes that run already: named by pid or by an expression, or everything on the machine.
fn record_running(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    let identity = invoker()?;
    let progress = Progress::new(arguments.quiet);
    let meant = match arguments.system {
        true => running::system(),
        false => running::named(arguments.pid.clone(), arguments.matching.as_ref(), &progress)?,
    };
    let directory = output_directory::prepare(&arguments.output, &identity)?;
    let recorded = running::record(&meant, wanted(arguments), &directory, &identity, &progress)?;
    show_recorded(arguments, &directory, recorded.manifest, Some(&recorded.stop));
    Ok(ExitCode::SUCCESS)
}

/// Whether processes that run already are recorded.
fn of_running(arguments: &RecordArguments) -> bool {
    arguments.system || arguments.matching.is_some() || !arguments.pid.is_empty()
}

/// What is recorded, and for how long.
fn wanted(arguments: &RecordArguments) -> Wanted {
    Wanted {
        options: options(arguments),
        most: Bytes(arguments.max_size),
        duration: arguments.duration.map(Duration::from_secs_f64),
    }
}

/// Samples a second where none were asked for by number.
const HERTZ: u32 = 1000;

/// What the recorder is asked for.
fn options(arguments: &RecordArguments) -> Options {
    let wants = |event| arguments.stacks.contains(&event);
    let stacks = StackEvents {
        faults: wants(StackEvent::Fault),
        waits: wants(StackEvent::Wait),
        memory_calls: wants(StackEvent::Alloc),
    };
    Options {
        // A command is a short experiment; processes that run are watched where others work.
        files: !arguments.no_files && (arguments.files || !of_running(arguments)),
        first_waits: arguments.child_startup,
        waits: arguments.off_cpu || stacks.waits,
        memory_calls: arguments.memory_calls || stacks.memory_calls,
        stacks,
        cpu_hertz: arguments.sample.or(wants(StackEvent::Cpu).then_some(HERTZ)),
        copy_every: arguments.audit_stacks.unwrap_or(0),
        running: of_running(arguments),
        ..Options::default()
    }
}

/// Says what was recorded, and `stop`, why no more.
fn show_recorded(arguments: &RecordArguments, directory: &Path, manifest: Manifest, stop: Option<&str>) {
    if let Some(limit) = stop.filter(|stop| stop.contains("--max-size")) {
        eprintln!("slowpath: warning: recording stopped: {limit}");
    }
    if !arguments.quiet {
        stack_audit(&manifest.counters).iter().for_each(|line| eprintln!("slowpath: {line}"));
    }
    if arguments.json {
        printing::json(&Recorded::new(directory, manifest));
    } else if !arguments.quiet {
        eprintln!("slowpath: {}", recorded(&manifest, directory));
    }
}
