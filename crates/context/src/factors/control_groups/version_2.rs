//! Version 2 (Documentation/admin-guide/cgroup-v2.rst).

use super::hierarchy::{huge_page_limits, least_share, numbers, weights};
use super::mounted::Group;
use std::collections::BTreeMap;

/// Adds what the groups allow.
pub(super) fn add(chain: &[Group<'_>], parts: &mut BTreeMap<String, String>) {
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            parts.insert(name.to_owned(), value);
        }
    };
    let own = |file: &str| {
        let text = chain.first().and_then(|group| group.read(file));
        text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    // A group without the controller has what the next one above has that has it.
    let nearest = |file: &str| {
        let text = chain.iter().find_map(|group| group.read(file));
        text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let (quota, period) = quota(chain).unzip();
    put("cpu.max", quota);
    put("processor_period_us", period);
    put("cpu.weight", weights(chain, "cpu.weight").map(|weights| format!("weight {weights}")));
    put("cpu.idle", own("cpu.idle").filter(|idle| idle != "0"));
    put("cpuset.cpus", nearest("cpuset.cpus.effective"));
    put("cpuset.mems", nearest("cpuset.mems.effective"));
    for file in ["memory.max", "memory.high", "memory.swap.max"] {
        put(file, numbers(chain, file).reduce(f64::min).map(|bytes| bytes.to_string()));
    }
    // What new groups have says nothing: without the controller it is the same.
    let storage = weights(chain, "io.weight").filter(|weights| weights.split(" > ").any(|one| one != "100"));
    put("io.weight", storage.map(|weights| format!("weight {weights}")));
    let limits: Vec<String> = chain
        .iter()
        .filter_map(|group| group.read("io.max"))
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    put("io.max", (!limits.is_empty()).then(|| limits.join(", ")));
    parts.extend(huge_page_limits(chain, ".max"));
}

/// The least share of a CPU that a level allows (`cpu.max`: `QUOTA PERIOD`), with its period.
fn quota(chain: &[Group<'_>]) -> Option<(String, String)> {
    least_share(chain.iter().filter_map(|group| {
        let text = group.read("cpu.max")?;
        let mut words = text.split_whitespace();
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    }))
}
