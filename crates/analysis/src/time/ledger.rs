//! Where the time of every thread went, from its begin to its end: categories that do not overlap, and what they leave
//! unexplained as a row of its own.
//!
//! Two witnesses that know nothing of each other are added up. *Waits* come from events (`off_cpu`): when the thread left its
//! CPU, why, and when it was back. *Time on the CPU* comes from the scheduler's own counter (`run_time`), not from what
//! the waits leave over. So what is missing or counted twice shows: `unexplained` is the time from begin to end less both, and
//! may be negative. Only where the counter of a thread is not known, its time on the CPU is what the waits leave, and there is no
//! `unexplained`, because it would be nothing by construction.
//!
//! Within the time on the CPU, page faults and memory calls have their recorded durations, less what the thread waited in them; the
//! rest is user or kernel time as samples or the kernel's ticks say ([`SplitBy`]).
//!
//! - A wait has its reason until the wake-up, and is `runnable` from then on. Waits for storage in a fault are fault time; a fault that
//!   waits for the CPU or for a lock of the kernel's is not.
//! - Stolen time lies in stays on a CPU, but the scheduler's counter leaves it out (`update_rq_clock_task` in
//!   kernel/sched/core.c takes it off the clock that it counts by, wherever it is kept at all): it is added, not taken off.
//! - The counter is brought up to date at ticks and switches. At the end of a thread it is read at its last switch and exact
//!   (`thread_counters`); in recordings without these rows, and of a thread that runs when recording begins or ends, up to a tick is
//!   missing.
//! - Time in interrupts is unexplained where the kernel keeps it apart (`CONFIG_IRQ_TIME_ACCOUNTING`), else that of whoever ran.
//!
//! Owns that sum, by thread (`lives` says from when until when, `timeline` walks it) and by process. Leaves which thread
//! waited for which other one to a later stage, names of processes to [`crate::processes`], and printing to `report`.

mod account;
pub(crate) mod lives;
pub(crate) mod split;
mod states;
pub(crate) mod timeline;

pub use account::{Account, Category, CategoryTime};
pub use split::SplitBy;
pub use states::{ThreadStates, TimelineThread};

use lives::{Life, Lives};
use slowpath_recording::{NotRecorded, Tables};
use slowpath_tables::missing::declared;
use slowpath_tables::{Nanos, ProcessKey, Unavailable};
use split::split;
use timeline::{Timeline, Walked};

/// One thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadLedger {
    /// Its process.
    pub process: ProcessKey,
    /// Thread id.
    pub tid: u32,
    /// Its last known name. Foreign text.
    pub name: Option<String>,
    /// When it began, or began to be followed.
    pub began: Nanos,
    /// When it left its CPU for good, or recording ended.
    pub ended: Nanos,
    /// Its time by category.
    pub account: Account,
    /// Time on the CPU by the scheduler's counter; `None` where that is not known for this thread alone.
    pub on_cpu: Option<Nanos>,
    /// Time from begin to end that is in no category, ns; negative where categories hold more. `None` without `on_cpu`.
    pub unexplained: Option<i64>,
    /// What told user and kernel time apart.
    pub split_by: SplitBy,
    /// 95 % interval of [`Category::Kernel`], where samples gave it.
    pub kernel_interval: Option<(Nanos, Nanos)>,
    /// Time that it waited for a CPU by the kernel's own counter, where that is kept: a check of
    /// [`Category::Runnable`] and [`Category::Throttled`].
    pub runnable_by_kernel: Option<Nanos>,
    /// Page faults of unknown duration: their time is in other categories.
    pub untimed_faults: u64,
}

impl ThreadLedger {
    /// From begin to end.
    pub fn wall(&self) -> Nanos {
        self.ended - self.began
    }
}

/// The threads of one process together.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessLedger {
    /// Pid and start.
    pub process: ProcessKey,
    /// Its threads.
    pub threads: u64,
    /// When the first of them began.
    pub began: Nanos,
    /// When the last of them ended.
    pub ended: Nanos,
    /// Sum of the times from begin to end of its threads.
    pub thread_time: Nanos,
    /// Sum of their accounts.
    pub account: Account,
    /// Sum of what is unexplained, ns; `None` where it is not known for any.
    pub unexplained: Option<i64>,
    /// Threads of which `unexplained` is not known; the sum lacks them.
    pub unchecked_threads: u64,
    /// 95 % interval of [`Category::Kernel`], where samples gave it for every thread that has any.
    pub kernel_interval: Option<(Nanos, Nanos)>,
}

/// All threads and processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Every thread of which begin and end are known, the busiest first ([`Account::busy`]).
    pub threads: Vec<ThreadLedger>,
    /// Every process with such threads, the busiest first.
    pub processes: Vec<ProcessLedger>,
    /// Threads of which begin or end was not recorded; they are left out.
    pub incomplete_threads: u64,
    /// Intervals that were lost: what they held is unexplained.
    pub lost_intervals: u64,
    /// Whether memory calls were recorded; if not, they are part of [`Category::Kernel`].
    pub has_memory_calls: bool,
}

fn missing(reason: &str, remedy: &str) -> Unavailable {
    declared::TIME_LEDGER.because(reason, remedy)
}

/// What is to be said of a recording for which nobody asked when threads do not run: how to have a ledger. It is no doubt about what
/// was found.
pub fn not_asked_for() -> Unavailable {
    missing("it was not recorded when threads do not run", "record with --off-cpu")
}

/// Adds up a recording. Rows may be in any order. `None` where nobody asked when threads do not run ([`not_asked_for`]).
///
/// # Errors
/// It was asked and could not be recorded, or no thread was seen from begin to end.
pub fn ledger(tables: &Tables) -> Result<Option<Ledger>, Unavailable> {
    let manifest = &tables.manifest;
    if tables.off_cpu.is_empty() {
        match manifest.not_recorded("off_cpu") {
            Some(NotRecorded::NotAskedFor) => return Ok(None),
            Some(NotRecorded::Refused(_)) => {
                let reason = "when threads do not run could not be recorded on that machine";
                return Err(missing(reason, "`slowpath doctor` there says what it lacks"));
            }
            None => {}
        }
    }
    let lives = Lives::new(tables);
    if lives.all.is_empty() {
        return Err(missing("no thread has both a begin and an end", "a recording that ended in order"));
    }
    let mut threads = of_threads(tables, &lives);
    let mut processes: Vec<ProcessLedger> =
        threads.chunk_by(|a, b| a.process == b.process).filter_map(of_process).collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.account.busy()), thread.process, thread.tid, thread.began));
    processes.sort_by_key(|one| (std::cmp::Reverse(one.account.busy()), one.process));
    Ok(Some(Ledger {
        threads,
        processes,
        incomplete_threads: lives.incomplete,
        lost_intervals: manifest.losses.of("off_cpu"),
        has_memory_calls: manifest.ran("memory") || !tables.memory_calls.is_empty(),
    }))
}

/// Rows by thread, each thread's in their order. Millions of rows cost a count and a number each, and no copy.
pub(crate) struct Grouped<'a, R> {
    rows: &'a [R],
    /// Numbers of rows, those of the first life first.
    order: Vec<u32>,
    /// Where in `order` the rows of each life end.
    ends: Vec<u32>,
}

impl<'a, R> Grouped<'a, R> {
    /// `life_of` returns which of so many lives a row belongs to; a row of none is left out.
    pub(crate) fn new(rows: &'a [R], lives: usize, life_of: impl Fn(&R) -> Option<u32>) -> Self {
        let count = rows.len().min(u32::MAX as usize);
        let life_of: Vec<Option<u32>> = rows[..count].iter().map(life_of).collect();
        let mut ends = vec![0u32; lives];
        life_of.iter().flatten().for_each(|life| ends[*life as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        // From here on the place of each life's next row, which in the end is where they end.
        let mut order = vec![0u32; sum as usize];
        for (row, life) in (0u32..).zip(&life_of) {
            if let Some(life) = life {
                let place = &mut ends[*life as usize];
                order[*place as usize] = row;
                *place += 1;
            }
        }
        Self { rows, order, ends }
    }

    /// The rows of a life.
    pub(crate) fn of(&self, life: u32) -> impl DoubleEndedIterator<Item = &'a R> + ExactSizeIterator {
        let from = life.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        let rows = self.rows;
        self.order[from as usize..self.ends[life as usize] as usize].iter().map(move |row| &rows[*row as usize])
    }
}

/// The threads in the order of `lives`.
fn of_threads(tables: &Tables, lives: &Lives<'_>) -> Vec<ThreadLedger> {
    let mut threads = Vec::with_capacity(lives.all.len());
    each_life(tables, lives, |_, life, timeline| threads.push(of_thread(life, timeline.walk(life.began, life.ended))));
    threads
}

/// Gives the rows of every thread, in the order of `lives`, ready to be walked.
pub(crate) fn each_life<'a>(tables: &Tables, lives: &Lives<'a>, mut see: impl FnMut(u32, &Life<'a>, &mut Timeline)) {
    // A thread's first interval begins a moment before the row of its fork is made: the end of an interval shows whose it is.
    let end = |ts: Nanos, duration: Nanos| Nanos(ts.0.saturating_add(duration.0));
    let count = lives.all.len();
    let off = Grouped::new(&tables.off_cpu, count, |row| lives.find(row.process(), row.tid, end(row.ts, row.duration)));
    let faults = Grouped::new(&tables.faults, count, |row| {
        lives.find(row.process(), row.tid, end(row.ts, row.duration.unwrap_or_default()))
    });
    let calls =
        Grouped::new(&tables.memory_calls, count, |row| lives.find(row.process(), row.tid, end(row.ts, row.duration)));
    let samples = Grouped::new(&tables.cpu_samples, count, |row| lives.find(row.process(), row.tid, row.ts));
    let mut timeline = Timeline::default();
    for (number, life) in (0u32..).zip(&lives.all) {
        off.of(number).for_each(|row| timeline.off_cpu(row));
        faults.of(number).for_each(|row| timeline.fault(row));
        calls.of(number).for_each(|row| timeline.memory_call(row));
        samples.of(number).for_each(|row| timeline.sample(row));
        see(number, life, &mut timeline);
    }
}

fn of_thread(life: &Life<'_>, walked: Walked) -> ThreadLedger {
    let mut account = walked.account;
    let rest = match life.run_time {
        Some(run_time) => run_time - walked.ran_in_them,
        // There is no more of it than the waits leave.
        None => {
            let stolen = account.take(Category::Stolen).min(walked.left);
            account.add(Category::Stolen, stolen);
            walked.left - stolen
        }
    };
    let split = split(rest, walked.ran_in_them, walked.samples, life.ticks);
    if split.by == SplitBy::Nothing {
        account.add(Category::OnCpu, rest);
    } else {
        account.add(Category::Kernel, split.kernel);
        account.add(Category::User, rest - split.kernel);
    }
    let wall = life.ended - life.began;
    ThreadLedger {
        process: life.process,
        tid: life.tid,
        name: life.name.map(str::to_owned),
        began: life.began,
        ended: life.ended,
        account,
        on_cpu: life.run_time,
        unexplained: life.run_time.map(|_| signed(wall).saturating_sub(signed(account.total()))),
        split_by: split.by,
        kernel_interval: split.interval,
        runnable_by_kernel: life.run_delay,
        untimed_faults: walked.untimed_faults,
    }
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// The sum of a process's threads; `None` for no threads.
fn of_process(threads: &[ThreadLedger]) -> Option<ProcessLedger> {
    let first = threads.first()?;
    let mut account = Account::default();
    threads.iter().for_each(|thread| account.merge(&thread.account));
    let known = threads.iter().filter_map(|thread| thread.unexplained);
    Some(ProcessLedger {
        process: first.process,
        threads: threads.len() as u64,
        began: threads.iter().map(|thread| thread.began).min()?,
        ended: threads.iter().map(|thread| thread.ended).max()?,
        thread_time: threads.iter().map(ThreadLedger::wall).sum(),
        account,
        unexplained: known.reduce(i64::saturating_add),
        unchecked_threads: threads.iter().filter(|thread| thread.unexplained.is_none()).count() as u64,
        kernel_interval: kernel_interval(threads, account.get(Category::Kernel)),
    })
}

/// The interval of a sum of independent parts: the distances of their ends add up by their squares.
fn kernel_interval(threads: &[ThreadLedger], kernel: Nanos) -> Option<(Nanos, Nanos)> {
    let (mut below, mut above, mut is_any) = (0f64, 0f64, false);
    for thread in threads {
        match (thread.split_by, thread.kernel_interval) {
            (SplitBy::Samples, Some((low, high))) => {
                let part = thread.account.get(Category::Kernel);
                below += ((part - low).0 as f64).powi(2);
                above += ((high - part).0 as f64).powi(2);
                is_any = true;
            }
            (SplitBy::KernelCounters, _) => return None,
            _ => {}
        }
    }
    is_any.then(|| (kernel - Nanos(below.sqrt().round() as u64), kernel + Nanos(above.sqrt().round() as u64)))
}

#[cfg(test)]
mod random_timelines;
#[cfg(test)]
mod tests;
