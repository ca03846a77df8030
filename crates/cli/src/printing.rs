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
        ::std::println!("{}", $crate::printing::line(&::std::format!($($argument)*)))
    };
}

/// A line on standard error. Replaces the macro of the standard library, see the module.
macro_rules! eprintln {
    () => {
        ::std::eprintln!()
    };
    ($($argument:tt)*) => {
        ::std::eprintln!("{}", $crate::printing::line(&::std::format!($($argument)*)))
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
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::{escape_json, is_dangerous};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal;
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
            Some(problem) => failure::report(
                &Failure::new(Kind::Usage, format!("standard output cannot be written: {problem}")),
                false,
            ),
            None => resume_unwind(payload),
        }
    })
}

/// One line: nothing in it ends it.
pub fn line(text: &str) -> String {
    escape_terminal(text)
}

/// Lines, with colours and bold type: ESC [ numbers m (ECMA-48, SGR), which changes how text looks and nothing else.
pub fn screen(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| c != '\n' && is_dangerous(c)) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = sgr(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
        let (one, behind) = rest.split_at(length);
        if length > 2 && one.starts_with('\u{1b}') {
            shown.push_str(one)
        } else {
            shown.push_str(&escape_terminal(one))
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// The length of the sequence that begins here, where it is one of colour or type.
fn sgr(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    (numbers.as_bytes()[end] == b'm').then_some(2 + end + 1)
}

/// Help, a version, or what is wrong with the command line, whose words may be names of files.
pub fn command_line(told: &clap::Error) -> ExitCode {
    let is_shown = if told.use_stderr() { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let text = told.render();
    let text = if is_shown { text.ansi().to_string() } else { text.to_string() };
    if told.use_stderr() {
        ::std::eprint!("{}", screen(&text))
    } else {
        print!("{text}")
    }
    ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2))
}

/// The one JSON object of a command.
pub fn json(value: &impl Serialize) {
    // The types that are printed have text for keys and finite numbers, which is all that could fail.
    ::std::println!("{}", escape_json(&serde_json::to_string_pretty(value).unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_other_line_and_a_screen_only_colours() {
        assert_eq!(line("a\nslowpath: forged\u{9b}2J"), "a\\u{a}slowpath: forged\\u{9b}2J");
        assert_eq!(screen("\u{1b}[1;31mred\u{1b}[0m\nÄ"), "\u{1b}[1;31mred\u{1b}[0m\nÄ");
        assert_eq!(screen("\u{1b}[2Jx\u{1b}]0;t\u{7}\u{1b}"), "\\u{1b}[2Jx\\u{1b}]0;t\\u{7}\\u{1b}");
        assert_eq!(screen("\u{9b}31m\u{202e}\r"), "\\u{9b}31m\\u{202e}\\u{d}");
        assert_eq!(screen("\u{1b}[31"), "\\u{1b}[31");
    }
}
