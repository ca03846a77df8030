//! What the kernel does against flaws of the CPU (Documentation/admin-guide/hw-vuln), and the parameters that chose it.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;

/// What can be done about mitigations, and the parameters that choose them.
const MITIGATION_REMEDIES: &[(&str, &str)] = &[(
    "start the kernel with the mitigations of the fast machine",
    "security: other programs and guests can read its memory by speculative execution",
)];

/// What is done, by flaw.
pub const MITIGATIONS: Factor = Factor {
    name: "mitigations",
    former: Former::NONE,
    title: "CPU vulnerability mitigations",
    what: "What the kernel does on these CPUs against each known vulnerability (Meltdown, Spectre, MDS, Retbleed \
           and others).",
    why: "From nothing to some ten percent, most at syscalls, faults and indirect calls: page tables are switched \
          at each entry, indirect branches predict less, and buffers are cleared on the return to user mode.",
    by_hand: "`grep . /sys/devices/system/cpu/vulnerabilities/*`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(MITIGATION_REMEDIES),
    toggle: OF_MACHINE,
};

/// Parameters of the kernel that choose it, or change speed otherwise.
pub const PARAMETERS: Factor = Factor {
    name: "kernel_parameters",
    former: Former::NONE,
    title: "kernel parameters that change speed",
    what: "Parameters of the kernel's command line that choose mitigations or change speed otherwise: isolcpus, \
           nohz_full, transparent_hugepage, init_on_alloc, audit and the like.",
    why: "What they switch: mitigations from nothing to some ten percent; init_on_alloc and init_on_free zero \
          memory at each allocation or release; isolcpus takes CPUs out of load balancing.",
    by_hand: "`cat /proc/cmdline`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read: read_parameters,
    known: known_parameters,
    remedies: Remedies::Of(MITIGATION_REMEDIES),
    toggle: OF_MACHINE,
};

const DIRECTORY: &str = "sys/devices/system/cpu/vulnerabilities";

/// Names of parameters that are kept (Documentation/admin-guide/kernel-parameters.txt).
const KEPT: [&str; 36] = [
    "mitigations",
    "spec_store_bypass_disable",
    "ssbd",
    "spectre_v2",
    "spectre_v2_user",
    "spectre_bhi",
    "nospectre_v1",
    "nospectre_v2",
    "nospec_store_bypass_disable",
    "spec_rstack_overflow",
    "retbleed",
    "mds",
    "tsx_async_abort",
    "tsx",
    "l1tf",
    "l1d_flush",
    "mmio_stale_data",
    "gather_data_sampling",
    "reg_file_data_sampling",
    "indirect_target_selection",
    "pti",
    "nopti",
    "kpti",
    "nosmt",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "preempt",
    "transparent_hugepage",
    "hugepages",
    "init_on_alloc",
    "init_on_free",
    "page_poison",
    "slub_debug",
    "audit",
    "clocksource",
];

fn read(task: &TaskFiles<'_>) -> Reading {
    let kernel_files = task.kernel_files();
    let names = match kernel_files.list(DIRECTORY) {
        Ok(names) => names,
        Err(missing) => return Reading::missing(&missing, "this kernel does not report it (before 4.15)"),
    };
    let parts = names.into_iter().filter_map(|name| {
        let text = kernel_files.read(&format!("{DIRECTORY}/{name}")).ok()?;
        Some((name, text.trim().to_owned()))
    });
    Reading::known(Value::table(parts))
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "from nothing to some ten percent, most at system calls, faults and calls through pointers",
        "Documentation/admin-guide/hw-vuln",
    )
}

fn read_parameters(task: &TaskFiles<'_>) -> Reading {
    // Parameters of the target's own copy stand in `proc/cmdline`, not in the command line of the process.
    let kept = |word: &&str| KEPT.contains(&word.split('=').next().unwrap_or(word));
    let parts = task.kernel_files().read("proc/cmdline").map(|text| {
        // Of a name given twice the last counts.
        Value::table(text.split_whitespace().filter(kept).map(|word| word.split_once('=').unwrap_or((word, "set"))))
    });
    Reading::of(parts, "this kernel does not report it")
}

fn known_parameters(a: &Value, b: &Value) -> Known {
    let mut known = known(a, b);
    known.source = "Documentation/admin-guide/kernel-parameters.txt; Documentation/admin-guide/hw-vuln".to_owned();
    known.cost = "what they switch on or off: mitigations from nothing to some ten percent; clearing memory at each allocation; CPUs \
                  without timer ticks"
        .to_owned();
    known
}
