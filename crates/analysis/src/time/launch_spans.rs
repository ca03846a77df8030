//! The spans of a launch by names that other launches of the same command have too.
//!
//! Owns those names: nothing that differs between two launches is part of one, no pid, no thread id, no time. Several threads of one name
//! are one span on the critical path; children of one kind are counted in the order of their forks. Spans of the path add up to the time of
//! the launch; the starts of children lie beside it and overlap. Leaves the path to [`crate::time::critical_path`], when a child is ready to
//! [`crate::starts::children`], and laying launches beside each other to `report`.

use crate::processes::Processes;
use crate::starts::children::child_launches;
use crate::time::critical_path::critical_path;
use crate::time::ledger::{Account, Category};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::Nanos;
use std::collections::{BTreeMap, HashMap};

/// What a span is called. Names are foreign text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SpanName {
    /// What the threads of one name in the processes of one name did on the critical path. Those of a launch add up to its time.
    Path {
        /// Base name of the program.
        program: String,
        /// Name of the thread; null where it is not known.
        thread: Option<String>,
        /// What they did, `on_cpu` for all the time that they ran; null for time of which nothing was recorded.
        category: Option<Category>,
    },
    /// From the fork of a child until it first waited for events. It may overlap with any other span.
    ChildStart {
        /// Its kind: the base name of its program, or its role.
        child: String,
        /// Its number among those of its kind, from 1, in the order of their forks.
        number: u32,
    },
    /// From the fork of a child to its end, where it was never seen to wait for events. It may overlap with any other span.
    ChildLife {
        /// Its kind: the base name of its program, or its role.
        child: String,
        /// Its number among those of its kind, from 1, in the order of their forks.
        number: u32,
    },
}

/// A launch, as others are laid beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSpans {
    /// From the release of exec to ready, or to the end of one that never got ready.
    pub time: Nanos,
    /// Whether it got ready.
    pub is_ready: bool,
    /// Time on the critical path by category. Together with `unexplained` it is all of `time`.
    pub account: Account,
    /// Time on the critical path of which nothing was recorded.
    pub unexplained: Nanos,
    /// All spans that have time.
    pub spans: BTreeMap<SpanName, Nanos>,
}

/// Of a recording, whose rows may be in any order. `None` as [`critical_path`].
pub fn launch_spans(tables: &Tables) -> Option<LaunchSpans> {
    let path = critical_path(tables)?;
    let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    let mut spans: BTreeMap<SpanName, Nanos> = BTreeMap::new();
    for thread in &path.threads {
        let times = thread.account.iter().map(|(category, time)| (Some(category), time));
        for (category, time) in times.chain([(None, thread.unexplained)]).filter(|(_, time)| time.0 > 0) {
            let (program, thread) = (processes.name(thread.process), thread.name.clone());
            *spans.entry(SpanName::Path { program, thread, category }).or_default() += time;
        }
    }
    let mut children = child_launches(tables);
    children.sort_by_key(|child| (child.forked, child.process));
    let mut numbers: HashMap<String, u32> = HashMap::new();
    for child in children.into_iter().filter(|child| child.forked < path.to) {
        let number = numbers.entry(child.kind.clone()).or_default();
        *number += 1;
        let (number, time) = (*number, child.time());
        let ended = processes.get(child.process).and_then(|process| process.ended);
        let span = match (time, ended) {
            (Some(time), _) => (SpanName::ChildStart { child: child.kind, number }, time),
            (None, Some(ended)) => (SpanName::ChildLife { child: child.kind, number }, ended - child.forked),
            (None, None) => continue,
        };
        spans.insert(span.0, span.1);
    }
    Some(LaunchSpans {
        time: path.to - path.from,
        is_ready: path.is_ready,
        account: path.account,
        unexplained: path.unexplained,
        spans,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch whose worker `slow` ns long waits for storage, and whose child is ready 100 ns after its fork.
    fn launch(slow: u64) -> Tables {
        let ready = 500 + slow;
        let text = format!(
            r#"
== manifest
{{"started": 90, "ended": 5000, "probes": [{{"name": "off_cpu", "state": "attached"}}],
 "launch": {{"released": 100, "ready": {ready}, "ready_when": "x", "outcome": "ready"}}}}
== execs
ts  present pid start parent_pid filename command_line
100 false   7   1     1          /bin/a   /bin/a
== forks
ts  parent_pid parent_start pid start tid thread
200 7          1            7   1     8   true
210 7          1            9   210   9   false
220 7          1            10  220   10  false
== thread_counters
ts   pid start tid end   run_time utime stime run_delay name
101  7   1     7   false 41       0     0     -         a
4000 7   1     7   true  341      0     0     -         a
4000 7   1     8   true  120      0     0     -         worker
4000 9   210   9   true  120      0     0     -         a
300  10  220   10  true  80       0     0     -         a
== exits
ts   pid start tid last  run_time running
4000 7   1     8   false 100      false
4000 7   1     7   true  320      false
4000 9   210   9   true  320      false
300  10  220   10  true  80       false
== first_waits
ts  pid start waited
310 9   210   3000
== off_cpu
ts  duration pid start tid reason   runnable woken waker_pid waker_tid
230 {futex}  7   1     7   futex    0        {woken} 7       8
240 {slow}   7   1     8   other_io 0        -     -         -
310 3000     9   210   9   poll     0        -     -         -
"#,
            futex = slow + 70,
            woken = slow + 300,
        );
        Tables::from_text(&text).unwrap()
    }

    #[test]
    fn spans_of_the_path_add_up_to_the_launch_and_have_the_same_names_in_every_launch() {
        let (fast, slow) = (launch_spans(&launch(50)).unwrap(), launch_spans(&launch(900)).unwrap());
        for found in [&fast, &slow] {
            let on_path = found.spans.iter().filter(|(name, _)| matches!(name, SpanName::Path { .. }));
            assert_eq!(on_path.map(|(_, time)| time.0).sum::<u64>(), found.time.0, "{found:?}");
            assert_eq!(found.account.total() + found.unexplained, found.time);
            assert!(found.is_ready);
        }
        assert!(fast.spans.keys().eq(slow.spans.keys()), "{fast:?} {slow:?}");
        let storage = SpanName::Path {
            program: "a".to_owned(),
            thread: Some("worker".to_owned()),
            category: Some(Category::OtherIo),
        };
        assert_eq!((fast.spans[&storage], slow.spans[&storage]), (Nanos(50), Nanos(900)));
    }

    #[test]
    fn children_are_counted_by_kind_and_one_that_was_never_ready_has_its_life() {
        let found = launch_spans(&launch(50)).unwrap();
        let children = found.spans.iter().filter(|(name, _)| !matches!(name, SpanName::Path { .. }));
        let times: Vec<(&SpanName, u64)> = children.map(|(name, time)| (name, time.0)).collect();
        let (child, number) = ("copy of a".to_owned(), 1);
        let start = SpanName::ChildStart { child: child.clone(), number };
        let life = SpanName::ChildLife { child, number: 2 };
        assert_eq!(times, [(&start, 100), (&life, 80)]);
    }

    #[test]
    fn a_recording_without_waits_has_none() {
        let mut tables = launch(50);
        tables.off_cpu.clear();
        assert_eq!(launch_spans(&tables), None);
    }
}
