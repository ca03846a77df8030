//! The command `slowpath`: arguments in, exit code out. Wiring only; every decision lives in a library crate.

#[macro_use]
mod printing;

mod arguments;
mod command_target;
mod commands;
mod exit_code;
mod failure;
mod standard_output;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == slowpath_launch::LAUNCHER_ARGUMENT) {
        slowpath_launch::launcher_main();
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == slowpath_zygote::template::LIBRARY_ARGUMENT) {
        return ExitCode::from(slowpath_zygote::template::library_main(std::env::args_os().skip(2)));
    }
    slowpath_session::target::remember_limits();
    slowpath_process::remember_panics();
    printing::guarded(|| {
        let (arguments, is_json) = match arguments::read(std::env::args_os()) {
            Ok(read) => read,
            Err(error) => return printing::command_line(&error),
        };
        match commands::run(&arguments) {
            Ok(code) => code,
            Err(failure) => failure::report(&failure, is_json),
        }
    })
}
