//! Where time went: that of a launch on its critical path until it was ready, and that on the CPU in all processes.
//!
//! Owns the few parts that a reader sees, and which category belongs to which. Every moment of the critical path is
//! in one part or unexplained; every moment on the CPU that the scheduler counted is in one part. Leaves the path to
//! [`crate::time::critical_path`], categories and the threads' counters to [`crate::time::ledger`], and when a child is ready to
//! [`crate::starts::children`].
//!
//! **Start of child processes** is what a child runs between its fork and the moment at which it could take an order, less its
//! reads, faults, memory calls and waits, which stand in their own parts: those have other cures. A child that never waits for
//! events has no such moment, and all that it runs is the program's.

use crate::integer_hash::IntegerMap;
use crate::starts::children::child_launches;
use crate::time::critical_path::{Chain, Step, chain};
use crate::time::ledger::lives::Lives;
use crate::time::ledger::timeline::Timeline;
use crate::time::ledger::{Account, Category, Grouped, Ledger};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Major faults, and system calls that waited for storage: reads, and writes that were waited for (fsync).
    Storage,
    /// Minor faults, and calls that map, unmap or advise memory.
    FaultsAndMemory,
    /// Waits for a lock, another process, events or a time.
    Waits,
    /// Runnable without a CPU, throttled, or stopped by a hypervisor.
    WaitsForCpu,
    /// What children run from their fork until they first wait for events.
    ChildStart,
    /// What is left of the time on the CPU: the program's own code, and the kernel's for it.
    Program,
}

impl Part {
    /// All, in the order in which they are printed.
    pub const ALL: [Self; 6] =
        [Self::Storage, Self::FaultsAndMemory, Self::Waits, Self::WaitsForCpu, Self::ChildStart, Self::Program];

    /// The part as a reader reads it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Storage => "storage and major faults",
            Self::FaultsAndMemory => "page faults and memory calls",
            Self::Waits => "waits for others",
            Self::WaitsForCpu => "waits for a CPU",
            Self::ChildStart => "start of child processes",
            Self::Program => "running",
        }
    }

    /// The part of a category; time that a starting child runs is moved from [`Self::Program`] afterwards.
    fn of(category: Category) -> Self {
        match category {
            Category::User | Category::Kernel | Category::OnCpu => Self::Program,
            Category::MinorFault | Category::MemoryCall => Self::FaultsAndMemory,
            Category::MajorFault | Category::OtherIo => Self::Storage,
            Category::Runnable | Category::Throttled | Category::Stolen => Self::WaitsForCpu,
            Category::Lock
            | Category::PipeOrSocket
            | Category::Events
            | Category::Timer
            | Category::Child
            | Category::KernelWait
            | Category::Stopped => Self::Waits,
        }
    }

    /// Whether a thread runs in it, and so has CPU time.
    fn runs(self) -> bool {
        !matches!(self, Self::Waits | Self::WaitsForCpu)
    }
}

/// Time of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartTime {
    /// The part.
    pub part: Part,
    /// On the critical path to ready; `None` for processes that ran already.
    pub to_ready: Option<Nanos>,
    /// On the CPU, in all processes and until the recording ended; `None` for waits.
    pub cpu: Option<Nanos>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpent {
    /// The launch until it was ready; `None` for processes that ran already.
    pub launch: Option<ToReady>,
    /// On the CPU by the scheduler's counters, in all threads of which begin and end are known. The parts' `cpu` add up to it.
    pub cpu: Nanos,
    /// Every part, in the order of [`Part::ALL`].
    pub parts: Vec<PartTime>,
    /// Threads whose CPU time is not known; it is missing in `cpu`.
    pub uncounted_threads: u64,
}

/// A launch until it was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToReady {
    /// From the release of exec to ready. The parts' `to_ready` and `unexplained` add up to it.
    pub time: Nanos,
    /// Time on the critical path for which nothing was recorded.
    pub unexplained: Nanos,
}

/// The CPU time of everything recorded; nobody waits for the threads of what runs already, so their waits say nothing.
pub fn of_running(ledger: &Ledger) -> TimeSpent {
    let (cpu, account, uncounted_threads) = counted(ledger);
    let on_cpu = cpu_sums(cpu, &account, Nanos(0));
    // When a child is ready is recorded of launches only.
    let is_known = |part: Part| part.runs() && part != Part::ChildStart;
    let parts = Part::ALL.map(|part| PartTime { part, to_ready: None, cpu: is_known(part).then(|| on_cpu.get(part)) });
    TimeSpent { launch: None, cpu, parts: parts.to_vec(), uncounted_threads }
}

/// Adds up a recorded launch, with the ledger of the same tables; `None` as [`crate::time::critical_path::critical_path`], and for a
/// launch that was never ready.
pub fn of_launch(tables: &Tables, ledger: &Ledger) -> Option<TimeSpent> {
    tables.manifest.launch.as_ref()?.ready?;
    let chain = chain(tables)?;
    let starts = starts(tables);
    let (path, unexplained) = chain.account(tables, &chain.steps);
    let started_on_path = ran(&chain.account(tables, &steps_of_starts(&chain.steps, &starts)).0);
    let on_path = Sums::of(&path, started_on_path);
    let (cpu, account, uncounted_threads) = counted(ledger);
    let on_cpu = cpu_sums(cpu, &account, ran_in_starts(tables, &chain, &starts));
    let parts = Part::ALL.map(|part| PartTime {
        part,
        to_ready: Some(on_path.get(part)),
        cpu: part.runs().then(|| on_cpu.get(part)),
    });
    Some(TimeSpent {
        launch: Some(ToReady { time: chain.time(), unexplained }),
        cpu,
        parts: parts.to_vec(),
        uncounted_threads,
    })
}

/// CPU time and categories of the threads whose CPU time is known, and how many others there are.
fn counted(ledger: &Ledger) -> (Nanos, Account, u64) {
    let mut account = Account::default();
    let (mut cpu, mut others) = (Nanos(0), ledger.incomplete_threads);
    for thread in &ledger.threads {
        match thread.on_cpu {
            Some(on_cpu) => {
                cpu += on_cpu;
                account.merge(&thread.account);
            }
            None => others += 1,
        }
    }
    (cpu, account, others)
}

/// Time by part.
#[derive(Default)]
struct Sums([Nanos; Part::ALL.len()]);

impl Sums {
    /// The categories by part, `started` of the running time in starts of children.
    fn of(account: &Account, started: Nanos) -> Self {
        let mut sums = Self::default();
        account.iter().for_each(|(category, time)| sums.0[Part::of(category) as usize] += time);
        let ran = sums.get(Part::Program);
        sums.0[Part::ChildStart as usize] = started.min(ran);
        sums.0[Part::Program as usize] = ran - started.min(ran);
        sums
    }

    fn get(&self, part: Part) -> Nanos {
        self.0[part as usize]
    }
}

/// The CPU time by part. Faults and memory calls have their durations, in which a hypervisor or an interrupt may have taken time that
/// the scheduler's counter leaves out: together with the rest they are never more than it. What the others leave ran in major faults.
fn cpu_sums(cpu: Nanos, account: &Account, started: Nanos) -> Sums {
    let of = |part: Part| -> Nanos {
        account.iter().filter(|(category, _)| Part::of(*category) == part).map(|(_, time)| time).sum()
    };
    let program = of(Part::Program).min(cpu);
    let in_memory = of(Part::FaultsAndMemory).min(cpu - program);
    let started = started.min(program);
    let mut sums = Sums::default();
    sums.0[Part::ChildStart as usize] = started;
    sums.0[Part::Program as usize] = program - started;
    sums.0[Part::FaultsAndMemory as usize] = in_memory;
    sums.0[Part::Storage as usize] = cpu - program - in_memory;
    sums
}

fn ran(account: &Account) -> Nanos {
    account.iter().filter(|(category, _)| Part::of(*category) == Part::Program).map(|(_, time)| time).sum()
}

/// When the start of each child ends that was seen to be ready.
fn starts(tables: &Tables) -> IntegerMap<ProcessKey, Nanos> {
    child_launches(tables).into_iter().filter_map(|child| Some((child.process, child.ready?))).collect()
}

/// The steps, or their beginnings, that lie in starts of children.
fn steps_of_starts(steps: &[Step], starts: &IntegerMap<ProcessKey, Nanos>) -> Vec<Step> {
    let clipped = steps.iter().filter_map(|step| {
        let until = (*starts.get(&step.process)?).min(step.to);
        (step.from < until).then_some(Step { to: until, ..*step })
    });
    clipped.collect()
}

/// What threads of starting children ran outside of faults and memory calls, by what the intervals off the CPU leave.
fn ran_in_starts(tables: &Tables, chain: &Chain<'_>, starts: &IntegerMap<ProcessKey, Nanos>) -> Nanos {
    if starts.is_empty() {
        return Nanos(0);
    }
    let lives: &Lives<'_> = chain.lives();
    let end = |ts: Nanos, duration: Nanos| Nanos(ts.0.saturating_add(duration.0));
    let life = |process: ProcessKey, tid: u32, at: Nanos| {
        starts.contains_key(&process).then(|| lives.find(process, tid, at)).flatten()
    };
    let count = lives.all.len();
    let off = Grouped::new(&tables.off_cpu, count, |row| life(row.process(), row.tid, end(row.ts, row.duration)));
    let faults = Grouped::new(&tables.faults, count, |row| {
        life(row.process(), row.tid, end(row.ts, row.duration.unwrap_or_default()))
    });
    let calls =
        Grouped::new(&tables.memory_calls, count, |row| life(row.process(), row.tid, end(row.ts, row.duration)));
    let mut timeline = Timeline::default();
    let mut sum = Nanos(0);
    for (number, life) in (0u32..).zip(&lives.all) {
        let Some(ready) = starts.get(&life.process) else { continue };
        // Its time is not in the sum that this is a part of.
        if life.run_time.is_none() {
            continue;
        }
        off.of(number).for_each(|row| timeline.off_cpu(row));
        faults.of(number).for_each(|row| timeline.fault(row));
        calls.of(number).for_each(|row| timeline.memory_call(row));
        let walked = timeline.walk(life.began, life.ended.min(*ready).max(life.began));
        sum += walked.left - walked.account.get(Category::Stolen).min(walked.left);
    }
    sum
}

#[cfg(test)]
mod tests;
