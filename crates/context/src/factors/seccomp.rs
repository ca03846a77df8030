//! System call filters of a thread: the mode and how many there are (Documentation/userspace-api/seccomp_filter.rst).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::place::Missing;
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const SECCOMP: Factor =
    Factor { name: "seccomp", title: "system call filters", scope: Scope::Thread, moves: false, read, known };

/// `mode` and, on kernels that tell it (5.9 and later), `filters`.
fn read(subject: &Subject<'_>) -> Reading {
    let mode = match subject.status("Seccomp") {
        Ok(mode) => mode,
        Err(missing) => return Reading::missing(&missing, "this kernel has no seccomp"),
    };
    let word = match mode.as_str() {
        "0" => "none".to_owned(),
        "1" => "strict".to_owned(),
        "2" => "filter".to_owned(),
        other => format!("mode {other}"),
    };
    let mut parts = vec![("mode".to_owned(), word)];
    match subject.status("Seccomp_filters") {
        Ok(filters) => parts.push(("filters".to_owned(), filters)),
        Err(Missing::Absent) => {}
        Err(missing) => return Reading::missing(&missing, ""),
    }
    Reading::known(Value::table(parts))
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "each filter runs at each system call: an allow-list costs a loop of cheap calls some 10 %, a stack of filters that \
         check arguments several times its time; on some kernels a filter also switches processor optimisations off",
        "measured by slowpath's authors on Linux 6.18 (1.09x and 3.46x); Documentation/userspace-api/spec_ctrl.rst",
    )
}
