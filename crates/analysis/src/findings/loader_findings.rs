//! What the findings about the run-time linker share: which launch is shown, who pays, when a cost counts, what puts it in doubt, names
//! of objects.

use super::doubts::Doubts;
use crate::finding::Confidence;
use crate::interval::summarize;
use crate::io::files::FileId;
use crate::launch_facts::LaunchFacts;
use crate::threshold::{Threshold, Whole};
use slowpath_tables::{FileRelocations, Nanos, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, HashMap};

/// Least cost: the C library alone takes some hundredths of a millisecond, and recording added some 0.3 ms while the cost had walks of
/// stacks in it.
pub(crate) const LEAST_COST: Nanos = Nanos(500_000);

/// Least share of the time to ready, as for [`super::cold_file_reads`].
pub(crate) const LEAST_SHARE: f64 = super::cold_file_reads::LEAST_SHARE;

/// From here on such a cost is reported.
pub(super) const THRESHOLD: Threshold =
    Threshold { cost: LEAST_COST, share: LEAST_SHARE, of: Whole::TimeToReady, condition: None };

/// The launch in the middle, of those sorted by cost.
pub(super) fn shown_launch<T>(sorted: &[T]) -> Option<&T> {
    sorted.get(sorted.len().saturating_sub(1) / 2)
}

/// Whether a cost is worth a finding.
pub(super) fn is_material(cost: Nanos, facts: &LaunchFacts<'_>) -> bool {
    THRESHOLD.is_met(cost.as_ms(), facts.duration().as_ms())
}

/// Who pays a cost that several starts have together: the program, how often it started, and of several programs the one that pays most.
/// The second is the ending of the verb after it.
pub(super) fn payers(
    starts: impl Iterator<Item = (ProcessKey, Nanos)>,
    facts: &LaunchFacts<'_>,
) -> (String, &'static str) {
    let mut by_name: BTreeMap<String, (u64, Nanos)> = BTreeMap::new();
    for (process, time) in starts {
        let (starts, sum) = by_name.entry(facts.processes.name(process)).or_default();
        *starts += 1;
        *sum += time;
    }
    let starts: u64 = by_name.values().map(|(starts, _)| starts).sum();
    let most = by_name.iter().max_by_key(|(name, (_, time))| (*time, std::cmp::Reverse(*name)));
    match (most, by_name.len()) {
        (None, _) => (String::new(), "s"),
        (Some((name, (1, _))), 1) => (name.clone(), "s"),
        (Some((name, _)), 1) => (format!("{starts} starts of {name}"), ""),
        (Some((name, (_, time))), programs) => {
            (format!("{starts} starts of {programs} programs (most: {name}, {})", milliseconds_of(*time)), "")
        }
    }
}

/// Of one launch from what is certain to all of it, of several the interval of all.
pub(super) fn cost_of(costs: &[Nanos], certain: Nanos) -> Quantity {
    match costs {
        [one] => Quantity::interval(one.as_ms(), certain.as_ms().min(one.as_ms()), one.as_ms(), Unit::Ms),
        several => {
            let costs: Vec<f64> = several.iter().map(|one| one.as_ms()).collect();
            summarize(&costs, Unit::Ms).unwrap_or(Quantity::exact(0.0, Unit::Ms))
        }
    }
}

/// Why the cost is in doubt: displaced threads, lost rows of the tables that it rests on, and the recorder's own part.
pub(super) fn doubts(facts: &LaunchFacts<'_>, rests_on: &[(&str, usize)]) -> Doubts {
    let mut doubts = Doubts::none();
    let tables = &facts.tables;
    if !crate::time::off_cpu_times::waits_recorded(tables) {
        let reason =
            "when threads did not run was not recorded: what displaced the linker can be in it (record --off-cpu)";
        doubts.lower(Confidence::Medium, reason);
    }
    for (table, kept) in rests_on {
        doubts.of_losses(&tables.manifest.losses, &[table], *kept, &format!("rows of {table}"));
    }
    doubts.reasons.push(
        "the cost includes what recording adds besides walks of call stacks: up to a millisecond, or a tenth"
            .to_owned(),
    );
    doubts
}

/// `1.63 ms`, `250 ms`.
pub(super) fn milliseconds_of(time: Nanos) -> String {
    let ms = time.as_ms();
    let digits = if ms < 1.0 { 2 } else { usize::from(ms < 100.0) };
    format!("{ms:.digits$} ms")
}

/// Objects with their paths and what their tables hold.
pub(super) struct ObjectNames<'a> {
    facts: &'a LaunchFacts<'a>,
    relocations: HashMap<FileId, &'a FileRelocations>,
}

impl<'a> ObjectNames<'a> {
    /// Of a launch.
    pub fn new(facts: &'a LaunchFacts<'a>) -> Self {
        let rows = facts.tables.relocations.iter();
        let relocations = rows.filter_map(|row| Some((facts.files.find(row.file())?, row))).collect();
        Self { facts, relocations }
    }

    /// Its path.
    pub fn path(&self, file: FileId) -> &str {
        &self.facts.files.get(file).path
    }

    /// The last part of its path.
    pub fn short(&self, file: FileId) -> &str {
        let path = self.path(file);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// What its tables hold; `None` in recordings without that, and for what has none.
    pub fn relocations(&self, file: FileId) -> Option<&'a FileRelocations> {
        self.relocations.get(&file).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    #[test]
    fn what_several_starts_pay_together_is_not_said_of_one_of_them() {
        let tables = Tables::from_text(
            "== execs\nts pid start filename command_line\n\
             1 7 1 /bin/perf perf\n2 8 2 /bin/perf perf\n3 9 3 /bin/bpftrace bpftrace\n",
        );
        let tables = tables.unwrap();
        let facts = LaunchFacts::new(&tables);
        let named = |paid: &[(u32, u64)]| {
            let starts = paid
                .iter()
                .map(|(pid, ms)| (ProcessKey { pid: *pid, start: Nanos(u64::from(*pid) - 6) }, Nanos(ms * 1_000_000)));
            let (who, s) = payers(starts, &facts);
            format!("{who} pay{s}")
        };
        assert_eq!(named(&[(7, 5)]), "perf pays");
        assert_eq!(named(&[(7, 5), (8, 1)]), "2 starts of perf pay");
        assert_eq!(named(&[(7, 5), (8, 1), (9, 30)]), "3 starts of 2 programs (most: bpftrace, 30.0 ms) pay");
    }
}
