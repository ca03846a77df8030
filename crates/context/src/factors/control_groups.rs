//! What cgroups allow a process: CPU time, memory, I/O, CPUs; version 1 and 2 in one vocabulary.
//!
//! A limit counts wherever it stands between the group and the root, so the tightest is reported, and not the groups' names.

mod applied;
mod hierarchy;
mod mounted;
mod own_groups;
mod version_1;
mod version_2;

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::remedy::Remedy;
use crate::task_files::TaskFiles;
use crate::toggles::Toggle;
pub(crate) use applied::explains_affinity;
use hierarchy::Groups;
pub(crate) use own_groups::OwnGroups;
use std::collections::BTreeMap;

/// Former names of parts: today both versions use the names of the files of cgroup v2.
const FORMER_PARTS: [(&str, &str); 12] = [
    ("processor_quota", "cpu.max"),
    ("processor_weight", "cpu.weight"),
    ("processors", "cpuset.cpus"),
    ("memory_limit", "memory.max"),
    ("memory_high", "memory.high"),
    ("swap_limit", "memory.swap.max"),
    ("memory_and_swap_limit", "memory.memsw.limit_in_bytes"),
    ("memory_nodes", "cpuset.mems"),
    ("processor_idle", "cpu.idle"),
    ("real_time_us", "cpu.rt_runtime_us"),
    ("io_weight", "io.weight"),
    ("io_limits", "io.max"),
];

/// Limits and weights.
pub const CONTROL_GROUPS: Factor = Factor {
    name: "control_groups",
    former: Former { names: &[], parts: &FORMER_PARTS, ends: &[("cpu.max", " % of a processor", " % of a CPU")] },
    title: "cgroup limits",
    what: "What the cgroups of the process allow, v1 and v2 alike: cpu.max, cpu.weight, cpuset.cpus, memory.max, \
           memory.high, io.max and the like. Of each limit the tightest between its cgroup and the root counts.",
    why: "A used-up CPU quota throttles all threads of the group until the next period. At memory.high or \
          memory.max the program reclaims its own pages, those of files too, and reads them again. Weights divide a \
          contended CPU or disk between groups and not between programs.",
    by_hand: "`cat /proc/PID/cgroup`, then the files of that cgroup and of those above it, such as `cat /sys/fs/cgroup/GROUP/cpu.max`",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::OfPart(remedies),
    toggle: Toggle::Parts(applied::parts),
};

/// How long tasks of the process's groups waited for what was short, lately.
pub const PRESSURE: Factor = Factor {
    name: "pressure",
    former: Former::NONE,
    title: "pressure (PSI): share of the last 10 s in which tasks waited",
    what: "Share of the last 10 s in which at least one task waited for CPU, I/O or memory: `some avg10` of the \
           process's cgroup v2, else of the machine.",
    why: "Whatever needs a resource that is short waits for it. Readings of two moments show the load of these \
          moments and no property of a context: a fair comparison needs both at once.",
    by_hand: "`grep some /proc/pressure/*`, or `GROUP/cpu.pressure` of its cgroup v2",
    scope: Scope::Process,
    lasts: Lasts::Moment,
    read: read_pressure,
    known: known_pressure,
    remedies: Remedies::Of(&[(
        "compare both contexts at the same time; give the cgroup a larger share of what is short (cpu.weight, \
         io.weight, memory.low)",
        "fairness: others wait longer",
    )]),
    toggle: Toggle::Never("it is what others do at the moment"),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let groups = match Groups::of(task) {
        Ok(groups) => groups,
        Err(missing) => return Reading::missing(&missing, "this kernel has no cgroups"),
    };
    let mut parts = BTreeMap::new();
    for (controller, chain) in &groups.version_1 {
        version_1::add(controller, chain, &mut parts);
    }
    if let Some(chain) = &groups.version_2 {
        version_2::add(chain, &mut parts);
    }
    Reading::known(Value::Table(parts))
}

fn known(a: &Value, b: &Value) -> Known {
    let differs = |name: &str| a.part(name) != b.part(name);
    if ["cpu.max", "cpuset.cpus", "memory.max", "memory.high"].into_iter().any(differs) {
        return Known::new(
            Weight::Heavy,
            "a used-up quota throttles all threads of the group until the next period; at its memory limit a program reclaims its own \
             pages at each fault",
            "Documentation/scheduler/sched-bwc.rst; Documentation/admin-guide/cgroup-v2.rst",
        );
    }
    Known::new(
        Weight::Moderate,
        "where a CPU or a disk is contended, weights divide it between groups and not between programs",
        "Documentation/admin-guide/cgroup-v2.rst",
    )
}

/// `some` of `/proc/pressure`, or of the cgroup v2 where it has the file: `some avg10=0.00 avg60=...`
/// (Documentation/accounting/psi.rst).
fn read_pressure(task: &TaskFiles<'_>) -> Reading {
    let group = Groups::of(task).ok().and_then(|groups| groups.version_2?.into_iter().next());
    let read = |resource: &str| {
        let of_group = group.as_ref().and_then(|group| group.read(&format!("{resource}.pressure")));
        let text = of_group.map_or_else(|| task.kernel_files().read(&format!("proc/pressure/{resource}")), Ok)?;
        let share =
            text.lines().find_map(|line| line.strip_prefix("some avg10=")?.split(' ').next().map(str::to_owned));
        Ok(share.unwrap_or_default())
    };
    let parts: Result<Vec<(&str, String)>, _> =
        ["cpu", "io", "memory"].into_iter().map(|resource| Ok((resource, read(resource)?))).collect();
    Reading::of(parts.map(Value::table), "this kernel measures no pressure (CONFIG_PSI, psi=1)")
}

fn known_pressure(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "tasks waited for a contended resource at that time: two moments are compared, and a fair comparison needs both at once",
        "Documentation/accounting/psi.rst",
    )
}
/// What can be done about a limit of the slow cgroup, by the controller that it is of.
fn remedies(part: &str) -> Vec<Remedy> {
    let controller = part.split(['.', '_']).next().unwrap_or_default();
    let (what, price) = match (part, controller) {
        ("cpu.max" | "processor_period_us", _) => (
            "raise the quota of its cgroup (cpu.max, cpu.cfs_quota_us), or limit its threads to the number of CPUs in the quota",
            "fairness: others on these CPUs get less",
        ),
        ("cpu.weight" | "cpu.idle", _) => ("raise the weight of its cgroup", "fairness: sibling cgroups get less"),
        (_, "cpuset") => {
            ("allow its cgroup more CPUs or nodes", "fairness: CPUs that were reserved for others no longer are")
        }
        (_, "memory" | "swappiness") => {
            ("raise the memory limit of its cgroup", "memory: others on the machine have less")
        }
        (_, "io") => ("raise the I/O limit of its cgroup", "fairness: others wait longer for the same storage"),
        _ => ("give its cgroup the limits of the fast one", "fairness: others on the machine get less"),
    };
    vec![Remedy::new(what, price)]
}
