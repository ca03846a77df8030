//! What kernel threads did for memory while a recording went on, and which share of it recorded processes caused.
//!
//! Owns the shares. A thread's CPU time is known; whose fault it was is estimated twice. The estimates may differ; a share is the
//! interval between them with the middle as its value. Where only one is known there is no interval.
//!
//! - **kswapd** reclaims when free pages become few. By its *wake-ups*: who wakes it is whoever happens to allocate at that moment, so
//!   they are a sample. By the *pages* that processes got, of all that the machine gave out (`pgalloc` of `/proc/vmstat`): faults in
//!   memory without a file, and pages of files that they brought into the page cache. Huge pages count as one there, and what the
//!   kernel allocates for itself on their behalf not at all, so that share is rather too small.
//! - **kcompactd** in the same ways. Where kswapd woke it, that was caused by those who woke kswapd. Where nobody did, it looked
//!   after fragments by itself, and its time is nobody's.
//! - **khugepaged** works on address spaces: by the *huge pages* that it made in them, and by the *ranges* that it looked at.
//! - **ksmd** merges equal pages; in whose memory is not recorded, so its time is nobody's.
//!
//! Also owns what recorded threads did of that kind themselves ([`BackgroundReclaim::direct`]). It is part of their own faults and calls
//! and never part of a share. Leaves what is a finding to [`crate::findings::background_reclaim`].

use crate::launch_facts::{FaultPlace, LaunchFacts};
use crate::processes::kernel_threads;
use slowpath_recording::{MemoryThread, MemoryThreads, Tables};
use slowpath_tables::{MemoryWork, MemoryWorkKind, Nanos, PageCacheOp, Pages, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the probe that shows who caused what.
const PROBE: &str = "memory_work";

/// How a share was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// By who woke the thread.
    WakeUps,
    /// By who got pages.
    AllocatedPages,
    /// By whose small pages became huge ones.
    HugePages,
    /// By whose ranges were looked at.
    ScannedRanges,
}

impl Attribution {
    /// As a reader finds it.
    pub fn words(self) -> &'static str {
        match self {
            Self::WakeUps => "wake-ups",
            Self::AllocatedPages => "pages allocated",
            Self::HugePages => "huge pages made",
            Self::ScannedRanges => "ranges looked at",
        }
    }
}

/// What a thread of the kernel's is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// kswapd: reclaims pages.
    Reclaim,
    /// kcompactd: moves pages together.
    Compaction,
    /// khugepaged: makes huge pages of small ones.
    HugePages,
    /// ksmd, or one that is not known here.
    Other,
}

/// Counts that tell one way.
#[derive(Clone, Debug, PartialEq)]
struct Parts {
    way: Attribution,
    of: BTreeMap<ProcessKey, f64>,
    all: f64,
}

/// A thread and the evidence of its shares.
#[derive(Clone, Debug, PartialEq)]
struct Thread {
    name: String,
    task: Task,
    cpu_time: Nanos,
    parts: Vec<Parts>,
}

/// One way to a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartOfAll {
    /// Which.
    pub way: Attribution,
    /// Of these processes.
    pub of: f64,
    /// Of all.
    pub all: f64,
}

impl PartOfAll {
    /// The part.
    pub fn share(&self) -> f64 {
        (self.of / self.all).clamp(0.0, 1.0)
    }
}

/// What processes caused of a thread's time.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadCost {
    /// Its name.
    pub thread: String,
    /// What it is for.
    pub task: Task,
    /// All its CPU time.
    pub cpu_time: Nanos,
    /// Ways that were known.
    pub ways: Vec<PartOfAll>,
    /// The share; `None` where no way was known.
    pub share: Option<Quantity>,
    /// The share of the time, in ms; nothing where the share is not known.
    pub cost: Quantity,
}

/// What threads did in their own context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectWork {
    /// Which work.
    pub work: MemoryWorkKind,
    /// How often.
    pub count: u64,
    /// How long, where that is known.
    pub time: Nanos,
    /// Pages reclaimed, or in ranges made one huge page.
    pub pages: Pages,
}

/// The work of the kernel's threads for memory, with the evidence of whose it was.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundReclaim<'a> {
    /// Whether it was recorded who woke threads and whose memory they worked on.
    pub has_events: bool,
    threads: Vec<Thread>,
    rows: &'a [MemoryWork],
    processes: BTreeSet<ProcessKey>,
}

impl<'a> BackgroundReclaim<'a> {
    /// Of a recording; `None` where the kernel's threads were not looked at.
    pub fn of(facts: &'a LaunchFacts<'a>) -> Option<Self> {
        let tables = &*facts.tables;
        let known = tables.manifest.memory_threads.as_ref()?;
        let of_kernel = kernel_threads(tables);
        let processes = facts.processes.iter().map(|process| process.key).filter(|key| !of_kernel.contains(key));
        // Counting them walks over all faults: only where the time of a thread is divided by them.
        let needs_pages = |thread: &MemoryThread| {
            thread.cpu_time.0 > 0 && matches!(task(&thread.name), Task::Reclaim | Task::Compaction)
        };
        let evidence = Evidence {
            rows: &tables.memory_work,
            has_events: has_events(tables),
            processes: processes.collect(),
            allocated: known.threads.iter().any(needs_pages).then(|| AllocatedPages::of(facts, known)).flatten(),
            kswapds: known.threads.iter().filter(|one| task(&one.name) == Task::Reclaim).map(|one| one.pid).collect(),
        };
        let threads = known.threads.iter().map(|one| Thread {
            name: one.name.clone(),
            task: task(&one.name),
            cpu_time: one.cpu_time,
            parts: if one.cpu_time.0 > 0 { evidence.parts(&one.name) } else { Vec::new() },
        });
        Some(Self {
            threads: threads.collect(),
            has_events: evidence.has_events,
            rows: &tables.memory_work,
            processes: evidence.processes,
        })
    }

    /// All recorded processes but kernel threads.
    pub fn processes(&self) -> &BTreeSet<ProcessKey> {
        &self.processes
    }

    /// What these processes caused, thread by thread; threads that did not run are left out.
    pub fn costs(&self, processes: &BTreeSet<ProcessKey>) -> Vec<ThreadCost> {
        let ran = self.threads.iter().filter(|thread| thread.cpu_time.0 > 0);
        ran.map(|thread| thread.cost(processes)).collect()
    }

    /// What these processes did themselves, kind by kind.
    pub fn direct(&self, processes: &BTreeSet<ProcessKey>) -> Vec<DirectWork> {
        let mut sums: BTreeMap<MemoryWorkKind, DirectWork> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.in_tree && is_own(row.work) && processes.contains(&row.process()))
        {
            let empty = DirectWork { work: row.work, count: 0, time: Nanos(0), pages: Pages(0) };
            let sum = sums.entry(row.work).or_insert(empty);
            sum.count += 1;
            sum.time += row.duration.unwrap_or_default();
            sum.pages += if row.succeeded { row.pages } else { Pages(0) };
        }
        sums.into_values().collect()
    }
}

fn scaled(share: &Quantity, ms: f64) -> Quantity {
    let times = |value: f64| value * ms;
    Quantity { value: times(share.value), low: share.low.map(times), high: share.high.map(times), unit: Unit::Ms }
}

/// The costs of several threads together, in ms. Their intervals add up: the ways are wrong in the same direction. One way has none.
pub fn sum(costs: &[ThreadCost]) -> Quantity {
    let value = costs.iter().map(|one| one.cost.value).sum();
    let low = costs.iter().map(|one| one.cost.low.unwrap_or(one.cost.value)).sum();
    let high = costs.iter().map(|one| one.cost.high.unwrap_or(one.cost.value)).sum();
    match costs.iter().any(|one| one.cost.low.is_some()) {
        true => Quantity::interval(value, low, high, Unit::Ms),
        false => Quantity::exact(value, Unit::Ms),
    }
}

/// Whether it was recorded who caused what.
pub(crate) fn has_events(tables: &Tables) -> bool {
    tables.manifest.ran(PROBE) || !tables.memory_work.is_empty()
}

impl Thread {
    fn cost(&self, processes: &BTreeSet<ProcessKey>) -> ThreadCost {
        let part = |parts: &Parts| PartOfAll {
            way: parts.way,
            of: processes.iter().filter_map(|process| parts.of.get(process)).sum(),
            all: parts.all,
        };
        let ways: Vec<PartOfAll> = self.parts.iter().map(part).collect();
        let shares = || ways.iter().map(PartOfAll::share);
        let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
        let share = match ways.len() {
            0 => None,
            1 => Some(Quantity::exact(low, Unit::Ratio)),
            _ => Some(Quantity::interval(f64::midpoint(low, high), low, high, Unit::Ratio)),
        };
        let cost = share.map_or(Quantity::exact(0.0, Unit::Ms), |share| scaled(&share, self.cpu_time.as_ms()));
        ThreadCost { thread: self.name.clone(), task: self.task, cpu_time: self.cpu_time, ways, share, cost }
    }
}

/// The evidence of shares.
struct Evidence<'a> {
    rows: &'a [MemoryWork],
    has_events: bool,
    processes: BTreeSet<ProcessKey>,
    allocated: Option<AllocatedPages>,
    /// Pids of kswapd.
    kswapds: BTreeSet<u32>,
}

impl Evidence<'_> {
    fn parts(&self, thread: &str) -> Vec<Parts> {
        let node = thread.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok();
        let wake_ups = |parts: Parts| (self.has_events && parts.all > 0.0).then_some(parts);
        match task(thread) {
            Task::Reclaim => {
                wake_ups(self.wake_ups(MemoryWorkKind::WakeKswapd, node)).into_iter().chain(self.pages()).collect()
            }
            // Without a wake-up it is nobody's.
            Task::Compaction => match wake_ups(self.wake_ups(MemoryWorkKind::WakeKcompactd, node)) {
                Some(parts) => std::iter::once(parts).chain(self.pages()).collect(),
                None => Vec::new(),
            },
            Task::HugePages => {
                let made = self.counted(Attribution::HugePages, |row| {
                    row.work == MemoryWorkKind::KhugepagedCollapse && row.succeeded
                });
                let seen = self.counted(Attribution::ScannedRanges, |row| row.work == MemoryWorkKind::KhugepagedScan);
                [made, seen].into_iter().filter(|parts| parts.all > 0.0).collect()
            }
            Task::Other => Vec::new(),
        }
    }

    /// Rows by process.
    fn counted(&self, way: Attribution, is_meant: impl Fn(&MemoryWork) -> bool) -> Parts {
        let mut parts = Parts { way, of: BTreeMap::new(), all: 0.0 };
        for row in self.rows.iter().filter(|row| is_meant(row)) {
            parts.all += 1.0;
            if row.in_tree && self.processes.contains(&row.process()) {
                *parts.of.entry(row.process()).or_default() += 1.0;
            }
        }
        parts
    }

    /// Who woke a thread of this node; what kswapd did was caused by those who woke it.
    fn wake_ups(&self, work: MemoryWorkKind, node: Option<u32>) -> Parts {
        let is_meant =
            |row: &MemoryWork| row.work == work && (node.is_none() || row.node.is_none() || row.node == node);
        let by_kswapd = |row: &MemoryWork| self.kswapds.contains(&row.pid);
        let mut parts = self.counted(Attribution::WakeUps, |row| is_meant(row) && !by_kswapd(row));
        let handed_on = self.rows.iter().filter(|row| is_meant(row) && by_kswapd(row)).count() as f64;
        if handed_on > 0.0 {
            parts.all += handed_on;
            let first = self.wake_ups(MemoryWorkKind::WakeKswapd, node);
            for (process, count) in first.of {
                *parts.of.entry(process).or_default() += handed_on * count / first.all.max(1.0);
            }
        }
        parts
    }

    fn pages(&self) -> Option<Parts> {
        let allocated = self.allocated.as_ref()?;
        let of = allocated.of.iter().filter(|(process, _)| self.processes.contains(process));
        let of = of.map(|(process, pages)| (*process, *pages)).collect();
        Some(Parts { way: Attribution::AllocatedPages, of, all: allocated.all })
    }
}

/// Pages that processes got, and all that were given out.
struct AllocatedPages {
    of: BTreeMap<ProcessKey, f64>,
    all: f64,
}

impl AllocatedPages {
    fn of(facts: &LaunchFacts<'_>, known: &MemoryThreads) -> Option<Self> {
        let all = known.counter("pgalloc").filter(|pages| *pages > 0)? as f64;
        let mut of: BTreeMap<ProcessKey, f64> = BTreeMap::new();
        let faults = facts.tables.faults.iter().zip(&facts.places);
        for (fault, _) in faults.filter(|(_, place)| !matches!(place, FaultPlace::File { .. })) {
            *of.entry(fault.process()).or_default() += 1.0;
        }
        for row in facts.tables.page_cache.iter().filter(|row| row.op == PageCacheOp::Add) {
            *of.entry(row.process()).or_default() += row.pages.0 as f64;
        }
        Some(Self { of, all })
    }
}

/// Whether a thread did it in its own context.
fn is_own(work: MemoryWorkKind) -> bool {
    use MemoryWorkKind::{DirectCompaction, DirectReclaim, GroupReclaim, OwnCollapse};
    matches!(work, DirectReclaim | GroupReclaim | DirectCompaction | OwnCollapse)
}

/// What a thread with this name is for.
fn task(name: &str) -> Task {
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "kswapd" => Task::Reclaim,
        "kcompactd" => Task::Compaction,
        "khugepaged" => Task::HugePages,
        _ => Task::Other,
    }
}
