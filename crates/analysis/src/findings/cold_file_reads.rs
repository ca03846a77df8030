//! Finding `cold_file_reads`: a cold launch waits for its files.
//!
//! **What is bad.** Pages of libraries, data and caches are read when they are touched, in the order in which the
//! program happens to touch them: small requests, many of them backwards, each waited for.
//!
//! **Cost.** Wall time before ready in which at least one thread of the launch's own process waited for a file read
//! ([`crate::io::blocked`] has the rules: not for a CPU after it), in ms, over all launches given. Where that process hardly waits itself (a shell
//! that starts the program as a child) the process that waited longest stands in for it, and the finding says so.
//!
//! **No finding** when file reads explain less than [`LEAST_SHARE`] of the time to ready: a warm launch.
//!
//! **Confidence.** The rule and its thresholds stand in [`confidence`].

pub mod confidence;
mod per_file;
mod who_asked;

use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Evidence, Finding, Row, milliseconds, row};
use crate::findings::Observation;
use crate::findings::doubts::Doubts;
use crate::fix_inputs::FixInputs;
use crate::integer_hash::IntegerMap;
use crate::interval::summarize;
use crate::io::blocked::LaunchTime;
use crate::launch_facts::LaunchFacts;
use crate::needs::Need;
use crate::threshold::{Threshold, Whole};
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey, Unit};
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "cold_file_reads";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "reads from storage before ready",
    what: "A launch whose files are not in the page cache reads them on first touch: libraries, data and caches, page fault by page \
        fault, in whatever order the program needs them.",
    why: "Reads are small and synchronous, many go backwards, and the device idles in between. A profile shows page faults in whatever \
        function touches the page first.",
    helps: "preload_plan reads the needed pages in large requests in the order of use, beside the start; \
            readahead_size changes how much the kernel reads for each fault. Trade-off: a plan is rebuilt when the \
            files change, and reads compete with other I/O.",
    by_hand: "cold, as root: perf trace -F maj --no-syscalls -- COMMAND lists the major faults with file and offset; \
              perf record -e filemap:mm_filemap_add_to_page_cache -- COMMAND every page that was read",
    threshold: THRESHOLD,
    needs: &[Need::Faults, Need::Mappings, Need::PageCache, Need::Reads],
    shows_in: ShowsIn::ColdLaunches,
    find: |input| find(input.observation).into_iter().collect(),
};

/// Least share of the time to ready that waiting for files must have. A warm launch shows some 0.1 % (a few locked
/// pages); a fix for less than this could not be measured with a reasonable number of launches.
pub const LEAST_SHARE: f64 = 0.02;

/// From here on it is reported.
const THRESHOLD: Threshold = Threshold { cost: Nanos(0), share: LEAST_SHARE, of: Whole::TimeToReady, condition: None };

/// A process stands in for the launch's own one when that waited for less than this share of the tree's waiting.
const STAND_IN_BELOW: f64 = 0.1;

/// The process whose waiting is the cost, and whether it stands in for the launch's own.
pub(crate) fn critical_process(facts: &LaunchFacts<'_>) -> (Option<ProcessKey>, bool) {
    let (from, to) = (facts.released, facts.until());
    let main = facts.processes.main();
    let waited = |process: Option<ProcessKey>| facts.blocked.launch_time(from, to, process).process.0 as f64;
    let any = facts.blocked.union(from, to, |_| true).0 as f64;
    if main.is_some() && waited(main) >= any * STAND_IN_BELOW {
        return (main, false);
    }
    let longest = facts.blocked.per_process(from, to).into_iter().max_by_key(|(_, waited)| *waited);
    match longest {
        Some((process, _)) => (Some(process), Some(process) != main),
        None => (main, false),
    }
}

/// One launch with its division of time.
struct Divided<'a> {
    facts: &'a LaunchFacts<'a>,
    process: Option<ProcessKey>,
    stands_in: bool,
    time: LaunchTime,
}

/// Looks for the finding in launches of one command.
pub fn find(observation: &Observation<'_>) -> Option<Finding> {
    let mut launches: Vec<Divided<'_>> = observation
        .launches
        .iter()
        .map(|facts| {
            let (process, stands_in) = critical_process(facts);
            let time = facts.blocked.launch_time(facts.released, facts.until(), process);
            Divided { facts, process, stands_in, time }
        })
        .collect();
    let costs: Vec<f64> = launches.iter().map(|launch| launch.time.process.as_ms()).collect();
    let cost = summarize(&costs, Unit::Ms)?;
    let launch_ms = summarize(&launches.iter().map(|l| l.time.launch.as_ms()).collect::<Vec<_>>(), Unit::Ms)?;
    if !THRESHOLD.is_met(cost.value, launch_ms.value) {
        return None;
    }
    let time_rows: Vec<Row> = launches.iter().map(time_row).collect();
    // Details are those of the launch in the middle: figures of several launches would not add up.
    launches.sort_by_key(|launch| launch.time.process);
    let shown = &launches[(launches.len() - 1) / 2];
    let facts = shown.facts;
    let needed = observation.needed.as_ref().ok().copied();

    let Doubts { confidence, mut reasons } = confidence::judge(observation, &cost);
    if shown.stands_in {
        reasons
            .push("the launch's own process hardly waited; the cost is that of the process that waited longest".into());
    }
    if let Err(unknown) = &observation.needed {
        reasons.push(format!("which pages were needed is not known: {unknown}"));
    }

    let requests = crate::io::io_map::requests(facts.insertions_until_ready());
    let files = per_file::rows(facts, &requests, needed);
    let name = shown.process.map_or_else(|| "the program".to_owned(), |process| facts.processes.name(process));
    let mut subject = BTreeMap::from([("process".to_owned(), Value::from(name.as_str()))]);
    if let Some(process) = shown.process {
        subject.insert("pid".to_owned(), Value::from(process.pid));
    }
    if let Some(path) = files.rows.first().and_then(|row| row.get("path")) {
        subject.insert("file".to_owned(), path.clone());
    }
    let mut evidence = vec![
        Evidence {
            text: "Where the time to ready went; time without a recorded wait for a file is unexplained.".to_owned(),
            rows: time_rows,
        },
        files,
        per_file::sections(facts, needed),
        per_process(facts),
        who_asked::causes(facts),
        who_asked::request_sizes(facts, &requests),
    ];
    evidence.extend(who_asked::advice(facts));
    evidence.extend(who_asked::prefetcher(facts, needed));
    evidence.retain(|evidence| !evidence.rows.is_empty());

    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!("{name} waits {:.0} of {:.0} ms for file reads before it is ready", cost.value, launch_ms.value),
        subject,
        cost,
        predicted_saving: None,
        confidence,
        reasons,
        evidence,
        fixes: vec!["preload_plan".to_owned(), "readahead_size".to_owned()],
        fix_inputs: FixInputs::default(),
        see_by_hand: "cold, as root: perf trace -F maj --no-syscalls -- COMMAND lists the major faults with file and \
                      offset; perf record -e filemap:mm_filemap_add_to_page_cache -- COMMAND every page that was read"
            .to_owned(),
    })
}

fn time_row(launch: &Divided<'_>) -> Row {
    let time = &launch.time;
    row([
        ("launch_ms", milliseconds(time.launch)),
        ("blocked_process_ms", milliseconds(time.process)),
        ("blocked_first_thread_ms", milliseconds(time.first_thread)),
        ("blocked_any_thread_ms", milliseconds(time.any_thread)),
        ("unexplained_ms", milliseconds(time.unexplained)),
    ])
}

fn per_process(facts: &LaunchFacts<'_>) -> Evidence {
    let (from, to) = (facts.released, facts.until());
    let mut pages: IntegerMap<ProcessKey, u64> = IntegerMap::default();
    for insertion in facts.insertions_until_ready() {
        *pages.entry(insertion.process).or_default() += insertion.pages;
    }
    let sums = facts.blocked.per_process(from, to);
    let mut processes: Vec<ProcessKey> = pages.keys().chain(sums.keys()).copied().collect();
    processes.sort_by_key(|process| (std::cmp::Reverse(sums.get(process).copied().unwrap_or_default()), *process));
    processes.dedup();
    let rows = processes.into_iter().map(|process| {
        row([
            ("process", Value::from(facts.processes.name(process))),
            ("pid", Value::from(process.pid)),
            ("in_tree", Value::from(facts.in_tree(process))),
            ("blocked_ms", milliseconds(sums.get(&process).copied().unwrap_or_default())),
            ("blocked_wall_ms", milliseconds(facts.blocked.union(from, to, |i| i.process == process))),
            ("pages_read", Value::from(pages.get(&process).copied().unwrap_or_default())),
        ])
    });
    Evidence {
        text: "Waiting for file reads by process: summed over its threads, and as wall time.".to_owned(),
        rows: rows.collect(),
    }
}
