//! Which events a kernel has for the programs of probes, and which programs are left out because others tell the same.

use libbpf_rs::Btf;

/// What the kernel reports, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Changes of address spaces by the events of their tree.
    pub(crate) tells_area_tree: bool,
    /// The end of a process while it has its memory.
    pub(crate) exit_has_memory: bool,
}

/// Sections of the programs that tell where a fault begins, on architectures with such tracepoints.
pub(crate) const FAULT_ENTRY: &str = "tp_btf/page_fault_";

/// Sections of the programs that tell changes of address spaces without the tracepoints of system calls.
const AREA_TREE: [&str; 2] = ["tp_btf/ma_write", "tp_btf/mmap_lock_released"];

/// Whether the kernel reports changes of address spaces by the events of their tree. Before areas had locks of their own (kernel 6.4),
/// each page fault of the machine gave back the lock that those events tell of.
pub(crate) fn has_area_tree(btf: &Btf<'_>) -> bool {
    let is_lock =
        |field: &libbpf_rs::btf::types::StructMember<'_>| field.name.is_some_and(|name| name == "vm_lock_seq");
    let area = btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("vm_area_struct");
    let has_own_locks = area.is_some_and(|area| area.iter().any(|field| is_lock(&field)));
    has_own_locks && AREA_TREE.iter().all(|section| kernel_has(section, btf))
}

/// Whether a program that reports changes of address spaces is left out: one at system calls where the kernel's tree reports them, one at
/// the tree where it does not.
pub(crate) fn is_replaced_by_tree(section: &str, kernel: Kernel) -> bool {
    if kernel.tells_area_tree { is_at_calls(section) } else { is_at_tree(section) }
}

/// Whether a program is at the tree of an address space.
pub(crate) fn is_at_tree(section: &str) -> bool {
    AREA_TREE.contains(&section)
}

/// Whether the running kernel has what a program's section asks for; a program without it is not loaded.
pub(crate) fn kernel_has(section: &str, btf: &Btf<'_>) -> bool {
    match section.strip_prefix("tp_btf/") {
        Some(name) => btf.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>(&format!("btf_trace_{name}")).is_some(),
        None => true,
    }
}

/// Whether a section is of a program at the entry or return of all system calls.
pub(crate) fn is_at_calls(section: &str) -> bool {
    matches!(section, "tp_btf/sys_enter" | "tp_btf/sys_exit")
}
