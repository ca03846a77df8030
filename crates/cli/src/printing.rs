//! What happens when standard output cannot be written: `println!` panics, which runs all clean-up; here that becomes an exit code.

use crate::failure::{Failure, Kind};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::process::ExitCode;

/// How the standard library words such a panic (`print_to` in library/std/src/io/stdio.rs).
const UNPRINTED: &str = "failed printing to stdout: ";

/// Runs `work`. A reader of standard output that goes away (`| head`) has what it wanted; a full disk is a failure.
pub fn guarded(work: impl FnOnce() -> ExitCode) -> ExitCode {
    let other = take_hook();
    set_hook(Box::new(move |panic| {
        if !panic.payload().downcast_ref::<String>().is_some_and(|text| text.starts_with(UNPRINTED)) {
            other(panic);
        }
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
        match text.strip_prefix(UNPRINTED) {
            Some(problem) if problem.contains("(os error 32)") => ExitCode::SUCCESS,
            Some(problem) => {
                Failure::new(Kind::Usage, format!("standard output cannot be written: {problem}")).report(false)
            }
            None => resume_unwind(payload),
        }
    })
}
