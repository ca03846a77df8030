//! The critical path of a launch: what its end waited for, followed back through wake-ups to its begin.
//!
//! Walked backwards from the thread that ended the launch. Where a thread ran, or could have run, the path is with it. Where it waited and
//! another recorded thread woke it, the path goes on with that thread at that moment: what it had waited for is what the other did
//! meanwhile. A thread's begin leads to the thread that made it. So each moment of the launch belongs to one thread, and to one category of
//! that thread; what is left is unexplained. To shorten anything that is not on the path cannot shorten the launch.
//!
//! - A wait that no recorded thread ended stays on the path with its own category, and says who did ([`EndedBy`]): an interrupt (the timer
//!   that it set, the device that it read from), or a task that is not recorded (of the kernel's own, of another program).
//! - Which thread made another is not recorded, only its process: it is the one that ran at that moment, its main thread where
//!   several did.
//! - Which thread ended the launch: where ready means that the program exits, the last one of its own process. Else the one that ran
//!   last until then, and where several ran, first one of the launch's own process: an outsider (a page that was served, a port
//!   that answered) saw that it was ready, a moment later.
//! - It is *a* chain of causes. A thread that would have waited as long for something else had it not waited for this is not seen, and who
//!   woke a pool's thread need not be who gave it its work.
//!
//! Owns that walk (`walk` finds it, `time_on_path` says what the threads did in it). Leaves threads and categories to
//! [`crate::time::ledger`].

mod step;
mod time_on_path;
mod walk;

use crate::processes::Processes;
use crate::time::ledger::lives::Lives;
use crate::time::ledger::{Account, Grouped, SplitBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::{Launch, Tables};
use slowpath_tables::{Nanos, OffCpu, OffCpuReason};
pub use step::{EndedBy, Step, ThreadOnPath};
use time_on_path::{TimeOnPath, of_steps};
pub use walk::Request;
pub(crate) use walk::{Answered, Behind, Walk};

/// What the path begins and ends with at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndsWith {
    /// The last thread of the launch's own process, which exited.
    Exit,
    /// The thread that ran last.
    RanLast,
}

/// The path.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalPath {
    /// When exec was released.
    pub from: Nanos,
    /// When the program was ready, or ended where it never was.
    pub to: Nanos,
    /// Whether `to` is when it was ready.
    pub is_ready: bool,
    /// Why it ends with the thread that it ends with.
    pub ends_with: EndsWith,
    /// The chain, in order: each step begins where the one before ends, the first at `from`, the last ends at `to`.
    pub steps: Vec<Step>,
    /// Time by category. Together with `unexplained` it is all of the time.
    pub account: Account,
    /// Time of which nothing was recorded.
    pub unexplained: Nanos,
    /// What told user and kernel time apart in `account`; the threads' have them together.
    pub split_by: SplitBy,
    /// 95 % interval of [`crate::time::ledger::Category::Kernel`], where samples gave it.
    pub kernel_interval: Option<(Nanos, Nanos)>,
    /// The threads on it, those with most time first.
    pub threads: Vec<ThreadOnPath>,
}

/// The chain alone, without what the threads did in it.
pub(crate) struct Chain<'a> {
    lives: Lives<'a>,
    from: Nanos,
    to: Nanos,
    ends_with: EndsWith,
    /// The steps, as in [`CriticalPath`].
    pub steps: Vec<Step>,
}

impl<'a> Chain<'a> {
    /// Length of the launch.
    pub fn time(&self) -> Nanos {
        self.to - self.from
    }

    /// The threads of the recording.
    pub fn lives(&self) -> &Lives<'a> {
        &self.lives
    }

    /// What was done in some of its steps, which are in order, and time of which nothing was recorded.
    pub fn account(&self, tables: &Tables, steps: &[Step]) -> (Account, Nanos) {
        let found = of_steps(tables, &self.lives, steps);
        (found.account, found.unexplained)
    }
}

/// Follows the launch of a recording back from its end. `None` where it holds no launch, where waits were not recorded, and where of
/// no thread both begin and end are known. Rows may be in any order.
pub(crate) fn chain(tables: &Tables) -> Option<Chain<'_>> {
    let launch = tables.manifest.launch.as_ref()?;
    if tables.off_cpu.is_empty() {
        return None;
    }
    let lives = Lives::new(tables);
    let off = off_cpu_of(tables, &lives);
    let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    let (from, to) = (launch.released, until(launch, tables, &processes)?);
    let (last, ends_with) = last_thread(launch, &processes, &lives, &off, to)?;
    let steps = Walk::new(tables, &lives, &off).back(last, from, to);
    Some(Chain { lives, from, to, ends_with, steps })
}

/// The intervals in which each thread did not run.
pub(crate) fn off_cpu_of<'a>(tables: &'a Tables, lives: &Lives<'_>) -> Grouped<'a, OffCpu> {
    let end = |row: &OffCpu| Nanos(row.ts.0.saturating_add(row.duration.0));
    Grouped::new(&tables.off_cpu, lives.all.len(), |row| lives.find(row.process(), row.tid, end(row)))
}

/// The chain with what the threads did in it; `None` where the recording holds no launch, where waits were not recorded, and
/// where of no thread both begin and end are known. Rows may be in any order.
pub fn critical_path(tables: &Tables) -> Option<CriticalPath> {
    let Chain { lives, from, to, ends_with, steps } = chain(tables)?;
    let TimeOnPath { account, unexplained, split_by, kernel_interval, threads } = of_steps(tables, &lives, &steps);
    let is_ready = tables.manifest.launch.as_ref().is_some_and(|launch| launch.ready.is_some());
    Some(CriticalPath {
        from,
        to,
        is_ready,
        ends_with,
        steps,
        account,
        unexplained,
        split_by,
        kernel_interval,
        threads,
    })
}

/// When the launch was over. `None` for one that took no time.
fn until(launch: &Launch, tables: &Tables, processes: &Processes) -> Option<Nanos> {
    let ended = || processes.get(processes.main()?)?.ended;
    let until = launch.ready.or_else(ended).or(tables.manifest.ended)?;
    (until > launch.released).then_some(until)
}

/// What [`Launch::ready_when`] says where the end of the program is meant.
const EXIT: &str = "exit";

/// The thread that ended the launch, as an index into the lives.
fn last_thread(
    launch: &Launch,
    processes: &Processes,
    lives: &Lives<'_>,
    off: &Grouped<'_, OffCpu>,
    until: Nanos,
) -> Option<(u32, EndsWith)> {
    let main = processes.main();
    let begun = || (0u32..).zip(&lives.all).filter(|(_, life)| life.began < until);
    let has_ended =
        main.and_then(|main| processes.get(main)).is_some_and(|main| main.ended.is_some_and(|at| at <= until));
    if has_ended && (launch.ready.is_none() || launch.ready_when == EXIT) {
        let own = begun().filter(|(_, life)| Some(life.process) == main);
        if let Some((last, _)) = own.max_by_key(|(_, life)| life.ended) {
            return Some((last, EndsWith::Exit));
        }
    }
    let ran_until = |number: u32, ended: Nanos| {
        let away = off.of(number).filter(|row| row.reason != OffCpuReason::Stolen && row.ts < until);
        let last = away.max_by_key(|row| row.ts);
        let left = last.filter(|row| row.ts.0.saturating_add(row.duration.0) >= until.0).map(|row| row.ts);
        left.unwrap_or(until).min(ended)
    };
    let ran_last = begun().max_by_key(|(number, life)| {
        let is_own = Some(life.process) == main;
        (ran_until(*number, life.ended), is_own, life.tid == life.process.pid, std::cmp::Reverse(life.tid))
    });
    ran_last.map(|(last, _)| (last, EndsWith::RanLast))
}

#[cfg(test)]
mod tests;
