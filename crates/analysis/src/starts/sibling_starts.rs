//! The starts of children of one kind, as they are laid beside each other: what each did from its fork on, and how much of its work others
//! do too.
//!
//! Owns from when until when a start is drawn ([`StartEnd`]) and its categories: those of the child's main thread, which add up to the
//! time of its start. Leaves which work is alike to [`crate::starts::repeated_starts`], as the finding `repeated_child_work` has it, and what a
//! kind is and when a child is ready to [`crate::starts::children`].

use crate::launch_facts::LaunchFacts;
use crate::starts::children::{ChildLaunch, Origin, child_launches};
use crate::starts::repeated_starts::{Start, siblings};
use crate::time::ledger::lives::Lives;
use crate::time::ledger::timeline::Walked;
use crate::time::ledger::{Account, Category, CategoryTime, each_life};
use crate::time::off_cpu_times::waits_recorded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Nanos, ProcessKey};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Kinds of a page, those with most children.
const MOST_KINDS: usize = 20;
/// Children of a kind, the first of them. A page draws a bar for each.
const MOST_CHILDREN: usize = 60;
/// A child alone has nothing beside it.
const LEAST_CHILDREN: usize = 2;

/// Children by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SiblingStarts {
    /// Kinds with at least two children, those with most children first.
    pub kinds: Vec<SiblingKind>,
    /// Children beyond those that are here, and those of which neither ready nor end was seen, or not all of the main thread.
    pub left_out: u64,
}

/// The children of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SiblingKind {
    /// The base name of their program, or their role. Foreign text.
    pub kind: String,
    /// Whether they executed a program; if not, they are copies of their parent.
    pub executed: bool,
    /// In the order of their forks.
    pub children: Vec<SiblingStart>,
}

/// What ends a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartEnd {
    /// The child first waited for events.
    Ready,
    /// It ended, and was never seen to wait for events.
    Exited,
    /// It opened the last file that others open in the same order; it was neither seen to wait for events nor to end.
    LastAlike,
}

/// The start of one child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SiblingStart {
    /// Pid.
    pub pid: u32,
    /// Start of the process, `CLOCK_MONOTONIC`, ns.
    pub start: Nanos,
    /// When it was forked, ns since exec of the command was released, or since recording began.
    pub forked_ns: Nanos,
    /// From its fork to the end of its start, ns. `times` add up to it.
    pub time_ns: Nanos,
    /// What ended it.
    pub end: StartEnd,
    /// What its main thread did meanwhile: the categories that have time; `on_cpu` for all the time that it ran outside of faults and memory
    /// calls.
    pub times: Vec<CategoryTime>,
    /// Time on the CPU of all its threads meanwhile, ns.
    pub cpu_ns: Nanos,
    /// Work that siblings do too; null where less than three do the same.
    pub alike: Option<AlikeWork>,
}

/// Work between files that at least three children of one program open one after the other, as in the finding `repeated_child_work`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlikeWork {
    /// Steps from one open to the next that siblings make too.
    pub steps: u64,
    /// CPU time that they took this child, ns.
    pub cpu_ns: Nanos,
    /// What they take the child in the middle, ns.
    pub typical_ns: Nanos,
    /// CPU time of further such steps, ns, which may be work of its own: the children have different command lines, or are copies.
    pub doubtful_ns: Nanos,
    /// When the last of them ended, ns since the fork.
    pub until_ns: Nanos,
}

/// When the start of a child is over.
fn end_of(child: &ChildLaunch, alike: Option<&Start>, ended: Option<Nanos>) -> Option<(Nanos, StartEnd)> {
    let last = || alike.map(|start| (start.until, StartEnd::LastAlike));
    let exit = || ended.map(|at| (at, StartEnd::Exited));
    child.ready.map(|at| (at, StartEnd::Ready)).or_else(exit).or_else(last)
}

fn ns(value: f64) -> Nanos {
    Nanos(value.max(0.0).round() as u64)
}

fn alike_work(start: &Start, forked: Nanos) -> AlikeWork {
    AlikeWork {
        steps: start.steps as u64,
        cpu_ns: ns(start.own),
        typical_ns: ns(start.typical),
        doubtful_ns: ns(start.doubtful),
        until_ns: start.until - forked,
    }
}

/// What the threads of a child did in its start.
#[derive(Default)]
struct Did {
    main: Option<Account>,
    cpu: Nanos,
}

/// What each of these processes did between two moments.
fn done(facts: &LaunchFacts<'_>, spans: &HashMap<ProcessKey, (Nanos, Nanos)>) -> HashMap<ProcessKey, Did> {
    let tables = &*facts.tables;
    let mut done: HashMap<ProcessKey, Did> = HashMap::new();
    each_life(tables, &Lives::new(tables), |_, life, timeline| {
        let (from, to) = spans.get(&life.process).copied().unwrap_or_default();
        let from = from.max(life.began);
        // Rows of others are forgotten by a walk of no length.
        let Walked { mut account, left, ran_in_them, .. } = timeline.walk(from, to.min(life.ended).max(from));
        let Some((_, to)) = spans.get(&life.process) else { return };
        let did = done.entry(life.process).or_default();
        let stolen = account.take(Category::Stolen).min(left);
        did.cpu += left - stolen + ran_in_them;
        if life.tid == life.process.pid && life.began < *to {
            account.add(Category::Stolen, stolen);
            account.add(Category::OnCpu, left - stolen);
            did.main.get_or_insert_default().merge(&account);
        }
    });
    done
}

/// Of a recording; `None` where waits were not recorded, and where no two children of one kind were seen.
pub fn sibling_starts(facts: &LaunchFacts<'_>) -> Option<SiblingStarts> {
    let tables = &*facts.tables;
    if !waits_recorded(tables) {
        return None;
    }
    let mut children = child_launches(tables);
    children.sort_by_key(|child| (child.forked, child.process));
    let mut kinds: BTreeMap<(String, Origin), Vec<ChildLaunch>> = BTreeMap::new();
    for child in children {
        kinds.entry((child.kind.clone(), child.origin)).or_default().push(child);
    }
    kinds.retain(|_, children| children.len() >= LEAST_CHILDREN);
    if kinds.is_empty() {
        return None;
    }
    let seen: usize = kinds.values().map(Vec::len).sum();
    let groups = siblings(facts);
    let alike: HashMap<ProcessKey, &Start> =
        groups.iter().flat_map(|group| &group.starts).map(|start| (start.process, start)).collect();
    let end = |child: &ChildLaunch| {
        let ended = facts.processes.get(child.process).and_then(|process| process.ended);
        end_of(child, alike.get(&child.process).copied(), ended)
    };
    let mut kinds: Vec<((String, Origin), Vec<ChildLaunch>)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, children)| Reverse(children.len()));
    kinds.truncate(MOST_KINDS);
    kinds.iter_mut().for_each(|(_, children)| children.truncate(MOST_CHILDREN));
    let shown = kinds.iter().flat_map(|(_, children)| children);
    let spans = shown.filter_map(|child| Some((child.process, (child.forked, end(child)?.0)))).collect();
    let did = done(facts, &spans);
    let start = |child: &ChildLaunch| {
        let did = did.get(&child.process)?;
        let main = did.main?;
        Some(SiblingStart {
            pid: child.process.pid,
            start: child.process.start,
            forked_ns: child.forked - facts.released,
            time_ns: main.total(),
            end: end(child)?.1,
            times: main.times(),
            cpu_ns: did.cpu,
            alike: alike.get(&child.process).map(|start| alike_work(start, child.forked)),
        })
    };
    let kinds = kinds.iter().map(|((kind, origin), children)| SiblingKind {
        kind: kind.clone(),
        executed: *origin == Origin::Executed,
        children: children.iter().filter_map(start).collect(),
    });
    let kinds: Vec<SiblingKind> = kinds.filter(|kind| kind.children.len() >= LEAST_CHILDREN).collect();
    let shown: usize = kinds.iter().map(|kind| kind.children.len()).sum();
    (!kinds.is_empty()).then(|| SiblingStarts { kinds, left_out: (seen - shown) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    const MS: u64 = 1_000_000;

    /// Children of one program that open the same files; each waits 3 ms for storage in between, and is ready after 30 ms.
    fn launch(children: u64, ready: bool) -> Tables {
        let mut text = format!(
            "== manifest\n{{\"command\": [\"/bin/app\"], \"started\": 0, \"ended\": {end}, \
             \"probes\": [{{\"name\": \"off_cpu\", \"state\": \"attached\"}}]}}\n\
             == execs\nts pid start filename command_line dev ino\n1 7 1 /bin/app /bin/app 1 1\n",
            end = (children + 2) * 50 * MS
        );
        for pid in 11..11 + children {
            let at = |ms: u64| (pid - 10) * 50 * MS + ms * MS;
            text += &format!(
                "== forks\nts pid start tid parent_pid parent_start\n{forked} {pid} {forked} {pid} 7 1\n\
                 == execs\nts pid start filename command_line dev ino\n{exec} {pid} {forked} /bin/child /bin/child 1 2\n\
                 == opens\nts pid start tid path flags result dev ino\n\
                 {a} {pid} {forked} {pid} /lib/a 0 3 1 9\n{b} {pid} {forked} {pid} /lib/b 0 3 1 9\n\
                 == off_cpu\nts duration pid start tid reason\n{wait} {three} {pid} {forked} {pid} other_io\n\
                 == thread_counters\nts pid start tid end run_time\n{gone} {pid} {forked} {pid} true {three}\n\
                 == exits\nts pid start tid last running\n{gone} {pid} {forked} {pid} true false\n",
                forked = at(0),
                exec = at(1),
                a = at(10),
                b = at(20),
                wait = at(12),
                gone = at(40),
                three = 3 * MS,
            );
            if ready {
                text += &format!("== first_waits\nts pid start waited\n{} {pid} {} {MS}\n", at(30), at(0));
            }
        }
        Tables::from_text(&text).unwrap()
    }

    fn found(tables: &Tables) -> Option<SiblingStarts> {
        sibling_starts(&LaunchFacts::new(tables))
    }

    #[test]
    fn the_categories_of_a_start_add_up_to_it_and_its_work_is_that_of_the_finding() {
        let all = found(&launch(3, true)).unwrap();
        assert_eq!((all.kinds.len(), all.kinds[0].kind.as_str(), all.left_out), (1, "child", 0));
        for child in &all.kinds[0].children {
            assert_eq!((child.time_ns, child.end), (Nanos(30 * MS), StartEnd::Ready));
            assert_eq!(child.times.iter().map(|one| one.time_ns.0).sum::<u64>(), child.time_ns.0);
            let storage = child.times.iter().find(|one| one.category == Category::OtherIo);
            assert_eq!(storage.map(|one| one.time_ns), Some(Nanos(3 * MS)));
            assert_eq!(child.cpu_ns, Nanos(27 * MS));
            let alike = child.alike.unwrap();
            assert_eq!((alike.steps, alike.cpu_ns, alike.until_ns), (2, Nanos(17 * MS), Nanos(20 * MS)));
        }
    }

    #[test]
    fn one_that_never_waits_for_events_is_shown_to_its_end_or_to_its_last_open() {
        let ends = |children, ended: bool| {
            let mut tables = launch(children, false);
            if !ended {
                tables.exits.clear();
            }
            let all = found(&tables).unwrap();
            let first = &all.kinds[0].children[0];
            (first.end, first.time_ns.0 / MS, first.alike.is_some())
        };
        assert_eq!(ends(3, true), (StartEnd::Exited, 40, true));
        assert_eq!(ends(3, false), (StartEnd::LastAlike, 20, true));
        // Two of a kind do nothing alike, as far as that is known.
        assert_eq!(ends(2, true), (StartEnd::Exited, 40, false));
        assert_eq!(
            found(&{
                let mut tables = launch(2, false);
                tables.exits.clear();
                tables
            }),
            None
        );
    }

    #[test]
    fn one_child_has_none_beside_it_and_those_beyond_the_bound_are_counted() {
        assert_eq!(found(&launch(1, true)), None);
        let many = found(&launch(MOST_CHILDREN as u64 + 4, true)).unwrap();
        assert_eq!((many.kinds[0].children.len(), many.left_out), (MOST_CHILDREN, 4));
    }
}
