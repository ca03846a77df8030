//! On which processors and memory nodes a thread may run (sched_setaffinity(2), cpuset(7)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const AFFINITY: Factor = Factor {
    name: "affinity",
    title: "allowed processors and memory",
    scope: Scope::Thread,
    moves: false,
    read,
    known,
};

fn read(subject: &Subject<'_>) -> Reading {
    let fields = [("Cpus_allowed_list", "processors"), ("Mems_allowed_list", "memory_nodes")];
    let parts: Result<Vec<(&str, String)>, _> =
        fields.iter().map(|(field, name)| Ok((*name, subject.status(field)?))).collect();
    Reading::of(parts.map(Value::table), "this kernel does not tell it")
}

/// Processors in a list such as `0-3,8`.
fn count(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (last >= first).then(|| last - first + 1)
        })
        .sum()
}

fn known(a: &Value, b: &Value) -> Known {
    let processors = |value: &Value| value.part("processors").and_then(count);
    let weight = if processors(a) == processors(b) { Weight::Moderate } else { Weight::Heavy };
    Known::new(
        weight,
        "threads that may use fewer processors wait for each other; those of another kind (small, far from the memory, shared with \
         interrupts) are slower",
        "sched_setaffinity(2); cpuset(7)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_a_list_are_counted() {
        assert_eq!(count("0-1"), Some(2));
        assert_eq!(count("0,2-4,7"), Some(5));
        assert_eq!((count(""), count("3-1"), count("x")), (None, None, None));
    }

    #[test]
    fn fewer_processors_weigh_more_than_others() {
        let of = |list: &str| Value::table([("processors", list)]);
        assert_eq!(known(&of("0-3"), &of("0")).weight, Weight::Heavy);
        assert_eq!(known(&of("0-3"), &of("4-7")).weight, Weight::Moderate);
    }
}
