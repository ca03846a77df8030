//! What can be recorded on this machine, what cannot, why, and what would change that. `doctor` prints it; every
//! other command takes its gaps from the same list. What a lab needs is known by `lab`.

use crate::probes::{self, tracepoints_for};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::{Missing, declared};
use std::fmt::Display;
use std::path::Path;

/// One thing that slowpath wants of a machine, and whether it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// What for.
    pub what: &'static str,
    /// Which work cannot be done without it.
    pub needed_for: &'static [Need],
    /// How it stands: `None` when it is there, otherwise why not and what would change that.
    pub gap: Option<Unavailable>,
}

/// Which part of the work a check concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// `record`, and everything that builds on it.
    Record,
    /// `record` of running processes, of call stacks and of CPU samples.
    Profile,
    /// Better, not necessary.
    Optional,
}

/// What the checks look at; a value of its own so that machines that are not here can be tested.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Effective user id is 0 or the needed capabilities are held.
    pub privileged: bool,
    /// `/sys/kernel/btf/vmlinux` exists.
    pub btf: bool,
    /// Names of BTF typedefs `btf_trace_*` that exist; `None` when BTF cannot be read.
    pub tracepoints: Option<Vec<String>>,
    /// Changes of address spaces are reported without tracepoints of system calls.
    pub area_tree: bool,
    /// Address spaces can be walked by BPF programs.
    pub area_walk: bool,
    /// Kernel release.
    pub kernel: String,
}

/// Number of CPUs that events must be opened on.
pub(crate) fn cpus() -> i32 {
    // SAFETY: sysconf takes an integer and touches no memory of ours.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    i32::try_from(count).unwrap_or(1).max(1)
}

/// Capabilities that loading BPF, opening events and preparing a lab need (include/uapi/linux/capability.h):
/// `CAP_SYS_ADMIN` (21) covers `CAP_BPF` and `CAP_PERFMON`.
const CAP_SYS_ADMIN: u32 = 21;

fn has_capability(capability: u32) -> bool {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?.trim().to_owned();
            u64::from_str_radix(&hex, 16).ok()
        })
        .is_some_and(|bits| bits >> capability & 1 == 1)
}

/// Looks at this machine. Changes nothing.
pub fn facts() -> Facts {
    let privileged = has_capability(CAP_SYS_ADMIN);
    let btf_path = Path::new("/sys/kernel/btf/vmlinux");
    // libbpf speaks for itself on standard error when the file is missing, so it is not asked then.
    let btf = if btf_path.exists() { libbpf_rs::Btf::from_vmlinux().ok() } else { None };
    let area_tree = btf.as_ref().is_some_and(crate::kernel_events::has_area_tree);
    let area_walk = btf.as_ref().is_some_and(has_area_walk);
    let tracepoints = btf.map(|btf| {
        probes::declared()
            .flat_map(|probe| probe.tracepoints)
            .flat_map(|(_, names)| names.iter())
            .filter(|name| {
                btf.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
            })
            .map(|name| (*name).to_owned())
            .collect()
    });
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Facts {
        privileged,
        btf: btf_path.exists(),
        tracepoints,
        area_tree,
        area_walk,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

fn gap(what: &Missing, reason: impl Into<String>, remedy: &str) -> Option<Unavailable> {
    Some(what.because(reason, remedy))
}

/// Whether BPF programs can walk the areas of an address space: `bpf_iter_task_vma_new` (Linux 6.7).
pub(crate) fn has_area_walk(btf: &libbpf_rs::Btf<'_>) -> bool {
    btf.type_by_name::<libbpf_rs::btf::types::Func<'_>>("bpf_iter_task_vma_new").is_some()
}

/// What is missing where they cannot.
pub(crate) fn no_walk(what: &Missing, values: &[&dyn Display]) -> Option<Unavailable> {
    Some(what.of(values, "this kernel has no bpf_iter_task_vma_new", "a kernel of 6.7 or later"))
}

/// What needs tracepoints.
const NEEDED: [&Missing; 5] =
    [&declared::PROCESSES, &declared::BLOCK_IO, &declared::WAIT_EVENTS, &declared::MEMORY_WORK, &declared::SYSCALLS];

/// Draws the conclusions: one check a line of `doctor`.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check = |what: &Missing, needed_for: &'static [Need], ok: bool, missing: Option<Unavailable>| {
        checks.push(Check { what: what.name, needed_for, gap: if ok { None } else { missing } });
    };
    check(
        &declared::PRIVILEGE,
        &[Need::Record],
        facts.privileged,
        gap(&declared::PRIVILEGE, "loading BPF and opening events need CAP_SYS_ADMIN", "run it with sudo"),
    );
    check(
        &declared::KERNEL_TYPES,
        &[Need::Record],
        facts.btf,
        gap(
            &declared::KERNEL_TYPES,
            "/sys/kernel/btf/vmlinux is missing",
            "a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian's are)",
        ),
    );
    let has = |name: &str| facts.tracepoints.as_ref().is_some_and(|all| all.iter().any(|one| one == name));
    let missing = |names: &[&str]| names.iter().filter(|name| !has(name)).copied().collect::<Vec<_>>().join(", ");
    let why = |names: &[&str]| match &facts.tracepoints {
        None => "the kernel's BTF cannot be read".to_owned(),
        Some(_) => format!("this kernel has no {}", missing(names)),
    };
    let [processes, block_io, waits, memory_work, calls] = NEEDED.map(tracepoints_for);
    check(
        &declared::PROCESSES,
        &[Need::Record],
        processes.iter().all(|name| has(name)),
        gap(&declared::PROCESSES, why(&processes), "a kernel of 5.18 or later with CONFIG_DEBUG_INFO_BTF=y"),
    );
    check(
        &declared::BLOCK_IO,
        &[Need::Optional],
        block_io.iter().all(|name| has(name)),
        gap(&declared::BLOCK_IO, why(&block_io), "a newer kernel; the rest works without"),
    );
    check(
        &declared::WAIT_EVENTS,
        &[Need::Optional],
        waits.iter().all(|name| has(name)),
        gap(&declared::WAIT_EVENTS, why(&waits), "a kernel of 5.18 or later; the rest works without"),
    );
    check(
        &declared::MEMORY_WORK,
        &[Need::Optional],
        memory_work.iter().all(|name| has(name)),
        gap(
            &declared::MEMORY_WORK,
            why(&memory_work),
            "a kernel with CONFIG_COMPACTION=y and CONFIG_TRANSPARENT_HUGEPAGE=y; the rest works without",
        ),
    );
    check(&declared::RUNNING, &[Need::Profile], facts.area_walk, no_walk(&declared::RUNNING, &[]));
    let has_calls = calls.iter().all(|name| has(name));
    check(
        &declared::MAPPINGS,
        &[Need::Optional],
        facts.area_walk && (facts.area_tree || has_calls),
        if facts.area_walk {
            gap(&declared::MAPPINGS, why(&calls), "a kernel of 6.7 or later")
        } else {
            no_walk(&declared::MAPPINGS, &[])
        },
    );
    check(
        &declared::SYSCALLS,
        &[Need::Optional],
        has_calls,
        gap(&declared::SYSCALLS, why(&calls), "a kernel with system-call tracepoints and CONFIG_DEBUG_INFO_BTF=y"),
    );
    checks
}

/// The gaps that stand in the way of `need`.
pub fn gaps(checks: &[Check], need: Need) -> Vec<Unavailable> {
    checks.iter().filter(|check| check.needed_for.contains(&need)).filter_map(|check| check.gap.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            privileged: true,
            btf: true,
            tracepoints: Some(NEEDED.map(tracepoints_for).concat().iter().map(|name| (*name).to_owned()).collect()),
            area_tree: true,
            area_walk: true,
            kernel: "6.1.0".to_owned(),
        }
    }

    #[test]
    fn a_machine_that_has_everything_has_no_gaps() {
        assert!(checks(&good()).iter().all(|check| check.gap.is_none()));
    }

    #[test]
    fn a_kernel_without_btf_cannot_record_and_is_told_which_option_is_missing() {
        let facts = Facts { btf: false, tracepoints: None, ..good() };
        let gaps = gaps(&checks(&facts), Need::Record);
        assert!(gaps.iter().any(|gap| gap.remedy.contains("CONFIG_DEBUG_INFO_BTF")));
    }

    #[test]
    fn an_older_kernel_without_readahead_events_still_records() {
        let facts = Facts {
            tracepoints: Some(tracepoints_for(&declared::PROCESSES).iter().map(|name| (*name).to_owned()).collect()),
            ..good()
        };
        assert!(gaps(&checks(&facts), Need::Record).is_empty());
        let gaps = gaps(&checks(&facts), Need::Optional);
        assert_eq!(gaps.len(), 4);
        assert!(gaps[1].reason.ends_with("no sched_switch, sched_waking"), "{}", gaps[1].reason);
    }

    #[test]
    fn a_kernel_that_cannot_walk_address_spaces_records_launches_and_no_stacks() {
        let checks = checks(&Facts { area_walk: false, ..good() });
        assert!(gaps(&checks, Need::Record).is_empty());
        assert_eq!(gaps(&checks, Need::Profile)[0].remedy, "a kernel of 6.7 or later");
        assert_eq!(gaps(&checks, Need::Optional)[0].what, "mappings");
    }

    #[test]
    fn mappings_are_reported_by_the_kernels_own_events_or_by_tracepoints_of_system_calls() {
        let missing = |facts: &Facts| -> Vec<String> {
            gaps(&checks(facts), Need::Optional).into_iter().map(|gap| gap.what).collect()
        };
        let others = NEEDED.iter().filter(|what| what.name != declared::SYSCALLS.name);
        let others: Vec<String> = others.flat_map(|what| tracepoints_for(what)).map(str::to_owned).collect();
        let facts = Facts { tracepoints: Some(others.clone()), ..good() };
        assert_eq!(missing(&facts), ["opens, reads and memory calls"]);
        assert_eq!(missing(&Facts { area_tree: false, ..good() }), Vec::<String>::new());
        let neither = Facts { area_tree: false, tracepoints: Some(others), ..good() };
        assert_eq!(missing(&neither), ["mappings", "opens, reads and memory calls"]);
    }

    #[test]
    fn without_privilege_the_remedy_is_sudo() {
        let facts = Facts { privileged: false, ..good() };
        assert_eq!(gaps(&checks(&facts), Need::Record)[0].remedy, "run it with sudo");
    }
}
