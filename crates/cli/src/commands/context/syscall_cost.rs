//! `slowpath context syscall-cost`: what system calls cost here, and what a filter costs.

use crate::arguments::context::SyscallCostArguments;
use crate::failure::Failure;
use crate::printing::show;
use slowpath_report::terminal;
use slowpath_syscall_cost::cost;

/// Runs the command.
pub fn run(arguments: &SyscallCostArguments) -> Result<(), Failure> {
    let cost = cost(&arguments.filter, arguments.max_time, arguments.seed)?;
    show(arguments.json, &cost, terminal::syscall_cost);
    Ok(())
}
