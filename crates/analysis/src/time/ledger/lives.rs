//! When each thread began and ended, with the scheduler's account at both ends.
//!
//! A thread id can be used again in the same process, so a thread is a *life*: from a begin to the last end before the next
//! begin. A begin is a fork, for the recorded command its first exec, for a thread that ran already the moment from which it
//! was followed (`thread_counters`); that moment also replaces a fork or an exec that was seen just before. An end is the last row of
//! `thread_counters`, or in recordings without these the row of `exits`.

use crate::integer_hash::{IntegerMap, IntegerSet};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey, ThreadCounters};
use std::ops::Range;

/// What the kernel counted of a thread until a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    run_time: Option<Nanos>,
    /// User and system.
    ticks: Option<(Nanos, Nanos)>,
    run_delay: Option<Nanos>,
}

impl Counted {
    const ZERO: Self = Self { run_time: Some(Nanos(0)), ticks: Some((Nanos(0), Nanos(0))), run_delay: Some(Nanos(0)) };

    fn of(row: &ThreadCounters) -> Self {
        Self { run_time: Some(row.run_time), ticks: Some((row.utime, row.stime)), run_delay: row.run_delay }
    }
}

/// One thread, from its begin to its end or from one end of the recording to the other.
#[derive(Clone, Debug)]
pub(crate) struct Life<'a> {
    pub process: ProcessKey,
    pub tid: u32,
    /// Its last known name.
    pub name: Option<&'a str>,
    pub began: Nanos,
    pub ended: Nanos,
    /// Time on the CPU by the scheduler's counter.
    pub run_time: Option<Nanos>,
    /// User and system time, as the kernel distinguishes them.
    pub ticks: Option<(Nanos, Nanos)>,
    /// Time on a run queue by the kernel's counter.
    pub run_delay: Option<Nanos>,
}

/// All threads by process, thread id and begin.
#[derive(Debug, Default)]
pub(crate) struct Lives<'a> {
    pub all: Vec<Life<'a>>,
    /// Threads of which the begin or the end was not recorded; they are not in `all`.
    pub incomplete: u64,
    of_thread: IntegerMap<(ProcessKey, u32), Range<u32>>,
}

/// In the order in which events of the same moment count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    Fork,
    Exec,
    CountersAtBegin,
    Exit,
    CountersAtEnd,
}

struct Event<'a> {
    thread: (ProcessKey, u32),
    ts: Nanos,
    kind: EventKind,
    counted: Counted,
    name: Option<&'a str>,
}

/// A life in the making.
struct Open<'a> {
    began: Nanos,
    base: Counted,
    end: Option<(Nanos, EventKind, Counted)>,
    name: Option<&'a str>,
}

fn events(tables: &Tables) -> Vec<Event<'_>> {
    let forks = tables.forks.iter().map(|row| Event {
        thread: (row.process(), row.tid),
        ts: row.ts,
        kind: EventKind::Fork,
        counted: Counted::ZERO,
        name: None,
    });
    // The counters of a process that ran already are those of all its threads, and of its main thread where that is the only one.
    let made: IntegerSet<(ProcessKey, u32)> = tables.forks.iter().map(|row| (row.process(), row.tid)).collect();
    let mut older: IntegerMap<ProcessKey, u32> = IntegerMap::default();
    for row in tables.exits.iter().filter(|row| !made.contains(&(row.process(), row.tid))) {
        *older.entry(row.process()).or_default() += 1;
    }
    let execs = tables.execs.iter().map(move |row| {
        let is_alone = !row.present || older.get(&row.process()).copied().unwrap_or(0) <= 1;
        let run_time = row.run_time.filter(|_| is_alone);
        Event {
            thread: (row.process(), row.pid),
            ts: row.ts,
            kind: EventKind::Exec,
            counted: Counted { run_time, ..Counted::default() },
            name: None,
        }
    });
    let exits = tables.exits.iter().map(|row| Event {
        thread: (row.process(), row.tid),
        ts: row.ts,
        kind: EventKind::Exit,
        counted: Counted { run_time: row.run_time, ticks: Some((row.utime, row.stime)), run_delay: None },
        name: None,
    });
    let counters = tables.thread_counters.iter().map(|row| Event {
        thread: (row.process(), row.tid),
        ts: row.ts,
        kind: if row.end { EventKind::CountersAtEnd } else { EventKind::CountersAtBegin },
        counted: Counted::of(row),
        name: (!row.name.is_empty()).then_some(row.name.as_str()),
    });
    let mut events: Vec<Event<'_>> = forks.chain(execs).chain(exits).chain(counters).collect();
    events.sort_by_key(|event| (event.thread, event.ts, event.kind));
    events
}

impl<'a> Lives<'a> {
    /// From the rows of a recording, in any order.
    pub(crate) fn new(tables: &'a Tables) -> Self {
        let mut lives = Self::default();
        for events in events(tables).chunk_by(|a, b| a.thread == b.thread) {
            let first = lives.all.len() as u32;
            let mut open: Option<Open<'a>> = None;
            for event in events {
                lives.take(event, &mut open);
            }
            if open.is_none() {
                lives.incomplete += 1;
            }
            lives.close(events[0].thread, open);
            lives.of_thread.insert(events[0].thread, first..lives.all.len() as u32);
        }
        lives
    }

    fn take(&mut self, event: &Event<'a>, open: &mut Option<Open<'a>>) {
        let begin = || Open { began: event.ts, base: event.counted, end: None, name: event.name };
        match (event.kind, open.as_mut()) {
            (EventKind::Fork | EventKind::Exec | EventKind::CountersAtBegin, None) => *open = Some(begin()),
            (EventKind::Fork | EventKind::CountersAtBegin, Some(Open { end: Some(_), .. })) => {
                self.close(event.thread, open.take());
                *open = Some(begin());
            }
            (EventKind::CountersAtBegin, Some(_)) => *open = Some(begin()),
            (EventKind::Fork | EventKind::Exec, Some(_)) => {}
            // The better account stays, whichever came first.
            (EventKind::Exit | EventKind::CountersAtEnd, Some(life)) => {
                life.name = event.name.or(life.name);
                if life.end.is_none_or(|(_, kind, _)| kind <= event.kind) {
                    life.end = Some((event.ts, event.kind, event.counted));
                }
            }
            (EventKind::Exit | EventKind::CountersAtEnd, None) => {}
        }
    }

    fn close(&mut self, (process, tid): (ProcessKey, u32), open: Option<Open<'a>>) {
        let Some(open) = open else { return };
        let Some((ended, _, end)) = open.end else {
            self.incomplete += 1;
            return;
        };
        let since = |end: Option<Nanos>, base: Option<Nanos>| end.zip(base).map(|(end, base)| end - base);
        let ticks = end.ticks.zip(open.base.ticks).map(|(end, base)| (end.0 - base.0, end.1 - base.1));
        self.all.push(Life {
            process,
            tid,
            name: open.name,
            began: open.began,
            ended: ended.max(open.began),
            run_time: since(end.run_time, open.base.run_time),
            ticks,
            run_delay: since(end.run_delay, open.base.run_delay),
        });
    }

    /// The thread that had this id at `at`, as an index into `all`.
    pub(crate) fn find(&self, process: ProcessKey, tid: u32, at: Nanos) -> Option<u32> {
        let range = self.of_thread.get(&(process, tid)).filter(|range| !range.is_empty())?;
        let lives = self.all.get(range.start as usize..range.end as usize)?;
        let before = lives.partition_point(|life| life.began <= at);
        Some(range.start + before.saturating_sub(1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives_in(text: &str) -> Vec<(u32, u64, u64, Option<u64>)> {
        let tables = Tables::from_text(text).unwrap();
        let lives = Lives::new(&tables);
        lives.all.iter().map(|life| (life.tid, life.began.0, life.ended.0, life.run_time.map(|time| time.0))).collect()
    }

    #[test]
    fn a_thread_id_that_is_used_again_is_another_thread() {
        let text = "
== forks
ts pid start tid thread
90 7   1     8   true
10 7   1     8   true
== exits
ts  pid start tid run_time
50  7   1     8   20
150 7   1     8   30
";
        assert_eq!(lives_in(text), [(8, 10, 50, Some(20)), (8, 90, 150, Some(30))]);
        let tables = Tables::from_text(text).unwrap();
        let lives = Lives::new(&tables);
        let key = ProcessKey { pid: 7, start: Nanos(1) };
        assert_eq!(
            [9, 10, 70, 90, 900].map(|at| lives.find(key, 8, Nanos(at))),
            [Some(0), Some(0), Some(0), Some(1), Some(1)]
        );
        assert_eq!(lives.find(key, 9, Nanos(20)), None);
    }

    #[test]
    fn the_account_of_the_last_switch_replaces_that_of_the_exit_and_that_of_being_followed_the_exec() {
        let text = "
== execs
ts  pid start run_time
100 7   1     1000
== exits
ts  pid start tid run_time
500 7   1     7   1200
== thread_counters
ts  pid start tid end   run_time name
101 7   1     7   false 1001     a
510 7   1     7   true  1290     b
";
        assert_eq!(lives_in(text), [(7, 101, 510, Some(289))]);
        // At the end of a recording it is read before the row of exits.
        assert_eq!(lives_in(&text.replace("\n510", "\n499")), [(7, 101, 499, Some(289))]);
    }

    #[test]
    fn of_a_process_with_several_older_threads_the_sum_is_no_threads_base() {
        let text = "
== execs
ts  present pid start run_time
100 true    7   1     1000
100 true    9   1     10
== exits
ts  pid start tid run_time running
500 7   1     7   1200     true
500 7   1     8   300      true
500 9   1     9   60       true
";
        assert_eq!(lives_in(text), [(7, 100, 500, None), (9, 100, 500, Some(50))]);
    }

    #[test]
    fn threads_without_a_begin_or_an_end_are_counted() {
        let text = "== forks\nts pid start tid thread\n1 7 1 8 true\n== exits\nts pid start tid\n5 7 1 9\n";
        let tables = Tables::from_text(text).unwrap();
        let lives = Lives::new(&tables);
        assert_eq!((lives.all.len(), lives.incomplete), (0, 2));
    }
}
