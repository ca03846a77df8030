//! The kernel's threads for memory: which there are, their CPU time, and the counters that tell what they had to do.
//!
//! Owns finding and reading them. They are threads of the kernel by their flag and by their parent, not by name alone: anybody may
//! call a program `kswapd0`. Leaves who caused their work to `analysis`.

use slowpath_process::StatLine;
use slowpath_recording::{MemoryThread, MemoryThreads};
use slowpath_tables::missing::declared;
use slowpath_tables::{Nanos, Unavailable};
use std::collections::BTreeMap;
use std::fs;

/// Flag of the kernel's own threads, in field 9 of `/proc/PID/stat` (include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// `kthreadd`, which makes them (init/main.c).
const KTHREADD: u32 = 2;

/// Names, with a number of the node behind the first two.
const NAMES: [&str; 4] = ["kswapd", "kcompactd", "khugepaged", "ksmd"];

/// Counters of `/proc/vmstat` (mm/vmstat.c) that are kept, by the beginning of their names.
const COUNTERS: [&str; 5] = ["pgscan_", "pgsteal_", "compact_", "thp_", "allocstall_"];

/// Pages that were given out, one counter a zone.
const ALLOCATED: &str = "pgalloc_";

/// Pids of the threads, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct MemoryThreadPids(Vec<(String, u32)>);

/// Counters of one moment.
#[derive(Debug)]
pub(crate) struct MemoryCounters {
    /// Name, pid, CPU time.
    threads: Vec<(String, u32, u64)>,
    counters: BTreeMap<String, u64>,
}

impl MemoryThreadPids {
    /// Looks for them in `/proc`.
    pub(crate) fn find() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let name = |pid: u32| name_of_thread(&StatLine::of(pid)?);
        let mut found: Vec<(String, u32)> = pids.filter_map(|pid| Some((name(pid)?, pid))).collect();
        found.sort();
        Self(found)
    }

    /// Why what they do is not known, where none is seen.
    pub(crate) fn gap(&self) -> Option<Unavailable> {
        self.0.is_empty().then(|| {
            let reason = "/proc shows none of kswapd, kcompactd and khugepaged";
            declared::KERNEL_THREADS
                .because(reason, "record outside of a container, where /proc shows the kernel's threads")
        })
    }

    /// Their CPU time and the counters of the machine; `None` where there are no such threads, or nothing is kept of them.
    pub(crate) fn counters(&self, vmstat: &str) -> Option<MemoryCounters> {
        let time = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        let threads: Vec<_> = self.0.iter().filter_map(|(name, pid)| Some((name.clone(), *pid, time(*pid)?))).collect();
        (!threads.is_empty()).then(|| MemoryCounters { threads, counters: counters(vmstat) })
    }
}

impl MemoryCounters {
    /// By how much they grew. A thread that is not there at both times is left out.
    pub(crate) fn since(&self, before: &Self) -> MemoryThreads {
        let threads = self.threads.iter().filter_map(|(name, pid, time)| {
            let (.., began) = before.threads.iter().find(|(_, known, _)| known == pid)?;
            Some(MemoryThread { name: name.clone(), pid: *pid, cpu_time: Nanos(time.saturating_sub(*began)) })
        });
        let grown = self
            .counters
            .iter()
            .filter_map(|(name, now)| Some((name.clone(), now.saturating_sub(*before.counters.get(name)?))));
        MemoryThreads { threads: threads.collect(), counters: grown.collect() }
    }
}

/// The name in `/proc/PID/stat`, for one of these threads.
fn name_of_thread(stat: &StatLine) -> Option<String> {
    let name = std::str::from_utf8(stat.name()).ok()?;
    let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    if !NAMES.iter().any(|one| name.strip_prefix(one).is_some_and(is_number)) {
        return None;
    }
    let flags = stat.field::<u64>(9)?;
    (stat.parent()? == KTHREADD && flags & PF_KTHREAD != 0).then(|| name.to_owned())
}

/// The counters of `/proc/vmstat` that are kept.
fn counters(vmstat: &str) -> BTreeMap<String, u64> {
    let mut kept = BTreeMap::new();
    let lines = vmstat.lines().filter_map(|line| line.split_once(' '));
    for (name, value) in lines.filter_map(|(name, value)| Some((name, value.trim().parse::<u64>().ok()?))) {
        if name.starts_with(ALLOCATED) {
            let sum: &mut u64 = kept.entry("pgalloc".to_owned()).or_default();
            *sum = sum.saturating_add(value);
        } else if COUNTERS.iter().any(|beginning| name.starts_with(beginning)) {
            kept.insert(name.to_owned(), value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_kernel_is_known_by_its_flag_and_parent_and_not_by_its_name_alone() {
        let stat = |name: &str, parent: u32, flags: u64| {
            let line = format!("65 ({name}) S {parent} 0 0 0 -1 {flags} 0 0 0 0 0 0");
            name_of_thread(&StatLine::parse(line.as_bytes()).unwrap())
        };
        assert_eq!(stat("kswapd0", 2, 0x22_0840).as_deref(), Some("kswapd0"));
        assert_eq!(stat("khugepaged", 2, 0x20_0040).as_deref(), Some("khugepaged"));
        assert_eq!(stat("khugepaged", 1, 0x20_0040), None);
        assert_eq!(stat("kcompactd0", 2, 0x40), None);
        assert_eq!(stat("kswapd_fake", 2, 0x20_0040), None);
        assert_eq!(stat("kworker/0:1", 2, 0x20_0040), None);
        assert_eq!(stat("a) S 2 0 0 0 -1 2097216 (kswapd0", 1, 0x20_0040), None);
        assert_eq!(name_of_thread(&StatLine::parse(b"65 (kswapd0) S 2").unwrap()), None);
    }

    #[test]
    fn counters_of_zones_are_added_up_and_growth_is_reported() {
        let text =
            "nr_free_pages 7\npgalloc_dma32 5\npgalloc_normal 10\npgallocx 3\npgscan_kswapd 9\nthp_collapse_alloc x\n";
        let found = counters(text);
        assert_eq!(
            found.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>(),
            [("pgalloc", 15), ("pgscan_kswapd", 9)]
        );
        let at = |time: u64, pages: u64| MemoryCounters {
            threads: vec![("kswapd0".to_owned(), 65, time)],
            counters: [("pgalloc".to_owned(), pages)].into(),
        };
        let mut later = at(150, 40);
        later.threads.push(("kswapd1".to_owned(), 66, 7));
        let grown = later.since(&at(100, 30));
        assert_eq!(grown.threads, [MemoryThread { name: "kswapd0".to_owned(), pid: 65, cpu_time: Nanos(50) }]);
        assert_eq!(grown.counter("pgalloc"), Some(10));
    }

    #[test]
    fn every_kernel_has_threads_that_reclaim_pages() {
        let found = MemoryThreadPids::find();
        let Some(counters) = found.counters(&fs::read_to_string("/proc/vmstat").unwrap()) else {
            println!("skipped: {:?}", found.gap());
            return;
        };
        assert!(counters.threads.iter().any(|(name, ..)| name == "kswapd0"), "{counters:?}");
        assert!(counters.counters["pgalloc"] > 0);
    }
}
