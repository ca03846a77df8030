//! What the run-time linker does in a process before main: which libraries it maps, and which pages it reads and writes to relocate.
//!
//! Owns telling that from page faults, opens and mappings. The linker is the file that the kernel maps beside a program when it is
//! executed. A start begins with an exec and ends with the first fault whose instruction stands in the program itself, with the first
//! fault of another thread, or at ready. In it, on the first thread:
//!
//! - Until the last library is open the linker **loads**: from the first attempt to open a library on, the time between two events
//!   (opens, faults of the linker) belongs to the library that was opened last.
//! - Then it **relocates**: a fault of the linker's own instructions in a mapping of a file that can be written is a page that it
//!   writes; one in the sections of relocations, symbols and their names is a page that it reads. The time from one such fault to the
//!   linker's next one is that of the object that is relocated: whose own pages it touched last.
//!
//! The time between two events counts without what the thread did not run, without what recording its faults took of it, and
//! without the time of major faults, which wait for storage. From the last library on until the program itself, which comes last,
//! is relocated, nobody runs but the linker and the resolvers of indirect functions that it calls: all of it counts. Then the
//! linker protects what it has relocated of the program, which splits its mapping, and that is recorded where the program has such
//! a part (`-z relro`) and the kernel is 6.4 or later. Elsewhere, and where waits were not recorded, some were lost, or a
//! hypervisor took long, time counts up to [`LONGEST`], and between a fault of the linker and one of other code (a constructor, a
//! resolver) none does: who ran is not known. So times are too small rather than too large; a static program has none, nor has one
//! that relocates itself (static PIE), nor what is bound or loaded after main began, or after a resolver of the program's own ran.
//!
//! Leaves what that costs a launch, and what would end it, to the findings `relocation_cost` and `many_libraries`.

use crate::integer_hash::IntegerMap;
use crate::io::files::{FileId, Files};
use crate::memory::address_space::{AddressPlace, AddressSpaces};
use crate::memory::fault_places::FaultPlace;
use crate::time::off_cpu_times::waits_recorded;
use crate::time::recording_times::RecordingTimes;
use slowpath_recording::Tables;
use slowpath_tables::{FaultKind, FileKey, MappingOp, Nanos, OffCpuReason, ProcessKey, SectionKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What counts at most between two page faults or opens where other code may have run. The linker's own work is longer only where
/// each of the some 500 symbols of a page is searched in dozens of libraries.
pub(crate) const LONGEST: Nanos = Nanos(1_000_000);

/// `PROT_WRITE` of a mapping.
const PROT_WRITE: u32 = 2;

/// An object that was relocated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relocated {
    /// Its pages that the linker wrote.
    pub written: BTreeSet<u64>,
    /// Pages of its tables of relocations that the linker faulted in.
    pub read: BTreeSet<u64>,
    /// Pages of symbol tables, of any object, that were faulted in meanwhile.
    pub searched: BTreeSet<(FileId, u64)>,
    /// Time in these faults.
    pub fault_time: Nanos,
    /// All time until the linker's next event each; `fault_time` is in it.
    pub time: Nanos,
}

/// A library that was loaded.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Which.
    pub file: FileId,
    /// Attempts to open it, the one that succeeded included.
    pub lookups: u64,
    /// Bytes of address space that it was given.
    pub mapped: u64,
    /// Faults of the linker until the next library.
    pub faults: u64,
    /// Time until the next library.
    pub time: Nanos,
}

/// A program that was started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// By which process.
    pub process: ProcessKey,
    /// What was relocated.
    pub relocated: BTreeMap<FileId, Relocated>,
    /// What was loaded, in this order.
    pub loaded: Vec<Loaded>,
}

impl Start {
    /// Time to relocate.
    pub fn relocation(&self) -> Nanos {
        self.relocated.values().map(|one| one.time).sum()
    }

    /// Pages that the linker wrote, or faulted in of tables.
    pub fn pages(&self) -> usize {
        self.relocated.values().map(|one| one.written.len() + one.read.len() + one.searched.len()).sum()
    }

    /// Time to load.
    pub fn loading(&self) -> Nanos {
        self.loaded.iter().map(|one| one.time).sum()
    }
}

/// What starts are found in.
pub(crate) struct StartInputs<'a> {
    /// The launch, sorted by time.
    pub tables: &'a Tables,
    /// Its files.
    pub files: &'a Files,
    /// What each row of `tables.faults` meant.
    pub places: &'a [FaultPlace],
    /// What recording faults took of threads, which is no time of the linker's.
    pub recording: &'a RecordingTimes,
    /// When the launch was ready, or ended.
    pub until: Nanos,
}

/// A fault on the first thread of a start.
#[derive(Clone, Copy)]
struct Step {
    row: usize,
    is_linkers: bool,
}

/// A start while its faults are collected.
struct Window {
    process: ProcessKey,
    began: Nanos,
    ended: Nanos,
    is_over: bool,
    program: Option<FileId>,
    steps: Vec<Step>,
}

/// The starts of a launch until it was ready, in the order of their execs; those in which no linker was seen are left out.
pub(crate) fn starts(facts: &StartInputs<'_>) -> Vec<Start> {
    let mut windows = windows(facts);
    if windows.is_empty() {
        return Vec::new();
    }
    let linkers = linkers(facts);
    collect(facts, &linkers, &mut windows);
    let all = windows.into_values().flatten().filter(|window| window.steps.iter().any(|step| step.is_linkers));
    let mut all: Vec<Window> = all.collect();
    all.sort_by_key(|window| (window.began, window.process));
    let rows = Rows::new(facts);
    let none = BTreeSet::new();
    all.into_iter().map(|window| start(facts, &rows, &window, linkers.get(&window.process).unwrap_or(&none))).collect()
}

fn windows(facts: &StartInputs<'_>) -> IntegerMap<ProcessKey, Vec<Window>> {
    let mut windows: IntegerMap<ProcessKey, Vec<Window>> = IntegerMap::default();
    let mut execs: Vec<_> = facts.tables.execs.iter().filter(|exec| !exec.present).collect();
    execs.sort_by_key(|exec| exec.ts);
    for exec in execs {
        let of_process = windows.entry(exec.process()).or_default();
        if let Some(before) = of_process.last_mut() {
            before.ended = before.ended.min(exec.ts);
        }
        of_process.push(Window {
            process: exec.process(),
            began: exec.ts,
            ended: facts.until,
            is_over: false,
            program: facts.files.find(exec.file()),
            steps: Vec::new(),
        });
    }
    windows
}

/// Files that the kernel mapped for each process when it executed programs: these and their run-time linkers.
fn linkers(facts: &StartInputs<'_>) -> IntegerMap<ProcessKey, BTreeSet<FileId>> {
    let mut linkers: IntegerMap<ProcessKey, BTreeSet<FileId>> = IntegerMap::default();
    for row in facts.tables.mappings.iter().filter(|row| row.op == MappingOp::Exec) {
        if let (Some(dev), Some(ino)) = (row.dev, row.ino)
            && let Some(file) = facts.files.find(FileKey { dev, ino })
        {
            linkers.entry(row.process()).or_default().insert(file);
        }
    }
    linkers
}

/// Puts the faults of first threads into the windows. Those before the fault that ends a window are all of its steps.
fn collect(
    facts: &StartInputs<'_>,
    linkers: &IntegerMap<ProcessKey, BTreeSet<FileId>>,
    windows: &mut IntegerMap<ProcessKey, Vec<Window>>,
) {
    let tables = facts.tables;
    let mut spaces = AddressSpaces::new(tables);
    for (row, fault) in tables.faults.iter().enumerate() {
        let process = fault.process();
        let Some(of_process) = windows.get_mut(&process) else { continue };
        let Some(window) = of_process.iter_mut().rev().find(|window| window.began <= fault.ts) else { continue };
        if window.is_over || fault.ts >= window.ended {
            continue;
        }
        if fault.tid != fault.pid {
            (window.is_over, window.ended) = (true, fault.ts);
            continue;
        }
        if fault.kernel || fault.ip == 0 {
            continue;
        }
        let AddressPlace::File { file, .. } = spaces.place_at(fault.ts, process, fault.ip) else { continue };
        let Some(file) = facts.files.find(file) else { continue };
        if Some(file) == window.program {
            (window.is_over, window.ended) = (true, fault.ts);
            continue;
        }
        let is_linkers = linkers.get(&process).is_some_and(|files| files.contains(&file));
        window.steps.push(Step { row, is_linkers });
    }
}

/// Rows by process that starts need, in the order of time.
struct Rows {
    /// Time, the file where one was opened, and the path.
    opens: IntegerMap<ProcessKey, Vec<(Nanos, Option<FileId>, usize)>>,
    /// Time, file and length.
    mappings: IntegerMap<ProcessKey, Vec<(Nanos, FileId, u64)>>,
    /// Begin and end of the intervals in which the first thread did not run.
    off_cpu: IntegerMap<ProcessKey, Vec<(Nanos, Nanos)>>,
    /// What a hypervisor took from the first thread: the sum is known, and when only as exactly as its stays on a CPU.
    stolen: IntegerMap<ProcessKey, Nanos>,
    /// Whether waits were recorded and none were lost.
    has_all_waits: bool,
}

impl Rows {
    fn new(facts: &StartInputs<'_>) -> Self {
        let tables = facts.tables;
        let mut rows = Self {
            opens: IntegerMap::default(),
            mappings: IntegerMap::default(),
            off_cpu: IntegerMap::default(),
            stolen: IntegerMap::default(),
            has_all_waits: waits_recorded(tables) && tables.manifest.losses.of("off_cpu") == 0,
        };
        for (number, open) in tables.opens.iter().enumerate().filter(|(_, open)| open.tid == open.pid) {
            let key = open.dev.zip(open.ino).map(|(dev, ino)| FileKey { dev, ino });
            let file = key.and_then(|key| facts.files.find(key));
            rows.opens.entry(open.process()).or_default().push((open.ts, file, number));
        }
        for row in tables.mappings.iter().filter(|row| row.op == MappingOp::Map) {
            if let (Some(dev), Some(ino)) = (row.dev, row.ino)
                && let Some(file) = facts.files.find(FileKey { dev, ino })
            {
                rows.mappings.entry(row.process()).or_default().push((row.ts, file, row.length.0));
            }
        }
        for row in tables.off_cpu.iter().filter(|row| row.tid == row.pid) {
            rows.off_cpu.entry(row.process()).or_default().push((row.ts, row.ts + row.duration));
            if row.reason == OffCpuReason::Stolen {
                *rows.stolen.entry(row.process()).or_default() += row.duration;
            }
        }
        rows.opens.values_mut().for_each(|rows| rows.sort_by_key(|row| row.0));
        rows.mappings.values_mut().for_each(|rows| rows.sort_by_key(|row| row.0));
        rows.off_cpu.values_mut().for_each(|rows| rows.sort_unstable());
        rows
    }

    /// Whether it is known when the first thread of a process ran, as exactly as [`LONGEST`].
    fn off_cpu_is_exact(&self, process: ProcessKey) -> bool {
        self.has_all_waits && self.stolen.get(&process).is_none_or(|stolen| *stolen <= LONGEST)
    }

    /// How long the thread ran from `from` to `to`.
    fn ran(&self, process: ProcessKey, from: Nanos, to: Nanos) -> Nanos {
        let mut off = Nanos(0);
        if let Some(rows) = self.off_cpu.get(&process) {
            // Intervals of one thread do not overlap, so their ends are in order too.
            let first = rows.partition_point(|(_, end)| *end <= from);
            for (begin, end) in rows[first..].iter().take_while(|(begin, _)| *begin < to) {
                off += (*end).min(to) - (*begin).max(from);
            }
        }
        (to - from) - off
    }
}

/// Something that the linker did at a moment.
#[derive(Clone, Copy)]
enum Event {
    /// An attempt to open a file: the row of `opens`.
    Open(usize, Option<FileId>),
    /// A fault.
    Fault(Step),
}

/// `executed`: the files that the kernel mapped for the process when it executed programs.
fn start(facts: &StartInputs<'_>, rows: &Rows, window: &Window, executed: &BTreeSet<FileId>) -> Start {
    let is_within = |ts: Nanos| window.began <= ts && ts < window.ended;
    let mappings = || rows.mappings.get(&window.process).into_iter().flatten().filter(|row| is_within(row.0));
    // Nothing of the program is mapped again before it is relocated and protected.
    let program_relocated_at =
        mappings().find(|(_, file, _)| Some(*file) == window.program).map_or(window.ended, |(ts, ..)| *ts);
    let mut mapped: BTreeMap<FileId, u64> = BTreeMap::new();
    let mut last_mapped = Nanos(0);
    for (ts, file, length) in mappings() {
        // A first mapping reserves all; what is split later is reported again, also what was mapped when the program was executed.
        let known = mapped.entry(*file).or_insert_with(|| {
            let is_loaded = !executed.contains(file) && *ts < program_relocated_at;
            last_mapped = if is_loaded { last_mapped.max(*ts) } else { last_mapped };
            0
        });
        *known = (*known).max(*length);
    }
    let mut events: Vec<(Nanos, Event)> = rows
        .opens
        .get(&window.process)
        .into_iter()
        .flatten()
        .filter(|row| is_within(row.0))
        .map(|(ts, file, number)| (*ts, Event::Open(*number, *file)))
        .collect();
    let faults = window.steps.iter().map(|step| (facts.tables.faults[step.row].ts, Event::Fault(*step)));
    events.extend(faults);
    events.sort_by_key(|(ts, _)| *ts);
    let is_library = |file: FileId| {
        mapped.contains_key(&file) && Some(file) != window.program && !facts.files.get(file).sections.is_empty()
    };
    // What a constructor opens is no part of loading the program.
    let last_open = events.iter().rposition(|(ts, event)| {
        *ts < program_relocated_at && matches!(event, Event::Open(_, Some(file)) if is_library(*file))
    });
    // Where opens were not recorded, mappings tell when the last library came.
    let loaded_at = last_open.map_or(last_mapped, |last| events[last].0);
    let first_relocation = events.partition_point(|(ts, _)| *ts <= loaded_at);
    let is_known = program_relocated_at < window.ended && rows.off_cpu_is_exact(window.process);
    let linkers_alone = is_known.then_some((loaded_at, program_relocated_at));
    let timed = Timed { facts, rows, window, events: &events, linkers_alone };
    Start {
        process: window.process,
        relocated: timed.relocated(first_relocation),
        loaded: last_open.map_or_else(Vec::new, |last| timed.loaded(last, &mapped, is_library)),
    }
}

struct Timed<'a> {
    facts: &'a StartInputs<'a>,
    rows: &'a Rows,
    window: &'a Window,
    events: &'a [(Nanos, Event)],
    /// When nobody but the linker ran on the thread, where that is known.
    linkers_alone: Option<(Nanos, Nanos)>,
}

impl Timed<'_> {
    /// What counts of the time from `from` to `to`.
    fn counted(&self, from: Nanos, to: Nanos) -> Nanos {
        let process = self.window.process;
        let ran = |to| {
            let ran = self.rows.ran(process, from, to);
            ran - self.facts.recording.between(process, process.pid, from, to).min(ran)
        };
        match self.linkers_alone.filter(|(begin, end)| *begin <= from && from < *end) {
            // What a constructor does behind the end is its own.
            Some((_, end)) => ran(to.min(end)),
            None => ran(to).min(LONGEST),
        }
    }

    /// Time from an event to the next, where it is known who ran; else of a fault alone. A major fault's own is left out.
    fn time(&self, number: usize) -> Nanos {
        let (ts, event) = self.events[number];
        let (from, own) = match event {
            Event::Open(..) => (ts, Nanos(0)),
            Event::Fault(step) => {
                let fault = &self.facts.tables.faults[step.row];
                let duration = fault.duration.unwrap_or_default();
                match fault.kind {
                    FaultKind::Major => (ts + duration, Nanos(0)),
                    FaultKind::Minor => (ts, self.counted(ts, ts + duration)),
                }
            }
        };
        let to = match self.events.get(number + 1) {
            Some((next, Event::Open(..))) if self.linkers_alone.is_none_or(|(_, end)| *next <= end) => *next,
            Some((next, Event::Fault(step))) if step.is_linkers => *next,
            other => self.until_relocated(from, other.map_or(self.window.ended, |(next, _)| *next)),
        };
        self.counted(from, to).max(own)
    }

    /// How far it is known who ran from `from` on, where other code runs at `to`.
    fn until_relocated(&self, from: Nanos, to: Nanos) -> Nanos {
        self.linkers_alone.filter(|(begin, end)| *begin <= from && from < *end).map_or(from, |(_, end)| to.min(end))
    }

    /// Time in a minor fault.
    fn fault_time(&self, step: Step) -> Nanos {
        let fault = &self.facts.tables.faults[step.row];
        match (fault.kind, fault.duration) {
            (FaultKind::Minor, Some(duration)) => self.counted(fault.ts, fault.ts + duration),
            _ => Nanos(0),
        }
    }

    fn relocated(&self, first: usize) -> BTreeMap<FileId, Relocated> {
        let mut objects: BTreeMap<FileId, Relocated> = BTreeMap::new();
        let mut current = None;
        for (number, (ts, event)) in self.events.iter().enumerate().skip(first) {
            let Event::Fault(step) = event else { continue };
            let (true, FaultPlace::File { file, page, prot }) = (step.is_linkers, self.facts.places[step.row]) else {
                self.add_alone(&mut objects, current, number, *ts);
                continue;
            };
            let section = self.facts.files.get(file).section_of_page(page);
            let is_written = prot & PROT_WRITE != 0;
            let is_table = section.is_some_and(|section| section.name.starts_with(".rel"));
            let is_searched = section.is_some_and(|section| section.kind == SectionKind::Relocations);
            if is_written || is_table {
                current = Some(file);
            } else if !is_searched {
                self.add_alone(&mut objects, current, number, *ts);
                continue;
            }
            let object = objects.entry(current.unwrap_or(file)).or_default();
            if is_written {
                object.written.insert(page);
            } else if is_table {
                object.read.insert(page);
            } else {
                object.searched.insert((file, page));
            }
            object.fault_time += self.fault_time(*step);
            object.time += self.time(number);
        }
        objects
    }

    /// Adds the time of a fault for something else, a resolver's or for memory of the linker's own, to the object that is being relocated.
    fn add_alone(&self, objects: &mut BTreeMap<FileId, Relocated>, current: Option<FileId>, number: usize, ts: Nanos) {
        let is_alone = self.linkers_alone.is_some_and(|(begin, end)| begin <= ts && ts < end);
        if let Some(object) = current.filter(|_| is_alone).and_then(|file| objects.get_mut(&file)) {
            object.time += self.time(number);
        }
    }

    /// Libraries until the event `last`, and the time of each until the next one, or until the first relocation.
    fn loaded(&self, last: usize, mapped: &BTreeMap<FileId, u64>, is_library: impl Fn(FileId) -> bool) -> Vec<Loaded> {
        let base = |number: usize| {
            let path = self.facts.tables.opens[number].path.as_str();
            path.rsplit_once('/').map_or(path, |(_, base)| base)
        };
        let mut failed: HashMap<&str, u64> = HashMap::new();
        let mut loaded: Vec<Loaded> = Vec::new();
        // Behind the last library its mappings follow, which are no events: up to the next one it is still being loaded.
        for (number, (_, event)) in self.events.iter().enumerate().take(last + 1) {
            let time = self.time(number);
            match event {
                Event::Open(row, Some(file)) if is_library(*file) => {
                    let lookups = 1 + failed.remove(base(*row)).unwrap_or_default();
                    let mapped = mapped.get(file).copied().unwrap_or_default();
                    loaded.push(Loaded { file: *file, lookups, mapped, faults: 0, time });
                }
                Event::Open(row, _) => {
                    *failed.entry(base(*row)).or_default() += 1;
                    if let Some(before) = loaded.last_mut() {
                        before.time += time;
                    }
                }
                Event::Fault(step) => {
                    if let Some(before) = loaded.last_mut() {
                        before.faults += u64::from(step.is_linkers);
                        before.time += if step.is_linkers { time } else { Nanos(0) };
                    }
                }
            }
        }
        loaded
    }
}
