//! Whether a thread is traced (ptrace(2)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const TRACER: Factor =
    Factor { name: "tracer", title: "traced by another process", scope: Scope::Thread, moves: false, read, known };

fn read(subject: &Subject<'_>) -> Reading {
    let word = |pid: String| Value::text(if pid == "0" { "no" } else { "yes" });
    Reading::of(subject.status("TracerPid").map(word), "this kernel does not tell it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "a tracer can stop the thread at each system call, signal and new thread: two switches between processes each",
        "ptrace(2)",
    )
}
