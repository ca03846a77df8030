//! The JSON of the time ledger: where the time of every thread and process went.
//!
//! Owns names and units. Leaves categories and sums to `analysis::time::ledger`.

use super::quantities::{milliseconds, ratio};
use super::usage::Usage;
use crate::time::ledger as analysis;
use crate::time::ledger::{Account, Category, SplitBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Quantity, Unavailable, Unit};

/// Where time went, by thread and by process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Every thread of which begin and end are known. First the one with most time on the CPU or kept from it by the machine:
    /// all but waits for locks, pipes and sockets, events, timers, children, in the kernel, and being stopped.
    pub threads: Vec<LedgerThread>,
    /// Every process, in the same order; times are those of its threads together.
    pub processes: Vec<LedgerProcess>,
    /// Threads of which begin or end was not recorded; they are left out.
    pub incomplete_threads: u64,
    /// Intervals off the CPU that were lost; their time is unexplained.
    pub lost_intervals: u64,
    /// Whether memory calls were recorded; if not, they are part of the category `kernel`.
    pub has_memory_calls: bool,
}

/// Time of one category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRow {
    /// The category.
    pub category: Category,
    /// Its time; with a 95 % interval for `kernel` where CPU samples told it from `user`.
    pub time: Quantity,
    /// Of the time from begin to end; null where that is nothing.
    pub share: Option<Quantity>,
}

/// One thread. Its rows and `unexplained` add up to `wall`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerThread {
    /// Its process, as in `shares`.
    pub process: String,
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns.
    pub start: Nanos,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread; null where it is not known.
    pub thread: Option<String>,
    /// When it began, or began to be followed, `CLOCK_MONOTONIC`, ns.
    pub began: Nanos,
    /// When it left its CPU for good, or recording ended, `CLOCK_MONOTONIC`, ns.
    pub ended: Nanos,
    /// From begin to end.
    pub wall: Quantity,
    /// The categories that have time, the largest first.
    pub rows: Vec<LedgerRow>,
    /// What no category has; negative where categories have more than there is. Null where the scheduler's counter is not known
    /// for this thread alone: then its time on the CPU is what its waits leave over, and nothing is left to be unexplained.
    pub unexplained: Option<Quantity>,
    /// `unexplained` as a share of `wall`.
    pub unexplained_share: Option<Quantity>,
    /// Time on the CPU by the scheduler's counter.
    pub on_cpu: Option<Quantity>,
    /// Time that it waited for a CPU by the kernel's own counter (schedstat), to check `runnable` and `throttled`.
    pub runnable_by_kernel: Option<Quantity>,
    /// What told user and kernel time apart.
    pub split_by: SplitBy,
    /// Page faults of unknown duration; their time is in other categories.
    pub untimed_faults: u64,
}

/// The threads of one process together. Rows and `unexplained` add up to `thread_time`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerProcess {
    /// Its program, as in `shares`.
    pub process: String,
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns.
    pub start: Nanos,
    /// Its threads.
    pub threads: u64,
    /// From the begin of its first thread to the end of its last.
    pub wall: Quantity,
    /// Sum of the times from begin to end of its threads.
    pub thread_time: Quantity,
    /// The categories that have time, the largest first.
    pub rows: Vec<LedgerRow>,
    /// What no category has, of the threads of which that is known; null for none.
    pub unexplained: Option<Quantity>,
    /// `unexplained` as a share of `thread_time`.
    pub unexplained_share: Option<Quantity>,
    /// Threads of which `unexplained` is not known.
    pub unchecked_threads: u64,
}

fn signed(ns: i64) -> Quantity {
    Quantity::exact(ns as f64 / 1e6, Unit::Ms)
}

/// The categories of an account that have time, the largest first, with their shares of `whole`; `kernel` bounds the time in the kernel.
pub fn rows(account: &Account, whole: Nanos, kernel: Option<(Nanos, Nanos)>) -> Vec<LedgerRow> {
    let row = |(category, time): (Category, Nanos)| {
        let interval = kernel.filter(|_| category == Category::Kernel);
        let ends = |(low, high): (Nanos, Nanos)| Quantity::interval(time.as_ms(), low.as_ms(), high.as_ms(), Unit::Ms);
        LedgerRow {
            category,
            time: interval.map_or_else(|| milliseconds(time), ends),
            share: ratio(time.0 as f64, whole.0),
        }
    };
    let mut used: Vec<(Category, Nanos)> = account.iter().filter(|(_, time)| time.0 > 0).collect();
    used.sort_by_key(|(category, time)| (std::cmp::Reverse(*time), *category));
    used.into_iter().map(row).collect()
}

/// The ledger of a recording, where one was asked for; processes are called as in its shares.
///
/// # Errors
/// As [`analysis::time::ledger`].
pub fn of_tables(tables: &Tables, usage: &Usage) -> Result<Option<Ledger>, Unavailable> {
    let Some(found) = analysis::ledger(tables)? else { return Ok(None) };
    let name = usage.namer();
    let threads = found.threads.into_iter().map(|one| {
        let wall = one.wall();
        LedgerThread {
            process: name(one.process),
            pid: one.process.pid,
            start: one.process.start,
            tid: one.tid,
            began: one.began,
            ended: one.ended,
            wall: milliseconds(wall),
            rows: rows(&one.account, wall, one.kernel_interval),
            unexplained: one.unexplained.map(signed),
            unexplained_share: one.unexplained.and_then(|ns| ratio(ns as f64, wall.0)),
            on_cpu: one.on_cpu.map(milliseconds),
            runnable_by_kernel: one.runnable_by_kernel.map(milliseconds),
            split_by: one.split_by,
            untimed_faults: one.untimed_faults,
            thread: one.name,
        }
    });
    let processes = found.processes.into_iter().map(|one| LedgerProcess {
        process: name(one.process),
        pid: one.process.pid,
        start: one.process.start,
        threads: one.threads,
        wall: milliseconds(one.ended - one.began),
        thread_time: milliseconds(one.thread_time),
        rows: rows(&one.account, one.thread_time, one.kernel_interval),
        unexplained: one.unexplained.map(signed),
        unexplained_share: one.unexplained.and_then(|ns| ratio(ns as f64, one.thread_time.0)),
        unchecked_threads: one.unchecked_threads,
    });
    Ok(Some(Ledger {
        threads: threads.collect(),
        processes: processes.collect(),
        incomplete_threads: found.incomplete_threads,
        lost_intervals: found.lost_intervals,
        has_memory_calls: found.has_memory_calls,
    }))
}
