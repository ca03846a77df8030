//! Child launches of multi-process programs: from the fork of a child to the end of its start, by kind of child.
//!
//! A child is *ready* when its main thread first waits for events (`first_waits`). That is no claim about what the child is
//! for: it is the first moment at which it could take an order. Children that ended before, or that only ever wait in a
//! read, have none. Owns that model; leaves quantiles and printing to others.

use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::HashMap;

/// How a child became what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Origin {
    /// It is a copy of its parent (a zygote, say) that never called exec.
    Forked,
    /// It executed a program.
    Executed,
}

/// The launch of one child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildLaunch {
    /// The child.
    pub process: ProcessKey,
    /// What it is, see [`kind_of`].
    pub kind: String,
    /// How it began.
    pub origin: Origin,
    /// When it was forked.
    pub forked: Nanos,
    /// When it was ready; `None` when that was not seen.
    pub ready: Option<Nanos>,
}

impl ChildLaunch {
    /// From fork to ready.
    pub fn time(&self) -> Option<Nanos> {
        Some(Nanos(self.ready?.0.saturating_sub(self.forked.0)))
    }
}

/// The kind of a child: the base name of its program and, in programs that start their own image in several roles, the
/// values of `--type=` and `--utility-sub-type=`.
pub fn kind_of(command_line: &str) -> String {
    let mut words = command_line.split(' ');
    let program = words.next().unwrap_or_default();
    let base = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or("?").to_owned();
    let value =
        |name: &str| command_line.split(' ').find_map(|word| word.strip_prefix(name)).filter(|value| !value.is_empty());
    match (value("--type="), value("--utility-sub-type=")) {
        (Some(role), Some(of)) => format!("{role} {}", of.rsplit('.').next().unwrap_or(of)),
        (Some(role), None) => role.to_owned(),
        _ => base,
    }
}

/// All children of the recorded tree, in the order of their forks. The recorded command itself is none.
pub fn child_launches(tables: &Tables) -> Vec<ChildLaunch> {
    let mut lines: HashMap<ProcessKey, (&str, bool)> = HashMap::new();
    // Later rows win: the last program, and what it made of its command line.
    for row in &tables.execs {
        lines.insert(row.process(), (&row.command_line, true));
    }
    let mut ready = HashMap::new();
    for row in &tables.first_waits {
        let executed = lines.get(&row.process()).is_some_and(|(_, executed)| *executed);
        if !row.command_line.is_empty() {
            lines.insert(row.process(), (&row.command_line, executed));
        }
        ready.insert(row.process(), row.ts);
    }
    let of_parent: HashMap<ProcessKey, ProcessKey> = tables
        .forks
        .iter()
        .filter(|row| !row.thread)
        .map(|row| (row.process(), ProcessKey { pid: row.parent_pid, start: row.parent_start }))
        .collect();
    let forks = tables.forks.iter().filter(|row| !row.thread);
    forks
        .map(|row| {
            let own = lines.get(&row.process());
            // A copy that never waited is called after the nearest ancestor that is known.
            let kind = match own {
                Some((line, _)) => kind_of(line),
                None => {
                    let ancestors = std::iter::successors(of_parent.get(&row.process()), |one| of_parent.get(one));
                    let known = ancestors.take(64).find_map(|one| lines.get(one));
                    format!("copy of {}", known.map_or_else(|| "?".to_owned(), |(line, _)| kind_of(line)))
                }
            };
            let executed = own.is_some_and(|(_, executed)| *executed);
            ChildLaunch {
                process: row.process(),
                kind,
                origin: if executed { Origin::Executed } else { Origin::Forked },
                forked: row.ts,
                ready: ready.get(&row.process()).copied().filter(|ts| *ts >= row.ts),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::{Exec, FirstWait, Fork};

    fn fork(ts: u64, parent: u32, pid: u32) -> Fork {
        Fork {
            ts: Nanos(ts),
            parent_pid: parent,
            parent_start: Nanos(u64::from(parent)),
            pid,
            start: Nanos(u64::from(pid)),
            tid: pid,
            thread: false,
        }
    }

    fn wait(ts: u64, pid: u32, line: &str) -> FirstWait {
        FirstWait {
            ts: Nanos(ts),
            pid,
            start: Nanos(u64::from(pid)),
            waited: Nanos(2_000_000),
            syscall: 202,
            command_line: line.to_owned(),
        }
    }

    fn exec(ts: u64, pid: u32, line: &str) -> Exec {
        Exec {
            ts: Nanos(ts),
            present: false,
            pid,
            start: Nanos(u64::from(pid)),
            parent_pid: 1,
            uid: 0,
            gid: 0,
            filename: String::new(),
            command_line: line.to_owned(),
            dev: 0,
            ino: 0,
            min_flt: 0,
            maj_flt: 0,
            run_time: None,
        }
    }

    #[test]
    fn the_kind_is_the_role_where_a_program_has_several() {
        assert_eq!(kind_of("/usr/lib/chromium/chromium --type=renderer --lang=en"), "renderer");
        assert_eq!(
            kind_of("/x/chromium --type=utility --utility-sub-type=network.mojom.NetworkService"),
            "utility NetworkService"
        );
        assert_eq!(kind_of("/usr/bin/python3 -c x"), "python3");
        assert_eq!(kind_of(""), "?");
    }

    #[test]
    fn copies_and_programs_are_told_apart_and_timed_from_their_fork() {
        let tables = Tables {
            forks: vec![fork(10, 1, 2), fork(20, 2, 3), fork(30, 2, 4), fork(40, 1, 5)],
            execs: vec![exec(1, 1, "/b/app"), exec(12, 2, "/b/app --type=zygote")],
            first_waits: vec![wait(15, 2, "/b/app --type=zygote"), wait(27, 3, "/b/app --type=renderer")],
            ..Tables::default()
        };
        let found = child_launches(&tables);
        let launches: Vec<_> =
            found.iter().map(|one| (one.kind.as_str(), one.origin, one.time().map(|time| time.0))).collect();
        assert_eq!(
            launches,
            [
                ("zygote", Origin::Executed, Some(5)),
                ("renderer", Origin::Forked, Some(7)),
                ("copy of zygote", Origin::Forked, None),
                ("copy of app", Origin::Forked, None),
            ]
        );
    }
}
