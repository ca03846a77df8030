//! How the machine gives memory: huge pages, randomised addresses, overcommit, swap.

use super::{chosen, parts_of_files};
use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;

/// Transparent and reserved huge pages.
pub const MACHINE_HUGE_PAGES: Factor = Factor {
    name: "machine_huge_pages",
    former: Former::NONE,
    title: "huge pages of the machine",
    what: "To whom the machine gives transparent huge pages (always, madvise, never), what a fault does where none \
           is free (defrag), the same for shared memory, and how many hugetlb pages are reserved.",
    why: "With small pages memory takes 512 times the faults, and programs that jump about in much memory miss the \
          TLB more often. With huge pages programs can take more memory, and single faults longer: they zero 2 MiB \
          and may compact memory.",
    by_hand: "`grep . /sys/kernel/mm/transparent_hugepage/{enabled,defrag}`; `sysctl vm.nr_hugepages`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read: read_huge_pages,
    known: known_huge_pages,
    remedies: Remedies::Of(crate::factors::huge_pages::HUGE_PAGE_REMEDIES),
    toggle: OF_MACHINE,
};

/// Randomised addresses, overcommit, swap.
pub const MEMORY: Factor = Factor {
    name: "memory",
    former: Former::NONE,
    title: "memory management",
    what: "Settings of memory management: address space randomization, overcommit, swappiness, KSM, \
           multi-generational LRU, zswap, NUMA balancing.",
    why: "Under memory pressure they decide what is reclaimed. NUMA balancing and KSM add faults to memory in use. \
          Without randomized addresses each run has the same layout, good or bad.",
    by_hand: "`sysctl kernel.randomize_va_space vm.overcommit_memory vm.swappiness`; `grep . /sys/kernel/mm/{ksm/run,lru_gen/enabled}`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "set what differs as on the fast machine (sysctl, /sys/kernel/mm)",
        "memory without KSM and zswap, locality without NUMA balancing, security without randomized addresses",
    )]),
    toggle: OF_MACHINE,
};

const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";

fn read_huge_pages(task: &TaskFiles<'_>) -> Reading {
    let kernel_files = task.kernel_files();
    let mut parts = Vec::new();
    for file in ["enabled", "defrag", "shmem_enabled"] {
        if let Ok(text) = kernel_files.read(&format!("{TRANSPARENT}/{file}")) {
            parts.push((file, chosen(&text).to_owned()));
        }
    }
    match kernel_files.read("proc/sys/vm/nr_hugepages") {
        Ok(text) => parts.push(("reserved", text.trim().to_owned())),
        Err(missing) if parts.is_empty() => return Reading::missing(&missing, "this kernel has no huge pages"),
        Err(_) => {}
    }
    Reading::known(Value::table(parts))
}

fn known_huge_pages(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "with small pages memory takes 512 times the faults, and programs that jump about in much memory miss the TLB more often; with huge ones \
         it can take more memory and longer single faults",
        "Documentation/admin-guide/mm/transhuge.rst",
    )
}

fn read(task: &TaskFiles<'_>) -> Reading {
    let files = [
        ("randomised addresses", "proc/sys/kernel/randomize_va_space"),
        ("overcommit", "proc/sys/vm/overcommit_memory"),
        ("swappiness", "proc/sys/vm/swappiness"),
        ("same-page merging", "sys/kernel/mm/ksm/run"),
        ("multi-generational LRU", "sys/kernel/mm/lru_gen/enabled"),
        ("zswap", "sys/module/zswap/parameters/enabled"),
        ("NUMA balancing", "proc/sys/kernel/numa_balancing"),
    ];
    parts_of_files(task.kernel_files(), &files, "this kernel does not report it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "under memory pressure they decide what is reclaimed; NUMA balancing and same-page merging add faults; without randomised addresses \
         each run has the same layout, good or bad",
        "Documentation/admin-guide/sysctl/vm.rst; Documentation/admin-guide/sysctl/kernel.rst",
    )
}
