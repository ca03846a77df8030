//! What a recording was searched for, and which cost could have gone unseen in it.
//!
//! Owns names and shape, and the figures: each finding's threshold beside what this recording holds. Leaves thresholds and needs to the
//! declarations of findings ([`crate::declaration`]).

use super::time_spent::Condition as Recorded;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::Finding;
use crate::findings::{self, of_launches};
use crate::launch_facts::LaunchFacts;
use crate::threshold::{Condition, Whole};
use crate::time::off_cpu_times::waits_recorded;
use crate::time::usage::own_cpu_times;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Quantity, Unit};

/// Titles of findings that a sentence names at most.
const MOST_TITLES: usize = 2;

/// What one recording was searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LookedFor {
    /// What was recorded.
    pub condition: Recorded,
    /// Every finding that shows in such a recording.
    pub findings: Vec<LookedForFinding>,
    /// The largest `least_visible`; null where none is known.
    pub largest_unseen: Option<LargestUnseen>,
}

/// A finding that was looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LookedForFinding {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// From which cost on it is reported, in general.
    pub reported_from: String,
    /// From which cost on it would have been seen in this recording, if it has the pattern. Null where a cost of any size could have gone
    /// unseen.
    pub least_visible: Option<Quantity>,
    /// Which costs have the pattern, where not all do: `in waits of 100 ms or more`. Others are never seen.
    pub within: Option<String>,
    /// What the recording lacks, where that could hide a cost of any size.
    pub hidden_by: Vec<String>,
}

/// The largest cost that could have gone unseen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestUnseen {
    /// Name of the finding that it would be one of.
    pub finding: String,
    /// The cost; what is less than this could be there.
    pub cost: Quantity,
}

/// All findings of one recording, most costly first, with what it was searched for. `training` is a launch of the same command at
/// readahead 0.
pub fn search(tables: &Tables, training: Option<&Tables>, condition: Recorded) -> (Vec<Finding>, LookedFor) {
    let facts = LaunchFacts::new(tables);
    let findings = of_launches(std::slice::from_ref(&facts), training);
    let looked_for = LookedFor::of_facts(&facts, condition);
    (findings, looked_for)
}

impl LookedFor {
    fn of_facts(facts: &LaunchFacts<'_>, condition: Recorded) -> Self {
        let wholes = Wholes::new(facts);
        let shown = findings::ALL.iter().filter(|finding| shows(finding.shows_in, condition));
        let findings: Vec<LookedForFinding> = shown.map(|finding| looked_for(finding, facts, &wholes)).collect();
        let visible = findings.iter().filter_map(|one| Some((one, one.least_visible?)));
        let largest = visible.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let largest_unseen = largest.map(|(one, cost)| LargestUnseen { finding: one.name.clone(), cost });
        Self { condition, findings, largest_unseen }
    }

    fn title_of(&self, name: &str) -> String {
        self.findings.iter().find(|one| one.name == name).map_or_else(|| name.to_owned(), |one| one.title.clone())
    }
}

fn shows(shows_in: ShowsIn, condition: Recorded) -> bool {
    match condition {
        Recorded::Cold => shows_in == ShowsIn::ColdLaunches,
        Recorded::Warm => shows_in != ShowsIn::ColdLaunches,
        Recorded::Running => shows_in == ShowsIn::AnyWork,
    }
}

fn looked_for(finding: &Declaration, facts: &LaunchFacts<'_>, wholes: &Wholes) -> LookedForFinding {
    let threshold = &finding.threshold;
    let mut hidden_by: Vec<String> = finding.needs.iter().filter_map(|need| need.lacks(&facts.tables)).collect();
    if threshold.of == Whole::TimeToReady && facts.ready.is_none() {
        hidden_by.push("time to ready: there was no ready event".to_owned());
    }
    let least = Quantity::exact(threshold.least_visible(wholes.of(threshold.of)), Unit::Ms);
    LookedForFinding {
        name: finding.name.to_owned(),
        title: finding.title.to_owned(),
        reported_from: threshold.words(),
        least_visible: hidden_by.is_empty().then_some(least),
        within: threshold.condition.map(Condition::words),
        hidden_by,
    }
}

/// What costs are shares of, in ms. Of what several processes have, that of all: a finding of one of them is seen from less on.
struct Wholes {
    time: f64,
    cpu_of_processes: f64,
    cpu_of_launch: f64,
}

impl Wholes {
    fn new(facts: &LaunchFacts<'_>) -> Self {
        let times = own_cpu_times(facts);
        let cpu: Nanos = times.values().copied().flatten().sum();
        let some_unknown = facts.processes.iter().any(|one| times.get(&one.key).copied().flatten().is_none());
        // The share of what nobody counted is one of the length of the recording.
        let length = facts.ended - facts.released;
        let cpu_of_launch = if waits_recorded(&facts.tables) { cpu } else { cpu.max(length) };
        let or_length = |cpu: Nanos| if some_unknown { cpu.max(length).as_ms() } else { cpu.as_ms() };
        Self {
            time: facts.duration().as_ms(),
            cpu_of_processes: or_length(cpu),
            cpu_of_launch: or_length(cpu_of_launch),
        }
    }

    fn of(&self, whole: Whole) -> f64 {
        match whole {
            Whole::TimeToReady | Whole::TimeToReadyOrRecording => self.time,
            Whole::CpuOfItsProcesses => self.cpu_of_processes,
            Whole::CpuOfLaunch => self.cpu_of_launch,
        }
    }
}

/// The largest cost that could have gone unseen in each recording, in one sentence; `None` without one.
pub fn sentence(all: &[LookedFor]) -> Option<String> {
    let known: Vec<String> = all.iter().filter_map(largest).collect();
    let hidden = hidden(all);
    match (known.as_slice(), hidden) {
        ([], None) => None,
        ([], Some(hidden)) => Some(format!("a cost of any size could have gone unseen: {hidden}")),
        (known, None) => {
            Some(format!("the largest cost of one pattern that could have gone unseen: {}", known.join(", ")))
        }
        (known, Some(hidden)) => Some(format!(
            "the largest cost of one pattern that could have gone unseen: {}; of any size: {hidden}",
            known.join(", ")
        )),
    }
}

/// What was looked for, by the cost from which on it would have been seen, in one sentence.
pub fn list(all: &[LookedFor]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for one in all.iter().flat_map(|one| &one.findings) {
        let seen = match one.least_visible {
            Some(least) => {
                let within = one.within.as_ref().map_or_else(String::new, |within| format!(", {within}"));
                format!("from {} on{within}", figure(&least))
            }
            None => format!("any cost could hide: {}", one.hidden_by.join(", ")),
        };
        match groups.iter_mut().find(|(same, _)| *same == seen) {
            Some((_, titles)) => titles.push(&one.title),
            None => groups.push((seen, vec![&one.title])),
        }
    }
    let groups = groups.iter().map(|(seen, titles)| format!("{} ({seen})", titles.join(", ")));
    format!("looked for {}", groups.collect::<Vec<_>>().join("; "))
}

fn largest(one: &LookedFor) -> Option<String> {
    let largest = one.largest_unseen.as_ref()?;
    let launch = match one.condition {
        Recorded::Cold => " cold",
        Recorded::Warm => " warm",
        Recorded::Running => "",
    };
    Some(format!("{}{launch} ({})", figure(&largest.cost), one.title_of(&largest.finding)))
}

/// What could hide a cost of any size, by what the recording lacks.
fn hidden(all: &[LookedFor]) -> Option<String> {
    let mut by_lack: Vec<(String, Vec<&str>)> = Vec::new();
    for one in all.iter().flat_map(|one| &one.findings).filter(|one| !one.hidden_by.is_empty()) {
        let lack = one.hidden_by.join(", ");
        match by_lack.iter_mut().find(|(same, _)| *same == lack) {
            Some((_, titles)) => titles.push(&one.title),
            None => by_lack.push((lack, vec![&one.title])),
        }
    }
    let of = |(lack, titles): &(String, Vec<&str>)| match titles.len().saturating_sub(MOST_TITLES) {
        // To count one instead of naming it saves nothing.
        0 | 1 => format!("{} ({lack})", titles.join(", ")),
        more => format!("{} and {more} more ({lack})", titles[..MOST_TITLES].join(", ")),
    };
    (!by_lack.is_empty()).then(|| by_lack.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// A cost in ms: `4.20 ms`, `46.7 ms`, `128 ms`.
fn figure(cost: &Quantity) -> String {
    let digits = if cost.value < 10.0 { 2 } else { usize::from(cost.value < 100.0) };
    format!("{:.digits$} ms", cost.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch that is ready after 10 s and used 4 s of CPU time, with these rows of the manifest; everything was recorded.
    fn tables(more: &str) -> Tables {
        let probes =
            ["fault", "mapping", "page_cache", "read", "open", "off_cpu", "memory", "page_content", "memory_work"];
        let probes: Vec<String> =
            probes.iter().map(|probe| format!(r#"{{"name": "{probe}", "state": "attached"}}"#)).collect();
        let text = format!(
            r#"
== manifest
{{"command": ["/bin/tool"], "started": 0, "ended": 20000000000,
 "launch": {{"released": 0, "ready": 10000000000, "ready_when": "exit", "outcome": "ready"}},
 "probes": [{}]{more}}}
== execs
ts pid start filename  run_time
10 7   1     /bin/tool 0
== exits
ts          pid start tid last run_time
20000000000 7   1     7   true 4000000000
"#,
            probes.join(", ")
        );
        Tables::from_text(&text).unwrap()
    }

    fn least(looked_for: &LookedFor, name: &str) -> Option<f64> {
        looked_for.findings.iter().find(|one| one.name == name).unwrap().least_visible.map(|least| least.value)
    }

    #[test]
    fn a_cost_is_seen_from_its_share_of_this_launch_on() {
        let (found, looked_for) = search(&tables(""), None, Recorded::Warm);
        assert!(found.is_empty());
        // 2 % of 10 s; of the CPU time 0.5 % and 2 %.
        assert_eq!(least(&looked_for, "timed_wait"), Some(200.0));
        assert_eq!(least(&looked_for, "thp_missed"), Some(20.0));
        assert_eq!(least(&looked_for, "repeated_child_work"), Some(80.0));
        let (_, cold) = search(&tables(""), None, Recorded::Cold);
        assert_eq!((cold.findings.len(), least(&cold, "cold_file_reads")), (1, Some(200.0)));
        assert_eq!(cold.largest_unseen.as_ref().unwrap().cost.value, 200.0);
        let text = sentence(&[cold, looked_for]).unwrap();
        let both = "the largest cost of one pattern that could have gone unseen: 200 ms cold (reads from storage before ready), 200 ms ";
        assert!(text.starts_with(both), "{text}");
        let (_, warm) = search(&tables(""), None, Recorded::Warm);
        let listed = list(&[warm]);
        assert!(listed.contains("(from 200 ms on, in waits of 100 ms or more)"), "{listed}");
        assert!(listed.contains("(from 200 ms on, of programs with 12 libraries or more)"), "{listed}");
    }

    #[test]
    fn what_was_lost_or_not_recorded_could_hide_any_cost() {
        let (_, looked_for) = search(&tables(r#", "losses": {"memory_calls": 3}"#), None, Recorded::Warm);
        let churn = looked_for.findings.iter().find(|one| one.name == "heap_trim_churn").unwrap();
        assert_eq!((churn.least_visible, churn.hidden_by.as_slice()), (None, &["memory calls: 3 lost".to_owned()][..]));
        // CPU samples were not taken.
        let copies = looked_for.findings.iter().find(|one| one.name == "buffer_copied_back").unwrap();
        assert_eq!(copies.hidden_by, ["memory calls: 3 lost", "CPU samples: not recorded"]);
        let text = sentence(std::slice::from_ref(&looked_for)).unwrap();
        assert!(text.contains("; of any size: ") && text.contains(" more (memory calls: 3 lost)"), "{text}");
        let listed = list(std::slice::from_ref(&looked_for));
        assert!(listed.starts_with("looked for ") && listed.contains("(any cost could hide: memory calls: 3 lost)"));
        for finding in findings::ALL.iter().filter(|one| one.shows_in != ShowsIn::ColdLaunches) {
            assert!(listed.contains(finding.title), "{finding:?}: {listed}");
        }
    }

    #[test]
    fn cpu_time_that_nobody_counted_is_at_most_the_length_of_the_recording() {
        let mut tables = tables("");
        tables.exits.clear();
        let (_, looked_for) = search(&tables, None, Recorded::Running);
        assert_eq!(least(&looked_for, "thp_missed"), Some(100.0));
        assert!(looked_for.findings.iter().all(|one| one.name != "timed_wait"));
    }
}
