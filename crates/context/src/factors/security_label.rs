//! The label that a security module gave a process: SELinux context or AppArmor profile (`/proc/PID/attr`).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::Toggle;

/// The factor.
pub const SECURITY_LABEL: Factor = Factor {
    name: "security_label",
    former: Former::NONE,
    title: "SELinux context or AppArmor profile",
    what: "The label by which a security module (SELinux, AppArmor) decides what the thread may do. Children \
           inherit it; execve can change it.",
    why: "Checks at opens, mappings and sockets cost little. What starts programs under a label can do more with \
          them: Android's zygote installs a seccomp filter in apps.",
    by_hand: "`ps -o label -p PID`; `cat /proc/PID/attr/current`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "change what follows from its label (the policy of the domain), not the label",
        "security: what the policy kept from the program",
    )]),
    toggle: Toggle::Never(WHY_NEVER),
};

/// Where the label stands: of one module, or of AppArmor beside another (Documentation/admin-guide/LSM/index.rst).
const FILES: [(&str, &str); 2] = [("attr/apparmor/current", "apparmor"), ("attr/current", "label")];

const WHY_NEVER: &str = "the policy of the security module decides who may start programs under which label: compare with `runcon` or `aa-exec`";

fn read(task: &TaskFiles<'_>) -> Reading {
    let mut parts = Vec::new();
    let mut refused = None;
    for (file, name) in FILES {
        match task.file(file) {
            // SELinux ends it with a zero byte.
            Ok(label) => parts.push((name, label.trim_end_matches(['\0', '\n']).to_owned())),
            Err(Missing::Absent) => {}
            Err(missing) => refused = Some(missing),
        }
    }
    parts.retain(|(_, label)| !label.is_empty());
    match refused {
        // Without a security module that labels, the kernel answers EINVAL.
        Some(Missing::Failed(_)) | None if parts.is_empty() => {
            Reading::absent("no security module labels processes here")
        }
        Some(missing) if parts.is_empty() => Reading::missing(&missing, ""),
        _ => Reading::known(Value::table(parts)),
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "checks at opens, mappings and sockets cost little; but what starts programs under a label can do more with them: Android's \
         zygote gives apps a seccomp filter",
        "Android: frameworks/base/core/jni/com_android_internal_os_Zygote.cpp (SetUpSeccompFilter)",
    )
}
