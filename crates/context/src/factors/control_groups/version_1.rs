//! Version 1 (Documentation/admin-guide/cgroup-v1, Documentation/scheduler/sched-bwc.rst).

use super::hierarchy::{UNLIMITED, huge_page_limits, least_share, numbers, weights};
use super::mounted::Group;
use std::collections::BTreeMap;

/// Adds what one controller allows.
pub(super) fn add(controller: &str, chain: &[Group<'_>], parts: &mut BTreeMap<String, String>) {
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            parts.insert(name.to_owned(), value);
        }
    };
    match controller {
        "cpu" => {
            let (quota, period) = quota(chain).unzip();
            put("cpu.max", quota);
            put("processor_period_us", period);
            // The root's own shares count for nothing.
            let below_root = chain.get(..chain.len().saturating_sub(1)).unwrap_or_default();
            put("cpu.weight", weights(below_root, "cpu.shares").map(|shares| format!("shares {shares}")));
            let real_time = numbers(chain, "cpu.rt_runtime_us").next();
            put("cpu.rt_runtime_us", real_time.map(|time| time.to_string()));
        }
        "cpuset" => {
            let own = |file: &str| {
                let text = chain.first().and_then(|group| group.read(file));
                text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
            };
            put("cpuset.cpus", own("cpuset.effective_cpus"));
            put("cpuset.mems", own("cpuset.effective_mems"));
        }
        "memory" => {
            let tightest = |file| numbers(chain, file).filter(|bytes| *bytes < UNLIMITED).reduce(f64::min);
            put("memory.max", tightest("memory.limit_in_bytes").map(|bytes| bytes.to_string()));
            put("memory.memsw.limit_in_bytes", tightest("memory.memsw.limit_in_bytes").map(|bytes| bytes.to_string()));
            let swappiness = numbers(chain, "memory.swappiness").next();
            put("swappiness", swappiness.map(|value| value.to_string()));
        }
        "hugetlb" => parts.extend(huge_page_limits(chain, ".limit_in_bytes")),
        "blkio" => {
            for file in ["read_bps", "write_bps", "read_iops", "write_iops"] {
                let limits = |group: &Group<'_>| group.read(&format!("blkio.throttle.{file}_device"));
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

/// The least share of a CPU that a level allows, with its period.
fn quota(chain: &[Group<'_>]) -> Option<(String, String)> {
    least_share(chain.iter().filter_map(|group| {
        let single = std::slice::from_ref(group);
        let quota = numbers(single, "cpu.cfs_quota_us").next()?;
        let period = numbers(single, "cpu.cfs_period_us").next()?;
        Some((quota, period))
    }))
}
