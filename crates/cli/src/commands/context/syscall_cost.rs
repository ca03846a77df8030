//! `slowpath context syscall-cost`: what system calls cost here, and what a filter costs.
//!
//! The file of a filter is foreign data: a child with the user's identity reads and compiles it, never root. Another one measures, whose
//! own system calls no filter of a sandbox may make slower. Only the filters of a running process are copied with the caller's privilege,
//! as they are.

use crate::arguments::SyscallCostArguments;
use crate::commands::{invoker, show};
use crate::failure::{Failure, Kind, failed};
use crate::interrupt;
use crate::unprivileged::{Work, Worker, as_user};
use slowpath_process::Duty;
use slowpath_report::terminal;
use slowpath_seccomp::{FilterError, Program};
use slowpath_syscall_cost::filter_choice::{Choice, Filter};
use slowpath_syscall_cost::{Measured, Plan, ShownFilter, SyscallCost, measure};
use std::time::Duration;

/// How often it is looked whether the child is done.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(arguments: &SyscallCostArguments) -> Result<(), Failure> {
    let choice = Choice::of(&arguments.filter)?;
    let copied = choice.copied()?;
    let asked = arguments.filter.to_string_lossy().into_owned();
    let (max_time, seed) = (arguments.max_time, arguments.seed);
    let read = as_user(&invoker()?, &Work::reading("reading the filter"), move || {
        let Filter { programs, form, notes } = choice.filter(copied)?;
        Ok((programs.iter().map(Program::bytes).collect::<Vec<_>>(), form, notes))
    });
    let (programs, form, notes) = read?;
    let programs: Result<Vec<Program>, FilterError> = programs.iter().map(|one| Program::from_bytes(one)).collect();
    let plan = Plan { programs: programs.map_err(failed(Kind::Machine))?, max_time, seed };
    let instructions = plan.programs.iter().map(|one| one.instructions().len()).sum();
    // A process of its own also where the identity is the same: it stays on one processor, and its threads do not end.
    let what = Work::new("measuring system calls", Duty::Measure);
    let mut worker = Worker::start(&invoker()?, &what, move || {
        measure(&plan, &interrupt::requested).map_err(failed(Kind::Machine))
    })?;
    let measured: Measured = loop {
        match worker.poll() {
            Some(told) => break told?,
            None if interrupt::requested() => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            None => std::thread::sleep(LOOK),
        }
    };
    let filter = ShownFilter { asked, form, programs: measured.programs, instructions, notes };
    let cost = SyscallCost::new(&measured, filter);
    show(arguments.json, &cost, terminal::syscall_cost);
    Ok(())
}
