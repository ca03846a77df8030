//! Finding `repeated_child_work`: several children of one program do the same work again when they start.
//!
//! **What is bad.** Each child loads the same libraries, relocates the same pages, reads the same files and runs the same initialisation.
//! A parent that has done it once and forks would hand all of that on.
//!
//! **Cost.** CPU time of the steps that at least three siblings make alike ([`crate::starts::repeated_starts`] says what a step is), for each child
//! what they take one in the middle; all children together, in ms. What processes pay because they cannot use an artifact is taken off: that
//! is a finding of its own. The interval goes from the fastest sibling of each step to what the children took themselves, with steps that
//! can be work of their own, and is at least as wide as the 95 % interval of one child, times their number.
//!
//! **Predicted saving.** The cost of all but one child, as far as it comes before a child starts its first thread: nothing forks a process
//! with several threads soundly. The high end has the rest too, for threads that can be started later. The low end is without the time of
//! the faults of the start: a copy has its parent's memory, and faults again for pages of files that it uses, and for those that it writes.
//!
//! **No finding** for fewer than three children of a program; for what they do behind the last open of a file that others open too, after
//! another file, or once they have waited for events; below [`LEAST_COST`] or [`LEAST_SHARE`] of the CPU time of the whole launch.
//!
//! **Confidence.** High where all executed the program with the same command line; medium where command lines differ, and for copies: what
//! they were given to do can be in it; low where the children take very different times for the same steps ([`UNEVEN`]), and where
//! waits were not recorded. Lost rows of `opens` or `off_cpu` lower it.

use super::doubts::Doubts;
use super::fallback_cost::paid;
use super::fault_sums::{quantile, sorted};
use super::materiality::CostShare;
use crate::declaration::{Declaration, Input, ShowsIn};
use crate::finding::{Confidence, Evidence, Finding, Row, row};
use crate::fix_inputs::FixInputs;
use crate::interval::summarize;
use crate::launch_facts::{FaultPlace, LaunchFacts};
use crate::needs::Need;
use crate::stacks::call_stacks::CallStacks;
use crate::stacks::function_weights::heaviest;
use crate::starts::children::{Origin, kind_of};
use crate::starts::inherited_loads::InheritedLoads;
use crate::starts::repeated_starts::{LEAST_SIBLINGS, LONGEST, Siblings, Start, siblings};
use crate::threshold::{Threshold, Whole};
use crate::time::off_cpu_times::waits_recorded;
use crate::time::usage;
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, HashMap, HashSet};

pub use crate::starts::inherited_loads::PRELOAD_IN_ZYGOTE;

/// Name of the finding.
pub const NAME: &str = "repeated_child_work";

/// Least cost of all children together.
const LEAST_COST: Nanos = Nanos(10_000_000);

/// Least share of the CPU time of the launch. A zygote is a change of how a program is built: nobody makes it for less.
const LEAST_SHARE: f64 = 0.02;

/// From here on it is reported.
const THRESHOLD: Threshold =
    Threshold { cost: LEAST_COST, share: LEAST_SHARE, of: Whole::CpuOfLaunch, condition: None };

/// The low end of the cost is less than this share of it: the siblings did not do the same.
const UNEVEN: f64 = 0.5;

/// From this share on it is said that work comes after the first thread.
const LEAST_THREADED: f64 = 0.05;

/// `PROT_WRITE` of a mapping.
const PROT_WRITE: u32 = 2;

/// Rows of evidence.
const MOST_ROWS: usize = 10;

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "starts that children of one program repeat",
    what: "Three or more children of one program open the same files one after the other when they start, and so each of them loads, \
        relocates, reads and initialises the same things.",
    why: "An executed process starts from scratch. At best, the files that its siblings just used are in the page cache: each process \
        maps, relocates and initialises them again.",
    helps: "Start one process up to that point and fork the children from it (preload_in_zygote), start them ahead of time, or let one process \
            do the work of several. Trade-off: preloaded code must be able to be forked (no threads, no open connections, random seeds drawn \
            anew), and forks share their address space layout.",
    by_hand: "strace -f -tt -e trace=execve,openat -- COMMAND shows the same opens in each child; perf trace -s sums their time",
    threshold: THRESHOLD,
    needs: &[Need::Opens],
    shows_in: ShowsIn::AnyWork,
    find,
};

/// The siblings of one launch, and what others have of their start.
struct LaunchSiblings<'a> {
    facts: &'a LaunchFacts<'a>,
    call_stacks: Option<&'a CallStacks<'a>>,
    siblings: Siblings<'a>,
    /// What each child pays, ns: at least, as estimated, at most.
    costs: BTreeMap<ProcessKey, [f64; 3]>,
}

impl LaunchSiblings<'_> {
    /// At least, as estimated, and at most, in ms.
    fn sums(&self) -> [f64; 3] {
        let sum = |part: usize| self.costs.values().map(|one| one[part]).sum::<f64>() / 1e6;
        [sum(0), sum(1), sum(2)]
    }

    fn children(&self) -> usize {
        self.siblings.starts.len()
    }

    /// The share of the cost that comes before the children have several threads.
    fn single_threaded(&self) -> f64 {
        let before = |start: &Start| {
            let cost = self.costs.get(&start.process).map_or(0.0, |cost| cost[1]);
            start.single_threaded.min(cost)
        };
        let (before, all) = (self.siblings.starts.iter().map(before).sum::<f64>(), self.sums()[1] * 1e6);
        if all > 0.0 { (before / all).min(1.0) } else { 1.0 }
    }

    /// What one child pays, in ms: one in the middle, with the 95 % interval of what they took themselves.
    fn each(&self) -> Option<Quantity> {
        let own: Vec<f64> = self.costs.values().map(|one| one[2] / 1e6).collect();
        let (own, value) = (summarize(&own, Unit::Ms)?, self.sums()[1] / self.children() as f64);
        Some(Quantity::interval(value, own.low?.min(value), own.high?.max(value), Unit::Ms))
    }
}

fn find(input: &Input<'_, '_>) -> Vec<Finding> {
    let launches = input.observation.launches;
    let mut by_name: BTreeMap<(String, Origin), Vec<LaunchSiblings<'_>>> = BTreeMap::new();
    for (facts, call_stacks) in launches.iter().zip(input.call_stacks) {
        let all = siblings(facts);
        if all.is_empty() {
            continue;
        }
        let paid = paid(facts);
        for siblings in all {
            let costs = siblings.starts.iter().map(|start| (start.process, cost_of(start, &paid))).collect();
            let key = (name(facts, &siblings), siblings.origin);
            by_name.entry(key).or_default().push(LaunchSiblings {
                facts,
                call_stacks: call_stacks.as_ref(),
                siblings,
                costs,
            });
        }
    }
    let everywhere = by_name.into_iter().filter(|(_, found)| found.len() >= launches.len());
    everywhere.filter_map(|((name, _), found)| of_program(&name, found)).collect()
}

fn cost_of(start: &Start, paid: &BTreeMap<ProcessKey, f64>) -> [f64; 3] {
    let paid = paid.get(&start.process).copied().unwrap_or_default();
    let (low, high) = (start.least.min(start.typical), start.own.max(start.typical) + start.doubtful);
    [low, start.typical, high].map(|cost| (cost - paid).max(0.0))
}

/// What the children are called together: their name, without a role where they have several. One that was executed by way of
/// `/proc/self/exe` is called after its file.
fn name(facts: &LaunchFacts<'_>, siblings: &Siblings<'_>) -> String {
    let file = facts.tables.files.iter().find(|file| file.file() == siblings.program);
    if let Some((_, base)) = file.and_then(|file| file.path.rsplit_once('/')).filter(|_| is_by_link(facts, siblings)) {
        return base.to_owned();
    }
    let mut names = siblings.starts.iter().map(|start| facts.processes.name(start.process));
    let first = names.next().unwrap_or_default();
    if names.all(|name| name == first) {
        return first;
    }
    first.split(" (").next().unwrap_or(&first).to_owned()
}

fn is_by_link(facts: &LaunchFacts<'_>, siblings: &Siblings<'_>) -> bool {
    let is_child = |process| siblings.starts.iter().any(|start| start.process == process);
    facts.tables.execs.iter().any(|exec| exec.filename.starts_with("/proc/") && is_child(exec.process()))
}

fn of_program(name: &str, mut found: Vec<LaunchSiblings<'_>>) -> Option<Finding> {
    found.sort_by(|a, b| a.sums()[1].total_cmp(&b.sums()[1]));
    let values: Vec<f64> = found.iter().map(|one| one.sums()[1]).collect();
    // Details are those of the launch in the middle.
    let shown = found.get((found.len() - 1) / 2)?;
    let cost = if found.len() > 1 { summarize(&values, Unit::Ms)? } else { of_launch(shown) };
    let share = share(cost.value, shown.facts);
    THRESHOLD.is_met_by_share(cost.value, share).then(|| finding(name, shown, cost, share))
}

/// The share of a cost in ms of the CPU time of all; of the recording where waits were not recorded: the cost is time by the clock then.
fn share(cost: f64, facts: &LaunchFacts<'_>) -> f64 {
    let everybody = facts.processes.iter().map(|process| process.key);
    let times = if waits_recorded(&facts.tables) { usage::own_cpu_times(facts) } else { BTreeMap::new() };
    CostShare::new(cost, everybody, &times, facts).share
}

fn of_launch(found: &LaunchSiblings<'_>) -> Quantity {
    let [low, value, high] = found.sums();
    let count = found.children() as f64;
    let spread = found.each().and_then(|one| Some((one.low? * count, one.high? * count)));
    let (low, high) = spread.map_or((low, high), |(least, most)| (low.min(least), high.max(most)));
    Quantity::interval(value, low.clamp(0.0, value), high.max(value), Unit::Ms)
}

fn finding(name: &str, found: &LaunchSiblings<'_>, cost: Quantity, share: f64) -> Finding {
    let children = found.children();
    let is_cpu = waits_recorded(&found.facts.tables);
    let repeated = Repeated::new(found);
    let loads = InheritedLoads::of(found.facts, &found.siblings);
    let Doubts { confidence, reasons } = doubts(found);
    let origin = match found.siblings.origin {
        Origin::Executed => "executed",
        Origin::Forked => "forked",
    };
    Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!(
            "{children} {origin} {name} processes do the same start again: {:.1} ms{} each, {:.1} % of {}",
            cost.value / children.max(1) as f64,
            if is_cpu { " of CPU" } else { "" },
            share * 100.0,
            if is_cpu { "all CPU time" } else { "the recording" },
        ),
        subject: row([
            ("process", Value::from(name)),
            ("processes", Value::from(children)),
            ("origin", Value::from(origin)),
        ]),
        predicted_saving: Some(saving(found, &cost, &repeated)),
        cost,
        confidence,
        reasons,
        evidence: evidence(found, &repeated, loads.as_ref()),
        fixes: vec![PRELOAD_IN_ZYGOTE.to_owned()],
        fix_inputs: FixInputs { inherited_loads: loads, ..FixInputs::default() },
        see_by_hand: FINDING.by_hand.to_owned(),
    }
}

/// One process still does it. Copies fault again, as far as that is known, and inherit nothing that was done beside other threads.
fn saving(found: &LaunchSiblings<'_>, cost: &Quantity, repeated: &Repeated) -> Quantity {
    let others = found.children().saturating_sub(1) as f64 / found.children().max(1) as f64;
    let inherited = found.single_threaded();
    let value = cost.value * inherited;
    let low = cost.low.unwrap_or(cost.value) * inherited;
    let low = repeated.fault_time.map_or(0.0, |time| (low - time.as_ms()).max(0.0));
    let high = cost.high.unwrap_or(cost.value);
    Quantity::interval(value * others, low.min(value) * others, high * others, Unit::Ms)
}

fn doubts(found: &LaunchSiblings<'_>) -> Doubts {
    let mut doubts = Doubts::none();
    let given = match (found.siblings.origin, found.siblings.command_lines) {
        (Origin::Executed, 0 | 1) => None,
        (Origin::Executed, lines) => Some(format!("they have {lines} command lines")),
        (Origin::Forked, _) => Some("they are forks, and their tasks are not known".to_owned()),
    };
    if let Some(given) = given {
        doubts.lower(
            Confidence::Medium,
            format!(
                "{given}: work of their own can be in it; what takes longer than {:.0} ms between two files, and is no page fault, is in \
                 the upper end alone",
                LONGEST.as_ms()
            ),
        );
    }
    let [low, value, _] = found.sums();
    if low < value * UNEVEN {
        doubts.lower(
            Confidence::Low,
            format!(
                "the same steps take the fastest of them {:.0} % of what they take in the middle: some may do more there than the others",
                low / value.max(f64::MIN_POSITIVE) * 100.0
            ),
        );
    }
    doubts.of_time_between_opens(&found.facts.tables);
    let threaded = 1.0 - found.single_threaded();
    if threaded > LEAST_THREADED {
        doubts.reasons.push(format!(
            "{:.0} % of it comes after they have started threads, and a fork does not hand that on: it is in the upper end of the saving \
             alone, for threads that can be started later",
            threaded * 100.0
        ));
    }
    doubts.reasons.extend(
        [
            "work counts between two files that the siblings open alike; what they do behind the last of them is not in it",
            "what other findings say of the starts of these processes can be a part of it, but for unusable artifacts",
        ]
        .map(str::to_owned),
    );
    doubts
}

fn command_line<'a>(found: &'a LaunchSiblings<'_>, start: &Start) -> &'a str {
    found.facts.processes.get(start.process).map_or("", |process| process.command_line.as_str())
}

/// What the starts have of faults and samples.
struct Repeated {
    /// Time in all their faults; `None` where faults were not recorded.
    fault_time: Option<Nanos>,
    /// Pages of files that a child faults in, and that at least [`LEAST_SIBLINGS`] do: each child's number.
    file_pages: Vec<u64>,
    /// The same of pages that are mapped to be written: relocations and data.
    writable_pages: Vec<u64>,
    /// Rows of `cpu_samples` with their number.
    samples: Vec<usize>,
}

impl Repeated {
    fn new(found: &LaunchSiblings<'_>) -> Self {
        let tables = &found.facts.tables;
        let spans: HashMap<ProcessKey, (Nanos, Nanos)> =
            found.siblings.starts.iter().map(|start| (start.process, (start.began, start.until))).collect();
        let is_in = |process: ProcessKey, ts: Nanos| {
            spans.get(&process).is_some_and(|(began, until)| *began <= ts && ts <= *until)
        };
        let mut pages: HashMap<(crate::io::files::FileId, u64, bool), HashSet<ProcessKey>> = HashMap::new();
        let mut fault_time = Nanos(0);
        for (fault, place) in tables.faults.iter().zip(&found.facts.places) {
            if !is_in(fault.process(), fault.ts) {
                continue;
            }
            fault_time = Nanos(fault_time.0.saturating_add(fault.duration.unwrap_or_default().0));
            if let FaultPlace::File { file, page, prot } = place {
                pages.entry((*file, *page, prot & PROT_WRITE != 0)).or_default().insert(fault.process());
            }
        }
        let count = |writable: bool| {
            let mut counts: BTreeMap<ProcessKey, u64> = spans.keys().map(|process| (*process, 0)).collect();
            let alike = pages.iter().filter(|((_, _, prot), who)| *prot == writable && who.len() >= LEAST_SIBLINGS);
            for process in alike.flat_map(|(_, who)| who) {
                *counts.entry(*process).or_default() += 1;
            }
            sorted(counts.into_values())
        };
        let samples = tables.cpu_samples.iter().enumerate().filter(|(_, sample)| is_in(sample.process(), sample.ts));
        Self {
            fault_time: (!tables.faults.is_empty()).then_some(fault_time),
            file_pages: count(false),
            writable_pages: count(true),
            samples: samples.map(|(number, _)| number).collect(),
        }
    }
}

fn evidence(found: &LaunchSiblings<'_>, repeated: &Repeated, loads: Option<&InheritedLoads>) -> Vec<Evidence> {
    let mut evidence = vec![each_row(found, repeated), kind_rows(found), step_rows(found)];
    evidence.extend(loads.map(InheritedLoads::evidence));
    evidence.extend(function_rows(found, repeated));
    evidence
}

/// Milliseconds with microsecond resolution.
fn ms(value: f64) -> Value {
    Value::from((value * 1e3).round() / 1e3)
}

/// What each child does again, with the 95 % interval over the children.
fn each_row(found: &LaunchSiblings<'_>, repeated: &Repeated) -> Evidence {
    let of = found.each();
    let number = |value: Option<f64>| value.map_or(Value::Null, ms);
    let opens = sorted(found.siblings.starts.iter().map(|start| start.steps as u64));
    let mut one: Row = row([
        ("processes", Value::from(found.children())),
        ("cpu_ms_each", number(of.map(|of| of.value))),
        ("cpu_ms_each_low", number(of.and_then(|of| of.low))),
        ("cpu_ms_each_high", number(of.and_then(|of| of.high))),
        ("opens_alike_each", Value::from(quantile(&opens, 0.5))),
        ("percent_before_threads", ms(found.single_threaded() * 100.0)),
    ]);
    if repeated.fault_time.is_some() {
        let faulted =
            [("file_pages_each", &repeated.file_pages), ("writable_file_pages_each", &repeated.writable_pages)];
        one.extend(faulted.map(|(name, pages)| (name.to_owned(), Value::from(quantile(pages, 0.5)))));
    }
    Evidence {
        text: "What each of them does again: opens of the same files, and faults for the same pages of files, of which the writable \
               ones hold relocations and data."
            .to_owned(),
        rows: vec![one],
    }
}

/// How long the starts took, by kind of child.
fn kind_rows(found: &LaunchSiblings<'_>) -> Evidence {
    let mut kinds: BTreeMap<String, Vec<&Start>> = BTreeMap::new();
    for start in &found.siblings.starts {
        kinds.entry(kind_of(command_line(found, start))).or_default().push(start);
    }
    let rows = kinds.iter().take(MOST_ROWS).map(|(kind, starts)| {
        let walls = sorted(starts.iter().map(|start| start.until.0.saturating_sub(start.began.0)));
        let cpu = sorted(starts.iter().map(|start| start.own.max(0.0) as u64));
        let at = |values: &[u64], share: f64| ms(quantile(values, share) as f64 / 1e6);
        row([
            ("kind", Value::from(kind.as_str())),
            ("processes", Value::from(starts.len())),
            ("start_ms_p50", at(&walls, 0.5)),
            ("start_ms_p95", at(&walls, 0.95)),
            ("start_cpu_ms_p50", at(&cpu, 0.5)),
            ("start_cpu_ms_p95", at(&cpu, 0.95)),
        ])
    });
    Evidence {
        text: "From the begin of a child to the last file that it opens like others, by kind: by the clock, and the CPU time of what is alike."
            .to_owned(),
        rows: rows.collect(),
    }
}

/// The most costly steps.
fn step_rows(found: &LaunchSiblings<'_>) -> Evidence {
    let rows = found.siblings.steps.iter().take(MOST_ROWS).map(|step| {
        row([
            ("after_open_of", step.after.map_or(Value::Null, Value::from)),
            ("until_open_of", Value::from(step.until)),
            ("processes", Value::from(step.children)),
            ("cpu_ms_each", ms(step.typical / 1e6)),
            ("counts", Value::from(!step.is_doubtful)),
        ])
    });
    Evidence {
        text: format!(
            "The most costly of {} steps, from one open to the next (from the begin of the process where there is none before).",
            found.siblings.steps.len()
        ),
        rows: rows.collect(),
    }
}

/// What runs then, where samples with stacks were recorded.
fn function_rows(found: &LaunchSiblings<'_>, repeated: &Repeated) -> Option<Evidence> {
    let tables = &found.facts.tables;
    let samples = repeated.samples.iter().filter_map(|number| tables.cpu_samples.get(*number));
    let found = heaviest(found.call_stacks?, samples.map(|sample| (sample.stack, 1)), MOST_ROWS)?;
    let rows = found.functions.iter().map(|one| {
        row([
            ("function", one.function.as_deref().map_or(Value::Null, Value::from)),
            ("place", Value::from(one.place.as_str())),
            ("samples", Value::from(one.weight)),
            ("percent", ms(one.weight as f64 * 100.0 / found.total.max(1) as f64)),
        ])
    });
    let rows: Vec<Row> = rows.collect();
    (!rows.is_empty()).then(|| Evidence {
        text: format!("What ran in these starts, in {} CPU samples of all of them.", found.total),
        rows,
    })
}
