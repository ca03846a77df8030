//! What a launch can be compared by: names, units, and where each number comes from.

use crate::LaunchOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unit;
use std::collections::BTreeMap;
use std::str::FromStr;

/// A number that every launch has. Of all, less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Time from the release of exec to ready.
    Wall,
    /// CPU time of the tree in both modes, orphans included.
    Cpu,
    /// CPU time of the tree in user mode.
    User,
    /// CPU time of the tree in kernel mode.
    System,
    /// Page faults without I/O.
    MinorFaults,
    /// Page faults that waited for I/O.
    MajorFaults,
    /// Bytes read from storage: from the lab's device in a lab, else by the tree (`ru_inblock`).
    BytesRead,
    /// Largest peak of a process: since its exec where it lived when the launch was ready, else `ru_maxrss`.
    PeakRss,
    /// Sum of the proportional shares of all processes that lived when the launch was ready.
    Pss,
    /// Context switches, asked for or not.
    Switches,
    /// Processes that ended under the launcher: the command itself, and those that its descendants left behind. What a
    /// process started and waited for itself is not among them; a recording counts all (`slowpath check`).
    Processes,
    /// Context switches of threads of the tree that waited for something.
    VoluntarySwitches,
    /// Context switches of threads of the tree that could have gone on.
    InvoluntarySwitches,
    /// Time in which the command's first thread could have run and waited for a CPU; not that of its other threads and its
    /// children.
    RunDelay,
    /// Time from the release of exec to ready in which the command's first thread neither ran nor waited for a CPU: it slept,
    /// waited for storage, for others, or stood still at its quota.
    Waiting,
    /// Periods in which the quota of the launch's own cgroup was used up.
    ThrottledPeriods,
    /// How often the memory of the launch's own cgroup was at its limit.
    MemoryLimitHits,
}

/// A name that is no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a metric; available: {names}", names = Metric::ALL.map(Metric::name).join(", "))]
pub struct UnknownMetric(String);

/// The numbers of one launch. A metric that this launch has no value for is missing.
pub type Measures = BTreeMap<Metric, f64>;

impl Metric {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 17] = [
        Self::Wall,
        Self::Cpu,
        Self::User,
        Self::System,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::BytesRead,
        Self::PeakRss,
        Self::Pss,
        Self::Switches,
        Self::Processes,
        Self::VoluntarySwitches,
        Self::InvoluntarySwitches,
        Self::RunDelay,
        Self::Waiting,
        Self::ThrottledPeriods,
        Self::MemoryLimitHits,
    ];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::User => "user",
            Self::System => "system",
            Self::MinorFaults => "minor_faults",
            Self::MajorFaults => "major_faults",
            Self::BytesRead => "bytes_read",
            Self::PeakRss => "peak_rss",
            Self::Pss => "pss",
            Self::Switches => "switches",
            Self::Processes => "processes",
            Self::VoluntarySwitches => "voluntary_switches",
            Self::InvoluntarySwitches => "involuntary_switches",
            Self::RunDelay => "run_delay",
            Self::Waiting => "waiting",
            Self::ThrottledPeriods => "throttled_periods",
            Self::MemoryLimitHits => "memory_limit_hits",
        }
    }

    /// Unit of its values.
    pub fn unit(self) -> Unit {
        match self {
            Self::Wall | Self::Cpu | Self::User | Self::System | Self::RunDelay | Self::Waiting => Unit::Ms,
            Self::BytesRead | Self::PeakRss | Self::Pss => Unit::Bytes,
            Self::MinorFaults | Self::MajorFaults | Self::Processes => Unit::Count,
            Self::Switches | Self::VoluntarySwitches | Self::InvoluntarySwitches => Unit::Count,
            Self::ThrottledPeriods | Self::MemoryLimitHits => Unit::Count,
        }
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        Self::ALL.into_iter().find(|metric| metric.name() == text).ok_or_else(|| UnknownMetric(text.to_owned()))
    }
}

impl Metric {
    /// Whether a process is in it only where somebody waits for its end ([`crate::outcome::TreeUsage::lacks_children`]).
    pub fn is_of_reaped(self) -> bool {
        match self {
            Self::Cpu
            | Self::User
            | Self::System
            | Self::MinorFaults
            | Self::MajorFaults
            | Self::BytesRead
            | Self::Processes
            | Self::Switches
            | Self::VoluntarySwitches
            | Self::InvoluntarySwitches => true,
            Self::Wall
            | Self::PeakRss
            | Self::Pss
            | Self::RunDelay
            | Self::Waiting
            | Self::ThrottledPeriods
            | Self::MemoryLimitHits => false,
        }
    }
}

const NS_PER_MS: f64 = 1e6;
/// Unit of `ru_inblock`, bytes (getrusage(2)).
const BLOCK: f64 = 512.0;

/// The numbers of a launch that got ready.
pub fn measures(outcome: &LaunchOutcome) -> Measures {
    let mut found = Measures::new();
    if let Some(wall) = outcome.time_to_ready() {
        found.insert(Metric::Wall, wall as f64 / NS_PER_MS);
    }
    if let Some(usage) = outcome.usage {
        let peak = outcome.memory.iter().map(|process| process.peak_rss).max().unwrap_or(usage.largest_rss);
        found.extend([
            (Metric::Cpu, (usage.user + usage.system) as f64 / NS_PER_MS),
            (Metric::User, usage.user as f64 / NS_PER_MS),
            (Metric::System, usage.system as f64 / NS_PER_MS),
            (Metric::MinorFaults, usage.minor_faults as f64),
            (Metric::MajorFaults, usage.major_faults as f64),
            (Metric::BytesRead, usage.blocks_in as f64 * BLOCK),
            (Metric::PeakRss, peak as f64),
            (Metric::Switches, (usage.voluntary_switches + usage.involuntary_switches) as f64),
            (Metric::Processes, f64::from(usage.reaped)),
            (Metric::VoluntarySwitches, usage.voluntary_switches as f64),
            (Metric::InvoluntarySwitches, usage.involuntary_switches as f64),
        ]);
    }
    if let Some(thread) = outcome.first_thread {
        found.insert(Metric::RunDelay, thread.run_delay as f64 / NS_PER_MS);
        if let Some(wall) = outcome.time_to_ready() {
            // The thread's times begin at its fork, shortly before the interval.
            let waiting = wall.saturating_sub(thread.on_cpu).saturating_sub(thread.run_delay);
            found.insert(Metric::Waiting, waiting as f64 / NS_PER_MS);
        }
    }
    if let Some(groups) = outcome.groups {
        let counts =
            [(Metric::ThrottledPeriods, groups.throttled_periods), (Metric::MemoryLimitHits, groups.memory_limit_hits)];
        found.extend(counts.into_iter().filter_map(|(metric, count)| Some((metric, count? as f64))));
    }
    let shares: Option<Vec<u64>> = outcome.memory.iter().map(|process| process.pss).collect();
    if let Some(shares) = shares.filter(|shares| !shares.is_empty()) {
        found.insert(Metric::Pss, shares.iter().sum::<u64>() as f64);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupCounts, ProcessMemory, StopReason, ThreadTimes, TreeUsage};

    fn outcome() -> LaunchOutcome {
        LaunchOutcome {
            pid: 7,
            released_at: 1_000_000,
            ready_at: Some(4_500_000),
            resolution: 0,
            stop: StopReason::Ready,
            exit: None,
            usage: Some(TreeUsage {
                user: 2_000_000,
                system: 1_000_000,
                blocks_in: 8,
                largest_rss: 9 << 20,
                ..TreeUsage::default()
            }),
            first_thread: None,
            groups: None,
            memory: Vec::new(),
            stdout_tail: None,
            stderr_tail: None,
            url: None,
            left_out: Vec::new(),
        }
    }

    #[test]
    fn every_metric_is_found_by_its_name() {
        for metric in Metric::ALL {
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        assert!("walls".parse::<Metric>().unwrap_err().to_string().contains("wall, cpu"));
    }

    #[test]
    fn numbers_have_the_unit_that_their_metric_states() {
        let found = measures(&outcome());
        assert_eq!(found[&Metric::Wall], 3.5);
        assert_eq!(found[&Metric::Cpu], 3.0);
        assert_eq!(found[&Metric::BytesRead], 4096.0);
        assert_eq!(found[&Metric::PeakRss], f64::from(9 << 20));
        assert!(!found.contains_key(&Metric::Pss));
    }

    #[test]
    fn time_that_is_neither_on_a_processor_nor_spent_waiting_for_one_is_waiting() {
        let mut one = outcome();
        assert!(!measures(&one).contains_key(&Metric::Waiting));
        one.first_thread = Some(ThreadTimes { on_cpu: 2_000_000, run_delay: 500_000 });
        one.groups = Some(GroupCounts { throttled_periods: Some(3), ..GroupCounts::default() });
        let found = measures(&one);
        assert_eq!((found[&Metric::RunDelay], found[&Metric::Waiting]), (0.5, 1.0));
        assert_eq!((found[&Metric::ThrottledPeriods], found.get(&Metric::MemoryLimitHits)), (3.0, None));
    }

    #[test]
    fn the_peak_since_exec_wins_over_the_one_that_holds_the_launcher() {
        let process = |peak_rss, pss| ProcessMemory { pid: 1, name: String::new(), peak_rss, pss };
        let mut one = outcome();
        one.memory = vec![process(1 << 20, Some(100)), process(2 << 20, Some(50))];
        let found = measures(&one);
        assert_eq!((found[&Metric::PeakRss], found[&Metric::Pss]), (f64::from(2 << 20), 150.0));
        one.memory[0].pss = None;
        assert!(!measures(&one).contains_key(&Metric::Pss), "a sum with a part missing is no sum");
    }
}
