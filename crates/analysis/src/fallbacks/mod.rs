//! Work that a thread does because it could not use an artifact: a compiled or cached file that would have saved it.
//!
//! Owns how that is recognised, by what a thread opens and not by what programs are known to do. It begins with an open of the artifact
//! that gives nothing to work with ([`Problem`]), goes on with what the thread reads instead, and ends when the thread begins to save the
//! result, turns to another file, runs another program, waits for events, or ends ([`End`]).
//!
//! - *Read instead* is the first file that is opened with success afterwards, with others of its directory that have its extension, and
//!   any whose name is like the artifact's. Attempts that fail before are a search; directories and files of the kernel are nothing.
//! - *Saved* is the artifact, or a name in its directory that holds its name or is new (`O_EXCL`) and will be renamed.
//! - A file of exactly the artifact's name elsewhere is another copy of it, and no work.
//!
//! An open that was denied and succeeds later in the same process is none. Two of one thread do not overlap.
//!
//! Leaves what that costs to [`times`] and to the findings. Only the thread that opened is looked at: work that it gives to others is
//! missing.

pub(crate) mod open_call;
pub(crate) mod times;

use crate::integer_hash::IntegerMap;
use open_call::{are_alike, is_absent, is_denied, is_directory, is_no_artifact, makes, makes_artifact, reads, split};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpuReason, Open, ProcessKey};
use std::collections::HashMap;

/// Opens that are looked at after one, at most: what a fallback reads is read near its begin.
const MOST_OPENS: usize = 256;

/// A thread that waits so long for events or a time is done: as in table `first_waits`.
const LEAST_WAIT: Nanos = Nanos(1_000_000);

/// Why an artifact could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It could not be opened: EACCES, EPERM.
    Denied,
    /// It was not there: ENOENT.
    Absent,
    /// It was opened, and what it was made from was read all the same.
    Unfit,
}

/// What ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The thread was refused to save the result.
    SaveRefused,
    /// The thread began to save the result.
    Saved,
    /// The thread turned to another file.
    OtherFile,
    /// The thread waited for events or a time, ran another program, or ended; or recording did.
    Over,
}

impl End {
    /// Whether the thread itself showed that the result was there.
    pub(crate) fn is_seen(self) -> bool {
        matches!(self, Self::SaveRefused | Self::Saved)
    }
}

/// A thread that could not use an artifact, and what it did then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fallback<'a> {
    /// The open that gave nothing.
    pub open: &'a Open,
    /// When the work ended; it began when that open returned.
    pub ended: Nanos,
    /// What ended it.
    pub end: End,
    /// The file that was read first instead.
    pub source: Option<&'a Open>,
    /// Whether a file that was read instead is named like the artifact.
    pub is_alike: bool,
    /// Number of the thread in [`Threads`].
    thread: usize,
    /// Number of the open of that thread from which on it does something else.
    next: usize,
}

impl<'a> Fallback<'a> {
    /// Path of the artifact as the program gave it.
    pub fn artifact(&self) -> &'a str {
        &self.open.path
    }
}

/// The opens of one thread, and when it is not at work.
struct Thread<'a> {
    process: ProcessKey,
    opens: Vec<&'a Open>,
    /// When it began to wait for events or a time.
    waits: Vec<Nanos>,
    /// Begin and end of the intervals in which it did not run, in order.
    off: Vec<(u64, u64)>,
    ended: Nanos,
}

/// All threads that opened something.
pub(crate) struct Threads<'a> {
    threads: Vec<Thread<'a>>,
    /// When each process began to run a program.
    execs: IntegerMap<ProcessKey, Vec<Nanos>>,
    /// When a path was last opened with success to be read.
    read: HashMap<(ProcessKey, &'a str), Nanos>,
}

impl<'a> Threads<'a> {
    /// From the rows of a recording, in any order. `ended` is its end.
    pub fn new(tables: &'a Tables, ended: Nanos) -> Self {
        let mut numbers: IntegerMap<(ProcessKey, u32), usize> = IntegerMap::default();
        let mut threads: Vec<Thread<'a>> = Vec::new();
        let mut read: HashMap<(ProcessKey, &'a str), Nanos> = HashMap::new();
        for open in &tables.opens {
            let process = open.process();
            let number = *numbers.entry((process, open.tid)).or_insert_with(|| {
                threads.push(Thread { process, opens: Vec::new(), waits: Vec::new(), off: Vec::new(), ended });
                threads.len() - 1
            });
            threads[number].opens.push(open);
            if reads(open) && open.result >= 0 {
                let last = read.entry((process, &open.path)).or_default();
                *last = open.ts.max(*last);
            }
        }
        for row in &tables.off_cpu {
            let Some(number) = numbers.get(&(row.process(), row.tid)) else { continue };
            let thread = &mut threads[*number];
            if matches!(row.reason, OffCpuReason::Poll | OffCpuReason::Timer) && row.duration >= LEAST_WAIT {
                thread.waits.push(row.ts);
            }
            // Where a hypervisor took the CPU away is not known.
            if row.reason != OffCpuReason::Stolen {
                thread.off.push((row.ts.0, row.ts.0.saturating_add(row.duration.0)));
            }
        }
        for row in tables.exits.iter().filter(|row| !row.running) {
            if let Some(number) = numbers.get(&(row.process(), row.tid)) {
                threads[*number].ended = row.ts.min(ended);
            }
        }
        for thread in &mut threads {
            thread.opens.sort_by_key(|open| open.ts);
            thread.waits.sort();
            thread.off.sort_unstable();
        }
        let mut execs: IntegerMap<ProcessKey, Vec<Nanos>> = IntegerMap::default();
        tables.execs.iter().for_each(|row| execs.entry(row.process()).or_default().push(row.ts));
        execs.values_mut().for_each(|times| times.sort());
        Self { threads, execs, read }
    }

    /// When a thread does something else at the latest, whatever it opens.
    fn limit(&self, thread: &Thread<'_>, after: Nanos) -> Nanos {
        let first = |times: &[Nanos]| times.get(times.partition_point(|time| *time <= after)).copied();
        let exec = self.execs.get(&thread.process).and_then(|times| first(times));
        let limits = [exec, first(&thread.waits), Some(thread.ended)];
        limits.into_iter().flatten().min().unwrap_or(thread.ended).max(after)
    }

    /// Everything that began with this problem, by thread and time. Of one that was denied it is not said that anything follows. What
    /// is missing is no problem unless it is made instead, nor is what was read, unless its source was read too.
    pub fn fallbacks(&self, problem: Problem) -> Vec<Fallback<'a>> {
        let mut all = Vec::new();
        for (number, thread) in self.threads.iter().enumerate() {
            // Spares a look behind each open of a thread that makes nothing.
            if problem != Problem::Denied && !thread.opens.iter().any(|open| makes(open)) {
                continue;
            }
            let first = all.len();
            let found = (0..thread.opens.len()).filter_map(|at| self.fallback(number, at, problem));
            all.extend(found.filter(|one| match problem {
                Problem::Denied => true,
                Problem::Absent => one.end.is_seen(),
                Problem::Unfit => one.end.is_seen() && one.is_alike,
            }));
            for at in first + 1..all.len() {
                let next = all[at].open.ts;
                let before = &mut all[at - 1];
                if before.ended > next {
                    (before.ended, before.end) = (next, End::OtherFile);
                }
            }
        }
        all
    }

    fn fallback(&self, number: usize, at: usize, problem: Problem) -> Option<Fallback<'a>> {
        let thread = &self.threads[number];
        let open = thread.opens[at];
        if !reads(open) || is_no_artifact(open) || !self.has(open, problem) {
            return None;
        }
        let limit = self.limit(thread, open.ts);
        let over =
            |next| Fallback { open, ended: limit, end: End::Over, source: None, is_alike: false, thread: number, next };
        let mut found = over(thread.opens.len());
        for (next, later) in thread.opens.iter().enumerate().skip(at + 1).take(MOST_OPENS) {
            if later.ts >= limit {
                found.next = next;
                break;
            }
            match step(&found, later) {
                Step::Copy => return None,
                Step::Nothing => {}
                Step::Reads => {
                    found.source.get_or_insert(later);
                    found.is_alike |= are_alike(&open.path, &later.path);
                }
                Step::Ends(end) => {
                    (found.ended, found.end, found.next) = (later.ts, end, next);
                    break;
                }
            }
        }
        Some(found)
    }

    fn has(&self, open: &Open, problem: Problem) -> bool {
        let later = || self.read.get(&(open.process(), open.path.as_str())).is_some_and(|last| *last > open.ts);
        match problem {
            Problem::Denied => is_denied(open) && !later(),
            Problem::Absent => is_absent(open) && !later(),
            Problem::Unfit => open.result >= 0,
        }
    }
}

/// What a later open means for a fallback.
enum Step {
    /// Another copy of the artifact is used.
    Copy,
    Nothing,
    Reads,
    Ends(End),
}

fn step(fallback: &Fallback<'_>, later: &Open) -> Step {
    let artifact = fallback.artifact();
    if makes_artifact(later, artifact) {
        return Step::Ends(if later.result < 0 { End::SaveRefused } else { End::Saved });
    }
    if is_directory(later) || is_no_artifact(later) {
        return Step::Nothing;
    }
    let is_another = is_denied(later) && reads(later);
    let is_read = later.result >= 0 && reads(later);
    match fallback.source {
        _ if is_another || later.path == artifact => Step::Ends(End::OtherFile),
        None if is_read && split(&later.path).1 == split(artifact).1 => Step::Copy,
        None if is_read => Step::Reads,
        None if later.result < 0 => Step::Nothing,
        Some(source) if reads(later) && (is_of_kind(source, later) || are_alike(artifact, &later.path)) => Step::Reads,
        _ => Step::Ends(End::OtherFile),
    }
}

/// In the same directory, with the same extension.
fn is_of_kind(source: &Open, other: &Open) -> bool {
    let ((directory, name), (place, another)) = (split(&source.path), split(&other.path));
    let extension = |name: &'_ str| name.rsplit_once('.').map(|(_, extension)| extension.to_owned());
    directory == place && extension(name) == extension(another)
}

#[cfg(test)]
mod tests;
