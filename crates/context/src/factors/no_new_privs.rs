//! Whether a thread can gain privileges by executing a program (Documentation/userspace-api/no_new_privs.rst).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const NO_NEW_PRIVS: Factor = Factor {
    name: "no_new_privs",
    title: "execution gives no privileges",
    scope: Scope::Thread,
    moves: false,
    read,
    known,
};

fn read(subject: &Subject<'_>) -> Reading {
    let read = subject.status("NoNewPrivs").map(|word| Value::text(if word == "1" { "yes" } else { "no" }));
    Reading::of(read, "this kernel does not tell it (before 4.10)")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Harmless,
        "nothing by itself; set-uid programs started from it keep its identity, and most sandboxes set it",
        "Documentation/userspace-api/no_new_privs.rst",
    )
}
