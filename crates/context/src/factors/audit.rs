//! Under which login and session the audit system knows a process (`/proc/PID/loginuid`, `/proc/PID/sessionid`).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::Toggle;

/// The factor.
pub const AUDIT: Factor = Factor {
    name: "audit",
    former: Former::NONE,
    title: "audit login and session",
    what: "Login UID and session by which the audit system knows the process. The login sets them once, and \
           children inherit them.",
    why: "Where an audit rule applies, each syscall takes the slow path through the kernel's entry and exit. Rules \
          often leave out processes without a login; only the audit administrator can read them (`auditctl -l`).",
    by_hand: "`cat /proc/PID/loginuid /proc/PID/sessionid`: 4294967295 is none",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[("remove the audit rules that match it", "security: its calls are no longer logged")]),
    toggle: Toggle::Never(WHY_NEVER),
};

/// What the kernel shows where none is set: -1 as an unsigned number.
const UNSET: &str = "4294967295";

const WHY_NEVER: &str = "a login's number is set once, by the login itself, and children keep it";

fn read(task: &TaskFiles<'_>) -> Reading {
    let part = |file: &str| task.file(file).map(|text| if text.trim() == UNSET { "unset" } else { "set" }.to_owned());
    let parts = part("loginuid").and_then(|login| Ok([("login", login), ("session", part("sessionid")?)]));
    Reading::of(parts.map(Value::table), "this kernel has no audit system")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "rules of the audit system often leave out processes without a login; where a rule applies each system call takes the slow path. \
         The rules themselves are readable by the audit administrator only (`auditctl -l`)",
        "auditctl(8); kernel/auditsc.c",
    )
}
