//! Who is responsible for what a limit is about: the files, processes and paths of one recorded launch. Pure: tables in,
//! figures out.
//!
//! Owns which rows a limit is about, and the values that only a recording has ([`Seen`]). Everything counts from the
//! release of exec until ready. Leaves what rows mean to `analysis`, and verdicts to [`crate::verdict`].

use crate::verdict::Counted;
use crate::{Limit, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::io::insertions::Cause;
use slowpath_analysis::launch_facts::{FaultPlace, LaunchFacts};
use slowpath_analysis::not_recorded;
use slowpath_analysis::time::usage::cpu_times;
use slowpath_recording::{Manifest, Tables};
use slowpath_tables::{FaultKind, Nanos, Open, Pages, ProcessKey, Quantity, Unit};
use slowpath_verify::Metric;
use std::collections::BTreeMap;

/// Names listed for a limit; the others are summed up.
const MOST_NAMED: usize = 5;

/// Who is responsible for the value of a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responsible {
    /// Key of the limit.
    pub limit: String,
    /// Those with the largest shares, largest first.
    pub named: Vec<Share>,
    /// How many more there are.
    pub others: u32,
    /// What they have together; null where there are none.
    pub rest: Option<Quantity>,
    /// What must be known of these figures, or why there are none.
    pub note: Option<String>,
}

/// A share of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// A file, a process or a command line; text of the target.
    pub name: String,
    /// How much.
    pub amount: Quantity,
}

/// What a recording says about a budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Processes of the tree.
    pub processes: Counted,
    /// Opens refused with `EACCES` or `EPERM`.
    pub denied_opens: Counted,
    /// Bytes of files inserted into the page cache.
    pub cold_bytes: Counted,
    /// For every limit.
    pub responsible: Vec<Responsible>,
}

/// Reads a recording with a budget in mind.
pub fn examine(tables: &Tables, limits: &[Limit]) -> Seen {
    let facts = LaunchFacts::new(tables);
    let processes = command_lines(&facts);
    let denied = denied(&facts);
    let inserted = inserted(&facts);
    let manifest = &tables.manifest;
    let counted = |sums: &BTreeMap<String, u64>, tables: &[&str], missing| Counted {
        number: sums.values().fold(0, |sum, amount| sum.saturating_add(*amount)),
        doubt: ends_early(manifest).or_else(|| lost(manifest, tables)),
        missing,
    };
    let processes_missing = not_recorded::why(manifest, "process", "processes", "`slowpath record` records them");
    let insertions_missing =
        not_recorded::why(manifest, "page_cache", "what enters the page cache", "`slowpath record` records it");
    Seen {
        processes: counted(&processes, &["forks", "execs"], processes_missing),
        denied_opens: counted(&denied, &["opens"], not_recorded::opens(manifest)),
        cold_bytes: counted(&inserted, &["page_cache"], insertions_missing),
        responsible: limits.iter().map(|limit| responsible(&facts, limit, &processes, &denied, &inserted)).collect(),
    }
}

fn responsible(
    facts: &LaunchFacts<'_>,
    limit: &Limit,
    processes: &BTreeMap<String, u64>,
    denied: &BTreeMap<String, u64>,
    inserted: &BTreeMap<String, u64>,
) -> Responsible {
    let count = |sums: &BTreeMap<String, u64>| (sums.clone(), Unit::Count, 1.0);
    let (sums, unit, factor) = match limit.subject {
        Subject::Largest(Metric::MinorFaults) => count(&faults(facts, FaultKind::Minor)),
        Subject::Largest(Metric::MajorFaults) => count(&faults(facts, FaultKind::Major)),
        Subject::Processes => count(processes),
        Subject::DeniedOpens => count(denied),
        Subject::Largest(Metric::BytesRead) | Subject::ColdBytes => (inserted.clone(), Unit::Bytes, 1.0),
        Subject::Time { metric: Metric::Wall, .. } => (blocked(facts), Unit::Ms, 1e-6),
        Subject::Time { metric, .. } => (cpu(facts, metric), Unit::Ms, 1e-6),
        Subject::Largest(_) => (BTreeMap::new(), limit.subject.unit(), 1.0),
    };
    let mut all: Vec<(String, u64)> = sums.into_iter().filter(|(_, amount)| *amount > 0).collect();
    all.sort_by(|(name, amount), (other, more)| more.cmp(amount).then_with(|| name.cmp(other)));
    let rest = all.split_off(all.len().min(MOST_NAMED));
    let quantity = |amount: u64| Quantity::exact(amount as f64 * factor, unit);
    Responsible {
        limit: limit.name.clone(),
        note: note(limit.subject, all.is_empty()).map(str::to_owned),
        named: all.into_iter().map(|(name, amount)| Share { name, amount: quantity(amount) }).collect(),
        others: u32::try_from(rest.len()).unwrap_or(u32::MAX),
        rest: (!rest.is_empty()).then(|| quantity(rest.iter().map(|(_, amount)| amount).sum())),
    }
}

/// What must be said of the figures of a subject; `none` when there are none.
fn note(subject: Subject, none: bool) -> Option<&'static str> {
    match (subject, none) {
        (Subject::Time { metric: Metric::Wall, .. }, true) => Some("the recording shows no time blocked on files"),
        (Subject::Time { metric: Metric::Wall, .. }, false) => {
            Some("time blocked on each file, summed over threads; the recorder's own cost is in it")
        }
        (Subject::Time { .. }, true) => Some("the recording has no CPU times"),
        (Subject::Time { .. }, false) => Some("CPU time of each process, the recorder's cost included"),
        (Subject::Largest(Metric::PeakRss), _) => Some("a recording does not show what memory is used for"),
        (Subject::DeniedOpens, true) => Some("no open was refused in the recorded launch"),
        (Subject::Largest(Metric::BytesRead) | Subject::ColdBytes, true) => {
            Some("no file was read from storage in the recorded launch")
        }
        (_, true) => Some("the recorded launch shows none"),
        (_, false) => None,
    }
}

/// Faults of a kind by what they fell on.
fn faults(facts: &LaunchFacts<'_>, kind: FaultKind) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (fault, place) in facts.tables.faults.iter().zip(&facts.places) {
        if fault.kind != kind || fault.ts > facts.until() {
            continue;
        }
        let name = match place {
            FaultPlace::File { file, .. } => facts.files.get(*file).path.clone(),
            FaultPlace::Anonymous => format!("anonymous memory of {}", facts.processes.name(fault.process())),
            FaultPlace::Unknown => format!("unknown memory of {}", facts.processes.name(fault.process())),
        };
        *sums.entry(name).or_default() += 1;
    }
    sums
}

/// Bytes that entered the page cache for the tree, by file; new data of the target are not among them.
fn inserted(facts: &LaunchFacts<'_>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let of_tree = facts.insertions_until_ready().iter().filter(|insertion| facts.in_tree(insertion.process));
    for insertion in of_tree {
        let info = facts.files.get(insertion.file);
        // Pages of a device itself hold directories and inodes.
        let device = insertion.cause == Cause::Metadata && !info.named && info.keys.iter().all(|key| key.ino == 0);
        let name = if device { format!("metadata of device {}", info.path) } else { info.path.clone() };
        *sums.entry(name).or_default() += Pages(insertion.pages).bytes().0;
    }
    sums
}

/// Opens that were refused for want of permission, by error, path and program.
fn denied(facts: &LaunchFacts<'_>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let is_meant = |open: &&Open| open.call.is_none() && (facts.released..=facts.until()).contains(&open.ts);
    for open in facts.tables.opens.iter().filter(is_meant) {
        let error = match open.result.checked_neg() {
            Some(libc::EACCES) => "EACCES",
            Some(libc::EPERM) => "EPERM",
            _ => continue,
        };
        let name = format!("{} ({error}, {})", open.path, facts.processes.name(open.process()));
        *sums.entry(name).or_default() += 1;
    }
    sums
}

/// Processes that began until ready, by what they ran.
fn command_lines(facts: &LaunchFacts<'_>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for process in facts.processes.iter().filter(|process| process.began <= facts.until()) {
        let line = if process.command_line.is_empty() { &process.name } else { &process.command_line };
        let name = if process.first_exec.is_some() { line.clone() } else { format!("{line} (fork without exec)") };
        *sums.entry(name).or_default() += 1;
    }
    sums
}

/// Nanoseconds that threads were blocked, by file.
fn blocked(facts: &LaunchFacts<'_>) -> BTreeMap<String, u64> {
    let sums = facts.blocked.per_file(facts.released, facts.until());
    let name = |file| match file {
        Some(file) => facts.files.get(file).path.clone(),
        None => "a file that is not known".to_owned(),
    };
    sums.into_iter().map(|(file, time)| (name(file), time.0)).collect()
}

/// Nanoseconds of CPU time, by command line.
fn cpu(facts: &LaunchFacts<'_>, metric: Metric) -> BTreeMap<String, u64> {
    let mut times = BTreeMap::<ProcessKey, Nanos>::new();
    for exit in &facts.tables.exits {
        *times.entry(exit.process()).or_default() += match metric {
            Metric::User => exit.utime,
            Metric::System => exit.stime,
            _ => exit.utime + exit.stime,
        };
    }
    if metric == Metric::Cpu {
        // Ticks are coarse: the scheduler counts all of it.
        times.extend(cpu_times(&facts.tables).into_iter().filter_map(|(process, time)| Some((process, time?))));
    }
    let mut sums = BTreeMap::<String, u64>::new();
    for (process, time) in times {
        let known = facts.processes.get(process).map(|process| process.command_line.clone());
        let line = known.filter(|line| !line.is_empty()).unwrap_or_else(|| facts.processes.name(process));
        let sum = sums.entry(line).or_default();
        *sum = sum.saturating_add(time.0);
    }
    sums
}

/// Loss of rows of tables, in words.
fn lost(manifest: &Manifest, tables: &[&str]) -> Option<String> {
    let lost = manifest.losses.of_kinds(tables);
    (lost > 0).then(|| format!("{lost} rows of the recording were lost: there may have been more"))
}

/// Why a recording lacks what came later; `None` where it goes as far as it is read.
fn ends_early(manifest: &Manifest) -> Option<String> {
    let why = match (&manifest.launch, manifest.ended) {
        (Some(launch), _) if launch.ready.is_some() => return None,
        (None, Some(_)) => return None,
        (_, None) => "the recording did not end in order",
        (Some(_), Some(_)) => manifest.stop_reason.as_deref().unwrap_or("the launch was never ready"),
    };
    Some(format!("{why}: there may have been more"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use slowpath_recording::ProbeState;
    use slowpath_tables::missing::declared;

    const LAUNCH: &str = r#"
== manifest
{"launch": {"released": 5, "ready": 1000000, "ready_when": "exit", "outcome": "ready"}}
== files
dev ino path  size
1   5   /a    99999
1   6   /b    99999
== forks
ts parent_pid parent_start pid start tid thread
6  7          1            8   6     8   false
7  7          1            9   7     9   false
8  7          1            10  8     10  false
== execs
ts pid start filename command_line
5  7   1     /bin/sh  "sh -c x"
9  8   6     /bin/ls  "ls -l"
9  9   7     /bin/ls  "ls -l"
== mappings
ts pid start op  address length dev ino offset
6  7   1     map 65536   65536  1   5   0
"#;

    fn seen(limits: &str, rows: &str) -> Seen {
        let tables = Tables::from_text(&format!("{LAUNCH}{rows}")).unwrap();
        examine(&tables, &file::parse(&format!("[limits]\n{limits}")).unwrap().limits)
    }

    fn listed(responsible: &Responsible) -> Vec<(&str, f64)> {
        responsible.named.iter().map(|share| (share.name.as_str(), share.amount.value)).collect()
    }

    #[test]
    fn faults_belong_to_files_or_to_the_memory_of_a_process() {
        let rows = "
== faults
ts      duration pid start tid address kind
10      1        7   1     7   65536   minor
11      1        7   1     7   69632   minor
12      1        7   1     7   900000  minor
13      1        7   1     7   65536   major
2000000 1        7   1     7   65536   minor
";
        let seen = seen("minor_faults = 1\nmajor_faults = 0", rows);
        assert_eq!(listed(&seen.responsible[0]), [("/a", 2.0), ("anonymous memory of sh", 1.0)]);
        assert_eq!(listed(&seen.responsible[1]), [("/a", 1.0)]);
    }

    #[test]
    fn refused_opens_are_told_with_path_error_and_program_and_others_are_not() {
        let rows = "
== opens
ts pid start tid path    call           result
10 8   6     8   /secret -              -13
11 7   1     7   /secret -              -13
12 7   1     7   /kept   -              -1
13 7   1     7   /absent -              -2
14 7   1     7   /there  -              3
15 7   1     7   /looked look           -13
16 7   1     7   /made   make_directory -13
2000000 7 1  7   /later  -              -13
";
        let seen = seen("denied_opens = 0", rows);
        assert!(seen.denied_opens.is_known_to_be(3), "{:?}", seen.denied_opens);
        let names: Vec<&str> = seen.responsible[0].named.iter().map(|share| share.name.as_str()).collect();
        assert_eq!(names, ["/kept (EPERM, sh)", "/secret (EACCES, ls)", "/secret (EACCES, sh)"]);
    }

    #[test]
    fn bytes_are_those_of_files_that_the_tree_brought_into_memory_until_ready() {
        let rows = "
== page_cache
ts pid start tid op  dev ino page pages asker
10 7   1     7   add 1   5   0    4     fault
11 8   6     8   add 1   6   0    1     read
12 99  2     99  add 1   6   1    9     read
13 7   1     7   add 1   6   5    2     write
14 7   1     7   delete 1 5  0    4     other
2000000 7 1  7   add 1   5   9    1     fault
";
        let seen = seen("cold_bytes = \"1MB\"\nbytes_read = \"1MB\"", rows);
        assert!(seen.cold_bytes.is_known_to_be(5 * 4096), "{:?}", seen.cold_bytes);
        assert_eq!(listed(&seen.responsible[0]), [("/a", 16384.0), ("/b", 4096.0)]);
        assert_eq!(listed(&seen.responsible[1]), listed(&seen.responsible[0]));
    }

    #[test]
    fn children_are_told_by_what_they_ran() {
        let seen = seen("processes = 1", "");
        assert!(seen.processes.is_known_to_be(4), "{:?}", seen.processes);
        assert_eq!(
            listed(&seen.responsible[0]),
            [("ls -l", 2.0), ("sh -c x", 1.0), ("sh -c x (fork without exec)", 1.0)]
        );
    }

    #[test]
    fn wall_time_is_told_by_blocked_files_and_cpu_time_by_processes() {
        let rows = "
== faults
ts   duration pid start tid address kind
100  500000   7   1     7   65536   major
== exits
ts     pid start tid last utime   stime   run_time
900000 7   1     7   true 2000000 1000000 -
900000 8   6     8   true 0       0       700000
";
        let seen = seen("wall = \"1ms\"\ncpu_p95 = \"1ms\"\nuser = \"1ms\"\npeak_rss = \"1B\"", rows);
        assert_eq!(listed(&seen.responsible[0]), [("/a", 0.5)]);
        // Where the scheduler's counter is not known, the ticks are.
        assert_eq!(listed(&seen.responsible[1]), [("sh -c x", 3.0), ("ls -l", 0.7)]);
        assert_eq!(listed(&seen.responsible[2]), [("sh -c x", 2.0)]);
        assert!(seen.responsible[3].named.is_empty() && seen.responsible[3].note.is_some());
        let nothing = self::seen("wall = \"1ms\"", "");
        assert!(nothing.responsible[0].note.as_ref().unwrap().contains("no time blocked"));
    }

    #[test]
    fn many_names_are_summed_up_after_the_first_few() {
        let row = |number: u32| format!("1{number} 7 1 7 /file-{number} -13\n");
        let rows: String = (0..8).map(row).collect();
        let seen = seen("denied_opens = 0", &format!("== opens\nts pid start tid path result\n{rows}"));
        let responsible = &seen.responsible[0];
        assert_eq!((responsible.named.len(), responsible.others), (5, 3));
        assert_eq!(responsible.rest.unwrap().value, 3.0);
    }

    #[test]
    fn what_a_recording_lacks_is_said() {
        let probe = |name: &str, state| slowpath_recording::Probe { name: name.to_owned(), state };
        let gap = declared::PROBE.of(&[&"open"], "refused", "another kernel");
        let mut tables =
            Tables::from_text("== manifest\n{\"ended\": 9, \"losses\": {\"opens\": 2, \"faults\": 1}}").unwrap();
        tables.manifest.probes =
            vec![probe("open", ProbeState::Unavailable), probe("page_cache", ProbeState::Unavailable)];
        tables.manifest.unavailable = vec![gap];
        let seen = examine(&tables, &[]);
        assert_eq!(seen.denied_opens.missing.unwrap(), "probe open: refused; another kernel");
        assert!(seen.denied_opens.doubt.unwrap().starts_with("2 rows"));
        assert!(seen.cold_bytes.missing.unwrap().contains("not recorded on that machine"));
        assert!(seen.processes.missing.unwrap().contains("processes: not recorded"));
        assert_eq!(seen.cold_bytes.doubt, None);
    }

    #[test]
    fn a_recording_that_ends_before_ready_may_lack_what_came_later() {
        let doubt = |manifest: &str| {
            let tables = Tables::from_text(&format!("== manifest\n{manifest}")).unwrap();
            examine(&tables, &[]).processes.doubt
        };
        let launch = |ready: &str| {
            format!(r#""launch": {{"released": 5, "ready": {ready}, "ready_when": "exit", "outcome": "?"}}"#)
        };
        assert_eq!(doubt(&format!("{{{}}}", launch("9"))), None);
        assert_eq!(doubt(r#"{"ended": 9, "stop_reason": "asked for 10 s"}"#), None);
        let limited = format!(r#"{{"ended": 9, "stop_reason": "--max-size was reached", {}}}"#, launch("null"));
        assert_eq!(doubt(&limited).unwrap(), "--max-size was reached: there may have been more");
        assert!(doubt(&format!(r#"{{"ended": 9, {}}}"#, launch("null"))).unwrap().contains("never ready"));
        assert!(doubt(&format!("{{{}}}", launch("null"))).unwrap().contains("did not end in order"));
    }
}
