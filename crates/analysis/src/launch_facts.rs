//! Everything that findings and the I/O map need of one recording, derived once.
//!
//! Owns the order of derivation: files, processes, meaning of each fault, insertions, blocked time. Each step is a
//! module of its own.

use crate::io::blocked::Blocked;
use crate::io::files::Files;
use crate::io::insertions::{self, Insertion};
use crate::memory::completeness::{Completeness, completeness};
use crate::memory::fault_places::fault_places;
use crate::processes::Processes;
use crate::starts::loader_work::{self, Start, StartInputs};
use crate::time::recording_times::RecordingTimes;
use crate::time::round_trips::{Pair, round_trips};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};
use std::borrow::Cow;
use std::sync::OnceLock;

pub use crate::memory::fault_places::FaultPlace;

/// One recorded launch with its derived facts.
#[derive(Debug)]
pub struct LaunchFacts<'a> {
    /// The recording, sorted by time.
    pub tables: Cow<'a, Tables>,
    /// Its files.
    pub files: Files,
    /// Its processes.
    pub processes: Processes,
    /// What each row of `tables.faults` meant.
    pub places: Vec<FaultPlace>,
    /// Insertions into the page cache by cause, sorted by time.
    pub insertions: Vec<Insertion>,
    /// When threads waited for file reads.
    pub blocked: Blocked,
    /// Begin of the launch: exec released, or the first row where the recording holds no launch.
    pub released: Nanos,
    /// When the program was ready.
    pub ready: Option<Nanos>,
    /// End of the recording.
    pub ended: Nanos,
    completeness: OnceLock<Completeness>,
    loader_work: OnceLock<Vec<Start>>,
    recording: OnceLock<RecordingTimes>,
    round_trips: OnceLock<Vec<Pair>>,
}

impl<'a> LaunchFacts<'a> {
    /// Derives the facts. Tables that are not sorted by time are copied and sorted.
    pub fn new(tables: &'a Tables) -> Self {
        let tables = if sorted(tables) {
            Cow::Borrowed(tables)
        } else {
            let mut copy = tables.clone();
            copy.sort();
            Cow::Owned(copy)
        };
        let mut files = Files::new(&tables.files, &tables.sections);
        let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
        let places = fault_places(&tables, &mut files);
        let insertions = insertions::split(&tables, &mut files, &places);
        let blocked = Blocked::new(&tables, &mut files, &places);
        let (first, last) = span(&tables);
        let launch = tables.manifest.launch.as_ref();
        let released = launch.map_or(first, |launch| launch.released);
        let ready = launch.and_then(|launch| launch.ready).filter(|&ready| ready >= released);
        let ended = tables.manifest.ended.unwrap_or(last).max(released);
        Self {
            files,
            processes,
            places,
            insertions,
            blocked,
            released,
            ready,
            ended,
            completeness: OnceLock::new(),
            loader_work: OnceLock::new(),
            recording: OnceLock::new(),
            round_trips: OnceLock::new(),
            tables,
        }
    }

    /// Recorded faults beside the kernel's counters, compared when it is first asked for.
    pub fn completeness(&self) -> &Completeness {
        self.completeness.get_or_init(|| completeness(&self.tables, &self.processes))
    }

    /// What run-time linkers did before main, worked out when it is first asked for.
    pub(crate) fn loader_work(&self) -> &[Start] {
        self.loader_work.get_or_init(|| {
            let (tables, files, places) = (&*self.tables, &self.files, &*self.places);
            loader_work::starts(&StartInputs {
                tables,
                files,
                places,
                recording: self.recording(),
                until: self.until(),
            })
        })
    }

    /// What recording faults took of threads, added up when it is first asked for.
    pub(crate) fn recording(&self) -> &RecordingTimes {
        self.recording.get_or_init(|| RecordingTimes::new(&self.tables))
    }

    /// Who waited for whose replies, found when it is first asked for.
    pub(crate) fn round_trips(&self) -> &[Pair] {
        self.round_trips.get_or_init(|| round_trips(&self.tables))
    }

    /// End of the time that counts: ready, or the end of the recording where there was no ready event.
    pub fn until(&self) -> Nanos {
        self.ready.unwrap_or(self.ended)
    }

    /// Length of the time that counts.
    pub fn duration(&self) -> Nanos {
        self.until() - self.released
    }

    /// True for a process of the recorded tree, or always where no process was recorded.
    pub fn in_tree(&self, process: ProcessKey) -> bool {
        self.processes.is_empty() || self.processes.contains(process)
    }

    /// Insertions up to ready.
    pub fn insertions_until_ready(&self) -> &[Insertion] {
        let until = self.until();
        &self.insertions[..self.insertions.partition_point(|insertion| insertion.ts <= until)]
    }
}

fn sorted(tables: &Tables) -> bool {
    tables.faults.is_sorted_by_key(|row| row.ts)
        && tables.page_cache.is_sorted_by_key(|row| row.ts)
        && tables.reads.is_sorted_by_key(|row| row.ts)
        && tables.block_io.is_sorted_by_key(|row| row.ts)
}

/// First and last moment of any row.
fn span(tables: &Tables) -> (Nanos, Nanos) {
    let rows = || {
        let times = tables.execs.iter().map(|row| row.ts).chain(tables.exits.iter().map(|row| row.ts));
        let times =
            times.chain(tables.faults.iter().map(|row| row.ts)).chain(tables.page_cache.iter().map(|row| row.ts));
        times.chain(tables.reads.iter().map(|row| row.ts))
    };
    (rows().min().unwrap_or_default(), rows().max().unwrap_or_default())
}
