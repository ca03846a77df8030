//! Whether a thread can gain privileges by executing a program (Documentation/userspace-api/no_new_privs.rst).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, SYS_ADMIN, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const NO_NEW_PRIVS: Factor = Factor {
    name: "no_new_privs",
    former: Former::NONE,
    title: "no privileges gained by execve",
    what: "A flag by which execve gives no privileges: set-uid bits and file capabilities have no effect. Children \
           inherit it, and nothing clears it.",
    why: "Nothing by itself. Set-uid programs started from it keep its identity and may fail or work otherwise, and \
          most sandboxes set it together with a seccomp filter.",
    by_hand: "`grep NoNewPrivs /proc/PID/status`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[("do not set it", "security: set-uid programs that it starts get their rights")]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let read = task.status("NoNewPrivs").map(|word| Value::text(if word == "1" { "yes" } else { "no" }));
    Reading::of(read, "this kernel does not report it (before 4.10)")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Harmless,
        "nothing by itself; set-uid programs started from it keep its identity, and most sandboxes set it",
        "Documentation/userspace-api/no_new_privs.rst",
    )
}

const HOW: How = How {
    irreversible: true,
    counters: &[Metric::System],
    mechanism: "none is known: set-uid programs started from it keep its identity",
    sham: "nothing: no form of the call is without effect",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    // Only an administrator can put on a filter without it.
    if contrast.differs("seccomp", Some("filters")) && !contrast.here.may(SYS_ADMIN) {
        return contrast
            .not(Outcome::Follows("a filter needs it where the caller is not root: both are set together".to_owned()));
    }
    let own_has_it = contrast.here.value(NO_NEW_PRIVS.name) == Some(&Value::text("yes"));
    contrast.whole(&HOW, |value| match value {
        Some(Value::Text(word)) if word == "yes" => Ok(vec![Setting::Step(ContextStep::NoNewPrivileges)]),
        Some(_) if own_has_it => Err("the caller has given them up itself, and cannot take them back".to_owned()),
        Some(_) => Ok(Vec::new()),
        None => Err("it is not known".to_owned()),
    })
}
