//! Work that a thread does because it could not use an artifact: a compiled or cached file that would have saved it.
//!
//! Owns how that is recognised, by what a thread opens and not by what programs are known to do. It begins with an open of the artifact
//! that gives nothing to work with ([`Problem`]), goes on with what the thread reads instead, and ends when the thread begins to save the
//! result, turns to another file, runs another program, waits for events, or ends ([`End`]).
//!
//! - *Read instead* is the first file that is opened with success afterwards, with others of its directory that have its extension, and
//!   any whose name is like the artifact's. Attempts that fail before are a search; directories and files of the kernel are nothing.
//!   Of families that read their sources one by one ([`Trace::ReadsSources`]) it is these, until one is read anew: the program uses it.
//!   Of those that read the source before they look for the artifact ([`Trace::SourceFirst`]) it is the last one before.
//! - *Saved* is the artifact, or a name in its directory that holds its name or is new (`O_EXCL`) and will be renamed. Who is refused to
//!   make its directory, or one above, after a source was read, is refused to save.
//! - A file of exactly the artifact's name elsewhere is another copy of it, and no work.
//!
//! A program that asks first, and opens nothing that it was refused a look at (access(2), stat(2)), begins with that. But programs look at
//! many paths where they search: a source of a like name is no sign of work then.
//!
//! What was denied and is opened later in the same process is none. Two of one thread do not overlap.
//!
//! Leaves what that costs to [`times`] and to the findings. Only the thread that opened is looked at: work that it gives to others is
//! missing.

pub(crate) mod open_call;
pub(crate) mod times;

use crate::io::opening_threads::OpeningThreads;
use crate::time::recording_times::RecordingTimes;
use open_call::{
    are_alike, extension, is_absent, is_denied, is_directory, is_look, is_no_artifact, is_refused_above,
    is_refused_directory, makes, makes_artifact, reads, split,
};
use slowpath_artifacts::families::{self, Trace};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Open, ProcessKey};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Opens that are looked at after one, at most: what a fallback reads is read near its begin.
const MOST_OPENS: usize = 256;

/// The same where the files of a directory are read one after the other: a directory of fonts has thousands. The next denied open ends it,
/// so that all together stay few.
const MOST_SOURCES: usize = 1 << 16;

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

impl Problem {
    /// Every problem.
    pub const ALL: [Self; 3] = [Self::Denied, Self::Absent, Self::Unfit];
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
    /// When the last file was opened that was read instead.
    pub last_read: Nanos,
    /// What opens show of the work, by the family of an artifact that was denied.
    pub trace: Trace,
    /// Number of the thread in [`Threads`].
    thread: usize,
    /// Number of the open of that thread from which on it does something else.
    next: usize,
}

impl<'a> Fallback<'a> {
    /// Path of the artifact.
    pub fn artifact(&self) -> &'a str {
        &self.open.path
    }
}

/// All threads that opened something, and what they could read in the end.
pub(crate) struct Threads<'a> {
    all: OpeningThreads<'a>,
    /// When a path was last opened with success to be read.
    read: HashMap<(ProcessKey, &'a str), Nanos>,
    /// Directories in which anything was opened.
    used_directories: HashSet<&'a str>,
    /// What processes were refused a look at on the way to something else: no artifacts.
    on_the_way: HashSet<(ProcessKey, &'a str)>,
}

impl<'a> Threads<'a> {
    /// From the rows of a recording, in any order. `ended` is its end.
    pub fn new(tables: &'a Tables, recording: &'a RecordingTimes, ended: Nanos) -> Self {
        let mut read: HashMap<(ProcessKey, &'a str), Nanos> = HashMap::new();
        let opened = tables.opens.iter().filter(|open| open.result >= 0);
        let used_directories = opened.map(|open| split(&open.path).0).collect();
        for open in tables.opens.iter().filter(|open| reads(open) && open.result >= 0) {
            let last = read.entry((open.process(), &open.path)).or_default();
            *last = open.ts.max(*last);
        }
        let all = OpeningThreads::new(tables, recording, ended);
        Self { all, read, used_directories, on_the_way: on_the_way(tables) }
    }

    /// Everything that began with this problem, by thread and time. Of one that was denied it is not said that anything follows. What
    /// is missing is no problem unless it is made instead, or its directory is missing with it ([`Self::never_made`]), or its directory
    /// of sources is listed and read ([`Self::lists_sources`]); nor is what was read, unless its source was read too.
    pub fn fallbacks(&self, problem: Problem) -> Vec<Fallback<'a>> {
        let mut all = Vec::new();
        for (number, thread) in self.all.threads.iter().enumerate() {
            // Spares a look behind each open of a thread that makes nothing.
            if problem == Problem::Unfit && !thread.opens.iter().any(|open| makes(open)) {
                continue;
            }
            let first = all.len();
            let found = (0..thread.opens.len()).filter_map(|at| self.fallback(number, at, problem));
            all.extend(found.filter(|one| match problem {
                Problem::Denied => true,
                Problem::Absent => {
                    let is_first = matches!(one.trace, Trace::SourceFirst);
                    one.end.is_seen() || self.never_made(one) || is_first || self.lists_sources(one)
                }
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
        let thread = &self.all.threads[number];
        let open = thread.opens[at];
        let is_on_the_way = || self.on_the_way.contains(&(open.process(), open.path.as_str()));
        if problem == Problem::Absent && is_refused_directory(open) {
            return self.without_directory(number, at);
        }
        if !reads(open) || is_no_artifact(open) || !self.has(open, problem) || is_look(open) && is_on_the_way() {
            return None;
        }
        let limit = self.all.limit(thread, open.ts);
        let of_family = || families::of_file(Path::new(&open.path)).map_or(Trace::OfAnyFile, |family| family.trace);
        let trace = match (problem, of_family()) {
            (Problem::Denied, trace) | (Problem::Absent, trace @ Trace::ReadsSources { .. }) => trace,
            _ => Trace::OfAnyFile,
        };
        let mut found = Fallback {
            open,
            ended: limit,
            end: End::Over,
            source: None,
            is_alike: false,
            last_read: open.ts,
            trace,
            thread: number,
            next: thread.opens.len(),
        };
        if matches!(trace, Trace::SourceFirst) {
            let before = thread.opens[..at].iter().rev();
            found.source = before.copied().find(|open| reads(open) && open.result >= 0 && !is_no_artifact(open));
        }
        let reads_sources = matches!(trace, Trace::ReadsSources { .. });
        let most = if reads_sources { MOST_SOURCES } else { MOST_OPENS };
        // A file may be opened twice in a row to be read once.
        let (mut known, mut last): (HashSet<&str>, &str) = (HashSet::new(), "");
        for (next, later) in thread.opens.iter().enumerate().skip(at + 1) {
            if later.ts >= limit || next > at + most {
                (found.ended, found.next) = (later.ts.min(limit), next);
                break;
            }
            let is_anew = reads_sources && reads(later) && later.path != last && !known.insert(&later.path);
            last = &later.path;
            match if is_anew && later.result >= 0 { Step::Ends(End::OtherFile) } else { step(&found, later) } {
                Step::Copy => return None,
                // Asked for once more at once: one attempt.
                Step::Ends(_)
                    if is_denied(later) && reads(later) && later.path == open.path && found.source.is_none() =>
                {
                    return None;
                }
                Step::Nothing => {}
                Step::Reads => {
                    found.source.get_or_insert(later);
                    found.last_read = later.ts;
                    found.is_alike |= !is_look(open) && are_alike(&open.path, &later.path);
                }
                Step::Ends(end) => {
                    (found.ended, found.end, found.next) = (later.ts, end, next);
                    break;
                }
            }
        }
        Some(found)
    }

    /// The refusal to make a directory for artifacts of a family that then looks for none of them ([`Trace::SourceFirst`]): when what follows
    /// ends is not known.
    fn without_directory(&self, number: usize, at: usize) -> Option<Fallback<'a>> {
        let thread = &self.all.threads[number];
        let open = thread.opens[at];
        let trace = families::of_directory(Path::new(&open.path))?.trace;
        let (ended, next) = (self.all.limit(thread, open.ts), thread.opens.len());
        let (end, source, is_alike, last_read) = (End::Over, None, false, open.ts);
        let fallback = Fallback { open, ended, end, source, is_alike, last_read, trace, thread: number, next };
        matches!(trace, Trace::SourceFirst).then_some(fallback)
    }

    /// Whether the family's sources are read one by one, after the directory that holds them was listed: who only uses one does not list it.
    fn lists_sources(&self, fallback: &Fallback<'_>) -> bool {
        let Some(source) = fallback.source.filter(|_| matches!(fallback.trace, Trace::ReadsSources { .. })) else {
            return false;
        };
        let place = split(&source.path).0;
        let lists = |open: &&Open| is_directory(open) && open.result >= 0 && open.path.trim_end_matches('/') == place;
        let opens = self.all.threads[fallback.thread].opens.iter().copied();
        opens
            .skip_while(|open| open.ts <= fallback.open.ts)
            .take_while(|open| open.ts < source.ts)
            .any(|open| lists(&open))
    }

    /// Whether a directory for compiled files is missing below that of the source: nobody opens anything in it, and the name that is
    /// looked for there is that of the source with another extension. A thread that is refused to make such a directory shows no more.
    /// Places where a library or a setting is searched for do not lie below the one where it is found.
    fn never_made(&self, fallback: &Fallback<'_>) -> bool {
        let Some(source) = fallback.source else { return false };
        let (directory, name) = split(fallback.artifact());
        let (place, from) = split(&source.path);
        split(directory).0 == place
            && !place.is_empty()
            && are_alike(name, from)
            && extension(name) != extension(from)
            && !self.used_directories.contains(directory)
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

/// Paths that a process was refused a look at, and below which it asked for others: directories.
fn on_the_way(tables: &Tables) -> HashSet<(ProcessKey, &str)> {
    let looked: HashSet<(ProcessKey, &str)> =
        tables.opens.iter().filter(|open| is_look(open)).map(|open| (open.process(), open.path.as_str())).collect();
    let mut found = HashSet::new();
    for open in tables.opens.iter().filter(|_| !looked.is_empty()) {
        let above = open.path.char_indices().filter(|(_, letter)| *letter == '/').map(|(at, _)| &open.path[..at]);
        found.extend(above.filter_map(|above| looked.get(&(open.process(), above))).copied());
    }
    found
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
    if matches!(fallback.trace, Trace::SourceFirst) {
        let is_search = is_directory(later) || is_no_artifact(later) || later.result < 0 && !is_denied(later);
        return if is_search { Step::Nothing } else { Step::Ends(End::OtherFile) };
    }
    if makes_artifact(later, artifact) {
        return Step::Ends(if later.result < 0 { End::SaveRefused } else { End::Saved });
    }
    if is_refused_above(later, artifact) {
        // Whether it may write there it can ask before the work, too.
        let is_to_save = fallback.source.is_some() && !is_look(later);
        return if is_to_save { Step::Ends(End::SaveRefused) } else { Step::Nothing };
    }
    if is_directory(later) || is_no_artifact(later) {
        return Step::Nothing;
    }
    let is_another = is_denied(later) && reads(later);
    let is_read = later.result >= 0 && reads(later);
    if let Trace::ReadsSources { is_source } = fallback.trace
        && !is_another
        && split(&later.path).1 != split(artifact).1
    {
        let is_beside = |source: &Open| split(&source.path).0 == split(&later.path).0;
        let is_source = fallback.source.map_or_else(|| is_source(Path::new(&later.path)), is_beside);
        // The place for the result may be another one, of the user's own.
        let is_result = makes(later) && split(&later.path).1.contains(split(artifact).1);
        return match later.result < 0 {
            true if is_result => Step::Ends(End::SaveRefused),
            false if is_result => Step::Ends(End::Saved),
            true => Step::Nothing,
            false if reads(later) && is_source => Step::Reads,
            false => Step::Ends(End::OtherFile),
        };
    }
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
    directory == place && extension(name) == extension(another)
}

#[cfg(test)]
mod tests;
