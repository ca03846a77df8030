//! The whole of it: a filter is read, and what calls cost is measured, each in a process of its own.
//!
//! The file of a filter is foreign data: a child with the user's identity reads and compiles it, never root. Another one measures, whose
//! own system calls no filter of a sandbox may make slower. Only the filters of a running process are copied with the caller's privilege,
//! as they are.

use crate::filter_choice::{Choice, Filter};
use crate::{Measured, Plan, ShownFilter, SyscallCost, measure};
use slowpath_seccomp::{FilterError, Program};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::interrupt;
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, Worker, as_user};
use std::ffi::OsStr;
use std::time::Duration;

/// How often it is looked whether the child is done.
const LOOK: Duration = Duration::from_millis(20);

/// What calls cost without and with the filter that a word of the user means.
///
/// # Errors
/// The word names no filter, this machine cannot measure it, or ctrl-C.
pub fn cost(filter: &OsStr, max_time: Duration, seed: u64) -> Result<SyscallCost, Failure> {
    let choice = Choice::of(filter)?;
    let copied = choice.copied()?;
    let asked = filter.to_string_lossy().into_owned();
    let read = as_user(&invoker()?, &Work::reading("reading the filter"), move || {
        let Filter { programs, form, notes } = choice.filter(copied)?;
        Ok((programs.iter().map(Program::bytes).collect::<Vec<_>>(), form, notes))
    });
    let (programs, form, notes) = read?;
    let programs: Result<Vec<Program>, FilterError> = programs.iter().map(|one| Program::from_bytes(one)).collect();
    let plan = Plan { programs: programs.map_err(failed(Kind::Machine))?, max_time, seed };
    let instructions = plan.programs.iter().map(|one| one.instructions().len()).sum();
    // A process of its own also where the identity is the same: it stays on one CPU, and its threads do not end.
    let what = Work::measuring("measuring system calls");
    let mut worker = Worker::start(&invoker()?, &what, move || {
        measure(&plan, &interrupt::requested).map_err(failed(Kind::Machine))
    })?;
    let measured: Measured = loop {
        match worker.poll() {
            Some(result) => break result?,
            None if interrupt::requested() => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            None => std::thread::sleep(LOOK),
        }
    };
    let shown = ShownFilter { asked, form, programs: measured.programs, instructions, notes };
    Ok(SyscallCost::new(&measured, shown))
}
