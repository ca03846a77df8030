//! Launches of one command beside each other: where the time to ready of each went, and the spans that all of them have by name.
//!
//! Owns which launches and spans a page has, and which launch stands for all. Leaves the spans of one launch to
//! [`slowpath_analysis::time::launch_spans`], and medians, differences and their order to `report-ui`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::time::launch_spans::{LaunchSpans, SpanName, launch_spans};
use slowpath_analysis::time::ledger::CategoryTime;
use slowpath_recording::Tables;
use slowpath_tables::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Launches of a page, the first of them: a bar each.
const MOST_LAUNCHES: usize = 200;
/// Spans of a page, those that differ most: with 200 launches some 600 KB.
const MOST_SPANS: usize = 300;
/// Launches without a path that are named.
const MOST_NAMED: usize = 20;

/// Launches of one command beside each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// Names of the groups, `warm` and `cold` for example. The others are compared with the first. Foreign text.
    pub groups: Vec<String>,
    /// The launches, those of the first group first, each in the order in which they were named.
    pub launches: Vec<LaunchBeside>,
    /// Spans by name, of those that differ most between launches.
    pub spans: Vec<SpanBeside>,
    /// By launch, time on the critical path in spans that are not here, ns.
    pub other_spans_ns: Vec<Nanos>,
    /// Recordings whose critical path is not known, because no launch or no waits were recorded; not all where there are many.
    pub without_path: Vec<String>,
    /// Launches beyond those that are here.
    pub left_out: u64,
    /// Different command lines among the launches; more than one is a doubt.
    pub command_lines: u64,
}

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchBeside {
    /// Directory of its recording. Foreign text.
    pub recording: String,
    /// Index into `groups`.
    pub group: u32,
    /// From the release of exec to ready, or to its end where it never got ready, ns. `times` and `unexplained_ns` add up to it.
    pub time_ns: Nanos,
    /// Whether it got ready.
    pub is_ready: bool,
    /// Whether it is the launch that the rest of the page is about.
    pub is_shown: bool,
    /// Time on its critical path by category.
    pub times: Vec<CategoryTime>,
    /// Time on its critical path of which nothing was recorded, ns.
    pub unexplained_ns: Nanos,
    /// Events lost while it was recorded.
    pub lost: u64,
}

/// A span that launches have by one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpanBeside {
    /// Its name.
    pub name: SpanName,
    /// By launch, ns; null where the launch has none.
    pub times_ns: Vec<Option<Nanos>>,
}

/// Launches that are read one after the other; little is kept of each.
#[derive(Debug, Default)]
pub struct Launches {
    groups: Vec<String>,
    all: Vec<Launch>,
    without_path: Vec<String>,
    command_lines: BTreeSet<Vec<String>>,
}

#[derive(Debug)]
struct Launch {
    group: usize,
    recording: String,
    lost: u64,
    found: LaunchSpans,
}

impl Launches {
    /// Adds a recording to a group. Groups come in the order of their first recording.
    pub fn add(&mut self, group: &str, recording: &str, tables: &Tables) {
        let Some(found) = launch_spans(tables) else {
            self.without_path.push(recording.to_owned());
            return;
        };
        let group = self.groups.iter().position(|one| one == group).unwrap_or_else(|| {
            self.groups.push(group.to_owned());
            self.groups.len() - 1
        });
        self.command_lines.insert(tables.manifest.command.clone());
        self.all.push(Launch { group, recording: recording.to_owned(), lost: tables.manifest.losses.total(), found });
    }

    /// The recording that stands for all: the launch in the middle of the group that takes longest in the middle. `None` without launches.
    pub fn middle(&self) -> Option<&str> {
        let middle = |group: usize| {
            let mut of_group: Vec<&Launch> = self.all.iter().filter(|launch| launch.group == group).collect();
            // One that never got ready is not a launch to explain where there are others.
            of_group.sort_by_key(|launch| (!launch.found.is_ready, launch.found.time));
            let ready = of_group.iter().filter(|launch| launch.found.is_ready).count();
            let count = if ready > 0 { ready } else { of_group.len() };
            of_group.get(count.checked_sub(1)? / 2).copied()
        };
        let middles = (0..self.groups.len()).filter_map(middle);
        middles.max_by_key(|launch| (launch.found.is_ready, launch.found.time)).map(|launch| launch.recording.as_str())
    }

    /// All of them beside each other, with the recording that the rest of the page shows; `None` for less than two.
    pub fn side_by_side(self, shown: Option<&str>) -> Option<SideBySide> {
        self.cut(shown, MOST_LAUNCHES, MOST_SPANS)
    }

    fn cut(mut self, shown: Option<&str>, most_launches: usize, most_spans: usize) -> Option<SideBySide> {
        if self.all.len() < 2 {
            return None;
        }
        self.all.sort_by_key(|launch| launch.group);
        let left_out = self.all.len().saturating_sub(most_launches) as u64;
        let kept = self.kept(shown, most_launches);
        let (spans, other_spans_ns) = spans(&kept, most_spans);
        let launch = |one: &&Launch| LaunchBeside {
            recording: one.recording.clone(),
            group: u32::try_from(one.group).unwrap_or(u32::MAX),
            time_ns: one.found.time,
            is_ready: one.found.is_ready,
            is_shown: shown == Some(one.recording.as_str()),
            times: one.found.account.times(),
            unexplained_ns: one.found.unexplained,
            lost: one.lost,
        };
        let launches = kept.iter().map(launch).collect();
        self.without_path.truncate(MOST_NAMED);
        Some(SideBySide {
            launches,
            spans,
            other_spans_ns,
            left_out,
            command_lines: self.command_lines.len() as u64,
            groups: self.groups,
            without_path: self.without_path,
        })
    }

    /// As many of each group as there is room for, and the one that is shown.
    fn kept(&self, shown: Option<&str>, most: usize) -> Vec<&Launch> {
        let mut numbers = vec![0usize; self.groups.len()];
        let mut ranked: Vec<(bool, usize, usize)> = Vec::with_capacity(self.all.len());
        for (at, launch) in self.all.iter().enumerate() {
            ranked.push((shown != Some(launch.recording.as_str()), numbers[launch.group], at));
            numbers[launch.group] += 1;
        }
        ranked.sort_unstable();
        ranked.truncate(most);
        ranked.sort_unstable_by_key(|(_, _, at)| *at);
        ranked.iter().map(|(_, _, at)| &self.all[*at]).collect()
    }
}

/// The spans that differ most, and by launch the time on the path in the others.
fn spans(launches: &[&Launch], most: usize) -> (Vec<SpanBeside>, Vec<Nanos>) {
    let mut by_name: BTreeMap<&SpanName, Vec<Option<Nanos>>> = BTreeMap::new();
    for (at, launch) in launches.iter().enumerate() {
        for (name, time) in &launch.found.spans {
            by_name.entry(name).or_insert_with(|| vec![None; launches.len()])[at] = Some(*time);
        }
    }
    let mut all: Vec<(&SpanName, Vec<Option<Nanos>>)> = by_name.into_iter().collect();
    let range = |times: &[Option<Nanos>]| {
        let times = || times.iter().map(|time| time.unwrap_or_default());
        times().max().unwrap_or_default() - times().min().unwrap_or_default()
    };
    all.sort_by_key(|(name, times)| (Reverse(range(times)), *name));
    let mut others = vec![Nanos(0); launches.len()];
    for (name, times) in all.split_off(all.len().min(most)) {
        if matches!(name, SpanName::Path { .. }) {
            others.iter_mut().zip(times).for_each(|(sum, time)| *sum += time.unwrap_or_default());
        }
    }
    let spans = all.into_iter().map(|(name, times_ns)| SpanBeside { name: name.clone(), times_ns });
    (spans.collect(), others)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch that computes for `ran` ns and then waits for storage for `read` ns.
    fn launch(ran: u64, read: u64, ready: bool) -> Tables {
        let end = 100 + ran + read;
        let when = if ready { (end + 10).to_string() } else { "null".to_owned() };
        let text = format!(
            r#"
== manifest
{{"started": 90, "ended": {ended}, "command": ["/bin/a"], "losses": {{"faults": 3}},
 "probes": [{{"name": "off_cpu", "state": "attached"}}],
 "launch": {{"released": 100, "ready": {when}, "ready_when": "exit", "outcome": "ready"}}}}
== execs
ts  present pid start filename
100 false   7   1     /bin/a
== thread_counters
ts   pid start tid end   run_time name
100  7   1     7   false 0        a
{ended} 7 1    7   true  {ran}    a
== exits
ts   pid start tid last  running
{ended} 7 1    7   true  false
== off_cpu
ts    duration pid start tid reason   runnable
{from} {read}  7   1     7   other_io 0
"#,
            ended = end + 10,
            from = 100 + ran,
        );
        Tables::from_text(&text).unwrap()
    }

    fn launches() -> Launches {
        let mut launches = Launches::default();
        for (group, name, ran, read) in [
            ("warm", "w1", 500, 10),
            ("cold", "c1", 500, 900),
            ("cold", "c2", 510, 1500),
            ("cold", "c3", 520, 700),
            ("warm", "w2", 505, 12),
        ] {
            launches.add(group, name, &launch(ran, read, true));
        }
        launches
    }

    #[test]
    fn launches_stand_by_group_with_times_that_add_up_and_spans_in_the_order_of_their_differences() {
        assert_eq!(launches().middle(), Some("c1"));
        let page = launches().side_by_side(Some("c1")).unwrap();
        assert_eq!(page.groups, ["warm", "cold"]);
        let shown: Vec<(&str, u32, bool)> =
            page.launches.iter().map(|one| (one.recording.as_str(), one.group, one.is_shown)).collect();
        assert_eq!(shown, [("w1", 0, false), ("w2", 0, false), ("c1", 1, true), ("c2", 1, false), ("c3", 1, false)]);
        for (at, launch) in page.launches.iter().enumerate() {
            let sum: u64 = launch.times.iter().map(|one| one.time_ns.0).sum();
            assert_eq!(sum + launch.unexplained_ns.0, launch.time_ns.0);
            let spans: u64 = page.spans.iter().filter_map(|span| span.times_ns[at]).map(|time| time.0).sum();
            assert_eq!(spans, launch.time_ns.0, "spans of the path add up to the launch");
            assert_eq!((launch.lost, launch.is_ready), (3, true));
        }
        let storage: Vec<Option<u64>> = page.spans[0].times_ns.iter().map(|time| time.map(|time| time.0)).collect();
        assert_eq!(storage, [10, 12, 900, 1500, 700].map(Some));
        assert_eq!((page.command_lines, page.left_out, page.without_path.len()), (1, 0, 0));
    }

    #[test]
    fn what_has_no_room_is_counted_and_its_time_is_kept_and_the_shown_launch_stays() {
        let page = launches().cut(Some("c3"), 2, 1).unwrap();
        let shown: Vec<&str> = page.launches.iter().map(|one| one.recording.as_str()).collect();
        assert_eq!((shown, page.left_out, page.spans.len()), (vec!["w1", "c3"], 3, 1));
        for (at, launch) in page.launches.iter().enumerate() {
            let shown = page.spans[0].times_ns[at].unwrap_or_default();
            assert_eq!(shown + page.other_spans_ns[at], launch.time_ns);
        }
    }

    #[test]
    fn one_launch_has_none_beside_it_and_a_recording_without_waits_is_named() {
        let mut some = Launches::default();
        some.add("", "a", &launch(5, 5, true));
        let mut blind = launch(5, 5, true);
        blind.off_cpu.clear();
        some.add("", "blind", &blind);
        assert_eq!(some.without_path, ["blind"]);
        assert_eq!(some.middle(), Some("a"));
        assert_eq!(some.side_by_side(None), None);
        assert_eq!(Launches::default().middle(), None);
    }

    #[test]
    fn a_launch_that_never_got_ready_stands_for_others_only_where_there_is_no_ready_one() {
        let mut some = Launches::default();
        some.add("", "endless", &launch(5000, 5, false));
        some.add("", "short", &launch(5, 5, true));
        assert_eq!(some.middle(), Some("short"));
        let page = some.side_by_side(None).unwrap();
        assert_eq!(page.launches.iter().map(|one| one.is_ready).collect::<Vec<_>>(), [false, true]);
    }
}
