//! Probe `process`: forks, program images and ends.

use crate::decode::{Context, for_each_record};
use crate::events::{
    EVENT_EXEC, EVENT_EXIT, EVENT_FORK, FLAG_LAST_THREAD, FLAG_PRESENT, event_header, exec_event, exit_event,
    fork_event, record, text,
};
use slowpath_tables::{Bytes, Exec, Exit, Fork, Nanos};
use std::collections::BTreeMap;

pub(crate) fn fork(bytes: &[u8], context: &mut Context) -> Option<Fork> {
    let event: fork_event = record(bytes)?;
    context.learn(event.child_pid, Nanos(event.start));
    Some(Fork {
        ts: Nanos(event.header.ts),
        parent_pid: event.header.pid,
        parent_start: Nanos(event.parent_start),
        pid: event.child_pid,
        start: Nanos(event.start),
        tid: event.child_tid,
        thread: event.child_pid != event.child_tid,
    })
}

/// Whether the record is of a thread that ran already when its process began to be followed.
fn is_present(header: &event_header) -> bool {
    u32::from(header.flags) & FLAG_PRESENT != 0
}

/// A command line of a record, of which so many bytes are filled.
pub(crate) fn joined(arguments: &[std::os::raw::c_char], length: u32) -> String {
    let length = (length as usize).min(arguments.len());
    joined_bytes(&arguments[..length].iter().map(|byte| *byte as u8).collect::<Vec<u8>>())
}

/// Arguments are separated by NUL in the kernel's memory; the last is ended by one, and by more where a program wrote a
/// shorter title over them.
pub(crate) fn joined_bytes(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    String::from_utf8_lossy(&bytes[..end]).replace('\0', " ")
}

pub(crate) fn exec(bytes: &[u8], context: &mut Context) -> Option<Exec> {
    let event: exec_event = record(bytes)?;
    context.learn(event.header.pid, Nanos(event.start));
    let present = is_present(&event.header);
    if present && event.header.tid != event.header.pid {
        context.count_present(&event);
        return None;
    }
    Some(Exec {
        ts: Nanos(event.header.ts),
        present,
        pid: event.header.pid,
        start: Nanos(event.start),
        parent_pid: event.parent_pid,
        uid: event.uid,
        gid: event.gid,
        filename: text(&event.filename),
        command_line: joined(&event.command_line, event.command_line_length),
        dev: event.dev,
        ino: event.ino,
        min_flt: event.min_flt,
        maj_flt: event.maj_flt,
    })
}

pub(crate) fn exit(bytes: &[u8]) -> Option<Exit> {
    let event: exit_event = record(bytes)?;
    let last = u32::from(event.header.flags) & FLAG_LAST_THREAD != 0;
    // wait(2) encoding: the low seven bits are the signal, the next byte the status.
    let signal = event.exit_code & 0x7f;
    Some(Exit {
        ts: Nanos(event.header.ts),
        pid: event.header.pid,
        start: Nanos(event.start),
        tid: event.header.tid,
        last,
        status: (last && signal == 0).then_some((event.exit_code >> 8) & 0xff),
        signal: (last && signal != 0).then_some(signal),
        min_flt: event.min_flt,
        maj_flt: event.maj_flt,
        utime: Nanos(event.utime),
        stime: Nanos(event.stime),
        read_bytes: Bytes(event.read_bytes),
        running: false,
    })
}

/// Tasks that were seen to begin and not to end, with their counters from `/proc` at this moment.
pub(crate) fn survivors(bytes: &[u8], now: Nanos) -> Vec<Exit> {
    let mut alive: BTreeMap<u32, (u32, Nanos)> = BTreeMap::new();
    for_each_record(bytes, |kind, bytes| match kind {
        EVENT_FORK => {
            if let Some(event) = record::<fork_event>(bytes) {
                alive.insert(event.child_tid, (event.child_pid, Nanos(event.start)));
            }
        }
        EVENT_EXEC => {
            if let Some(event) = record::<exec_event>(bytes) {
                // An exec leaves one thread, with the id of the process.
                if !is_present(&event.header) {
                    alive.retain(|_, (pid, _)| *pid != event.header.pid);
                }
                alive.insert(event.header.tid, (event.header.pid, Nanos(event.start)));
            }
        }
        EVENT_EXIT => {
            if let Some(event) = record::<event_header>(bytes) {
                alive.remove(&event.tid);
            }
        }
        _ => {}
    });
    alive.into_iter().filter_map(|(tid, (pid, start))| running(pid, tid, start, now)).collect()
}

/// Counters of a running task (proc_pid_stat(5), fields 10, 12, 14 and 15; ticks are 10 ms on Linux's user ABI).
fn running(pid: u32, tid: u32, start: Nanos, now: Nanos) -> Option<Exit> {
    const TICK_NS: u64 = 10_000_000;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let fields: Vec<u64> =
        stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let read_bytes = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/io"))
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok()));
    Some(Exit {
        ts: now,
        pid,
        start,
        tid,
        last: false,
        status: None,
        signal: None,
        min_flt: *fields.get(7)?,
        maj_flt: *fields.get(9)?,
        utime: Nanos(fields.get(11)? * TICK_NS),
        stime: Nanos(fields.get(12)? * TICK_NS),
        read_bytes: Bytes(read_bytes.unwrap_or(0)),
        running: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::bytes_of;

    #[test]
    fn arguments_are_joined_and_the_final_nul_is_dropped() {
        let mut event = exec_event { command_line_length: 6, ..Default::default() };
        for (slot, byte) in event.command_line.iter_mut().zip(b"ls\0-l\0") {
            *slot = *byte as std::os::raw::c_char;
        }
        assert_eq!(exec(&bytes_of(&event), &mut Context::default()).unwrap().command_line, "ls -l");
    }

    #[test]
    fn an_end_by_signal_has_no_status() {
        let event = exit_event {
            header: event_header { flags: FLAG_LAST_THREAD as u16, ..Default::default() },
            exit_code: 9,
            ..Default::default()
        };
        let row = exit(&bytes_of(&event)).unwrap();
        assert_eq!((row.status, row.signal), (None, Some(9)));
    }

    #[test]
    fn threads_of_a_process_that_ran_already_are_counted_and_no_rows() {
        let me = std::process::id();
        let thread = |tid: u32, min_flt: u64| {
            let header = event_header {
                kind: EVENT_EXEC as u16,
                flags: FLAG_PRESENT as u16,
                pid: me,
                tid,
                ..Default::default()
            };
            bytes_of(&exec_event { header, start: 5, min_flt, ..Default::default() })
        };
        let mut context = Context::default();
        assert_eq!(exec(&thread(me + 1, 30), &mut context), None);
        let row = exec(&thread(me, 4), &mut context).unwrap();
        assert!(row.present && row.min_flt == 4);
        assert_eq!(context.present(&row), (30, 0));
        // One that is left is found by its own id, and does not end the others.
        let mut bytes = thread(me, 4);
        bytes.extend(thread(4_194_303, 1));
        assert_eq!(survivors(&bytes, Nanos(9)).len(), 1);
    }

    #[test]
    fn only_the_tasks_that_did_not_end_survive() {
        let me = std::process::id();
        let fork = |tid: u32| {
            let header = event_header { kind: EVENT_FORK as u16, ..Default::default() };
            bytes_of(&fork_event { header, child_pid: me, child_tid: tid, start: 5, ..Default::default() })
        };
        let mut bytes = fork(me);
        bytes.extend(fork(4_194_303));
        let found = survivors(&bytes, Nanos(9));
        assert_eq!(found.len(), 1);
        assert!(found[0].running && found[0].min_flt > 0 && found[0].tid == me);
    }
}
