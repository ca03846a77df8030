//! A command under the tracer: what `slowpath layout trace` does and prints.

use crate::trace_file::{Ended, LeftOut, Trace};
use crate::tracer::{TraceError, TraceHooks, Traced, Wanted, serve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_launch::{EndPolicy, Exit, Launcher, StdioPolicy};
use slowpath_process::Duty;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::target::{Target, launch_failure, launcher};
use slowpath_session::unprivileged::{Work, Worker, as_user};
use slowpath_session::{interrupt, whole_file};
use slowpath_tables::missing::declared;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Mode of a trace: it holds names of a user's files.
const MODE: u32 = 0o600;

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

/// A command that was traced.
#[derive(Debug)]
pub struct TracedCommand {
    /// Its trace, which stands in the file.
    pub trace: Trace,
    /// Processes that were still running when the trace ended.
    pub released: usize,
    /// How it ended; none where the trace ended before it.
    pub exit: Option<Exit>,
}

impl TracedCommand {
    /// Functions that were watched.
    pub fn functions(&self) -> u64 {
        self.trace.objects.iter().map(|object| object.functions).sum()
    }

    /// What is printed of it; `path` is that of the trace.
    pub fn summary(&self, path: &Path) -> Summary {
        let trace = &self.trace;
        Summary {
            schema: SCHEMA.to_owned(),
            trace: path.to_string_lossy().into_owned(),
            status: self.exit.map(|exit| match exit {
                Exit::Code(code) => code as u8,
                Exit::Signal(signal) => (128 + signal) as u8,
            }),
            ended: trace.ended,
            programs: trace.programs.len() as u64,
            objects: trace.objects.len() as u64,
            functions: self.functions(),
            first_uses: trace.first_uses.len() as u64,
            lost: trace.lost,
            released: self.released as u64,
            left_out: trace.left_out.clone(),
        }
    }
}

/// Traces a command until it ends, `limit` is over or ctrl-C, and writes its trace to `path`. `all_objects`: shared objects too.
///
/// # Errors
/// The machine or another tracer does not allow it, the command could not be started, or the trace cannot be written.
pub fn trace(
    target: &Target,
    path: &Path,
    all_objects: bool,
    limit: Option<Duration>,
) -> Result<TracedCommand, Failure> {
    let writing = Work::writing("writing the trace", path);
    // A trace that nobody can write is worth no launch.
    as_user(&target.identity, &writing, || {
        let begun = whole_file::WholeFile::begin(path, MODE);
        begun.map(drop).map_err(|error| whole_file::unwritable(&path.to_string_lossy(), &error))
    })?;
    interrupt::watch();
    let (ours, others) = UnixStream::pair().map_err(failed(Kind::Machine))?;
    let work = Work::new("reading the target's files", Duty::Read).keeping(&others).silent();
    let _reader = Worker::start(&target.identity, &work, move || {
        serve(others);
        Ok(())
    })?;
    let until = limit.map(|limit| Instant::now() + limit);
    let asked_to_stop = move || interrupt::requested() || until.is_some_and(|until| Instant::now() >= until);
    let mut hooks = TraceHooks::new(Wanted { all_objects }, ours, Box::new(asked_to_stop), interrupt::of_terminal);
    // Whoever is let go lives on.
    let (spec, _fresh) = target.spec(EndPolicy::WaitExit, StdioPolicy::Inherit)?;
    let launched = launcher().launch(&spec, &mut hooks);
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
    let trace = Trace { command: target.words(), created: now_rfc3339(), ..trace };
    as_user(&target.identity, &writing, || {
        let text = serde_json::to_vec(&trace).map_err(failed(Kind::Machine))?;
        whole_file::replace(path, MODE, &text)
    })?;
    Ok(TracedCommand { trace, released, exit: outcome.exit })
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
