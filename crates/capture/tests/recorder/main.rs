//! The recorder on real programs, beside what the kernel itself counts.

mod address_spaces;
mod hostile_names;
mod keyed_sum;
mod live;
mod page_contents;
#[cfg(target_arch = "x86_64")]
mod stack_numbers;
mod targets;
mod withheld;

/// A copy of a program, made by another process: a child that another test forks meanwhile has what this one has open, and the kernel
/// executes no file that somebody writes (ETXTBSY).
fn copy_program(from: &str, to: &std::path::Path) {
    assert!(std::process::Command::new("cp").arg(from).arg(to).status().unwrap().success());
}
