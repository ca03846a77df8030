//! On which CPUs and memory nodes a thread may run (sched_setaffinity(2), cpuset(7)).

use super::control_groups::explains_affinity;
use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, SYS_NICE, Setting, Toggle, both, or_none};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;
use slowpath_process::cpu_list;

/// The factor.
pub const AFFINITY: Factor = Factor {
    name: "affinity",
    former: Former { parts: &[("processors", "cpus"), ("memory_nodes", "mems")], ..Former::NONE },
    title: "CPUs and NUMA nodes allowed",
    what: "The CPUs on which the thread may run and the NUMA nodes from which it may take memory: its own mask \
           (sched_setaffinity) within the cpuset of its cgroup.",
    why: "Threads that share fewer CPUs wait for each other, and for others there. CPUs can also be slower than \
          others: small cores, far from the memory, or busy with interrupts.",
    by_hand: "`grep -E '^(Cpus|Mems)_allowed_list' /proc/PID/status`; `taskset -cp PID`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "allow it the CPUs of the fast context",
        "fairness: CPUs that were reserved for others no longer are",
    )]),
    toggle: Toggle::Parts(parts),
};

/// What a launch needs to get a list, or why it cannot.
type Set = fn(&Contrast<'_>, Option<&str>) -> Result<Vec<Setting>, String>;

/// A list that a thread may use.
struct AllowedList {
    /// The part.
    name: &'static str,
    /// Its field in /proc/PID/status.
    field: &'static str,
    /// The part of the cgroups that it can follow from.
    of_group: &'static str,
    /// How a launch gets it; none where only a cgroup gives it.
    set: Option<Set>,
}

const LISTS: [AllowedList; 2] = [
    AllowedList { name: "cpus", field: "Cpus_allowed_list", of_group: "cpuset.cpus", set: Some(set_cpus) },
    AllowedList { name: "mems", field: "Mems_allowed_list", of_group: "cpuset.mems", set: None },
];

fn read(task: &TaskFiles<'_>) -> Reading {
    let parts: Result<Vec<(&str, String)>, _> =
        LISTS.iter().map(|list| Ok((list.name, task.status(list.field)?))).collect();
    Reading::of(parts.map(Value::table), "this kernel does not report it")
}

/// CPUs in a list such as `0-3,8`.
fn count(list: &str) -> Option<usize> {
    numbers(list).map(|numbers| numbers.len())
}

/// The numbers in such a list; none where it names none, for a thread may always run somewhere.
fn numbers(list: &str) -> Option<Vec<u32>> {
    cpu_list(list).filter(|numbers| !numbers.is_empty())
}

fn known(a: &Value, b: &Value) -> Known {
    let cpus = |value: &Value| value.part("cpus").and_then(count);
    let weight = if cpus(a) == cpus(b) { Weight::Moderate } else { Weight::Heavy };
    Known::new(
        weight,
        "threads that may use fewer CPUs wait for each other; those of another kind (small, far from the memory, shared with \
         interrupts) are slower",
        "sched_setaffinity(2); cpuset(7)",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::RunDelay, Metric::InvoluntarySwitches],
    mechanism: "threads that may use fewer CPUs wait for each other and for others there",
    sham: "the CPUs of the fast context, set in the same way",
};

fn set_cpus(contrast: &Contrast<'_>, list: Option<&str>) -> Result<Vec<Setting>, String> {
    let processors = list.and_then(numbers).ok_or("it is no list of CPUs")?;
    let online = contrast.here.value("affinity").and_then(|own| own.part("cpus")).and_then(numbers);
    match online {
        Some(online) if processors.iter().any(|one| !online.contains(one)) && !contrast.here.may(SYS_NICE) => {
            Err("the caller may not use all of these CPUs itself".to_owned())
        }
        _ => Ok(vec![Setting::Step(ContextStep::Affinity { processors })]),
    }
}

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let part = |(name, fast, slow): (&str, Option<&str>, Option<&str>)| {
        let list = LISTS.iter().find(|list| list.name == name);
        let outcome = match list.map(|list| (list, list.set)) {
            Some((list, _)) if explains_affinity(contrast, list.name, list.of_group) => {
                Outcome::Follows("it follows from the cgroup".to_owned())
            }
            Some((_, Some(set))) => both(set(contrast, fast), set(contrast, slow), &HOW),
            _ => Outcome::Not(
                "only a cgroup (cpuset.mems) restricts memory nodes, and the recorded one does not say so".to_owned(),
            ),
        };
        DifferingPart::whole(or_none(fast), or_none(slow), outcome).named(name)
    };
    contrast.differing().into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_list_are_counted() {
        assert_eq!(count("0-1"), Some(2));
        assert_eq!(count("0,2-4,7"), Some(5));
        assert_eq!((count(""), count("3-1"), count("x")), (None, None, None));
    }

    #[test]
    fn fewer_cpus_weigh_more_than_others() {
        let of = |list: &str| Value::table([("cpus", list)]);
        assert_eq!(known(&of("0-3"), &of("0")).weight, Weight::Heavy);
        assert_eq!(known(&of("0-3"), &of("4-7")).weight, Weight::Moderate);
    }
}
