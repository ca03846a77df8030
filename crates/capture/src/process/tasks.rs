//! The tasks that were seen to begin and not to end: told at the end, with their counters from `/proc`.

use super::is_present;
use crate::events::{
    EVENT_EXEC, EVENT_EXIT, EVENT_FORK, FLAG_STILL_RUNNING, event_header, exec_event, exit_event, fork_event, record,
};
use slowpath_tables::Nanos;
use std::collections::BTreeMap;
use std::path::Path;

/// Tasks from which on those that are gone without a word (their end was lost) are looked for.
const SWEEP_FROM: usize = 65_536;

/// Tasks by process and thread, with the start of their process.
#[derive(Default)]
pub(crate) struct Tasks {
    alive: BTreeMap<(u32, u32), Nanos>,
    sweep_at: usize,
}

impl Tasks {
    /// Takes what a record says.
    pub(crate) fn note(&mut self, bytes: &[u8]) {
        let Some(header) = record::<event_header>(bytes) else { return };
        match u32::from(header.kind) {
            EVENT_FORK => {
                if let Some(event) = record::<fork_event>(bytes) {
                    self.alive.insert((event.child_pid, event.child_tid), Nanos(event.start));
                }
            }
            EVENT_EXEC => {
                if let Some(event) = record::<exec_event>(bytes) {
                    // An exec leaves one thread, with the id of the process.
                    if !is_present(&header) {
                        let others: Vec<_> =
                            self.alive.range((header.pid, 0)..=(header.pid, u32::MAX)).map(|one| *one.0).collect();
                        for task in others {
                            self.alive.remove(&task);
                        }
                    }
                    self.alive.insert((header.pid, header.tid), Nanos(event.start));
                }
            }
            EVENT_EXIT => {
                self.alive.remove(&(header.pid, header.tid));
            }
            _ => {}
        }
        if self.alive.len() > self.sweep_at.max(SWEEP_FROM) {
            self.alive.retain(|(pid, tid), _| Path::new(&format!("/proc/{pid}/task/{tid}")).exists());
            self.sweep_at = self.alive.len() * 2;
        }
    }

    /// Records of the tasks that still run, as of their end.
    pub(crate) fn survivors(&self, now: Nanos) -> Vec<exit_event> {
        self.alive.iter().filter_map(|((pid, tid), start)| running(*pid, *tid, *start, now)).collect()
    }
}

/// Counters of a running task (proc_pid_stat(5), fields 10, 12, 14 and 15; ticks are 10 ms on Linux's user ABI).
fn running(pid: u32, tid: u32, start: Nanos, now: Nanos) -> Option<exit_event> {
    const TICK_NS: u64 = 10_000_000;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let fields: Vec<u64> =
        stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let read_bytes = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/io"))
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok()));
    let (kind, flags) = (EVENT_EXIT as u16, FLAG_STILL_RUNNING as u16);
    Some(exit_event {
        header: event_header { kind, flags, pid, tid, ts: now.0, ..Default::default() },
        start: start.0,
        min_flt: *fields.get(7)?,
        maj_flt: *fields.get(9)?,
        utime: fields.get(11)? * TICK_NS,
        stime: fields.get(12)? * TICK_NS,
        read_bytes: read_bytes.unwrap_or(0),
        exit_code: 0,
        reserved: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{FLAG_PRESENT, bytes_of};

    fn survivors(records: &[Vec<u8>]) -> Vec<exit_event> {
        let mut tasks = Tasks::default();
        records.iter().for_each(|record| tasks.note(record));
        tasks.survivors(Nanos(9))
    }

    fn fork(tid: u32) -> Vec<u8> {
        let header = event_header { kind: EVENT_FORK as u16, ..Default::default() };
        let child_pid = std::process::id();
        bytes_of(&fork_event { header, child_pid, child_tid: tid, start: 5, ..Default::default() })
    }

    #[test]
    fn only_the_tasks_that_did_not_end_survive() {
        let me = std::process::id();
        let found = survivors(&[fork(me), fork(4_194_303)]);
        assert_eq!(found.len(), 1);
        let row = super::super::exit(&bytes_of(&found[0]), &mut Default::default()).unwrap();
        assert!(row.running && row.min_flt > 0 && row.tid == me && !row.last && row.status.is_none());
        let header = event_header { kind: EVENT_EXIT as u16, pid: me, tid: me, ..Default::default() };
        let end = bytes_of(&exit_event { header, ..Default::default() });
        assert_eq!(survivors(&[fork(me), end]).len(), 0);
    }

    #[test]
    fn a_task_that_ran_already_does_not_end_the_others_and_an_exec_does() {
        let me = std::process::id();
        let exec = |tid: u32, flags: u32| {
            let header =
                event_header { kind: EVENT_EXEC as u16, flags: flags as u16, pid: me, tid, ..Default::default() };
            bytes_of(&exec_event { header, start: 5, ..Default::default() })
        };
        let mut tasks = Tasks::default();
        tasks.note(&exec(me, FLAG_PRESENT));
        tasks.note(&exec(4_194_303, FLAG_PRESENT));
        assert_eq!(tasks.alive.len(), 2);
        tasks.note(&exec(me, 0));
        assert_eq!(tasks.alive.len(), 1);
    }
}
