//! When calls that change address spaces take effect, beside the faults that are taken in them.
//!
//! Owns that order. Threads share an address space, so calls overlap. What a call makes counts from its return on, when somebody
//! can know its address; what it takes away, from its begin on, when nobody may use it. Leaves what a call means to those that
//! follow it: [`crate::memory::memory_blocks`], [`crate::memory::released_pages`].

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{MemoryCall, MemoryCallKind, Nanos, ProcessKey};
use std::cell::OnceCell;

/// What happens at a moment. Of the same moment, what is made comes first: it is there before it can be taken away. A call that moves and
/// took no time does both at its place among these, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A call made something: number of its row.
    Returns(usize),
    /// Pages were looked at: number of the row of `page_contents`.
    Looks(usize),
    /// A process made another one, which has its memory.
    Forks {
        /// Who.
        parent: ProcessKey,
        /// Whom.
        child: ProcessKey,
    },
    /// A process ended, or executes another program.
    Ends(ProcessKey),
    /// A call takes something away, or advises: number of its row.
    Begins(usize),
}

impl Step {
    fn order(&self, calls: &[MemoryCall]) -> u8 {
        match self {
            Self::Returns(_) => 0,
            Self::Looks(_) | Self::Forks { .. } => 1,
            Self::Ends(_) => 2,
            Self::Begins(number) if calls[*number].call == MemoryCallKind::Mremap && calls[*number].duration.0 == 0 => {
                0
            }
            Self::Begins(_) => 3,
        }
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A change of an address space.
    Step(Nanos, Step),
    /// A fault: number of its row.
    Fault(usize),
    /// A CPU sample with arguments: number of its row.
    Sample(usize),
}

/// All steps, faults and samples of a recording in the order in which they count. They are put in order when somebody first follows
/// them, and once for all who do.
pub struct MemoryEvents<'a> {
    tables: &'a Tables,
    steps: OnceCell<Vec<(Nanos, Step)>>,
    /// Numbers of the samples with arguments.
    samples: OnceCell<Vec<usize>>,
}

impl<'a> MemoryEvents<'a> {
    /// Of a recording whose rows may be in any order.
    pub fn new(tables: &'a Tables) -> Self {
        Self { tables, steps: OnceCell::new(), samples: OnceCell::new() }
    }

    /// The recording.
    pub(crate) fn tables(&self) -> &'a Tables {
        self.tables
    }

    /// Hands them out. Calls of the same moment keep their order, and come before faults, and these before samples.
    pub(crate) fn for_each(&self, mut take: impl FnMut(Event)) {
        let tables = self.tables;
        let mut steps = self.steps.get_or_init(|| steps(tables)).iter().copied().peekable();
        // One by one: mostly there is none, and each is passed once.
        let mut up_to = |until: Nanos, take: &mut dyn FnMut(Event)| {
            while let Some((ts, step)) = steps.next_if(|(ts, _)| *ts <= until) {
                take(Event::Step(ts, step));
            }
        };
        let mut samples = self.samples.get_or_init(|| samples(tables)).iter().copied().peekable();
        for number in by_time(&tables.faults, |fault| fault.ts) {
            let ts = tables.faults[number].ts;
            while let Some(sample) = samples.next_if(|sample| tables.cpu_samples[*sample].ts < ts) {
                up_to(tables.cpu_samples[sample].ts, &mut take);
                take(Event::Sample(sample));
            }
            up_to(ts, &mut take);
            take(Event::Fault(number));
        }
        for sample in samples {
            up_to(tables.cpu_samples[sample].ts, &mut take);
            take(Event::Sample(sample));
        }
        up_to(Nanos(u64::MAX), &mut take);
    }
}

/// Numbers of rows in the order of their times; those of the same time keep theirs. Recordings are sorted, and of sorted rows no list is
/// made: there are millions, and several that follow them.
fn by_time<T>(rows: &[T], ts: impl Fn(&T) -> Nanos) -> impl Iterator<Item = usize> {
    let is_sorted = rows.is_sorted_by_key(&ts);
    let mut sorted: Vec<usize> = if is_sorted { Vec::new() } else { (0..rows.len()).collect() };
    sorted.sort_by_key(|row| ts(&rows[*row]));
    (0..if is_sorted { rows.len() } else { 0 }).chain(sorted)
}

fn samples(tables: &Tables) -> Vec<usize> {
    let rows = by_time(&tables.cpu_samples, |sample| sample.ts);
    rows.filter(|sample| tables.cpu_samples[*sample].first_argument.is_some()).collect()
}

fn steps(tables: &Tables) -> Vec<(Nanos, Step)> {
    let mut steps = Vec::with_capacity(tables.memory_calls.len() * 2);
    for (number, call) in tables.memory_calls.iter().enumerate().filter(|(_, call)| call.result == 0) {
        let (begin, end) = ((call.ts, Step::Begins(number)), (call.ts + call.duration, Step::Returns(number)));
        match call.call {
            MemoryCallKind::Mmap => steps.push(end),
            MemoryCallKind::Munmap | MemoryCallKind::Madvise => steps.push(begin),
            MemoryCallKind::Prctl => steps.push(end),
            MemoryCallKind::Mremap => steps.extend([begin, end]),
            MemoryCallKind::Brk if call.shrinks => steps.push(begin),
            MemoryCallKind::Brk => steps.push(end),
        }
    }
    let forked = tables.forks.iter().filter(|fork| !fork.thread).map(|fork| {
        let parent = ProcessKey { pid: fork.parent_pid, start: fork.parent_start };
        (fork.ts, Step::Forks { parent, child: fork.process() })
    });
    steps.extend(forked);
    let ended = || tables.exits.iter().filter(|exit| exit.ends_process());
    steps.extend(ended().map(|exit| (exit.ts, Step::Ends(exit.process()))));
    if !tables.page_contents.is_empty() {
        // At the end of a process its pages are looked at after the end is reported.
        let ends: IntegerMap<ProcessKey, Nanos> = ended().map(|exit| (exit.process(), exit.ts)).collect();
        steps.extend(tables.page_contents.iter().enumerate().map(|(number, look)| {
            let end = ends.get(&look.process()).copied().unwrap_or(look.ts);
            (look.ts.min(end), Step::Looks(number))
        }));
    }
    let executed = tables.execs.iter().filter(|exec| !exec.present);
    steps.extend(executed.map(|exec| (exec.ts, Step::Ends(exec.process()))));
    steps.sort_by_key(|(ts, step)| (*ts, step.order(&tables.memory_calls)));
    steps
}
