//! What processes pay because they could not use artifacts of one family.
//!
//! Owns which fallbacks ([`crate::fallbacks`]) count, and the price of each, by the best that the recording has:
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
//! A denied open with none of these is no fallback: the program may do without the file.

use crate::fallbacks::open_call::family;
use crate::fallbacks::times::Taken;
use crate::fallbacks::{End, Fallback, Problem, Threads};
use crate::interval::median;
use crate::launch_facts::LaunchFacts;
use slowpath_tables::{FileKey, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many times the median time a byte a source may take whose end is not seen. Of 300 modules of Python's own library (3.11, 8 kB and
/// more) the median takes 0.23 us a byte to be compiled and the slowest 0.41, which is 1.8 times as much.
const MOST_OF_MEDIAN: f64 = 2.0;

/// Artifacts from which on a median says what others take.
const LEAST_KNOWN: usize = 3;

/// Generations of parents in which the program of a copy is looked for.
const MOST_ANCESTORS: usize = 64;

/// How a price is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Compared with so many siblings.
    Compared(usize),
    /// Until the result was saved, or refused to be.
    EndSeen,
    /// Until the thread turned to something else.
    EndUnseen,
}

impl Basis {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Compared(_) => "compared with a process that could open it",
            Self::EndSeen => "until it saves the result, or is refused to",
            Self::EndUnseen => "until it turns to something else",
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

/// The families of one launch with this problem.
pub(crate) fn families<'a>(facts: &'a LaunchFacts<'_>, problem: Problem) -> Vec<Family<'a>> {
    let tables = &*facts.tables;
    if tables.opens.is_empty() {
        return Vec::new();
    }
    let threads = Threads::new(tables, facts.ended);
    let mut fallbacks = threads.fallbacks(problem);
    if problem != Problem::Denied {
        keep_repeated(&mut fallbacks);
    }
    let readers = threads.readers(if problem == Problem::Denied { &fallbacks } else { &[] });
    let executables = executables(facts);
    let mut families: BTreeMap<String, Vec<Priced<'a>>> = BTreeMap::new();
    for fallback in fallbacks {
        let process = fallback.open.process();
        let own = executables.get(&process);
        // A program that starts itself in several roles does not do the same in each.
        let role = facts.processes.name(process);
        let is_sibling = |other| {
            other != process && own.is_some() && executables.get(&other) == own && facts.processes.name(other) == role
        };
        let differences = threads.compared(&fallback, &readers, is_sibling);
        if let Some(priced) = price(fallback, &differences, threads.alone(&fallback)) {
            families.entry(family(fallback.artifact())).or_default().push(priced);
        }
    }
    let sizes: HashMap<FileKey, f64> =
        tables.files.iter().filter_map(|file| Some((file.file(), file.size?.0 as f64))).collect();
    let families = families.into_iter().map(|(name, priced)| Family { name, priced: bounded(priced, &sizes) });
    families.filter(|family| !family.priced.is_empty()).collect()
}

/// Leaves out what happens once: what a process makes anew is there for the next one, unless that makes it once more.
fn keep_repeated(fallbacks: &mut Vec<Fallback<'_>>) {
    let mut makers: HashMap<&str, BTreeSet<ProcessKey>> = HashMap::new();
    for one in fallbacks.iter().filter(|one| one.end == End::Saved) {
        makers.entry(one.artifact()).or_default().insert(one.open.process());
    }
    let again: BTreeSet<String> =
        makers.into_iter().filter(|(_, who)| who.len() > 1).map(|(path, _)| path.to_owned()).collect();
    fallbacks.retain(|one| one.end != End::Saved || again.contains(one.artifact()));
}

/// Device and inode of the program of each process; a copy has its parent's.
fn executables(facts: &LaunchFacts<'_>) -> HashMap<ProcessKey, FileKey> {
    let mut own: HashMap<ProcessKey, FileKey> = HashMap::new();
    for exec in &facts.tables.execs {
        own.insert(exec.process(), exec.file());
    }
    let parent = |key: &ProcessKey| facts.processes.get(*key).and_then(|process| process.parent);
    let of = |key: ProcessKey| {
        let ancestors = std::iter::successors(Some(key), parent).take(MOST_ANCESTORS);
        ancestors.filter_map(|one| own.get(&one)).next().copied()
    };
    facts.processes.iter().filter_map(|process| Some((process.key, of(process.key)?))).collect()
}

/// Whether the process itself shows that it did the work of the artifact.
pub(crate) fn shows_work(fallback: &Fallback<'_>) -> bool {
    fallback.end.is_seen() || fallback.is_alike
}

fn price<'a>(fallback: Fallback<'a>, differences: &[Taken], alone: Taken) -> Option<Priced<'a>> {
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
    let high = alone.cpu;
    let (low, basis) = if fallback.end.is_seen() { (high, Basis::EndSeen) } else { (0.0, Basis::EndUnseen) };
    shows_work(&fallback).then_some(Priced { fallback, taken: alone, low, high, basis })
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
