//! Whether SELinux is in force on the machine (`/sys/fs/selinux/enforce`).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;

/// The factor.
pub const SELINUX: Factor = Factor {
    name: "selinux",
    former: Former::NONE,
    title: "SELinux",
    what: "Whether SELinux denies what its policy does not allow (enforcing) or only logs it (permissive).",
    why: "Its own checks cost little. Android's zygote installs seccomp filters in apps only while it is enforcing, \
          and those run at each syscall.",
    by_hand: "`getenforce`; `cat /sys/fs/selinux/enforce`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "leave it enforcing, and change what follows from it: the seccomp filters of apps",
        "work: the filters have to be rewritten, as for seccomp",
    )]),
    toggle: OF_MACHINE,
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let word = |text: String| Value::text(if text.trim() == "1" { "enforcing" } else { "permissive" });
    Reading::of(task.kernel_files().read("sys/fs/selinux/enforce").map(word), "SELinux is not loaded")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "its own checks cost little; but Android's zygote installs seccomp filters in apps only while it is enforcing",
        "Android: frameworks/base/core/jni/com_android_internal_os_Zygote.cpp (SetUpSeccompFilter, security_getenforce)",
    )
}
