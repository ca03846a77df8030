//! Probe `process`: forks, program images and ends.

use crate::context::Context;
use crate::events::{COMMAND_LINE_BYTES, EVENT_EXEC, EVENT_EXIT, EVENT_FORK, FILENAME_BYTES};
use crate::events::{
    FLAG_LAST_THREAD, FLAG_PRESENT, FLAG_STILL_RUNNING, event_header, exec_event, exit_event, fork_event, record, text,
};
use crate::probe::Probe;
use crate::records::{RecordKind, Text};
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, Exec, Exit, Fork, Nanos, ProcessKey};
use std::mem::offset_of;

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "process",
    title: "processes: forks, execs, ends",
    what: "Which processes belong to what is recorded, the programs that they execute, with user and command line, and their ends with the \
           kernel's own counters of them.",
    price: "a look-up at each fork, exec and exit of the machine",
    is_essential: true,
    is_wanted: |_| true,
    // The one read-only variable: `exit_tells_last`.
    settings: Some(|_, _, kernel| u32::from(kernel.exit_has_memory).to_ne_bytes().into()),
    end_walk: Some("end_tasks"),
    records: &[
        RecordKind::of::<fork_event>(EVENT_FORK, "forks", |bytes, to| to.out.forks.extend(fork(bytes, to.context)))
            .reported_once()
            .reported_by("on_fork"),
        RecordKind::of::<exec_event>(EVENT_EXEC, "execs", |bytes, to| to.out.execs.extend(exec(bytes, to.context)))
            .with_texts(&[
                Text::ended(offset_of!(exec_event, filename), FILENAME_BYTES),
                Text::counted(
                    offset_of!(exec_event, command_line),
                    COMMAND_LINE_BYTES,
                    offset_of!(exec_event, command_line_length),
                ),
            ])
            .reported_once()
            .reported_by("on_exec"),
        RecordKind::of::<exit_event>(EVENT_EXIT, "exits", |bytes, to| to.out.exits.extend(exit(bytes, to.context)))
            .reported_once(),
    ],
    tracepoints: &[(&declared::PROCESSES, &["sched_process_fork", "sched_process_exec", "sched_process_exit"])],
    ..Probe::USUAL
};

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
    joined_bytes(&arguments[..length].iter().flat_map(|byte| byte.to_ne_bytes()).collect::<Vec<u8>>())
}

/// Arguments are separated by NUL in the kernel's memory; the last is ended by one, and by more where a program wrote a
/// shorter title over them.
pub(crate) fn joined_bytes(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    String::from_utf8_lossy(&bytes[..end]).replace('\0', " ")
}

/// The row of an exec. That of a process that ran already is kept in the context until its threads are counted.
pub(crate) fn exec(bytes: &[u8], context: &mut Context) -> Option<Exec> {
    let event: exec_event = record(bytes)?;
    context.learn(event.header.pid, Nanos(event.start));
    let present = is_present(&event.header);
    if present && event.header.tid != event.header.pid {
        context.count_present(&event);
        return None;
    }
    let exec = Exec {
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
        run_time: Some(Nanos(event.run_time)),
    };
    if present {
        context.hold(exec);
        return None;
    }
    Some(exec)
}

pub(crate) fn exit(bytes: &[u8], context: &mut Context) -> Option<Exit> {
    let event: exit_event = record(bytes)?;
    let last = u32::from(event.header.flags) & FLAG_LAST_THREAD != 0;
    if last {
        context.end(ProcessKey { pid: event.header.pid, start: Nanos(event.start) });
    }
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
        run_time: Some(Nanos(event.run_time)),
        read_bytes: Bytes(event.read_bytes),
        running: u32::from(event.header.flags) & FLAG_STILL_RUNNING != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EVENT_EXEC, bytes_of};

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
        let row = exit(&bytes_of(&event), &mut Context::default()).unwrap();
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
            bytes_of(&exec_event { header, start: 5, min_flt, run_time: 2, ..Default::default() })
        };
        let mut context = Context::default();
        assert_eq!(exec(&thread(me + 1, 30), &mut context), None);
        assert_eq!(exec(&thread(me, 4), &mut context), None);
        assert!(context.release(Nanos(5)).is_empty(), "the walk may go on");
        let rows = context.release(Nanos(5_000_000_001));
        assert!(rows.len() == 1 && rows[0].present && rows[0].min_flt == 34, "{rows:?}");
        assert_eq!(rows[0].run_time, Some(Nanos(4)));
        assert!(context.release_all().is_empty());
    }
}
