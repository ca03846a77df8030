//! The kernel: release, preemption, and options that make it slower everywhere.
//!
//! The release is reported and never taken as evidence of what the kernel does: changes are carried back to older ones.

use super::chosen;
use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::KernelFiles;
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;
use std::collections::BTreeMap;

/// The factor.
pub const KERNEL: Factor = Factor {
    name: "kernel",
    former: Former::NONE,
    title: "kernel",
    what: "Release and preemption model of the kernel, and debug options that are at work: lockdep, kmemleak, \
           KFENCE, slab checks.",
    why: "A lock validator or memory checks make each syscall and fault several times slower. What release and \
          preemption cost does not follow from their names: they are shown, and no cause is derived from them.",
    by_hand: "`uname -rv`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "run a kernel that is built without the debug options, or switch off those that can be (kmemleak=off, \
         kfence.sample_interval=0)",
        "safety: bugs of the kernel are found less often",
    )]),
    toggle: OF_MACHINE,
};

/// Files whose presence shows that a debug option is compiled in, and at work.
const DEBUGGING: [(&str, &str); 4] = [
    ("proc/lockdep_stats", "lock validator"),
    ("sys/kernel/debug/kmemleak", "memory leak detector"),
    ("sys/module/kfence/parameters/sample_interval", "KFENCE"),
    ("sys/kernel/slab/kmalloc-64/sanity_checks", "slab checks"),
];

fn read(task: &TaskFiles<'_>) -> Reading {
    let kernel_files = task.kernel_files();
    let release = match kernel_files.read("proc/sys/kernel/osrelease") {
        Ok(release) => release,
        Err(missing) => return Reading::missing(&missing, "this kernel does not report it"),
    };
    let version = kernel_files.read("proc/sys/kernel/version").unwrap_or_default();
    let mut parts = BTreeMap::from([("release".to_owned(), release.trim().to_owned())]);
    parts.extend(preemption(kernel_files, &version).map(|word| ("preemption".to_owned(), word)));
    let debugging: Vec<&str> =
        DEBUGGING.iter().filter(|(path, _)| is_on(kernel_files, path)).map(|(_, word)| *word).collect();
    if !debugging.is_empty() {
        parts.insert("debug options".to_owned(), debugging.join(", "));
    }
    Reading::known(Value::Table(parts))
}

/// A switch that says 0 is compiled in and off.
fn is_on(kernel_files: &KernelFiles, path: &str) -> bool {
    kernel_files.read(path).is_ok_and(|text| text.trim() != "0")
}

/// The mode in force where the kernel reports it (for root), else what it was built for (the words in its version).
fn preemption(kernel_files: &KernelFiles, version: &str) -> Option<String> {
    if let Ok(text) = kernel_files.read("sys/kernel/debug/sched/preempt") {
        let word = text
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .map_or_else(|| chosen(&text), |(word, _)| word);
        return Some(word.to_owned());
    }
    let built = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"];
    let found = built.iter().find(|word| version.split_whitespace().any(|one| one == **word));
    if version.is_empty() {
        return None;
    }
    Some(found.map_or("none or voluntary", |word| *word).to_owned())
}

fn known(a: &Value, b: &Value) -> Known {
    if a.part("debug options") != b.part("debug options") {
        return Known::new(
            Weight::Heavy,
            "a lock validator or memory checks in the kernel make each system call and fault several times slower",
            "lib/Kconfig.debug",
        );
    }
    Known::new(
        Weight::Moderate,
        "not known from release and preemption: they are shown, and no cause is derived from them",
        "Documentation/process; backports differ from vendor to vendor",
    )
}
