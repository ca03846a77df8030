//! Finding `timed_wait`: a launch waits for a clock before it is ready.
//!
//! **What is bad.** The program sleeps, waits between retries, or waits until a time-out is over: for a name server that does not
//! answer, a service that is not there, a lock that nobody gives back. The CPU is idle, and no other profile shows it.
//!
//! **Cost.** Time on the critical path to ready ([`crate::time::critical_path`]) in whole waits that no task ended but an interrupt: sleeps, and waits on a
//! futex (only a timer ends those so). Such a wait for events (poll, epoll, select) ends with a timer or with data from a device; it
//! counts where its length is that of a time-out: a multiple of [`ROUND`], or more by what the kernel may be late ([`is_time_out`]). In ms
//! of the launch; the low end of the interval leaves out the waits for events.
//!
//! Only waits of at least [`SHORTEST`] count: a program that paces itself (frames, ticks) sleeps shorter, and means it.
//!
//! **Predicted saving.** None: what follows would begin sooner, and may then wait for something else. The cost is the most that a launch
//! can gain.
//!
//! **What would follow sooner.** Each place says what comes next on the critical path after its waits (`then`), the most common one where
//! it has several: what the thread does, and in which function, or in which program where no stack is known. It starts sooner by at most
//! the wait. `then_ms` is how long that step is, of several the one in the middle. Null where the wait is the last step before ready.
//!
//! **No finding** where the launch has no ready event or waits were not recorded; beside the critical path; where it is less than
//! [`LEAST_SHARE`] of the time to ready. A loop that sleeps a few ms until something is there is not found either, nor is a time-out for
//! events of more than 0.7 s in a program that runs at a lower priority (nice(1)): the kernel is too late there to tell it from chance.
//!
//! **Confidence.** High where all of it is sleeps and futexes; medium where waits for events are in it, and where rows of `off_cpu` were
//! lost; low where more than [`LOSS_LOW`](super::doubts::LOSS_LOW) of them were.

mod next_step;

use super::doubts::Doubts;
use super::memory_evidence::short;
use super::wait_place::WaitPlace;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Evidence, Finding, Row, milliseconds, row};
use crate::fix_inputs::FixInputs;
use crate::interval::summarize;
use crate::launch_facts::LaunchFacts;
use crate::needs::Need;
use crate::stacks::call_stacks::{CallStacks, StackPath};
use crate::threshold::{Condition, Threshold, Whole};
use crate::time::critical_path::{EndedBy, Step, chain};
use crate::time::ledger::Category;
use next_step::{NextStep, most_common, next_steps};
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, HashMap};

/// Name of the finding.
pub const NAME: &str = "timed_wait";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "sleeps and time-outs before ready",
    what: "A thread on the critical path to ready sleeps, waits between retries, or waits for a time-out to expire.",
    why: "Nothing runs meanwhile, so the launch takes that much longer on any machine. Time-outs of name lookups and missing services \
        last seconds.",
    helps: "Wait for the event instead of a fixed time, query in parallel, or fix what does not answer (a name server in \
        /etc/resolv.conf, a service). Trade-off: none, if there is an event to wait for.",
    by_hand: "strace -f -T -e trace=clock_nanosleep,poll,ppoll,epoll_wait,select,pselect6,futex -- COMMAND shows each wait with its \
              length; poll returns 0 and futex ETIMEDOUT where a time-out was over",
    threshold: THRESHOLD,
    needs: &[Need::Waits],
    shows_in: ShowsIn::WarmLaunches,
    find: |input| find(input.observation.launches, input.call_stacks).into_iter().collect(),
};

/// Least share of the time to ready: as for [`super::cold_file_reads`].
pub const LEAST_SHARE: f64 = super::cold_file_reads::LEAST_SHARE;

/// Waits from this length on count. Frames are at most 42 ms apart (24 a second), ticks and back-off steps mostly less than this.
const SHORTEST: Nanos = Nanos(100_000_000);

/// From here on it is reported.
const THRESHOLD: Threshold = Threshold {
    cost: Nanos(0),
    share: LEAST_SHARE,
    of: Whole::TimeToReady,
    condition: Some(Condition::Waits(SHORTEST)),
};

/// Time-outs that people choose are multiples of this.
const ROUND: Nanos = Nanos(100_000_000);

/// How much later than its slack allows a timer may wake a thread that stands on the path: an idle CPU that has to wake up, a hypervisor.
const LATE: Nanos = Nanos(3_000_000);

/// The share of a time-out that poll, select and epoll_wait may be late so that timers go off together, and the most
/// (`__estimate_accuracy` and `MAX_SLACK` in fs/select.c). At a lower priority it is five times as much.
const SLACK: u64 = 1000;
const MOST_SLACK: Nanos = Nanos(100_000_000);

/// Rows of evidence.
const MOST_ROWS: usize = 10;

/// A wait of a thread on the path.
struct Wait {
    process: ProcessKey,
    category: Category,
    time: Nanos,
    syscall: i32,
    stack: Option<StackPath>,
    /// What follows it on the path; `None` for the last step.
    then: Option<NextStep>,
}

/// The waits of one launch.
struct LaunchWaits<'a> {
    facts: &'a LaunchFacts<'a>,
    call_stacks: Option<&'a CallStacks<'a>>,
    waits: Vec<Wait>,
    launch: Nanos,
}

impl LaunchWaits<'_> {
    fn cost(&self) -> Nanos {
        self.waits.iter().map(|wait| wait.time).sum()
    }

    /// What only a timer can have ended.
    fn certain(&self) -> Nanos {
        self.waits.iter().filter(|wait| wait.category != Category::Events).map(|wait| wait.time).sum()
    }
}

/// Looks for the finding in launches of one command.
fn find(launches: &[LaunchFacts<'_>], call_stacks: &[Option<CallStacks<'_>>]) -> Option<Finding> {
    let found = material(launches, call_stacks)?;
    Some(finding(&found, middle(&found)?))
}

/// Whether it is found in these launches.
pub(super) fn is_found(launches: &[LaunchFacts<'_>], call_stacks: &[Option<CallStacks<'_>>]) -> bool {
    material(launches, call_stacks).is_some()
}

/// The waits of every launch, the least costly first, where they are worth a finding.
fn material<'a>(
    launches: &'a [LaunchFacts<'a>],
    call_stacks: &'a [Option<CallStacks<'a>>],
) -> Option<Vec<LaunchWaits<'a>>> {
    let found = launches.iter().zip(call_stacks).filter_map(|(facts, stacks)| of_launch(facts, stacks.as_ref()));
    let mut found: Vec<LaunchWaits<'a>> = found.collect();
    if found.is_empty() || found.len() < launches.len() {
        return None;
    }
    found.sort_by_key(LaunchWaits::cost);
    let shown = middle(&found)?;
    THRESHOLD.is_met(shown.cost().as_ms(), shown.launch.as_ms()).then_some(found)
}

/// The launch in the middle: details are those of it.
fn middle<'a, 'b>(found: &'b [LaunchWaits<'a>]) -> Option<&'b LaunchWaits<'a>> {
    found.get(found.len().checked_sub(1)? / 2)
}

fn of_launch<'a>(facts: &'a LaunchFacts<'a>, call_stacks: Option<&'a CallStacks<'a>>) -> Option<LaunchWaits<'a>> {
    let tables = &*facts.tables;
    tables.manifest.launch.as_ref()?.ready?;
    let chain = chain(tables)?;
    let timed: HashMap<(ProcessKey, u32, Nanos), usize> = chain
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| is_timed(step))
        .map(|(number, step)| ((step.process, step.tid, step.from), number))
        .collect();
    let next = next_steps(facts, call_stacks, &chain.steps, timed.values().copied());
    let waits = tables.off_cpu.iter().filter_map(|row| {
        let number = *timed.get(&(row.process(), row.tid, row.ts))?;
        let step = &chain.steps[number];
        Some(Wait {
            process: step.process,
            category: step.category?,
            time: step.time(),
            syscall: row.syscall,
            stack: call_stacks.and_then(|stacks| stacks.path(row.stack)),
            then: next.get(&number).cloned(),
        })
    });
    Some(LaunchWaits {
        facts,
        call_stacks,
        waits: if timed.is_empty() { Vec::new() } else { waits.collect() },
        launch: chain.time(),
    })
}

/// Whether a wait is as long as a time-out that somebody chose.
fn is_time_out(wait: Nanos) -> bool {
    let late = wait.0 % ROUND.0;
    late <= LATE.0 + ((wait.0 - late) / SLACK).min(MOST_SLACK.0)
}

fn is_timed(step: &Step) -> bool {
    step.ended_by == Some(EndedBy::Interrupt)
        && step.time() >= SHORTEST
        && match step.category {
            Some(Category::Timer | Category::Lock) => true,
            Some(Category::Events) => is_time_out(step.time()),
            _ => false,
        }
}

fn finding(found: &[LaunchWaits<'_>], shown: &LaunchWaits<'_>) -> Finding {
    let (places, processes) = (by_place(shown), by_process(shown));
    let process = processes.first().map(|(process, _)| *process);
    let name = process.map_or_else(|| "the program".to_owned(), |process| shown.facts.processes.name(process));
    let place = places.first().map(|(place, _)| place.clone()).unwrap_or_default();
    let Doubts { confidence, reasons } = doubts(shown);
    let mut subject = row([("process", Value::from(name.as_str()))]);
    if let Some(process) = process {
        subject.insert("pid".to_owned(), Value::from(process.pid));
    }
    if let Some(function) = place.named() {
        subject.insert("function".to_owned(), Value::from(function));
    }
    let within = place.named().map(|function| format!(" in {}", short(function))).unwrap_or_default();
    Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!(
            "{name} waits {:.0} of {:.0} ms for a sleep or a time-out before it is ready{within}",
            shown.cost().as_ms(),
            shown.launch.as_ms()
        ),
        subject,
        cost: cost(found),
        predicted_saving: None,
        confidence,
        reasons,
        evidence: vec![place_rows(&places), process_rows(shown, &processes)],
        fixes: Vec::new(),
        fix_inputs: FixInputs::default(),
        see_by_hand: FINDING.by_hand.to_owned(),
    }
}

/// Of one launch from the certain part to all, of several the interval of all.
fn cost(found: &[LaunchWaits<'_>]) -> Quantity {
    match found {
        [one] => Quantity::interval(one.cost().as_ms(), one.certain().as_ms(), one.cost().as_ms(), Unit::Ms),
        several => {
            let costs: Vec<f64> = several.iter().map(|one| one.cost().as_ms()).collect();
            summarize(&costs, Unit::Ms).unwrap_or(Quantity::exact(0.0, Unit::Ms))
        }
    }
}

fn doubts(shown: &LaunchWaits<'_>) -> Doubts {
    let mut doubts = Doubts::none();
    if shown.certain() < shown.cost() {
        doubts.lower(
            Confidence::Medium,
            "waits for events are in it, as long as a time-out would be, and ended by an interrupt: a timer, or data from a device at \
             that very moment",
        );
    }
    let tables = &shown.facts.tables;
    doubts.of_losses(&tables.manifest.losses, &["off_cpu"], tables.off_cpu.len(), "rows of off_cpu");
    doubts.reasons.push("it is an upper bound of the gain: what follows may then wait for something else".to_owned());
    doubts
}

/// Places with their waits, most costly first.
fn by_place<'a>(found: &'a LaunchWaits<'_>) -> Vec<(WaitPlace, Vec<&'a Wait>)> {
    let mut places: BTreeMap<WaitPlace, Vec<&Wait>> = BTreeMap::new();
    for wait in &found.waits {
        let place = WaitPlace::of(wait.category, wait.syscall, wait.stack, found.call_stacks);
        places.entry(place).or_default().push(wait);
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, waits)| std::cmp::Reverse(sum(waits)));
    places
}

fn sum(waits: &[&Wait]) -> Nanos {
    waits.iter().map(|wait| wait.time).sum()
}

fn by_process(found: &LaunchWaits<'_>) -> Vec<(ProcessKey, Nanos)> {
    let mut processes: BTreeMap<ProcessKey, Nanos> = BTreeMap::new();
    for wait in &found.waits {
        *processes.entry(wait.process).or_default() += wait.time;
    }
    let mut processes: Vec<_> = processes.into_iter().collect();
    processes.sort_by_key(|(process, sum)| (std::cmp::Reverse(*sum), *process));
    processes
}

fn place_rows(places: &[(WaitPlace, Vec<&Wait>)]) -> Evidence {
    let rows = places.iter().take(MOST_ROWS).map(|(place, waits)| -> Row {
        let longest = waits.iter().map(|wait| wait.time).max().unwrap_or_default();
        let then = most_common(waits.iter().filter_map(|wait| wait.then.as_ref()));
        row([
            ("wait", Value::from(place.category.as_str())),
            ("syscall", Value::from(place.syscall)),
            ("function", place.named().map_or(Value::Null, Value::from)),
            ("stack", Value::from(place.functions.join(";"))),
            ("waits", Value::from(waits.len())),
            ("wait_ms", milliseconds(sum(waits))),
            ("longest_ms", milliseconds(longest)),
            ("then_ms", then.as_ref().map_or(Value::Null, |then| milliseconds(then.time))),
            ("then", then.map_or(Value::Null, |then| Value::from(then.words))),
        ])
    });
    Evidence {
        text: "Waits that a clock ended, on the critical path to ready, by place, with what follows there: it would start sooner, by the \
               wait at most."
            .to_owned(),
        rows: rows.collect(),
    }
}

fn process_rows(found: &LaunchWaits<'_>, processes: &[(ProcessKey, Nanos)]) -> Evidence {
    let rows = processes.iter().take(MOST_ROWS).map(|(process, sum)| {
        row([
            ("process", Value::from(found.facts.processes.name(*process))),
            ("pid", Value::from(process.pid)),
            ("wait_ms", milliseconds(*sum)),
        ])
    });
    Evidence { text: "The same by process.".to_owned(), rows: rows.collect() }
}
