//! What the two threads of a transaction did, from events: pure.
//!
//! At any moment one of the two is what the transaction waits for: before the call the client, then the client while it runs or is
//! runnable, else the server. The segments cover the transaction without gaps or overlaps.

use super::parse::{Event, EventKind, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// On a CPU.
    Running,
    /// Could run and did not.
    Runnable,
    /// Waited for something.
    Blocked,
    /// The trace does not show it.
    Unknown,
}

/// A stretch of a thread's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// From, in ns.
    pub from: u64,
    /// To.
    pub to: u64,
    /// State.
    pub state: State,
    /// Where it ran or waited to run.
    pub cpu: Option<u32>,
    /// Its priority as the kernel sees it, where an event said so.
    pub priority: Option<i32>,
    /// Who ended a blocked stretch: the thread, and whether from an interrupt.
    pub woken_by: Option<(u32, bool)>,
    /// Whether it was moved to another CPU meanwhile.
    pub moved: bool,
}

/// The life of `thread` between `from` and `to`.
pub fn life(events: &[Event], thread: u32, from: u64, to: u64) -> Vec<Stretch> {
    let start = Stretch { from: 0, to, state: State::Unknown, cpu: None, priority: None, woken_by: None, moved: false };
    let mut done: Vec<Stretch> = Vec::new();
    let mut now = start;
    let mut change = |now: &mut Stretch, time: u64, next: Stretch| {
        let mut ended = std::mem::replace(now, next);
        ended.to = time;
        done.push(ended);
    };
    for event in events.iter().take_while(|event| event.time <= to) {
        let next =
            |state, cpu, priority| Stretch { from: event.time, to, state, cpu, priority, woken_by: None, moved: false };
        match &event.kind {
            EventKind::Switch { previous, state: left_as, .. } if previous.thread == thread => {
                match now.state {
                    State::Unknown => {
                        (now.state, now.cpu, now.priority) = (State::Running, Some(event.cpu), Some(previous.priority));
                    }
                    // When it got the CPU is not in the text: a name with a line break took the line apart, or the event was lost.
                    State::Runnable | State::Blocked => now.state = State::Unknown,
                    State::Running => {}
                }
                let state = if *left_as == 'R' { State::Runnable } else { State::Blocked };
                change(&mut now, event.time, next(state, Some(event.cpu), Some(previous.priority)));
            }
            EventKind::Switch { next: task, .. } if task.thread == thread => {
                if now.state == State::Unknown {
                    now.state = State::Runnable;
                }
                change(&mut now, event.time, next(State::Running, Some(event.cpu), Some(task.priority)));
            }
            EventKind::Waking { task, cpu, .. } if task.thread == thread => match now.state {
                State::Blocked | State::Unknown => {
                    now.state = State::Blocked;
                    now.woken_by = Some((event.thread, event.in_interrupt));
                    change(&mut now, event.time, next(State::Runnable, Some(*cpu), Some(task.priority)));
                }
                // The wake-up itself, after the waking: it knows the CPU better.
                State::Runnable => now.cpu = Some(*cpu),
                State::Running => {}
            },
            EventKind::Migrate { thread: moved, to } if *moved == thread => {
                now.moved = true;
                if now.state == State::Runnable {
                    now.cpu = Some(*to);
                }
            }
            EventKind::Lend { thread: lent, priority } if *lent == thread => now.priority = Some(*priority),
            _ => {}
        }
    }
    done.push(now);
    done.retain_mut(|stretch| {
        (stretch.from, stretch.to) = (stretch.from.max(from), stretch.to.min(to));
        stretch.from < stretch.to
    });
    done
}

/// Which of the two the transaction waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The calling thread.
    Client,
    /// The serving thread.
    Server,
}

/// A part of the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whom it waited for.
    pub party: Party,
    /// What that one did; `from` and `to` are the segment's.
    pub stretch: Stretch,
    /// Whether it lies before the call, which should have begun by then.
    pub late: bool,
}

/// The transaction from `from`, when it should have begun, to `to`; the call was made at `start`.
pub fn transaction(client: &[Stretch], server: &[Stretch], from: u64, start: u64, to: u64) -> Vec<Segment> {
    let mut cuts: Vec<u64> =
        client.iter().chain(server).flat_map(|stretch| [stretch.from, stretch.to]).chain([from, start, to]).collect();
    cuts.retain(|cut| (from..=to).contains(cut));
    cuts.sort_unstable();
    cuts.dedup();
    let at = |stretches: &[Stretch], time: u64| {
        stretches.iter().find(|stretch| stretch.from <= time && time < stretch.to).cloned()
    };
    let mut segments: Vec<Segment> = Vec::new();
    for two in cuts.windows(2) {
        let late = two[0] < start;
        let (party, stretch) = match (at(client, two[0]), at(server, two[0]).filter(|_| !late)) {
            (Some(client), Some(server)) if client.state == State::Blocked => (Party::Server, server),
            (Some(client), _) => (Party::Client, client),
            (None, Some(server)) => (Party::Server, server),
            (None, None) => (
                Party::Client,
                Stretch {
                    from: 0,
                    to: 0,
                    state: State::Unknown,
                    cpu: None,
                    priority: None,
                    woken_by: None,
                    moved: false,
                },
            ),
        };
        let stretch = Stretch { from: two[0], to: two[1], ..stretch };
        match segments.last_mut() {
            Some(last)
                if (last.party, last.late) == (party, late)
                    && (last.stretch.state, last.stretch.cpu, last.stretch.priority)
                        == (stretch.state, stretch.cpu, stretch.priority)
                    && last.stretch.woken_by == stretch.woken_by =>
            {
                last.stretch.to = two[1];
                last.stretch.moved |= stretch.moved;
            }
            _ => segments.push(Segment { party, stretch, late }),
        }
    }
    segments
}

/// Who had a CPU between two moments, with how long, longest first.
pub fn occupants(events: &[Event], cpu: u32, from: u64, to: u64) -> Vec<(Task, u64)> {
    let mut who: Option<Task> = None;
    let mut since = from;
    let mut list: Vec<(Task, u64)> = Vec::new();
    let mut add = |task: Option<Task>, until: u64, since: u64| {
        let (Some(task), true) = (task, until > since) else { return };
        match list.iter_mut().find(|(one, _)| one.thread == task.thread) {
            Some((_, time)) => *time += until - since,
            None => list.push((task, until - since)),
        }
    };
    for event in events.iter().filter(|event| event.cpu == cpu) {
        let EventKind::Switch { previous, next, .. } = &event.kind else { continue };
        if event.time > from {
            let until = event.time.min(to);
            // Also right where the first switch comes after the beginning.
            add(Some(previous.clone()), until, since);
            since = until;
        }
        who = Some(next.clone());
        if event.time >= to {
            break;
        }
    }
    add(who, to, since);
    list.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    list
}

/// Time in interrupts and softirqs on a CPU between two moments, by name, longest first. What nests counts once, for the
/// outer one; one whose end is not in the trace counts nothing, and hides none that follow.
pub fn interrupts(events: &[Event], cpu: u32, from: u64, to: u64) -> Vec<(String, u64)> {
    let mut open: Vec<(&String, &String, u64)> = Vec::new();
    let mut list: Vec<(String, u64)> = Vec::new();
    for event in events.iter().filter(|event| event.cpu == cpu && event.time <= to) {
        match &event.kind {
            EventKind::Enter { key, name } => {
                // None interrupts itself: the end of the one before is missing.
                if let Some(before) = open.iter().position(|(one, ..)| *one == key) {
                    open.truncate(before);
                }
                open.push((key, name, event.time));
            }
            EventKind::Leave(key) => {
                let Some(index) = open.iter().rposition(|(one, ..)| *one == key) else { continue };
                let (_, name, since) = open[index];
                open.truncate(index);
                let (since, until) = (since.max(from), event.time.max(from));
                if open.is_empty() && until > since {
                    match list.iter_mut().find(|(one, _)| one == name) {
                        Some((_, time)) => *time += until - since,
                        None => list.push((name.clone(), until - since)),
                    }
                }
            }
            // No task is switched within one; but for softirqs of PREEMPT_RT, whose rest does not count.
            EventKind::Switch { .. } => open.clear(),
            _ => {}
        }
    }
    list.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    list
}
