//! `slowpath launch`: a launch benchmark. Arms run in counterbalanced blocks, the environment has another size in every
//! block (the same for all arms of it), and nothing is left out of the figures but launches that failed.

mod arms;
mod benchmark;
mod children;
mod ladder;
mod scenario;
mod selftest;

use crate::arguments::launch::{BenchmarkArguments, LaunchCommand};
use crate::failure::Failure;
use slowpath_session::interrupt;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &BenchmarkArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    match &arguments.command {
        Some(LaunchCommand::Ladder(arguments)) => ladder::run(arguments),
        Some(LaunchCommand::Selftest(arguments)) => selftest::run(arguments),
        Some(LaunchCommand::Scenario(arguments)) => scenario::run(arguments),
        Some(LaunchCommand::Children(arguments)) => children::run(arguments),
        None => benchmark::run(arguments),
    }
}
