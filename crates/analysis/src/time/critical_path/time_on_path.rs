//! What threads did on the path: faults, memory calls and samples within the time that they ran.

use super::step::{Step, ThreadOnPath};
use crate::integer_hash::IntegerMap;
use crate::time::ledger::lives::Lives;
use crate::time::ledger::split::split;
use crate::time::ledger::timeline::Timeline;
use crate::time::ledger::{Account, Category, SplitBy};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpu, OffCpuReason, ProcessKey};

/// Sums over all steps.
pub(super) struct TimeOnPath {
    pub account: Account,
    pub unexplained: Nanos,
    pub split_by: SplitBy,
    pub kernel_interval: Option<(Nanos, Nanos)>,
    pub threads: Vec<ThreadOnPath>,
}

/// Adds up the steps, which are in order.
pub(super) fn of_steps(tables: &Tables, lives: &Lives<'_>, steps: &[Step]) -> TimeOnPath {
    let end = |ts: Nanos, duration: Nanos| ts.0.saturating_add(duration.0);
    let mut faults = RowsOfSteps::new(steps, &tables.faults, |row| {
        (row.process(), row.tid, row.ts.0, end(row.ts, row.duration.unwrap_or_default()))
    });
    let mut calls = RowsOfSteps::new(steps, &tables.memory_calls, |row| {
        (row.process(), row.tid, row.ts.0, end(row.ts, row.duration))
    });
    let mut samples =
        RowsOfSteps::new(steps, &tables.cpu_samples, |row| (row.process(), row.tid, row.ts.0, end(row.ts, Nanos(1))));
    let stolen_rows: Vec<&OffCpu> = tables.off_cpu.iter().filter(|row| row.reason == OffCpuReason::Stolen).collect();
    let mut stolen_rows =
        RowsOfSteps::new(steps, &stolen_rows, |row| (row.process(), row.tid, row.ts.0, end(row.ts, row.duration)));
    let mut threads = Threads::default();
    let mut timeline = Timeline::default();
    let (mut rest, mut in_them, mut seen) = (Nanos(0), Nanos(0), (0, 0));
    for (number, step) in (0u32..).zip(steps) {
        let thread = threads.of(step);
        match step.category {
            Some(Category::OnCpu) => {
                faults.of(number).for_each(|row| timeline.fault(row));
                calls.of(number).for_each(|row| timeline.memory_call(row));
                samples.of(number).for_each(|row| timeline.sample(row));
                stolen_rows.of(number).for_each(|row| timeline.off_cpu(row));
                let mut walked = timeline.walk(step.from, step.to);
                // It lies in the time that the thread seems to have run, at a place that is not known.
                let stolen = walked.account.take(Category::Stolen).min(walked.left);
                let left = walked.left - stolen;
                thread.account.merge(&walked.account);
                thread.account.add(Category::Stolen, stolen);
                thread.account.add(Category::OnCpu, left);
                rest += left;
                in_them += walked.ran_in_them;
                seen = (seen.0 + walked.samples.0, seen.1 + walked.samples.1);
            }
            Some(category) => thread.account.add(category, step.time()),
            None => thread.unexplained += step.time(),
        }
    }
    let mut account = Account::default();
    threads.all.iter().for_each(|thread| account.merge(&thread.account));
    let unexplained = threads.all.iter().map(|thread| thread.unexplained).sum();
    let split = split(rest, in_them, seen, None);
    if split.by == SplitBy::Samples {
        account.take(Category::OnCpu);
        account.add(Category::Kernel, split.kernel);
        account.add(Category::User, rest - split.kernel);
    }
    let mut threads = threads.all;
    let names: IntegerMap<(ProcessKey, u32), &str> =
        lives.all.iter().filter_map(|life| Some(((life.process, life.tid), life.name?))).collect();
    for thread in &mut threads {
        thread.name = names.get(&(thread.process, thread.tid)).map(|name| (*name).to_owned());
    }
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.time()), thread.process, thread.tid));
    TimeOnPath { account, unexplained, split_by: split.by, kernel_interval: split.interval, threads }
}

/// Threads in the order in which the path comes to them.
#[derive(Default)]
struct Threads {
    all: Vec<ThreadOnPath>,
    number_of: IntegerMap<(ProcessKey, u32), usize>,
}

impl Threads {
    fn of(&mut self, step: &Step) -> &mut ThreadOnPath {
        let number = *self.number_of.entry((step.process, step.tid)).or_insert_with(|| {
            self.all.push(ThreadOnPath {
                process: step.process,
                tid: step.tid,
                name: None,
                account: Account::default(),
                unexplained: Nanos(0),
            });
            self.all.len() - 1
        });
        &mut self.all[number]
    }
}

/// The rows of a table that reach into steps in which their thread ran.
struct RowsOfSteps<'a, R> {
    rows: &'a [R],
    /// Step and row, in this order.
    pairs: Vec<(u32, u32)>,
    at: usize,
}

impl<'a, R> RowsOfSteps<'a, R> {
    /// `of` returns thread, begin and end of a row.
    fn new(steps: &[Step], rows: &'a [R], of: impl Fn(&R) -> (ProcessKey, u32, u64, u64)) -> Self {
        let mut pairs = Vec::new();
        // Both are in order as a rule: the step that the last row began in is that of the next.
        let mut at = 0;
        for (number, row) in (0u32..).zip(rows) {
            let (process, tid, begin, end) = of(row);
            if steps.get(at).is_none_or(|step| begin < step.from.0 || step.to.0 <= begin) {
                at = steps.partition_point(|step| step.to.0 <= begin);
            }
            for (step, one) in (at as u32..).zip(&steps[at..]).take_while(|(_, step)| step.from.0 < end) {
                if one.tid == tid && one.process == process && one.category == Some(Category::OnCpu) {
                    pairs.push((step, number));
                }
            }
        }
        if !pairs.is_sorted() {
            pairs.sort_unstable();
        }
        Self { rows, pairs, at: 0 }
    }

    /// The rows of a step. Steps must be asked for in their order.
    fn of(&mut self, step: u32) -> impl Iterator<Item = &'a R> {
        let behind = &self.pairs[self.at..];
        let skipped = behind.iter().take_while(|(of, _)| *of < step).count();
        let from = self.at + skipped;
        let count = self.pairs[from..].iter().take_while(|(of, _)| *of == step).count();
        self.at = from + count;
        let rows = self.rows;
        self.pairs[from..from + count].iter().map(move |(_, row)| &rows[*row as usize])
    }
}
