//! Why a transaction missed its deadline: the cause that the trace shows for at least half of its time, or none. Pure.
//!
//! Nothing is guessed: what the trace does not show is `unexplained`, with where the time went.

use super::beside::{Beside, TICK};
use super::instance::Text;
use super::parse::{Event, EventKind, Task, events};
use super::timeline::{Party, Segment, State, interrupts, life, occupants, transaction};
use crate::latency::Missed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::collections::BTreeMap;

/// What a transaction waited for, for half of its time or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The CPU was busy with another task that outranked the waiting one, or had its turn.
    CpuBusy,
    /// The server waited behind a task that its caller outranks: the caller's priority did not reach it.
    NoInheritance,
    /// Interrupts or softirqs on the CPU of who should have run.
    Interrupt,
    /// The thread waited to be moved to another CPU.
    Migration,
    /// The real-time budget of the CPU was used up.
    RtThrottled,
    /// The server's cgroup was throttled by its CPU quota.
    CpuQuota,
    /// The server waited in its service until another thread woke it.
    LockHeld,
    /// Steal time of a CPU on which the client or the server ran.
    Stolen,
    /// The trace shows no cause for half of the time.
    Unexplained,
}

/// The explanation of one miss.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The cause.
    pub cause: Cause,
    /// A sentence.
    pub text: String,
    /// Who had the CPU, or woke the server.
    pub who: Option<Culprit>,
    /// Duration of the transaction from its intended start, in us.
    pub took_us: f64,
    /// Time that the cause explains, in us.
    pub explained_us: f64,
    /// What the transaction waited for, without gaps.
    pub timeline: Vec<Part>,
    /// Events of the binder driver in the two threads of the transaction; none where the kernel has no such events.
    pub binder: Vec<Moment>,
    /// Events of the trace that were read.
    pub events: usize,
}

/// An event of the binder driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// After the intended start of the transaction, in us.
    pub at_us: f64,
    /// In whose thread.
    pub party: Party,
    /// The event without its prefix `binder_`, and its fields as the kernel printed them.
    pub event: String,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Culprit {
    /// Thread id.
    pub tid: u32,
    /// Its name, as it chose it.
    pub name: String,
    /// Its scheduling: `FIFO/RR 50`, `nice 0`, `deadline`, `idle`; empty where the trace does not show it.
    pub scheduling: String,
}

/// A part of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Start after the intended start of the transaction (in a closed loop the call), in us.
    pub at_us: f64,
    /// Length in us.
    pub us: f64,
    /// Whom the transaction waited for.
    pub party: Party,
    /// What that one did.
    pub state: State,
    /// Where.
    pub cpu: Option<u32>,
    /// Who had the CPU meanwhile, what interrupted, or who ended the wait.
    pub note: Option<String>,
}

fn scheduling(task: &Task) -> String {
    match task.priority {
        _ if task.thread == 0 => "idle".to_owned(),
        below if below < 0 => "deadline".to_owned(),
        real_time @ 0..=99 => format!("FIFO/RR {}", 99 - real_time),
        normal => format!("nice {}", normal - 120),
    }
}

fn culprit(task: &Task) -> Culprit {
    Culprit { tid: task.thread, name: task.name.clone(), scheduling: scheduling(task) }
}

fn shown(culprit: &Culprit) -> String {
    let Culprit { tid, name, scheduling } = culprit;
    if scheduling.is_empty() { format!("{name} ({tid})") } else { format!("{name} ({tid}, {scheduling})") }
}

/// Time by cause and by who caused it.
type Times = BTreeMap<(Cause, String), (u64, Option<Culprit>)>;

struct Reader<'a> {
    events: &'a [Event],
    missed: &'a Missed,
    times: Times,
    /// What is left of what grew beside the trace: each ns of it explains one of the transaction.
    left: Beside,
}

impl<'a> Reader<'a> {
    fn new(events: &'a [Event], missed: &'a Missed) -> Self {
        let mut left = missed.beside.clone();
        // A counter that went on by n ticks grew by more than n - 1 of them.
        left.stolen.values_mut().for_each(|stolen| *stolen = stolen.saturating_sub(TICK));
        Self { events, missed, times: Times::new(), left }
    }
}

/// The kernel's priority of SCHED_FIFO 99.
const CALLER: i32 = 0;
/// RT_MAX_PRIO - 1: above are normal tasks (include/linux/sched/prio.h).
const LAST_REAL_TIME: i32 = 99;
/// A real-time thread that waits behind a normal one is throttled only when real-time threads had at least this share of the
/// CPU's last second (kernel.sched_rt_runtime_us is 95 %).
const THROTTLING_SHARE: f64 = 0.85;

/// Whether a thread of some priority is a real-time one that a task cannot keep from a CPU.
fn outranks(own: Option<i32>, task: &Task) -> bool {
    own.is_some_and(|own| own <= LAST_REAL_TIME && own < task.priority)
}

/// Explains a miss from a trace that may be the newest part only.
///
/// # Errors
/// The part that was left out may hold the cause: it begins within the transaction, or what is left shows no cause.
pub fn explain_text(text: &Text, missed: &Missed) -> Result<Explanation, Unavailable> {
    let explained = explain(&text.bytes, missed);
    if !text.cut {
        return Ok(explained);
    }
    // Its first lines; those of a trace begin with an event.
    let first = events(&text.bytes[..text.bytes.len().min(64 * 1024)]);
    let is_whole = first.first().is_some_and(|event| event.time <= began(missed));
    if !is_whole || explained.cause == Cause::Unexplained {
        return Err(declared::TRACE_OF_MISS.because(
            "the trace exceeds 256 MiB, and its newest part shows no cause",
            "run on fewer CPUs (`taskset`), with fewer other programs running",
        ));
    }
    Ok(explained)
}

/// From when on the latency counts that missed: from the intended start, which in a closed loop is the call.
fn began(missed: &Missed) -> u64 {
    missed.sample.intended.min(missed.sample.start)
}

/// Explains a miss from the text of the trace.
pub fn explain(text: &[u8], missed: &Missed) -> Explanation {
    let events = events(text);
    let (from, to) = (began(missed), missed.sample.end);
    let client = life(&events, missed.sample.client_thread, from, to);
    let server = life(&events, missed.sample.server_thread, from, to);
    let segments = transaction(&client, &server, from, missed.sample.start, to);
    let mut reader = Reader::new(&events, missed);
    let timeline = segments.iter().map(|segment| reader.part(segment)).collect();
    let took = to.saturating_sub(from);
    let us = |ns: u64| ns as f64 / 1000.0;
    let (cause, text, who, explained) = match reader.largest().filter(|(_, time)| time * 2 >= took) {
        Some((cause, time)) => {
            let most = reader.times.iter().filter(|((one, _), _)| *one == cause).max_by_key(|(_, (time, _))| *time);
            let (what, who) = most.map(|((_, what), (_, who))| (what.clone(), who.clone())).unwrap_or_default();
            let what = if cause == Cause::Stolen { reader.whats(cause).join(" and ") } else { what };
            (cause, sentence(cause, &what, us(time)), who, us(time))
        }
        None => (Cause::Unexplained, sentence(Cause::Unexplained, "", 0.0), None, 0.0),
    };
    let binder = binder(&events, missed);
    Explanation { cause, text, who, took_us: us(took), explained_us: explained, timeline, binder, events: events.len() }
}

/// Events of the binder driver beyond which a transaction is no single one.
const MOST_BINDER_EVENTS: usize = 100;

/// What the driver did in the context of the two threads.
fn binder(events: &[Event], missed: &Missed) -> Vec<Moment> {
    let from = began(missed);
    let within = events.iter().filter(|event| (from / 1000 * 1000..=missed.sample.end).contains(&event.time));
    let of_driver = within.filter_map(|event| {
        let EventKind::Binder { name, fields } = &event.kind else { return None };
        let party = match event.thread {
            thread if thread == missed.sample.client_thread => Party::Client,
            thread if thread == missed.sample.server_thread => Party::Server,
            _ => return None,
        };
        let at_us = event.time.saturating_sub(from) as f64 / 1000.0;
        Some(Moment { at_us, party, event: format!("{name} {fields}").trim_end().to_owned() })
    });
    of_driver.take(MOST_BINDER_EVENTS).collect()
}

fn sentence(cause: Cause, what: &str, us: f64) -> String {
    let ms = us / 1000.0;
    match cause {
        Cause::CpuBusy => format!("the CPU was busy for {ms:.3} ms, mostly with {what}"),
        Cause::NoInheritance => format!(
            "the server waited {ms:.3} ms, mostly behind {what}, which its real-time caller outranks: the priority was not inherited"
        ),
        Cause::Interrupt => format!("interrupted for {ms:.3} ms, mostly by {what}"),
        Cause::Migration => format!("{what} waited {ms:.3} ms to be moved to another CPU"),
        Cause::RtThrottled => format!("real-time throttling let {what} run for {ms:.3} ms"),
        Cause::CpuQuota => format!("{what} was throttled for {ms:.3} ms by the CPU quota of its cgroup (cpu.max)"),
        Cause::LockHeld => format!(
            "the server waited {ms:.3} ms in its service until {what} woke it (possibly a lock held by that thread)"
        ),
        Cause::Stolen => format!("steal on {what} grew by up to {ms:.3} ms"),
        Cause::Unexplained => "the trace shows no cause for half of the time".to_owned(),
    }
}

impl Reader<'_> {
    /// The cause with the most time, whoever caused it.
    fn largest(&self) -> Option<(Cause, u64)> {
        let mut sums: BTreeMap<Cause, u64> = BTreeMap::new();
        for ((cause, _), (time, _)) in &self.times {
            *sums.entry(*cause).or_default() += time;
        }
        sums.into_iter().max_by_key(|(_, time)| *time)
    }

    /// Who or what caused it.
    fn whats(&self, cause: Cause) -> Vec<String> {
        self.times.keys().filter(|(one, _)| *one == cause).map(|(_, what)| what.clone()).collect()
    }

    fn add(&mut self, cause: Cause, what: String, time: u64, who: Option<Culprit>) {
        let entry = self.times.entry((cause, what)).or_insert((0, who));
        entry.0 += time;
    }

    fn part(&mut self, segment: &Segment) -> Part {
        let Segment { party, stretch, late } = segment;
        let note = match (stretch.state, stretch.cpu) {
            (State::Running, Some(cpu)) => self.running(cpu, stretch.from, stretch.to),
            (State::Runnable, Some(cpu)) => self.runnable(segment, cpu),
            (State::Blocked, _) => self.blocked(segment),
            _ => None,
        };
        let note = match (late, note) {
            (false, note) => note,
            (true, None) => Some("start was late".to_owned()),
            (true, Some(note)) => Some(format!("start was late; {note}")),
        };
        let us = |ns: u64| ns as f64 / 1000.0;
        Part {
            at_us: us(stretch.from.saturating_sub(began(self.missed))),
            us: us(stretch.to - stretch.from),
            party: *party,
            state: stretch.state,
            cpu: stretch.cpu,
            note,
        }
    }

    fn running(&mut self, cpu: u32, from: u64, to: u64) -> Option<String> {
        let list = interrupts(self.events, cpu, from, to);
        let interrupted: u64 = list.iter().map(|(_, time)| time).sum();
        let name = list.first().map(|(name, _)| name.clone());
        if let Some(name) = &name {
            self.add(Cause::Interrupt, name.clone(), interrupted, None);
        }
        // Steal time is counted while a task is on the CPU; more than the segment it cannot be.
        if let Some(left) = self.left.stolen.get_mut(&cpu) {
            let stolen = (*left).min((to - from).saturating_sub(interrupted));
            *left -= stolen;
            if stolen > 0 {
                self.add(Cause::Stolen, format!("CPU {cpu}"), stolen, None);
            }
        }
        name.map(|name| format!("interrupted {:.0} us, mostly by {name}", interrupted as f64 / 1000.0))
    }

    fn runnable(&mut self, segment: &Segment, cpu: u32) -> Option<String> {
        let Segment { party, stretch, .. } = segment;
        let own = [self.missed.sample.client_thread, self.missed.sample.server_thread];
        let list = occupants(self.events, cpu, stretch.from, stretch.to);
        let length = stretch.to - stretch.from;
        // A server whose group is throttled would not run whoever has the CPU meanwhile: those share the rest.
        let throttled = if *party == Party::Server { self.left.throttled.min(length) } else { 0 };
        self.left.throttled -= throttled;
        if throttled > 0 {
            self.add(Cause::CpuQuota, "the server".to_owned(), throttled, None);
        }
        let of_rest = |time: u64| {
            let share = u128::from(time) * u128::from(length - throttled) / u128::from(length.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        for (task, time) in &list {
            if own.contains(&task.thread) {
                continue;
            }
            let who = culprit(task);
            let (cause, what) = if task.thread == 0 {
                if !stretch.moved {
                    // An idle CPU and a runnable thread: waking the CPU took that long. Why, no event says.
                    continue;
                }
                let whose = if *party == Party::Client { "the client" } else { "the server" };
                (Cause::Migration, whose.to_owned())
            } else if task.name.starts_with("migration/") {
                (Cause::Migration, "the thread".to_owned())
            } else {
                match self.rank(*party, stretch.priority, task, cpu, stretch.from) {
                    // Whom it outranks does not keep it from a CPU: it was not there yet.
                    Cause::CpuBusy if stretch.moved && outranks(stretch.priority, task) => {
                        (Cause::Migration, if *party == Party::Client { "the client" } else { "the server" }.to_owned())
                    }
                    cause => (cause, shown(&who)),
                }
            };
            self.add(cause, what, of_rest(*time), Some(who));
        }
        if throttled.saturating_mul(2) >= length {
            return Some("throttled by the CPU quota of its cgroup".to_owned());
        }
        list.first().map(|(task, _)| format!("CPU had {}", shown(&culprit(task))))
    }

    /// Why a task that is no idle task kept a runnable thread from its CPU.
    fn rank(&self, party: Party, own: Option<i32>, task: &Task, cpu: u32, at: u64) -> Cause {
        let behind_lower = outranks(own, task);
        let own = own.unwrap_or(CALLER);
        if party == Party::Server && own > CALLER && task.priority > CALLER && !behind_lower {
            return Cause::NoInheritance;
        }
        if own <= LAST_REAL_TIME && task.priority > LAST_REAL_TIME {
            let second = 1_000_000_000;
            let real_time: u64 = occupants(self.events, cpu, at.saturating_sub(second), at)
                .iter()
                .filter(|(task, _)| task.thread != 0 && task.priority <= LAST_REAL_TIME)
                .map(|(_, time)| time)
                .sum();
            if real_time as f64 >= THROTTLING_SHARE * second as f64 {
                return Cause::RtThrottled;
            }
        }
        Cause::CpuBusy
    }

    fn blocked(&mut self, segment: &Segment) -> Option<String> {
        let Segment { party, stretch, .. } = segment;
        let (waker, from_interrupt) = stretch.woken_by?;
        let name = self.name_of(waker);
        let note = match from_interrupt {
            true => "woken by an interrupt".to_owned(),
            false => format!("woken by {}", shown(&name)),
        };
        let own = [self.missed.sample.client_thread, self.missed.sample.server_thread];
        let in_service = stretch.from + 1000 >= self.missed.sample.served;
        if *party == Party::Server && in_service && !from_interrupt && !own.contains(&waker) {
            self.add(Cause::LockHeld, shown(&name), stretch.to - stretch.from, Some(name));
        }
        Some(note)
    }

    fn name_of(&self, thread: u32) -> Culprit {
        let task = self.events.iter().find_map(|event| match &event.kind {
            EventKind::Switch { previous, .. } if previous.thread == thread => Some(previous),
            EventKind::Switch { next, .. } if next.thread == thread => Some(next),
            _ => None,
        });
        task.map_or_else(|| Culprit { tid: thread, name: "thread".to_owned(), scheduling: String::new() }, culprit)
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
