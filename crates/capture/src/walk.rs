//! Programs that the kernel runs over all its tasks when the recorder asks (BPF iterators).

use crate::capture_error::CaptureError;
use crate::probe::Loaded;
use std::io;

/// Sections of such programs; they are not attached when an object is loaded.
pub(crate) fn is_walk(section: &str) -> bool {
    section.starts_with("iter")
}

/// Runs a program of a loaded probe over all tasks, so many times.
pub(crate) fn over_tasks(one: &Loaded, program: &str, times: usize) -> Result<(), CaptureError> {
    let missing = || CaptureError::Program { probe: one.name, problem: format!("program {program} is missing") };
    let attach = |source| CaptureError::Attach { probe: one.name, event: "iter/task".to_owned(), source };
    let program = one.object.progs_mut().find(|found| found.name() == program).ok_or_else(missing)?;
    let link = program.attach().map_err(|error| attach(io::Error::other(error)))?;
    for _ in 0..times {
        let mut walk = libbpf_rs::Iter::new(&link).map_err(|error| attach(io::Error::other(error)))?;
        io::copy(&mut walk, &mut io::sink()).map_err(attach)?;
    }
    Ok(())
}
