//! What each process has of the recorded faults, of the CPU and of the machine's faults.
//!
//! Owns the sums and where the machine's faults went. Three counts of faults differ, and are kept apart: rows of `faults`;
//! the counters of the recorded tasks (`task_struct`), which also have faults that raise no event (the kernel's own for a
//! task, `get_user_pages`); and `pgfault` of the machine, which also has those of tasks that are not recorded and those that
//! failed. Leaves call stacks to [`crate::stacks::function_weights`], per-process doubts to [`crate::memory::completeness`].

use crate::integer_hash::IntegerMap;
use crate::launch_facts::LaunchFacts;
use crate::processes::{Process, Processes};
use crate::starts::children::{child_launches, kind_of};
use crate::time::off_cpu_times::waits_recorded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::{MachineFaults, Tables};
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, Exec, Exit, FaultKind, Nanos, ProcessKey, Unavailable};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::AddAssign;

/// What was used, by a process or by all. A sum of something that was not recorded is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Recorded minor faults.
    pub minor: u64,
    /// Recorded major faults.
    pub major: u64,
    /// Time in recorded faults, where their duration is known.
    pub fault_time: Nanos,
    /// Recorded faults of unknown duration.
    pub untimed: u64,
    /// Faults meanwhile by the kernel's counters of its threads; in a sum the processes of which they are known.
    pub counted: Option<u64>,
    /// Time that its threads ran meanwhile, by the scheduler's clock; in a sum as `counted`.
    pub cpu_time: Option<Nanos>,
    /// CPU samples.
    pub cpu_samples: Option<u64>,
    /// Time off the CPU, all threads together: mostly waiting for work.
    pub off_cpu: Option<Nanos>,
    /// The part of it in which threads could have run.
    pub runnable: Option<Nanos>,
    /// Bytes by which mmap, mremap and brk let the address space grow.
    pub allocated: Option<Bytes>,
}

impl Sums {
    /// Recorded faults.
    pub fn faults(&self) -> u64 {
        self.minor.saturating_add(self.major)
    }
}

impl AddAssign<&Self> for Sums {
    fn add_assign(&mut self, other: &Self) {
        fn both<T: Copy + Default>(a: Option<T>, b: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
            (a.is_some() || b.is_some()).then(|| add(a.unwrap_or_default(), b.unwrap_or_default()))
        }
        let nanos = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
        self.minor = self.minor.saturating_add(other.minor);
        self.major = self.major.saturating_add(other.major);
        self.fault_time = nanos(self.fault_time, other.fault_time);
        self.untimed = self.untimed.saturating_add(other.untimed);
        self.counted = both(self.counted, other.counted, u64::saturating_add);
        self.cpu_time = both(self.cpu_time, other.cpu_time, nanos);
        self.cpu_samples = both(self.cpu_samples, other.cpu_samples, u64::saturating_add);
        self.off_cpu = both(self.off_cpu, other.off_cpu, nanos);
        self.runnable = both(self.runnable, other.runnable, nanos);
        self.allocated = both(self.allocated, other.allocated, |a, b| Bytes(a.0.saturating_add(b.0)));
    }
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Pid and start.
    pub process: ProcessKey,
    /// Its program, with its role where the program starts its own image in several: `chromium (utility NetworkService)`.
    /// Foreign text.
    pub name: String,
    /// Kind of child, see [`kind_of`]; the name for a task without a command line (the kernel's own). Foreign text.
    pub kind: String,
    /// Command line; cut as in the recording. Foreign text.
    pub command_line: String,
    /// What it used.
    pub sums: Sums,
}

/// Where the faults of the machine went while recording went on. The parts add up to `faults`, unless there are more
/// recorded than the machine counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUsage {
    /// All that the machine counted (`pgfault` of `/proc/vmstat`).
    pub faults: u64,
    /// Those that read a page (`pgmajfault`).
    pub major: u64,
    /// Recorded.
    pub recorded: u64,
    /// Lost by the recorder, by its own count.
    pub lost: u64,
    /// Counted for recorded processes beyond rows and losses: the kernel took them itself for a task, without an event.
    pub without_event: u64,
    /// Of the recorder and its writer, which are not recorded.
    pub recorder: u64,
    /// The rest: tasks that are not recorded, and faults that failed.
    pub elsewhere: u64,
}

/// Everything by process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All processes that were seen, most faults first, then most CPU time.
    pub processes: Vec<ProcessUsage>,
    /// Sum of all.
    pub total: Sums,
    /// Processes of which the kernel's counters are not known; `counted` and `cpu_time` of `total` lack them.
    pub without_counters: u64,
    /// The machine's faults, where they were counted.
    pub machine: Option<MachineUsage>,
    /// From the begin of recording to its end; `None` where it has no end.
    pub recorded_for: Option<Nanos>,
}

/// Adds up a recording by process. Rows may be in any order.
pub fn usage(tables: &Tables) -> Usage {
    let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    let kinds = kinds(tables);
    let mut sums = recorded(tables);
    count(tables, &mut sums);
    for process in processes.iter() {
        sums.entry(process.key).or_insert_with(|| empty(tables));
    }
    let mut usage: Vec<ProcessUsage> =
        sums.into_iter().map(|(key, sums)| share(key, processes.get(key), kinds.get(&key), sums)).collect();
    usage.sort_by_key(|one| (std::cmp::Reverse((one.sums.faults(), one.sums.cpu_time)), one.process));
    let mut total = empty(tables);
    usage.iter().for_each(|one| total += &one.sums);
    let manifest = &tables.manifest;
    Usage {
        without_counters: usage.iter().filter(|one| one.sums.counted.is_none()).count() as u64,
        machine: manifest.machine_faults.map(|machine| machine_usage(tables, &machine, &usage, &total)),
        recorded_for: manifest.ended.map(|ended| Nanos(ended.0.saturating_sub(manifest.started.0))),
        processes: usage,
        total,
    }
}

fn share(key: ProcessKey, process: Option<&Process>, kind: Option<&String>, sums: Sums) -> ProcessUsage {
    let name = process.map_or_else(|| format!("pid {}", key.pid), |process| process.name.clone());
    let command_line = process.map(|process| process.command_line.clone()).unwrap_or_default();
    let kind = kind.cloned().unwrap_or_else(|| name.clone());
    // A name with a role has one in its kind too, of which more may be known.
    let name = match name.split_once(" (") {
        Some((program, _)) if command_line.contains(" --type=") => format!("{program} ({kind})"),
        _ => name,
    };
    ProcessUsage { process: key, name, kind, command_line, sums }
}

/// What the rows of processes are, from the command line that was seen last.
fn kinds(tables: &Tables) -> HashMap<ProcessKey, String> {
    let with_line = tables.execs.iter().filter(|exec| !exec.command_line.is_empty());
    let mut kinds: HashMap<ProcessKey, String> =
        with_line.map(|exec| (exec.process(), kind_of(&exec.command_line))).collect();
    kinds.extend(child_launches(tables).into_iter().map(|child| (child.process, child.kind)));
    kinds
}

/// Sums of nothing, with zeros for what was recorded.
fn empty(tables: &Tables) -> Sums {
    let ran = |probe: &str| tables.manifest.ran(probe);
    let waits = waits_recorded(tables);
    let memory = ran("memory") || !tables.memory_calls.is_empty();
    Sums {
        cpu_samples: (ran("cpu_sample") || !tables.cpu_samples.is_empty()).then_some(0),
        off_cpu: waits.then_some(Nanos(0)),
        runnable: waits.then_some(Nanos(0)),
        allocated: memory.then_some(Bytes(0)),
        ..Sums::default()
    }
}

/// Sums by process. Rows of one process follow each other more often than not, so the last one asked for is at hand.
struct ByProcess {
    empty: Sums,
    sums: Vec<(ProcessKey, Sums)>,
    number_of: IntegerMap<ProcessKey, usize>,
    last: usize,
}

impl ByProcess {
    fn of(&mut self, process: ProcessKey) -> &mut Sums {
        if self.sums.get(self.last).is_none_or(|(key, _)| *key != process) {
            self.last = *self.number_of.entry(process).or_insert_with(|| {
                self.sums.push((process, self.empty));
                self.sums.len() - 1
            });
        }
        &mut self.sums[self.last].1
    }
}

/// Sums of the rows.
fn recorded(tables: &Tables) -> BTreeMap<ProcessKey, Sums> {
    let mut all =
        ByProcess { empty: empty(tables), sums: Vec::new(), number_of: IntegerMap::default(), last: usize::MAX };
    for row in &tables.faults {
        let sums = all.of(row.process());
        match row.kind {
            FaultKind::Minor => sums.minor += 1,
            FaultKind::Major => sums.major += 1,
        }
        match row.duration {
            Some(duration) => sums.fault_time += duration,
            None => sums.untimed += 1,
        }
    }
    for row in &tables.cpu_samples {
        *all.of(row.process()).cpu_samples.get_or_insert_default() += 1;
    }
    for row in &tables.off_cpu {
        let sums = all.of(row.process());
        *sums.off_cpu.get_or_insert_default() += row.duration;
        *sums.runnable.get_or_insert_default() += row.runnable;
    }
    for row in &tables.memory_calls {
        let allocated = all.of(row.process()).allocated.get_or_insert_default();
        *allocated += row.growth();
    }
    all.sums.into_iter().collect()
}

/// Time that the threads of each process ran while recording went on; `None` where that is not known.
pub fn cpu_times(tables: &Tables) -> BTreeMap<ProcessKey, Option<Nanos>> {
    let mut sums = BTreeMap::new();
    count(tables, &mut sums);
    sums.into_iter().map(|(process, sums)| (process, sums.cpu_time)).collect()
}

/// The same without what recording faults took of them.
pub(crate) fn own_cpu_times(facts: &LaunchFacts<'_>) -> BTreeMap<ProcessKey, Option<Nanos>> {
    let mut times = cpu_times(&facts.tables);
    for ((process, _), recording) in facts.recording().totals() {
        if let Some(Some(time)) = times.get_mut(&process) {
            *time = Nanos(time.0.saturating_sub(recording.0));
        }
    }
    times
}

/// What CPU times lack where many threads ended soon and waits were not recorded: of each, up to a tick.
pub fn stale_ends(tables: &Tables) -> Option<Unavailable> {
    let switches = LastSwitches::new(tables);
    let is_stale = |exit: &&Exit| !exit.running && switches.run_time(exit).is_none();
    let stale = tables.exits.iter().filter(is_stale).count() as u64;
    let known = cpu_times(tables).into_values().flatten().fold(0, |sum: u64, time| sum.saturating_add(time.0));
    let lacks = stale.saturating_mul(HALF_A_TICK.0) as f64;
    (known > 0 && lacks > STALE_SHARE * known as f64).then(|| {
        let (reason, remedy) = if waits_recorded(tables) {
            ("the rows that have the counter at their last switch were lost", "record again, fewer processes at once")
        } else {
            (
                "the scheduler brings its counter up to date at ticks and switches, and waits were not recorded",
                "record with `--off-cpu`",
            )
        };
        declared::CPU_TIME_OF_ENDED.of(&[&stale], reason, remedy)
    })
}

/// Half of a tick of 4 ms (`CONFIG_HZ` is 250 in most kernels), and the share of the CPU time from which on what is missing is said.
const HALF_A_TICK: Nanos = Nanos(2_000_000);
const STALE_SHARE: f64 = 0.05;

/// What the scheduler had counted of each thread at its last switch, where waits were recorded (`thread_counters`); by the time of that.
struct LastSwitches(HashMap<(ProcessKey, u32), BTreeMap<Nanos, Nanos>>);

impl LastSwitches {
    fn new(tables: &Tables) -> Self {
        let mut all: HashMap<_, BTreeMap<_, _>> = HashMap::new();
        for row in tables.thread_counters.iter().filter(|row| row.end) {
            all.entry((row.process(), row.tid)).or_default().insert(row.ts, row.run_time);
        }
        Self(all)
    }

    /// Of the thread that ends here: its last switch comes after. The same id can be that of a thread before or after it.
    fn run_time(&self, exit: &Exit) -> Option<Nanos> {
        self.0.get(&(exit.process(), exit.tid))?.range(exit.ts..).next().map(|(_, run_time)| *run_time)
    }
}

/// Adds what the kernel's counters of a process grew by, where both ends are known: those of the end are rows of `exits`,
/// whole when the last thread ended or recording did. The scheduler's counter in them is as old as the last tick or switch, so the one
/// of the last switch counts where it is known. Those of the begin are in the first row of `execs`; a child that was made meanwhile
/// began with none.
fn count(tables: &Tables, sums: &mut BTreeMap<ProcessKey, Sums>) {
    let switches = LastSwitches::new(tables);
    let mut at_end: HashMap<ProcessKey, (u64, Option<u64>, bool)> = HashMap::new();
    for exit in &tables.exits {
        let run_time = exit.run_time.max(switches.run_time(exit));
        let end = at_end.entry(exit.process()).or_insert((0, Some(0), false));
        end.0 = end.0.saturating_add(exit.min_flt).saturating_add(exit.maj_flt);
        end.1 = end.1.zip(run_time).map(|(sum, time)| sum.saturating_add(time.0));
        end.2 |= exit.last || exit.running;
    }
    let born: HashSet<ProcessKey> =
        tables.forks.iter().filter(|fork| !fork.thread).map(|fork| fork.process()).collect();
    let mut at_begin: HashMap<ProcessKey, &Exec> = HashMap::new();
    for exec in &tables.execs {
        at_begin
            .entry(exec.process())
            .and_modify(|first| {
                if exec.ts < first.ts {
                    *first = exec
                }
            })
            .or_insert(exec);
    }
    for (process, (faults, run_time, is_whole)) in at_end {
        let begin = match (born.contains(&process), at_begin.get(&process)) {
            (true, _) => (0, Some(0)),
            (false, Some(exec)) => (exec.min_flt.saturating_add(exec.maj_flt), exec.run_time.map(|time| time.0)),
            (false, None) => continue,
        };
        if is_whole {
            let sums = sums.entry(process).or_insert_with(|| empty(tables));
            sums.counted = Some(faults.saturating_sub(begin.0));
            sums.cpu_time = run_time.zip(begin.1).map(|(end, begin)| Nanos(end.saturating_sub(begin)));
        }
    }
}

fn machine_usage(tables: &Tables, machine: &MachineFaults, usage: &[ProcessUsage], total: &Sums) -> MachineUsage {
    let losses = tables.manifest.losses.0.iter().filter(|(kind, _)| kind.contains("fault"));
    let lost = losses.fold(0u64, |sum, (_, lost)| sum.saturating_add(*lost));
    // What one process has too many does not explain what another lacks.
    let beyond_rows = usage.iter().filter_map(|one| Some(one.sums.counted?.saturating_sub(one.sums.faults())));
    let without_event = beyond_rows.fold(0u64, u64::saturating_add).saturating_sub(lost);
    let recorded = total.faults();
    let rest = machine.faults.saturating_sub(recorded).saturating_sub(lost);
    let without_event = without_event.min(rest);
    let recorder = machine.recorder.min(rest - without_event);
    MachineUsage {
        faults: machine.faults,
        major: machine.major,
        recorded,
        lost,
        without_event,
        recorder,
        elsewhere: rest - without_event - recorder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: &str = r#"
== manifest
{"started": 100, "ended": 1100, "machine_faults": {"faults": 20, "major": 2, "recorder": 4}, "losses": {"faults": 1},
 "probes": [{"name": "memory", "state": "attached"}]}
== execs
ts  present pid start filename command_line min_flt maj_flt run_time
100 true    7   1     chromium "/usr/lib/chromium/chromium --type=utility --utility-sub-type=network.mojom.NetworkService" 50 2 1000
100 true    8   2     kworker/0:1  "" 0 0 10
200 false   9   150   /bin/b   "b x" 6 0 40
== forks
ts  parent_pid parent_start pid start tid thread
150 7          1            9   150   9   false
== exits
ts   pid start tid last  min_flt maj_flt run_time running
500  7   1     71  false 3       0       100      false
900  9   150   9   true  8       0       60       false
1100 7   1     7   false 55      3       1500     true
1100 8   2     8   false 0       0       400      true
== faults
ts  duration pid start kind
200 10       7   1     minor
210 30       7   1     minor
220 -        7   1     major
230 5        9   150   minor
== cpu_samples
ts pid start
300 7 1
310 7 1
320 8 2
"#;

    #[test]
    fn what_recording_took_is_no_time_of_a_processs_own() {
        let text = RUNNING.replace("230 5        9   150   minor", "230 5        9   150   minor\n== faults\n\
            ts duration pid start tid kind recording\n300 5 7 1 7 minor 400\n310 5 7 1 71 minor 50\n320 5 3 1 3 minor 9");
        let tables = Tables::from_text(&text).unwrap();
        let own: Vec<_> =
            own_cpu_times(&LaunchFacts::new(&tables)).into_values().map(|time| time.map(|time| time.0)).collect();
        let all: Vec<_> = cpu_times(&tables).into_values().map(|time| time.map(|time| time.0)).collect();
        assert_eq!(all.len(), own.len());
        let taken = all.iter().zip(&own).map(|(all, own)| all.unwrap_or_default() - own.unwrap_or_default());
        assert_eq!(taken.filter(|taken| *taken > 0).collect::<Vec<_>>(), [450]);
    }

    #[test]
    fn counters_count_from_the_begin_of_recording_and_those_of_a_child_from_its_own() {
        let usage = usage(&Tables::from_text(RUNNING).unwrap());
        let found: Vec<_> = usage
            .processes
            .iter()
            .map(|one| {
                let sums = &one.sums;
                (one.name.as_str(), sums.minor, sums.major, sums.counted, sums.cpu_time.map(|time| time.0))
            })
            .collect();
        assert_eq!(
            found,
            [
                ("chromium (utility NetworkService)", 2, 1, Some(9), Some(600)),
                ("b", 1, 0, Some(8), Some(60)),
                ("kworker/0:1", 0, 0, Some(0), Some(390)),
            ]
        );
        let chromium = &usage.processes[0];
        assert_eq!((chromium.sums.fault_time, chromium.sums.untimed), (Nanos(40), 1));
        assert_eq!(chromium.sums.cpu_samples, Some(2));
        assert_eq!((chromium.sums.allocated, chromium.sums.off_cpu), (Some(Bytes(0)), None));
        assert_eq!(usage.processes[2].kind, "kworker/0:1");
        assert_eq!(usage.total.counted, Some(17));
        assert_eq!(usage.recorded_for, Some(Nanos(1000)));
    }

    #[test]
    fn a_thread_that_ended_has_the_time_that_its_last_switch_made_known() {
        let text = format!(
            "{RUNNING}\n== thread_counters\nts pid start tid end run_time\n\
             505 7 1 71 true 140\n905 9 150 9 true 1060\n950 7 1 71 true 900\n"
        );
        let tables = Tables::from_text(&text).unwrap();
        let times: Vec<_> = cpu_times(&tables).into_values().map(|time| time.map(|time| time.0)).collect();
        // 600 and 60 by what was counted until the last tick; the other thread of that id has no row in exits.
        assert_eq!(times, [Some(640), Some(390), Some(1060)]);
    }

    #[test]
    fn many_ends_without_their_last_switch_are_said_to_lack_time() {
        let gap = |text: &str| stale_ends(&Tables::from_text(text).unwrap()).map(|gap| gap.what);
        // Of 1 us, two threads lack up to a tick each; of a second, that is nothing.
        let what = "up to a tick of CPU time of each thread that ended, 2 in all";
        assert_eq!(gap(RUNNING).as_deref(), Some(what));
        assert_eq!(gap(&RUNNING.replace("3       1500", "3       1500000000")), None);
        let exact = "== thread_counters\nts pid start tid end run_time\n505 7 1 71 true 140\n905 9 150 9 true 160\n";
        assert_eq!(gap(&format!("{RUNNING}\n{exact}")), None);
    }

    #[test]
    fn the_parts_of_the_machines_faults_add_up() {
        let machine = usage(&Tables::from_text(RUNNING).unwrap()).machine.unwrap();
        // The tasks counted 17: 4 rows, 1 lost, 12 without an event.
        let MachineUsage { recorded, lost, without_event, recorder, elsewhere, .. } = machine;
        assert_eq!((recorded, lost, without_event, recorder, elsewhere), (4, 1, 12, 3, 0));
        assert_eq!(recorded + lost + without_event + recorder + elsewhere, machine.faults);
        let more = RUNNING.replace("\"faults\": 20", "\"faults\": 100");
        let machine = usage(&Tables::from_text(&more).unwrap()).machine.unwrap();
        assert_eq!((machine.recorder, machine.elsewhere), (4, 79));
    }

    #[test]
    fn what_an_older_or_unfinished_recording_lacks_is_unknown_and_not_zero() {
        let old = "
== execs
ts  present pid start filename min_flt maj_flt
100 true    7   1     a        50      2
== exits
ts   pid start tid min_flt maj_flt running
1100 7   1     7   55      3       true
";
        let usage = super::usage(&Tables::from_text(old).unwrap());
        assert_eq!((usage.machine, usage.total.cpu_time, usage.total.counted), (None, None, Some(6)));
        let unfinished: String =
            RUNNING.lines().filter(|line| !line.starts_with("1100")).map(|line| format!("{line}\n")).collect();
        let usage = super::usage(&Tables::from_text(&unfinished).unwrap());
        assert_eq!(usage.processes[0].sums.counted, None);
        assert_eq!((usage.without_counters, usage.total.counted), (2, Some(8)));
    }

    #[test]
    fn nothing_is_no_process_and_numbers_beyond_all_measure_do_not_overflow() {
        assert_eq!(usage(&Tables::default()), Usage::default());
        let most = u64::MAX;
        let text = format!(
            "== exits\nts pid start tid last min_flt maj_flt run_time\n1 7 1 7 true {most} {most} {most}\n2 7 1 8 true {most} 1 {most}\n\
             == forks\nts parent_pid pid start tid\n0 1 7 1 7\n\
             == faults\nts duration pid start kind\n1 {most} 7 1 minor\n2 {most} 7 1 minor\n"
        );
        let found = usage(&Tables::from_text(&text).unwrap());
        assert_eq!((found.total.counted, found.total.fault_time), (Some(most), Nanos(most)));
    }
}
