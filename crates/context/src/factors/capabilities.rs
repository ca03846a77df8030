//! Capabilities of a thread (capabilities(7)), as the kernel's bit masks.

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const CAPABILITIES: Factor =
    Factor { name: "capabilities", title: "capabilities", scope: Scope::Thread, moves: false, read, known };

const FIELDS: [(&str, &str); 5] = [
    ("CapInh", "inheritable"),
    ("CapPrm", "permitted"),
    ("CapEff", "effective"),
    ("CapBnd", "bounding"),
    ("CapAmb", "ambient"),
];

fn read(subject: &Subject<'_>) -> Reading {
    let mut parts = Vec::new();
    for (field, name) in FIELDS {
        match subject.status(field) {
            Ok(mask) => parts.push((name, mask)),
            // Ambient capabilities came with 4.3.
            Err(crate::place::Missing::Absent) => {}
            Err(missing) => return Reading::missing(&missing, ""),
        }
    }
    if parts.is_empty() { Reading::absent("this kernel does not tell it") } else { Reading::known(Value::table(parts)) }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "no time by themselves; without CAP_SYS_NICE, CAP_IPC_LOCK or CAP_SYS_RESOURCE a program that asks for priority, locked or huge \
         memory gets none and goes on",
        "capabilities(7)",
    )
}
