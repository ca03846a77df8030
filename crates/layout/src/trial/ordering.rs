//! The order that variants link by: from traces that are given, or from one of the baseline that is made here.

use crate::inputs;
use crate::order::{Format, chosen, named};
use crate::score::Code;
use crate::trace_file::{FirstUse, Trace, page_of};
use crate::tracer::{TraceHooks, Wanted, serve};
use crate::work;
use serde::{Deserialize, Serialize};
use slowpath_launch::{EndPolicy, Launcher, StdioPolicy};
use slowpath_process::Duty;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::{Target, launch_failure, launcher, not_ready};
use slowpath_session::unprivileged::{Work, Worker, as_user};
use slowpath_session::{interrupt, whole_file};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// An order that was written.
#[derive(Serialize, Deserialize)]
pub(super) struct Ordered {
    /// Functions in it.
    pub functions: u64,
    /// The algorithm that made it.
    pub algorithm: String,
}

/// Writes the order of traces that are in files.
pub(super) fn of_files(
    target: &Target,
    directory: &Path,
    traces: &[PathBuf],
    format: &'static Format,
    order: &Path,
) -> Result<Ordered, Failure> {
    as_user(&target.identity, &Work::writing_beneath("making the order", directory), || {
        let traces = inputs::traces(traces)?;
        let program = traces.iter().find_map(|trace| trace.objects.get(trace.program()? as usize));
        let path = program.map(|object| object.path.clone()).unwrap_or_default();
        written(&traces, &path, format, order)
    })
}

/// Traces one launch of the baseline and writes its order.
pub(super) fn of_launch(
    target: &Target,
    directory: &Path,
    binary: &Path,
    format: &'static Format,
    order: &Path,
) -> Result<Ordered, Failure> {
    let trace = traced(target)?;
    as_user(&target.identity, &Work::writing_beneath("making the order", directory), || {
        let real = std::fs::canonicalize(binary).unwrap_or_else(|_| binary.to_owned());
        written(std::slice::from_ref(&trace), &real.to_string_lossy(), format, order)
    })
}

fn traced(target: &Target) -> Result<Trace, Failure> {
    let (ours, others) = UnixStream::pair().map_err(failed(Kind::Machine))?;
    let what = Work::new("reading the target's files", Duty::Read).keeping(&others).silent();
    let _reader = Worker::start(&target.identity, &what, move || {
        serve(others);
        Ok(())
    })?;
    let wanted = Wanted { all_objects: false };
    let mut hooks = TraceHooks::new(wanted, ours, Box::new(interrupt::requested), interrupt::of_terminal);
    let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    let launched = launcher().launch(&spec, &mut hooks);
    let traced = hooks.finish();
    let outcome = launched.map_err(|error| launch_failure(&error))?;
    if let Some(failure) = not_ready(&outcome) {
        return Err(failure.during("the traced launch of the baseline failed"));
    }
    Ok(traced.map_err(|error| Failure::from_error(Kind::Machine, &error))?.trace)
}

fn written(traces: &[Trace], path: &str, format: &Format, order: &Path) -> Result<Ordered, Failure> {
    let with: Vec<(&Trace, u32)> = traces.iter().filter_map(|trace| Some((trace, trace.object(path, None)?))).collect();
    let works: Vec<work::Work> = with.iter().map(|(trace, object)| work::of_trace(trace, *object)).collect();
    let code = Code::of_works(&works).on_pages_of(page_of(with.iter().map(|(trace, _)| *trace)));
    let algorithm = chosen(&works, &code);
    let uses: Vec<&FirstUse> = with.iter().flat_map(|(trace, object)| trace.uses_of(*object)).collect();
    let functions = named(&(algorithm.order)(&works), &uses);
    if functions.is_empty() {
        return Err(Failure::new(Kind::Usage, "no trace shows a named function of the binary").hint(
            "let the build leave symbols in it (no -s), launch {binary} itself, or leave out variants with an order",
        ));
    }
    whole_file::replace(order, 0o644, (format.write)(&functions).as_bytes())?;
    Ok(Ordered { functions: functions.len() as u64, algorithm: algorithm.name.to_owned() })
}
