//! Standard output and standard error: nothing that a terminal obeys leaves this program, whoever wrote it.
//!
//! Names, paths, words of commands and messages about them are foreign. So the macros that print are replaced for the whole crate by
//! ones that escape what they print, and JSON has one writer; nobody has to remember. What is printed knowingly, colours and the lines
//! of a screen, passes.
//!
//! Also what happens when standard output cannot be written: `println!` panics, which runs all clean-up; here that becomes an exit code.

/// A line on standard output. Replaces the macro of the standard library, see the module.
macro_rules! println {
    () => {
        ::std::println!()
    };
    ($($argument:tt)*) => {
        ::std::println!("{}", $crate::printing::escape_terminal(&::std::format!($($argument)*)))
    };
}

/// A line on standard error. Replaces the macro of the standard library, see the module.
macro_rules! eprintln {
    () => {
        ::std::eprintln!()
    };
    ($($argument:tt)*) => {
        ::std::eprintln!("{}", $crate::printing::escape_terminal(&::std::format!($($argument)*)))
    };
}

/// A screen on standard output. Replaces the macro of the standard library, see the module.
macro_rules! print {
    ($($argument:tt)*) => {
        ::std::print!("{}", $crate::printing::screen(&::std::format!($($argument)*)))
    };
}

use crate::failure::{self, Failure, Kind};
use serde::Serialize;
use slowpath_report::printed_result::{write, write_json};
use slowpath_report::terminal::Style;
pub use slowpath_report::terminal::{escape_terminal, screen_of as screen};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, ErrorKind, IsTerminal};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook};
use std::process::ExitCode;

/// How the standard library words such a panic (`print_to` in library/std/src/io/stdio.rs).
const UNPRINTED: &str = "failed printing to stdout: ";

/// Runs `work`. A reader of standard output that goes away (`| head`) has what it wanted; a full disk is a failure.
pub fn guarded(work: impl FnOnce() -> ExitCode) -> ExitCode {
    set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<String>().is_some_and(|text| text.starts_with(UNPRINTED)) {
            return;
        }
        // A panic may speak of foreign text, and the hook of the standard library prints it as it is.
        eprintln!("slowpath: this is a defect of slowpath, please report it: {panic}");
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            trace.to_string().lines().for_each(|line| eprintln!("{line}"));
        }
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
        match text.strip_prefix(UNPRINTED) {
            Some(problem) if problem.contains("(os error 32)") => ExitCode::SUCCESS,
            Some(problem) => failure::report(&unprinted(problem), false),
            None => resume_unwind(payload),
        }
    })
}

/// Help, a version, or what is wrong with the command line, whose words may be names of files.
pub fn command_line(error: &clap::Error) -> ExitCode {
    let is_shown = if error.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let text = error.render();
    let text = if is_shown { text.ansi().to_string() } else { text.to_string() };
    if error.use_stderr() {
        ::std::eprint!("{}", screen(&text))
    } else {
        print!("{text}")
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// A result: the one JSON object of a command, or its screen.
pub fn show<T: Serialize>(is_json: bool, value: &T, text: impl FnOnce(&T, &Style) -> String) {
    must_print(write(io::stdout().lock(), is_json, value, text));
}

/// The same in the worker that has the result. It may be larger than what a worker may send (`slowpath_process::worker`).
///
/// # Errors
/// Standard output cannot be written. A reader that goes away has what it wanted, as everywhere.
pub fn show_in_worker<T: Serialize>(
    is_json: bool,
    value: &T,
    text: impl FnOnce(&T, &Style) -> String,
) -> Result<(), Failure> {
    match write(io::stdout().lock(), is_json, value, text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unprinted(&error.to_string())),
        _ => Ok(()),
    }
}

/// The one JSON object of a command.
pub fn json(value: &impl Serialize) {
    must_print(write_json(io::stdout().lock(), value));
}

/// Ends a command that could not print, as `println!` does.
fn must_print(written: io::Result<()>) {
    if let Err(error) = written {
        panic!("{UNPRINTED}{error}");
    }
}

fn unprinted(problem: &str) -> Failure {
    Failure::new(Kind::Usage, format!("standard output cannot be written: {problem}"))
}
