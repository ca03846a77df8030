//! A recording as a profile for the Firefox Profiler (profiler.firefox.com), in its processed format.
//!
//! Owns what becomes a sample and what a marker. CPU samples are samples with their call stacks, and say how much CPU time
//! went by since the one before. Waits, page faults and memory calls are markers with their duration and stack; so are the
//! launch and what the recording lacks. A kind of marker that has more than [`MARKER_LIMIT`] rows keeps the longest: beyond
//! that the profile would not open. Frames of a file lie at their offset in the file, which is not where a linker puts them,
//! so the profile says that its names are final.

mod categories;
mod cpu_time;
mod markers;
mod origin;
mod stacks;
mod threads;

use crate::ThreadKey;
use crate::gaps;
use crate::recording_exports::{ExportOptions, Exported, NotExported, RecordingExport, Work};
use crate::stack_weight::Weight;
use categories::Categories;
use cpu_time::CpuTime;
use fxprof_processed_profile::{MarkerTiming, Profile, SamplingInterval, ThreadHandle};
use markers::{MemoryCallMarker, Note, PageFault, Wait};
use origin::Origin;
use slowpath_analysis::printed::longest::longest;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;
use slowpath_tables::{CpuSample, FaultKind, Nanos};
use stacks::StackTables;
use std::collections::HashMap;
use std::io::{self, Write};
use threads::Threads;

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "firefox",
    title: "A profile for profiler.firefox.com: CPU samples with their stacks, waits, faults and memory calls",
    what: "CPU samples with their stacks; waits, page faults and memory calls as markers of threads.",
    lacks: "Files, reads and the page cache. Of each kind of marker only the longest where there are very many.",
    read_by: "profiler.firefox.com, profiler-cli",
    is_text: false,
    takes: None,
    of_diagnosis: None,
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, _: &ExportOptions) -> Result<Work<'a>, NotExported> {
    let export = export(tables);
    let has_samples = !tables.cpu_samples.is_empty();
    Ok(Box::new(move |out, to| {
        export.write(out)?;
        let mut notes = export.notes;
        if !has_samples {
            notes.push(format!("this recording holds no CPU samples: {}.", Weight::Cpu.remedy()));
        }
        let next =
            format!("open {} in https://profiler.firefox.com (it stays in the browser unless you upload it)", to.name);
        Ok(Exported { notes, next })
    }))
}

/// Markers of one kind (waits, minor faults, major faults, memory calls); of more rows the longest are kept.
pub const MARKER_LIMIT: usize = 200_000;

/// What a profile without samples says: a number is required, none is meant.
const NO_INTERVAL: u64 = 1_000_000;

/// A profile and what a reader must know about it.
#[derive(Debug)]
pub struct Export {
    profile: Profile,
    /// What was left out or is missing, one sentence each; they are also markers of the profile.
    pub notes: Vec<String>,
}

impl Export {
    /// Writes the JSON.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        Ok(serde_json::to_writer(out, &self.profile)?)
    }
}

/// Exports a recording; rows may be in any order.
pub fn export(tables: &Tables) -> Export {
    let origin = Origin::of(tables);
    let by_thread = samples_by_thread(tables);
    let interval = interval(tables, &by_thread);
    let command = tables.manifest.command.join(" ");
    let product = if command.is_empty() { "slowpath recording".to_owned() } else { command };
    let mut profile =
        Profile::new(&product, origin.reference(tables), SamplingInterval::from_nanos(interval.unwrap_or(NO_INTERVAL)));
    let host = &tables.manifest.host;
    profile.set_os_name(format!("Linux {} {}", host.kernel, host.machine).trim());
    profile.set_symbolicated(true);
    let categories = Categories::of(&mut profile);
    let mut threads = Threads::new(tables, origin, &mut profile);
    let call_stacks = CallStacks::new(tables);
    let mut stacks = StackTables::new(&call_stacks, categories, &mut profile);
    let mut notes = gaps::notes(&tables.manifest);

    let cpu_time = CpuTime::new(tables, interval.unwrap_or(NO_INTERVAL));
    let mut keys: Vec<ThreadKey> = by_thread.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let thread = threads.get(&mut profile, key);
        let samples = &by_thread[&key];
        let deltas = cpu_time.deltas(key, samples);
        for (sample, delta) in samples.iter().zip(deltas) {
            let stack = stacks.get(&mut profile, thread, sample.stack);
            profile.add_sample(thread, origin.at(sample.ts), stack, delta, 1);
        }
    }
    let mut rows =
        Rows { tables, origin, categories, threads: &mut threads, stacks: &mut stacks, profile: &mut profile };
    rows.waits(&mut notes);
    rows.faults(&mut notes);
    rows.memory_calls(&mut notes);
    launch_and_notes(tables, origin, &notes, &mut threads, &mut profile);
    Export { profile, notes }
}

/// Samples of each thread in the order of time.
fn samples_by_thread(tables: &Tables) -> HashMap<ThreadKey, Vec<&CpuSample>> {
    let mut threads: HashMap<ThreadKey, Vec<&CpuSample>> = HashMap::new();
    for sample in &tables.cpu_samples {
        threads.entry((sample.process(), sample.tid)).or_default().push(sample);
    }
    for samples in threads.values_mut().filter(|samples| !samples.is_sorted_by_key(|sample| sample.ts)) {
        samples.sort_by_key(|sample| sample.ts);
    }
    threads
}

/// Nanoseconds between samples: by the rate that was asked for, else the median distance within a thread.
fn interval(tables: &Tables, by_thread: &HashMap<ThreadKey, Vec<&CpuSample>>) -> Option<u64> {
    if let Some(rate) = tables.manifest.cpu_sample_hz() {
        return Some(1_000_000_000 / rate);
    }
    let mut distances: Vec<u64> = by_thread
        .values()
        .flat_map(|samples| samples.windows(2).map(|pair| (pair[1].ts - pair[0].ts).0))
        .filter(|distance| *distance > 0)
        .collect();
    let middle = distances.len() / 2;
    (!distances.is_empty()).then(|| *distances.select_nth_unstable(middle).1)
}

/// What adds the markers of tables.
struct Rows<'t, 'x> {
    tables: &'t Tables,
    origin: Origin,
    categories: Categories,
    threads: &'x mut Threads<'t>,
    stacks: &'x mut StackTables<'t>,
    profile: &'x mut Profile,
}

impl Rows<'_, '_> {
    fn waits(&mut self, notes: &mut Vec<String>) {
        let rows = self.tables.off_cpu.iter().map(|row| (row.duration.0, row)).collect();
        for row in longest(rows, MARKER_LIMIT, "intervals off the CPU", notes) {
            let thread = self.threads.get(self.profile, (row.process(), row.tid));
            let marker = Wait::of(row, self.categories.wait, self.profile);
            let marker = self.profile.add_marker(thread, self.origin.span(row.ts, row.duration), marker);
            let stack = self.stacks.get(self.profile, thread, row.stack);
            self.profile.set_marker_stack(thread, marker, stack);
        }
    }

    fn faults(&mut self, notes: &mut Vec<String>) {
        for (kind, what) in [(FaultKind::Major, "major faults"), (FaultKind::Minor, "minor faults")] {
            let rows = self.tables.faults.iter().filter(|row| row.kind == kind);
            let rows = rows.map(|row| (row.duration.unwrap_or_default().0, row)).collect();
            for row in longest(rows, MARKER_LIMIT, what, notes) {
                let thread = self.threads.get(self.profile, (row.process(), row.tid));
                let marker = PageFault::of(row, self.categories.fault, self.profile);
                let timing = match row.duration {
                    Some(duration) => self.origin.span(row.ts, duration),
                    None => MarkerTiming::Instant(self.origin.at(row.ts)),
                };
                let marker = self.profile.add_marker(thread, timing, marker);
                let stack = self.stacks.get(self.profile, thread, row.stack);
                self.profile.set_marker_stack(thread, marker, stack);
            }
        }
    }

    fn memory_calls(&mut self, notes: &mut Vec<String>) {
        let rows = self.tables.memory_calls.iter().map(|row| (row.duration.0, row)).collect();
        for row in longest(rows, MARKER_LIMIT, "memory calls", notes) {
            let thread = self.threads.get(self.profile, (row.process(), row.tid));
            let marker = MemoryCallMarker::of(row, row.growth().0, self.categories.memory, self.profile);
            let marker = self.profile.add_marker(thread, self.origin.span(row.ts, row.duration), marker);
            let stack = self.stacks.get(self.profile, thread, row.stack);
            self.profile.set_marker_stack(thread, marker, stack);
        }
    }
}

/// The launch and the notes, on a track of the recording itself. The profiler shows what lies between the first and the last
/// sample of threads that have any, and the markers of threads that have none: so this one makes it show everything.
fn launch_and_notes(tables: &Tables, origin: Origin, notes: &[String], threads: &mut Threads, profile: &mut Profile) {
    let track: ThreadHandle = threads.recording(profile);
    let whole = MarkerTiming::Interval(origin.at(Nanos(origin.first)), origin.at(Nanos(origin.last)));
    let outcome = tables.manifest.stop_reason.as_deref().unwrap_or("recorded by slowpath");
    let marker = Note::of("Recording", outcome, profile);
    profile.add_marker(track, whole.clone(), marker);
    if let Some(launch) = &tables.manifest.launch {
        let timing = match launch.ready {
            Some(ready) => MarkerTiming::Interval(origin.at(launch.released), origin.at(ready)),
            None => MarkerTiming::Instant(origin.at(launch.released)),
        };
        let text = format!("ready when: {}; {}", launch.ready_when, launch.outcome);
        let marker = Note::of("Launch", &text, profile);
        profile.add_marker(track, timing, marker);
    }
    for note in notes {
        let marker = Note::of("Recording lacks", note, profile);
        profile.add_marker(track, whole.clone(), marker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::CPU_SAMPLE_HZ;

    #[test]
    fn the_interval_is_the_rate_that_was_asked_for_or_the_usual_distance() {
        let mut tables =
            Tables::from_text("== cpu_samples\nts pid start tid\n10 7 1 7\n20 7 1 7\n30 7 1 7\n500 7 1 7\n11 7 1 8\n")
                .unwrap();
        assert_eq!(interval(&tables, &samples_by_thread(&tables)), Some(10));
        tables.manifest.counters.insert(CPU_SAMPLE_HZ.to_owned(), 999);
        assert_eq!(interval(&tables, &samples_by_thread(&tables)), Some(1_001_001));
        assert_eq!(interval(&Tables::default(), &HashMap::new()), None);
    }
}
