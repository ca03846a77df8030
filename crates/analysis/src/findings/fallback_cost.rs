//! What processes pay because they could not use artifacts of one family.
//!
//! Owns which fallbacks ([`crate::io::fallbacks`]) count, and the price of each, by the best that the recording has:
//!
//! 1. *compared*: with siblings that could open the same artifact, the difference to their median; the interval is that to the fastest and
//!    the slowest of them. Where nothing else shows that the work was done again, each of them must have been faster;
//! 2. *its end is seen*: the thread saved the result, or was refused to. The time until then. What reading the artifact costs is not
//!    taken off;
//! 3. *its end is not seen*: a file that is named like the artifact was read instead, and the thread turned to something else at some time.
//!    The time until then also has what the program did with the result, so it counts up to [`MOST_OF_MEDIAN`] times what the median of at
//!    least [`LEAST_KNOWN`] artifacts of the family takes a byte of the source, and the low end leaves it out. With fewer it is left out
//!    altogether: anything that the program does could be in it.
//!
//! 4. *its sources are read*: the family of a denied file says which files it was made from ([`Trace::ReadsSources`]). The time until the
//!    thread turns to others, or to one of them anew; at the low end until it opened the last of them;
//! 5. *by its family alone*: the family says that the work leaves no trace ([`Trace::AllAlong`]): a JVM without its archive parses classes
//!    all along; Node.js that cannot make the directory of its cache looks for nothing in it ([`Trace::SourceFirst`]). All CPU time of
//!    the process is the most that it can be, and the low end is nothing. It stands once a process and family, and for processes that
//!    have loaded the family's library, or tried to make its directory.
//!
//! A denied open with none of these is no fallback: the program may do without the file.

use super::materiality::CpuTimes;
use crate::interval::median;
use crate::io::fallbacks::open_call::{family, split};
use crate::io::fallbacks::{End, Fallback, Problem, Threads};
use crate::io::opening_threads::Taken;
use crate::launch_facts::LaunchFacts;
use crate::time::usage;
use slowpath_artifacts::families::Trace;
use slowpath_tables::{FileKey, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// How many times the median time a byte a source may take whose end is not seen. Of 300 modules of Python's own library (3.11, 8 kB and
/// more) the median takes 0.23 us a byte to be compiled and the slowest 0.41, which is 1.8 times as much.
const MOST_OF_MEDIAN: f64 = 2.0;

/// Artifacts from which on a median says what others take.
const LEAST_KNOWN: usize = 3;

/// How a price is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Compared with so many siblings.
    Compared(usize),
    /// Until the result was saved, or refused to be.
    EndSeen,
    /// Until the thread turned to something else.
    EndUnseen,
    /// Until the thread turned to other files than those that the artifact was made from.
    SourcesRead,
    /// Everything that the process did.
    Rest,
}

impl Basis {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Compared(_) => "compared with a process that could open it",
            Self::EndSeen => "until it saves the result, or is refused to",
            Self::EndUnseen => "until it turns to something else",
            Self::SourcesRead => "until it has read what the artifact is made from",
            Self::Rest => "all that the process does",
        }
    }
}

/// A fallback with its price.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced<'a> {
    pub fallback: Fallback<'a>,
    pub taken: Taken,
    /// CPU time at least and at most, ns.
    pub low: f64,
    pub high: f64,
    pub basis: Basis,
}

impl Priced<'_> {
    pub fn process(&self) -> ProcessKey {
        self.fallback.open.process()
    }
}

/// Fallbacks of one family.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    /// What the artifacts have in common: `*.pyc`.
    pub name: String,
    /// At least one.
    pub priced: Vec<Priced<'a>>,
}

impl Family<'_> {
    /// CPU time of all, ns: at least, as estimated, at most.
    pub fn cpu(&self) -> (f64, f64, f64) {
        let sum = |of: fn(&Priced<'_>) -> f64| self.priced.iter().map(of).sum::<f64>().max(0.0);
        (sum(|one| one.low), sum(|one| one.taken.cpu), sum(|one| one.high))
    }

    /// What each process pays.
    pub fn by_process(&self) -> BTreeMap<ProcessKey, Taken> {
        let mut sums: BTreeMap<ProcessKey, Taken> = BTreeMap::new();
        for one in &self.priced {
            let sum = sums.entry(one.process()).or_default();
            *sum = Taken { cpu: sum.cpu + one.taken.cpu, wall: sum.wall + one.taken.wall };
        }
        sums
    }
}

/// CPU time of all that processes pay because of artifacts, whether it is a finding or not, ns. What is known as an upper bound alone is
/// not in it.
pub(crate) fn paid(facts: &LaunchFacts<'_>) -> BTreeMap<ProcessKey, f64> {
    let mut paid: BTreeMap<ProcessKey, f64> = BTreeMap::new();
    for problem in Problem::ALL {
        for family in families(facts, problem) {
            // Of those that are compared some are below nothing by chance.
            let mut of_family: BTreeMap<ProcessKey, f64> = BTreeMap::new();
            for one in family.priced.iter().filter(|one| one.basis != Basis::Rest) {
                *of_family.entry(one.process()).or_default() += one.taken.cpu;
            }
            of_family.into_iter().for_each(|(process, cpu)| *paid.entry(process).or_default() += cpu.max(0.0));
        }
    }
    paid
}

/// The families of one launch with this problem.
pub(crate) fn families<'a>(facts: &'a LaunchFacts<'_>, problem: Problem) -> Vec<Family<'a>> {
    let tables = &*facts.tables;
    if tables.opens.is_empty() {
        return Vec::new();
    }
    let threads = Threads::new(tables, facts.recording(), facts.ended);
    let mut fallbacks = threads.fallbacks(problem);
    keep_repeated(&mut fallbacks, problem);
    let readers = threads.readers(if problem == Problem::Denied { &fallbacks } else { &[] });
    let executables = facts.processes.executables(&tables.execs);
    let mut families: BTreeMap<String, Vec<Priced<'a>>> = BTreeMap::new();
    let (mut untraced, mut compared) = (Vec::new(), HashSet::new());
    for fallback in fallbacks {
        let process = fallback.open.process();
        let own = executables.get(&process);
        // A program that starts itself in several roles does not do the same in each.
        let role = facts.processes.name(process);
        let is_sibling = |other| {
            other != process && own.is_some() && executables.get(&other) == own && facts.processes.name(other) == role
        };
        let differences = threads.compared(&fallback, &readers, is_sibling);
        // To the next file that both open: asked for once more before that, it is the same time.
        if !differences.is_empty() && !compared.insert((process, fallback.artifact())) {
            continue;
        }
        match price(fallback, &differences, &threads) {
            Some(priced) => families.entry(family(fallback.artifact())).or_default().push(priced),
            None if differences.is_empty() => untraced.push(fallback),
            None => {}
        }
    }
    let mut rest = Rest::new(facts, &untraced);
    for fallback in untraced {
        let name = family(fallback.artifact());
        if let Some(priced) = rest.price(fallback, &name) {
            families.entry(name).or_default().push(priced);
        }
    }
    let sizes: HashMap<FileKey, f64> =
        tables.files.iter().filter_map(|file| Some((file.file(), file.size?.0 as f64))).collect();
    let families = families.into_iter().map(|(name, priced)| Family { name, priced: bounded(priced, &sizes) });
    families.filter(|family| !family.priced.is_empty()).collect()
}

/// Leaves out what happens once: what a process makes anew is there for the next one, unless that makes it once more. Where the artifact
/// was denied, that is so of what has other places for the result.
fn keep_repeated(fallbacks: &mut Vec<Fallback<'_>>, problem: Problem) {
    let has_places = |one: &Fallback<'_>| problem != Problem::Denied || matches!(one.trace, Trace::ReadsSources { .. });
    let mut makers: HashMap<&str, BTreeSet<ProcessKey>> = HashMap::new();
    for one in fallbacks.iter().filter(|one| one.end == End::Saved) {
        makers.entry(one.artifact()).or_default().insert(one.open.process());
    }
    let again: BTreeSet<String> =
        makers.into_iter().filter(|(_, who)| who.len() > 1).map(|(path, _)| path.to_owned()).collect();
    fallbacks.retain(|one| one.end != End::Saved || !has_places(one) || again.contains(one.artifact()));
}

/// Whether the process itself shows that it did the work of the artifact.
pub(crate) fn shows_work(fallback: &Fallback<'_>) -> bool {
    let read_it_first = matches!(fallback.trace, Trace::SourceFirst) && fallback.source.is_some();
    fallback.end.is_seen() || fallback.is_alike || reads_sources(fallback) || read_it_first
}

fn reads_sources(fallback: &Fallback<'_>) -> bool {
    matches!(fallback.trace, Trace::ReadsSources { .. }) && fallback.source.is_some()
}

fn price<'a>(fallback: Fallback<'a>, differences: &[Taken], threads: &Threads<'a>) -> Option<Priced<'a>> {
    let of = |part: fn(&Taken) -> f64| differences.iter().map(part).collect::<Vec<f64>>();
    let cpu = of(|one| one.cpu);
    if let (Some(middle), Some(wall)) = (median(&cpu), median(&of(|one| one.wall))) {
        let taken = Taken { cpu: middle, wall };
        let low = cpu.iter().copied().fold(middle, f64::min);
        let high = cpu.iter().copied().fold(middle, f64::max);
        if !shows_work(&fallback) && low <= 0.0 {
            return None;
        }
        return Some(Priced { fallback, taken, low, high, basis: Basis::Compared(cpu.len()) });
    }
    let alone = threads.alone(&fallback);
    let high = alone.cpu;
    let (low, basis) = match fallback.end.is_seen() {
        true => (high, Basis::EndSeen),
        false if reads_sources(&fallback) => (threads.to_last_read(&fallback).cpu, Basis::SourcesRead),
        false => (0.0, Basis::EndUnseen),
    };
    shows_work(&fallback).then_some(Priced { fallback, taken: alone, low, high, basis })
}

/// What processes do in all, for work that leaves no trace.
struct Rest<'f, 'a> {
    facts: &'f LaunchFacts<'a>,
    /// CPU time of each process, without what recording took.
    times: CpuTimes,
    /// Processes and the libraries that they have loaded, of those that work without a trace.
    loaded: HashSet<(ProcessKey, &'static str)>,
    /// Whose time is reported: twice would be no bound.
    reported: HashSet<(ProcessKey, String)>,
}

impl<'f, 'a> Rest<'f, 'a> {
    fn new(facts: &'f LaunchFacts<'a>, untraced: &[Fallback<'_>]) -> Self {
        let wanted: BTreeSet<(ProcessKey, &str)> =
            untraced.iter().filter_map(|one| Some((one.open.process(), library(one)?))).collect();
        let of = |process: ProcessKey| wanted.range((process, "")..).take_while(move |(other, _)| *other == process);
        let mut loaded = HashSet::new();
        if !wanted.is_empty() {
            for open in facts.tables.opens.iter().filter(|open| open.result >= 0) {
                loaded.extend(of(open.process()).filter(|(_, library)| split(&open.path).1 == *library));
            }
        }
        let is_needed = !loaded.is_empty() || untraced.iter().any(|one| made_no_directory(one));
        let times = if is_needed { usage::own_cpu_times(facts) } else { CpuTimes::new() };
        Self { facts, times, loaded, reported: HashSet::new() }
    }

    /// All CPU time of the process; nothing where it is not known.
    fn price<'t>(&mut self, fallback: Fallback<'t>, family: &str) -> Option<Priced<'t>> {
        let process = fallback.open.process();
        let is_used = match library(&fallback) {
            Some(library) => self.loaded.contains(&(process, library)),
            None => made_no_directory(&fallback),
        };
        let cpu = self.times.get(&process).copied().flatten().filter(|_| is_used)?.0 as f64;
        if !self.reported.insert((process, family.to_owned())) {
            return None;
        }
        let ended = self.facts.processes.get(process).and_then(|process| process.ended).unwrap_or(self.facts.ended);
        let recording = self.facts.recording().between(process, fallback.open.tid, fallback.open.ts, ended).0;
        let wall = ended.0.saturating_sub(fallback.open.ts.0).saturating_sub(recording) as f64;
        Some(Priced { fallback, taken: Taken { cpu, wall }, low: 0.0, high: cpu, basis: Basis::Rest })
    }
}

/// Whether the process was refused the directory for its artifacts, and so looked for none. Only programs of the family make one.
fn made_no_directory(fallback: &Fallback<'_>) -> bool {
    matches!(fallback.trace, Trace::SourceFirst) && fallback.source.is_none()
}

/// The library of a family whose work leaves no trace.
fn library(fallback: &Fallback<'_>) -> Option<&'static str> {
    match fallback.trace {
        Trace::AllAlong { library } => Some(library),
        Trace::OfAnyFile | Trace::ReadsSources { .. } | Trace::SourceFirst | Trace::NoWork => None,
    }
}

/// Bounds what has no end that is seen by what others of the family take a byte of their source, and leaves it out where that is unknown.
fn bounded<'a>(mut priced: Vec<Priced<'a>>, sizes: &HashMap<FileKey, f64>) -> Vec<Priced<'a>> {
    let size = |one: &Priced<'_>| {
        let source = one.fallback.source?;
        let file = FileKey { dev: source.dev?, ino: source.ino? };
        sizes.get(&file).copied().filter(|size| *size > 0.0)
    };
    let rate = |basis: Basis| {
        let mut of_artifact: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for one in priced.iter().filter(|one| one.basis == basis) {
            let Some(size) = size(one) else { continue };
            of_artifact.entry(one.fallback.artifact()).or_default().push(one.taken.cpu / size);
        }
        let medians: Vec<f64> = of_artifact.values().filter_map(|rates| median(rates)).collect();
        (medians.len() >= LEAST_KNOWN).then(|| median(&medians)).flatten()
    };
    let rate = rate(Basis::EndSeen).or_else(|| rate(Basis::EndUnseen));
    priced.retain_mut(|one| {
        if one.basis != Basis::EndUnseen {
            return true;
        }
        let Some((size, rate)) = size(one).zip(rate) else { return false };
        let most = MOST_OF_MEDIAN * rate * size;
        if one.taken.cpu > most {
            one.taken = Taken { cpu: most, wall: one.taken.wall * most / one.taken.cpu };
        }
        true
    });
    priced
}
