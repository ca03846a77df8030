//! `slowpath layout trace`: a command under the tracer.

use crate::arguments::{InvocationArguments, LayoutTraceArguments};
use crate::commands::context::exit_code;
use crate::failure::{self, Failure, Kind, failed};
use crate::interrupt;
use crate::standard_output::OutputToError;
use crate::target::{Target, launch_failure, launcher};
use crate::unprivileged::{Work, Worker, as_user};
use crate::whole_file;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_launch::{EndPolicy, Launcher, ReadyWhen, StdioPolicy};
use slowpath_layout::trace_file::{Ended, LeftOut, Trace};
use slowpath_layout::tracer::{TraceError, TraceHooks, Traced, Wanted, serve};
use slowpath_process::Duty;
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::missing::declared;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-layout-traced/1";

/// What `slowpath layout trace --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// `slowpath-layout-traced/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The trace.
    pub trace: String,
    /// How the command ended: its exit status, or 128 and the number of the signal; none where the trace ended before it.
    pub status: Option<u8>,
    /// Why the trace ended.
    pub ended: Ended,
    /// Programs that were executed.
    pub programs: u64,
    /// Files whose functions were watched.
    pub objects: u64,
    /// Functions that were watched.
    pub functions: u64,
    /// First uses.
    pub first_uses: u64,
    /// First uses that were not kept.
    pub lost: u64,
    /// Processes that were still running when the trace ended, and go on without it.
    pub released: u64,
    /// Files whose functions could not be watched.
    pub left_out: Vec<LeftOut>,
}

/// Runs the command.
pub fn run(arguments: &LayoutTraceArguments) -> Result<ExitCode, Failure> {
    if !cfg!(target_arch = "x86_64") {
        let gap = declared::CODE_TRACE.because("breakpoints are known for x86-64 only", "trace on an x86-64 machine");
        return Err(Failure::unavailable("trace functions", &[gap]));
    }
    let invocation = InvocationArguments {
        user: arguments.user.clone(),
        ready: ReadyWhen::Exit,
        timeout: None,
        env: arguments.env.clone(),
    };
    let target = Target::of(&invocation, arguments.command.clone(), None)?;
    if !arguments.quiet {
        target.warnings.iter().for_each(|warning| eprintln!("slowpath: warning: {warning}"));
    }
    let path = arguments.output.as_path();
    let writing = Work::writing("writing the trace", path);
    // A trace that nobody can write is worth no launch.
    as_user(&target.identity, &writing, || {
        let begun = whole_file::WholeFile::begin(path, 0o600);
        begun.map(drop).map_err(|error| whole_file::unwritable(&path.to_string_lossy(), &error))
    })?;
    interrupt::watch();
    let (ours, others) = UnixStream::pair().map_err(failed(Kind::Machine))?;
    let work = Work::new("reading the target's files", Duty::Read).keeping(&others).silent();
    let _reader = Worker::start(&target.identity, &work, move || {
        serve(others);
        Ok(())
    })?;
    let until = arguments.duration.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let asked_to_stop = move || interrupt::requested() || until.is_some_and(|until| Instant::now() >= until);
    let wanted = Wanted { all_objects: arguments.all_objects };
    let mut hooks = TraceHooks::new(wanted, ours, Box::new(asked_to_stop), interrupt::of_terminal);
    // Whoever is let go lives on.
    let (spec, _fresh) = target.spec(EndPolicy::WaitExit, StdioPolicy::Inherit)?;
    let launched = {
        let _elsewhere = arguments.json.then(OutputToError::divert).transpose()?;
        launcher().launch(&spec, &mut hooks)
    };
    let traced = match (hooks.finish(), &launched) {
        (Ok(traced), Ok(_)) => traced,
        (Err(error @ (TraceError::AlreadyTraced { .. } | TraceError::Refused { .. })), _) => {
            return Err(refused(&error));
        }
        (_, Err(error)) => return Err(launch_failure(error)),
        (Err(error), Ok(_)) => return Err(Failure::from_error(Kind::Machine, &error)),
    };
    let outcome = launched.map_err(|error| launch_failure(&error))?;
    let Traced { trace, released } = traced;
    let trace = Trace { command: target.words(), created: super::super::now_rfc3339(), ..trace };
    as_user(&target.identity, &writing, || {
        let text = serde_json::to_vec(&trace).map_err(failed(Kind::Machine))?;
        whole_file::replace(path, 0o600, &text)
    })?;
    tell(arguments, &trace, released, outcome.exit.map(slowpath_status));
    if trace.ended == Ended::Stopped && interrupt::requested() {
        let failure = Failure::new(Kind::Interrupted, "interrupted: what was traced until then is kept");
        return Ok(failure::report(&failure, false));
    }
    Ok(if trace.ended == Ended::Stopped { ExitCode::SUCCESS } else { exit_code(outcome.exit) })
}

/// An exit as the shell tells it.
fn slowpath_status(exit: slowpath_launch::Exit) -> u8 {
    match exit {
        slowpath_launch::Exit::Code(code) => code as u8,
        slowpath_launch::Exit::Signal(signal) => (128 + signal) as u8,
    }
}

fn refused(error: &TraceError) -> Failure {
    let remedy = match error {
        TraceError::AlreadyTraced { .. } => "run slowpath outside of the other tracer (strace, gdb)",
        _ => {
            "allow ptrace(2): in a container with --cap-add SYS_PTRACE or another seccomp profile; with Yama, \
              sysctl kernel.yama.ptrace_scope below 3"
        }
    };
    let gap = declared::CODE_TRACE.because(error.to_string(), remedy);
    Failure::unavailable("trace functions", &[gap])
}

fn tell(arguments: &LayoutTraceArguments, trace: &Trace, released: usize, status: Option<u8>) {
    let path = arguments.output.to_string_lossy();
    let functions = trace.objects.iter().map(|object| object.functions).sum::<u64>();
    if !arguments.quiet {
        for file in &trace.left_out {
            eprintln!("slowpath: not traced: {}: {}", escape_terminal(&file.path), file.reason.words());
        }
        for file in trace.objects.iter().filter(|file| file.is_mostly_unknown()) {
            let share = 100 * file.function_bytes / file.code_bytes.max(1);
            let path = escape_terminal(&file.path);
            eprintln!(
                "slowpath: warning: only {share} % of the code of {path} is in functions that symbols or descriptions tell of"
            );
        }
        if released > 0 {
            eprintln!("slowpath: let go and still running: {released} processes");
        }
        if trace.lost > 0 {
            eprintln!("slowpath: warning: {} first uses were not kept", trace.lost);
        }
    }
    if arguments.json {
        crate::commands::print_json(&Summary {
            schema: SCHEMA.to_owned(),
            trace: path.into_owned(),
            status,
            ended: trace.ended,
            programs: trace.programs.len() as u64,
            objects: trace.objects.len() as u64,
            functions,
            first_uses: trace.first_uses.len() as u64,
            lost: trace.lost,
            released: released as u64,
            left_out: trace.left_out.clone(),
        });
    } else if !arguments.quiet {
        eprintln!(
            "slowpath: {} first uses of {functions} functions in {} files, {} programs; the trace is in {}",
            trace.first_uses.len(),
            trace.objects.len(),
            trace.programs.len(),
            escape_terminal(&path),
        );
    }
}
