//! A finding about artifacts of one family that processes could not use.
//!
//! Owns what the findings `unreadable_artifact`, `stale_artifact` and `missing_artifact` have in common: the interval, the confidence, the
//! rows of evidence. Leaves what counts, and its price, to [`super::fallback_cost`].
//!
//! **Interval.** The bounds of each fallback added up, and where several processes pay at least as wide as the 95 % interval of what one
//! process pays, times their number.
//!
//! **Confidence.** Low where the work of a file is known by its family alone. Else high where more than half of the cost is a difference to siblings, of which there are two where nothing else shows that
//! the work was done again; medium where most has an end that is seen; low where it has not, and where waits were not recorded. Rows of `opens` or `off_cpu` that were lost lower it to medium, more than [`LOSS_LOW`](super::doubts::LOSS_LOW) of
//! them to low.

use super::doubts::Doubts;
use super::fallback_cost::{Basis, Family, Priced, families, shows_work};
use super::materiality::CostShare;
use crate::declaration::Input;
use crate::finding::{Confidence, Evidence, Finding, Row, row};
use crate::fix_inputs::FixInputs;
use crate::interval::summarize;
use crate::io::fallbacks::open_call::{error_name, split};
use crate::io::fallbacks::{End, Problem};
use crate::launch_facts::LaunchFacts;
use crate::time::off_cpu_times::waits_recorded;
use crate::time::usage;
use serde_json::Value;
use slowpath_tables::{ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Rows of evidence.
const MOST_ROWS: usize = 10;

/// One of the findings.
pub(super) struct FindingKind {
    /// Its name.
    pub name: &'static str,
    /// What it begins with.
    pub problem: Problem,
    /// What one process, and what several do with artifacts, for the title: `cannot read`.
    pub verbs: (&'static str, &'static str),
    /// What stands behind the artifact in the title.
    pub ending: &'static str,
    /// Fixes that apply.
    pub fixes: &'static [&'static str],
    /// How to see it with a standard tool.
    pub by_hand: &'static str,
}

/// The findings of this kind in launches of one command, one a family.
pub(super) fn find(input: &Input<'_, '_>, kind: &FindingKind) -> Vec<Finding> {
    let launches = input.observation.launches;
    let mut by_name: BTreeMap<String, Vec<(&LaunchFacts<'_>, Family<'_>)>> = BTreeMap::new();
    for facts in launches {
        for family in families(facts, kind.problem) {
            by_name.entry(family.name.clone()).or_default().push((facts, family));
        }
    }
    let everywhere = by_name.into_values().filter(|found| found.len() == launches.len());
    everywhere.filter_map(|found| of_family(found, kind)).collect()
}

fn of_family(mut found: Vec<(&LaunchFacts<'_>, Family<'_>)>, kind: &FindingKind) -> Option<Finding> {
    found.sort_by(|a, b| a.1.cpu().1.total_cmp(&b.1.cpu().1));
    let costs: Vec<f64> = found.iter().map(|(_, family)| family.cpu().1 / 1e6).collect();
    // Details are those of the launch in the middle.
    let (facts, family) = found.get((found.len() - 1) / 2)?;
    let cost = if found.len() > 1 { summarize(&costs, Unit::Ms)? } else { of_launch(family) };
    let times = usage::own_cpu_times(facts);
    let share = CostShare::new(cost.value, family.by_process().into_keys(), &times, facts);
    share.is_material().then(|| finding(facts, family, cost, &share, kind))
}

/// CPU time of all processes of one launch, in ms.
fn of_launch(family: &Family<'_>) -> Quantity {
    let (low, value, high) = family.cpu();
    let each: Vec<f64> = family.by_process().values().map(|taken| taken.cpu / 1e6).collect();
    let count = each.len() as f64;
    let spread = summarize(&each, Unit::Ms).and_then(|one| Some((one.low? * count, one.high? * count)));
    let (low, high) = (low / 1e6, high / 1e6);
    let (low, high) = spread.map_or((low, high), |(least, most)| (low.min(least.max(0.0)), high.max(most)));
    let value = value / 1e6;
    Quantity::interval(value, low.min(value), high.max(value), Unit::Ms)
}

fn finding(
    facts: &LaunchFacts<'_>,
    family: &Family<'_>,
    cost: Quantity,
    share: &CostShare,
    kind: &FindingKind,
) -> Finding {
    let artifacts = by_artifact(family);
    let processes = family.by_process();
    let worst = artifacts.first().map_or("", |one| one.path);
    let most = processes.iter().max_by(|a, b| a.1.cpu.total_cmp(&b.1.cpu)).map(|(process, _)| *process);
    let name = most.map_or_else(|| "the program".to_owned(), |process| facts.processes.name(process));
    let mut subject = row([
        ("process", Value::from(name.as_str())),
        ("processes", Value::from(processes.len())),
        ("artifact", Value::from(worst)),
        ("artifacts", Value::from(artifacts.len())),
        ("family", Value::from(family.name.as_str())),
    ]);
    if let Some(process) = most {
        subject.insert("pid".to_owned(), Value::from(process.pid));
    }
    if let Some(uid) = uid(facts, processes.keys()) {
        subject.insert("uid".to_owned(), Value::from(uid));
    }
    let others = if artifacts.len() > 1 { format!(" and {} more", artifacts.len() - 1) } else { String::new() };
    let (who, each) = match processes.len() {
        1 => (name.clone(), String::new()),
        count => (format!("{count} {name} processes"), " each".to_owned()),
    };
    let (verb, does) = if processes.len() == 1 { (kind.verbs.0, "does") } else { (kind.verbs.1, "do") };
    let time = cost.value / processes.len().max(1) as f64;
    let Doubts { confidence, reasons } = doubts(facts, family);
    let is_cpu = waits_recorded(&facts.tables);
    Finding {
        name: kind.name.to_owned(),
        former_name: None,
        title: format!(
            "{who} {verb} {}{others}{}, and {does} the work again: up to {time:.1} ms{}{each}, {}",
            split(worst).1,
            kind.ending,
            if is_cpu { " of CPU" } else { "" },
            share.words()
        ),
        subject,
        cost,
        // What is not done again is not paid; that reading the artifact costs something stands in the reasons.
        predicted_saving: Some(cost),
        confidence,
        reasons,
        evidence: vec![each_row(family), artifact_rows(&artifacts), process_rows(facts, family)],
        fixes: kind.fixes.iter().map(|fix| (*fix).to_owned()).collect(),
        fix_inputs: FixInputs {
            artifacts: listed(&artifacts).map(|one| one.path.to_owned()).collect(),
            ..FixInputs::default()
        },
        see_by_hand: kind.by_hand.to_owned(),
    }
}

/// The user of these processes, where all have executed a program as the same one. One that was root then and was denied afterwards has
/// become somebody else, who is not recorded.
fn uid<'a>(facts: &LaunchFacts<'_>, processes: impl Iterator<Item = &'a ProcessKey>) -> Option<u32> {
    let uids = processes.map(|key| {
        let process = facts.processes.get(*key)?;
        process.uid.filter(|uid| process.first_exec.is_some() && *uid != 0)
    });
    let uids: BTreeSet<Option<u32>> = uids.collect();
    if uids.len() == 1 { uids.into_iter().next().flatten() } else { None }
}

fn doubts(facts: &LaunchFacts<'_>, family: &Family<'_>) -> Doubts {
    let mut doubts = Doubts::none();
    let sum = |is_meant: fn(Basis) -> bool| -> f64 {
        family.priced.iter().filter(|one| is_meant(one.basis)).map(|one| one.taken.cpu.max(0.0)).sum()
    };
    let compared = sum(|basis| matches!(basis, Basis::Compared(_)));
    let with_one = |one: &&Priced<'_>| one.basis == Basis::Compared(1) && !shows_work(&one.fallback);
    let doubtful: f64 = family.priced.iter().filter(with_one).map(|one| one.taken.cpu.max(0.0)).sum();
    let seen = sum(|basis| matches!(basis, Basis::EndSeen | Basis::SourcesRead));
    let unseen = sum(|basis| basis == Basis::EndUnseen);
    let rest = sum(|basis| basis == Basis::Rest);
    if rest > 0.0 {
        doubts.lower(
            Confidence::Low,
            "nothing shows where the work ends that this file is known to save, and no process of the same program could use it: all CPU \
             time of the process is in it, and the low end is nothing; a trial measures what it is",
        );
    }
    if unseen > compared + seen {
        doubts.lower(
            Confidence::Low,
            "for most of it the end of the work is not seen (nothing is saved): what the program did next, until it opened another file, \
             is in it; the low end of the interval leaves it out",
        );
    } else if compared <= seen + unseen && rest == 0.0 {
        doubts.lower(
            Confidence::Medium,
            "no process of the same program could use the artifacts, so there is none to compare with: an upper estimate, reading the \
             artifact is not taken off",
        );
    }
    if doubtful * 2.0 > compared + seen + unseen + rest {
        doubts.lower(
            Confidence::Medium,
            "there is one process only to compare with, and nothing else shows that the work was done again: the two may differ in more",
        );
    }
    doubts.of_time_between_opens(&facts.tables);
    if family.priced.iter().any(|one| one.basis != Basis::Rest) {
        let only = "only the threads that opened the artifacts are counted, not those that they gave work to";
        doubts.reasons.push(only.to_owned());
    }
    doubts
}

/// What one artifact costs.
struct ArtifactCost<'a> {
    path: &'a str,
    priced: Vec<&'a Priced<'a>>,
    cpu: f64,
    wall: f64,
}

/// The artifacts, most costly first.
fn by_artifact<'a>(family: &'a Family<'a>) -> Vec<ArtifactCost<'a>> {
    let mut by_path: BTreeMap<&str, Vec<&Priced<'a>>> = BTreeMap::new();
    family.priced.iter().for_each(|one| by_path.entry(one.fallback.artifact()).or_default().push(one));
    let costs = by_path.into_iter().map(|(path, priced)| ArtifactCost {
        path,
        cpu: priced.iter().map(|one| one.taken.cpu).sum(),
        wall: priced.iter().map(|one| one.taken.wall).sum(),
        priced,
    });
    let mut costs: Vec<ArtifactCost<'a>> = costs.collect();
    costs.sort_by(|a, b| b.cpu.total_cmp(&a.cpu));
    costs
}

/// Nanoseconds as milliseconds with microsecond resolution.
fn ms(nanos: f64) -> Value {
    Value::from((nanos / 1e3).round() / 1e3)
}

/// Those that are named.
fn listed<'a>(artifacts: &'a [ArtifactCost<'a>]) -> impl Iterator<Item = &'a ArtifactCost<'a>> {
    artifacts.iter().take(MOST_ROWS)
}

fn artifact_rows(artifacts: &[ArtifactCost<'_>]) -> Evidence {
    let rows = listed(artifacts).map(|one| -> Row {
        let first = one.priced.first();
        let first_with_source = first.filter(|first| first.basis != Basis::Rest);
        let source =
            first_with_source.and_then(|first| first.fallback.source).map(|source| Value::from(source.path.as_str()));
        let saving = match first.map(|first| first.fallback.end) {
            Some(End::SaveRefused) => "refused",
            Some(End::Saved) => "begun",
            _ => "not tried",
        };
        let processes: BTreeSet<ProcessKey> = one.priced.iter().map(|priced| priced.process()).collect();
        row([
            ("artifact", Value::from(one.path)),
            ("error", Value::from(first.map_or("", |first| error_name(first.fallback.open.result)))),
            ("processes", Value::from(processes.len())),
            ("cpu_ms", ms(one.cpu)),
            ("wall_ms", ms(one.wall)),
            ("read_instead", source.unwrap_or(Value::Null)),
            ("saving", Value::from(saving)),
            ("measured", Value::from(first.map_or("", |first| first.basis.words()))),
        ])
    });
    Evidence {
        text: format!("The most costly of {} artifacts, all processes together.", artifacts.len()),
        rows: rows.collect(),
    }
}

fn process_rows(facts: &LaunchFacts<'_>, family: &Family<'_>) -> Evidence {
    let mut processes: Vec<_> = family.by_process().into_iter().collect();
    processes.sort_by(|a, b| b.1.cpu.total_cmp(&a.1.cpu));
    let rows = processes.iter().take(MOST_ROWS).map(|(process, taken)| {
        let artifacts = family.priced.iter().filter(|one| one.process() == *process).count();
        row([
            ("process", Value::from(facts.processes.name(*process))),
            ("pid", Value::from(process.pid)),
            ("artifacts", Value::from(artifacts)),
            ("cpu_ms", ms(taken.cpu)),
            ("wall_ms", ms(taken.wall)),
        ])
    });
    Evidence { text: "The same by process.".to_owned(), rows: rows.collect() }
}

/// What one process pays, with the 95 % interval over processes where there are several.
fn each_row(family: &Family<'_>) -> Evidence {
    let by_process = family.by_process();
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    for taken in by_process.values() {
        cpu.push(taken.cpu / 1e6);
        wall.push(taken.wall / 1e6);
    }
    let number = |value: Option<f64>| value.map_or(Value::Null, |value| Value::from((value * 1e3).round() / 1e3));
    let cells = |name: &str, values: &[f64]| -> Vec<(String, Value)> {
        let of = summarize(values, Unit::Ms);
        vec![
            (format!("{name}_ms_each"), number(of.map(|of| of.value))),
            (format!("{name}_ms_each_low"), number(of.and_then(|of| of.low))),
            (format!("{name}_ms_each_high"), number(of.and_then(|of| of.high))),
        ]
    };
    let mut one: Row = row([("processes", Value::from(by_process.len()))]);
    one.extend(cells("cpu", &cpu));
    one.extend(cells("wall", &wall));
    Evidence { text: "What each process pays.".to_owned(), rows: vec![one] }
}
