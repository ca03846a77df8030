//! `slowpath zygote`: preload once, fork isolated children. What a zygote does is `slowpath_zygote`'s.

mod advise;
mod bench;
mod preload;
mod serve;
mod spawn;

use crate::arguments::zygote::{ZygoteArguments, ZygoteCommand};
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ZygoteArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        ZygoteCommand::Serve(arguments) => serve::run(arguments),
        ZygoteCommand::Spawn(arguments) => spawn::run(arguments),
        ZygoteCommand::Status(arguments) => spawn::status(arguments),
        ZygoteCommand::Bench(arguments) => bench::run(arguments),
        ZygoteCommand::Advise(arguments) => advise::run(arguments),
    }
}
