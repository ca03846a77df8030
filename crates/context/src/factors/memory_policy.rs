//! On which memory nodes a process gets memory (numa(7)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;
use std::collections::BTreeSet;

/// The factor.
pub const MEMORY_POLICY: Factor =
    Factor { name: "memory_policy", title: "NUMA policy", scope: Scope::Process, moves: false, read, known };

fn read(subject: &Subject<'_>) -> Reading {
    match subject.place().read("sys/devices/system/node/online") {
        Ok(nodes) if !nodes.trim().contains(['-', ',']) => return Reading::absent("this machine has one memory node"),
        Ok(_) => {}
        Err(missing) => return Reading::missing(&missing, "this kernel knows no memory nodes"),
    }
    // Walks the page tables: only where there is something to learn.
    let policies = subject.file("numa_maps").map(|text| {
        let words: BTreeSet<String> =
            text.lines().filter_map(|line| Some(line.split_whitespace().nth(1)?.to_owned())).collect();
        Value::Set(words)
    });
    Reading::of(policies, "this kernel does not tell it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "memory of another node takes 1.5 to 2 times as long to reach, and shares its bandwidth",
        "numa(7); Documentation/admin-guide/mm/numa_memory_policy.rst",
    )
}
