//! The namespaces of a process (namespaces(7)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::Toggle;

/// The factor.
pub const NAMESPACES: Factor = Factor {
    name: "namespaces",
    former: Former::NONE,
    title: "namespaces",
    what: "Which mounts, network, process ids, users, IPC objects, host name, cgroups and clocks the process sees \
           (namespaces(7)).",
    why: "A network namespace can add a virtual device and its packet filter to each packet. The others cost \
          nothing once they are made.",
    by_hand: "`lsns -p PID`; `ls -l /proc/PID/ns`",
    scope: Scope::Process,
    lasts: Lasts::Boot,
    read,
    known,
    remedies: Remedies::Of(&[("start it in the namespaces of the fast context", "security: it sees and reaches more")]),
    toggle: Toggle::Never(WHY_NEVER),
};

const WHY_NEVER: &str = "namespaces are of the processes that live in them: a launch stays in the caller's";

fn read(task: &TaskFiles<'_>) -> Reading {
    let names = match task.list("ns") {
        Ok(names) => names,
        Err(missing) => return Reading::missing(&missing, "this kernel has no namespaces"),
    };
    // What children will get, and not the process itself.
    let names = names.into_iter().filter(|name| !name.ends_with("_for_children"));
    let links: Result<Vec<(String, String)>, _> = names
        .map(|name| {
            let link = task.link(&format!("ns/{name}"))?;
            Ok((name, link.split_once(':').map_or(link.clone(), |(_, number)| number.to_owned())))
        })
        .collect();
    Reading::of(links.map(Value::table), "this kernel has no namespaces")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "a network namespace can add a virtual device and its packet filter to each packet; the others cost nothing once they are made",
        "namespaces(7); network_namespaces(7)",
    )
}
