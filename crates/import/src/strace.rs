//! `strace -f -T -ttt`: the system calls of a process and its children, with their times.
//!
//! Owns what calls mean ([`calls`]) on lines that [`line`] takes apart. Calls that another thread interrupted are put together again
//! here. Time is the time of day.

mod calls;
mod descriptors;
mod errno;
mod line;

use crate::declaration::{Importer, head_lines};
use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use calls::Calls;
use line::{Content, Line};
use slowpath_tables::Nanos;
use std::collections::HashMap;

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "strace",
    title: "strace -f -T -ttt: system calls on files and memory",
    made_by: "strace -f -T -ttt -y -o FILE CMD",
    reads: "processes, opens and what was refused, reads with their files and offsets, memory calls and mappings",
    lacks: "strace sees system calls only: no page fault, no sample, no switch of a thread and no page cache",
    probes: &["mapping", "memory", "open", "process", "read"],
    detects,
    import,
};

/// Calls that are under way at a time.
const MOST_UNFINISHED: usize = 1 << 16;

fn detects(head: &[u8]) -> bool {
    let mut lines = head_lines(head).filter(|line| !line.is_empty() && !line.starts_with("strace: "));
    lines.next().is_some_and(|line| Line::of(line).is_ok())
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut calls = Calls::default();
    let mut unfinished: HashMap<u32, (Nanos, String)> = HashMap::new();
    let mut text = String::new();
    while input.next_line(&mut text)? {
        if text.trim().is_empty() || text.starts_with("strace: ") || text.contains("strace: Process ") {
            continue;
        }
        let line = match Line::of(&text) {
            Ok(line) => line,
            Err(expected) => return Err(input.wrong(expected, &text)),
        };
        let tid = line.tid.unwrap_or(line::ONLY_THREAD);
        let ts = trace.from_time_of_day(line.ts);
        let thread = calls.thread(trace, ts, tid)?;
        let done = match line.content {
            Content::Other => true,
            Content::Exited => {
                calls.end(tid);
                trace.end(ts, tid);
                true
            }
            Content::Unfinished(begin) => {
                calls.begin(tid, begin);
                if unfinished.len() < MOST_UNFINISHED || unfinished.contains_key(&tid) {
                    unfinished.insert(tid, (ts, begin.to_owned()));
                }
                true
            }
            Content::Resumed(end) => match unfinished.remove(&tid) {
                Some((began, begin)) => calls.done(trace, began, thread, &(begin + end))?,
                // Its begin was before that of the trace.
                None => true,
            },
            Content::Call(call) => calls.done(trace, ts, thread, call)?,
        };
        if !done {
            return Err(input.wrong(line::CALL, &text));
        }
    }
    if trace.facts.command.is_empty() {
        trace.facts.lack(
            "which threads belong to one process",
            "strace prints thread ids: those that were there before it count as processes",
            "start the command with strace -f",
        );
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
