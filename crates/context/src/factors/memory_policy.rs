//! On which memory nodes a process gets memory (numa(7)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;
use slowpath_process::cpu_list;
use std::collections::BTreeSet;

/// The factor.
pub const MEMORY_POLICY: Factor = Factor {
    name: "memory_policy",
    former: Former::NONE,
    title: "NUMA memory policy",
    what: "The NUMA nodes from which the process takes memory (set_mempolicy, mbind, numactl): local, preferred, \
           bound or interleaved.",
    why: "Memory of another node takes 1.5 to 2 times as long to reach, and the nodes share the bandwidth between \
          them.",
    by_hand: "`cat /proc/PID/numa_maps`: the second word of each line",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "take its memory from the nodes of the fast context",
        "fairness: those nodes have less for others",
    )]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    match task.kernel_files().read("sys/devices/system/node/online") {
        Ok(nodes) if !nodes.trim().contains(['-', ',']) => return Reading::absent("this machine has one memory node"),
        Ok(_) => {}
        Err(missing) => return Reading::missing(&missing, "this kernel knows no memory nodes"),
    }
    // Walks the page tables: only where there is something to learn.
    let policies = task.file("numa_maps").map(|text| {
        let words: BTreeSet<String> =
            text.lines().filter_map(|line| Some(line.split_whitespace().nth(1)?.to_owned())).collect();
        Value::Set(words)
    });
    Reading::of(policies, "this kernel does not report it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "memory of another node takes 1.5 to 2 times as long to reach, and shares its bandwidth",
        "numa(7); Documentation/admin-guide/mm/numa_memory_policy.rst",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::User, Metric::Cpu],
    mechanism: "memory of another node takes longer to reach",
    sham: "the policy of the fast context, set in the same way",
};

/// Words of `numa_maps` and their modes (include/uapi/linux/mempolicy.h; mm/mempolicy.c, `policy_modes`).
const MODES: [(&str, u32); 7] = [
    ("default", 0),
    ("prefer", 1),
    ("bind", 2),
    ("interleave", 3),
    ("local", 4),
    ("prefer (many)", 5),
    ("weighted interleave", 6),
];

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let words = match value {
            Some(Value::Set(words)) => words,
            _ => return Err("this machine has one memory node".to_owned()),
        };
        let mut words = words.iter();
        let (Some(word), None) = (words.next(), words.next()) else {
            return Err("parts of its memory have policies of their own, which the program asked for itself".to_owned());
        };
        let (name, nodes) = word.split_once(':').unwrap_or((word, ""));
        let mode = MODES.iter().find(|(known, _)| *known == name).ok_or_else(|| format!("{word:?} is no policy"))?.1;
        let nodes = cpu_list(nodes).ok_or_else(|| format!("{word:?} names no nodes"))?;
        Ok(vec![Setting::Step(ContextStep::MemoryPolicy { mode, nodes })])
    })
}
