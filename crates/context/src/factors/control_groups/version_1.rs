//! Version 1 (Documentation/admin-guide/cgroup-v1, Documentation/scheduler/sched-bwc.rst).

use super::hierarchy::{Chain, numbers, weights};
use crate::place::Place;
use std::collections::BTreeMap;

/// What `memory.limit_in_bytes` shows where there is none: LONG_MAX rounded down to pages, of 4 or of 64 KiB.
const UNLIMITED: f64 = (i64::MAX / 65536 * 65536) as f64;

/// Adds what one controller allows.
pub(super) fn add(place: &Place, controller: &str, chain: &Chain, parts: &mut BTreeMap<String, String>) {
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            parts.insert(name.to_owned(), value);
        }
    };
    match controller {
        "cpu" => {
            put("processor_quota", quota(place, chain));
            // The root's own shares count for nothing.
            let below_root = chain.get(..chain.len().saturating_sub(1)).unwrap_or_default().to_vec();
            put("processor_weight", weights(place, &below_root, "cpu.shares").map(|shares| format!("shares {shares}")));
            let real_time = numbers(place, chain, "cpu.rt_runtime_us").next();
            put("real_time_us", real_time.map(|time| time.to_string()));
        }
        "cpuset" => {
            let own = |file: &str| {
                let text = chain.first().and_then(|group| place.read(&format!("{group}/{file}")).ok());
                text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
            };
            put("processors", own("cpuset.effective_cpus"));
            put("memory_nodes", own("cpuset.effective_mems"));
        }
        "memory" => {
            let tightest = |file| numbers(place, chain, file).filter(|bytes| *bytes < UNLIMITED).reduce(f64::min);
            put("memory_limit", tightest("memory.limit_in_bytes").map(|bytes| bytes.to_string()));
            put("memory_and_swap_limit", tightest("memory.memsw.limit_in_bytes").map(|bytes| bytes.to_string()));
            let swappiness = numbers(place, chain, "memory.swappiness").next();
            put("swappiness", swappiness.map(|value| value.to_string()));
        }
        "blkio" => {
            for file in ["read_bps", "write_bps", "read_iops", "write_iops"] {
                let limits = |group: &String| place.read(&format!("{group}/blkio.throttle.{file}_device")).ok();
                let lines: Vec<String> = chain
                    .iter()
                    .filter_map(limits)
                    .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
                    .collect();
                put(&format!("io_{file}"), (!lines.is_empty()).then(|| lines.join(", ")));
            }
        }
        _ => {}
    }
}

/// The least share of a processor that a level allows, in percent of one.
fn quota(place: &Place, chain: &Chain) -> Option<String> {
    let of_level = |group: &String| {
        let single = std::slice::from_ref(group).to_vec();
        let quota = numbers(place, &single, "cpu.cfs_quota_us").next().filter(|quota| *quota > 0.0)?;
        let period = numbers(place, &single, "cpu.cfs_period_us").next().filter(|period| *period > 0.0)?;
        Some(quota / period * 100.0)
    };
    let least = chain.iter().filter_map(of_level).reduce(f64::min)?;
    Some(format!("{least:.1} % of a processor"))
}
