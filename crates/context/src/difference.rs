//! What differs between two contexts, with what is known of each difference's cost.
//!
//! A difference is not a cause: only a measurement shows which one costs time.

use crate::factor::{Factor, Known, Lasts, Scope};
use crate::factors;
use crate::factors::seccomp::SECCOMP;
use crate::filters::Filter;
use crate::reading::{Reading, Value};
use crate::snapshot::{Readings, Snapshot, Thread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;
use std::collections::{BTreeMap, BTreeSet};

/// One part of a factor that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Its name; null where the factor has no parts.
    pub name: Option<String>,
    /// In the first context; null: it has none.
    pub a: Option<String>,
    /// In the second.
    pub b: Option<String>,
}

/// A factor that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The factor.
    pub factor: String,
    /// What it is.
    pub title: String,
    /// Whose it is.
    pub scope: Scope,
    /// Name of the threads that it concerns; null: the first one of each, or all of a process or machine.
    pub threads: Option<String>,
    /// What differs of it.
    pub parts: Vec<Part>,
    /// What is known of its cost.
    pub known: Known,
    /// Whether it is a state of the moment, which would differ between two looks at the same process.
    pub of_the_moment: bool,
}

/// Two contexts laid beside each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Differences {
    /// What differs: what is known to matter most first.
    pub different: Vec<Difference>,
    /// Factors that are the same.
    pub same: Vec<String>,
    /// Factors that could not be compared: which, on which side and why.
    pub unavailable: Vec<Unavailable>,
}

/// What differs between `a` and `b`.
pub fn differences(a: &Snapshot, b: &Snapshot) -> Differences {
    let mut found = Differences::default();
    let one_boot = a.boot == b.boot;
    for (scope, a, b) in [(Scope::Machine, &a.machine, &b.machine), (Scope::Process, &a.process, &b.process)] {
        for factor in factors::of(scope) {
            found.add(factor, None, a, b, one_boot);
        }
    }
    let (first_a, first_b) = (a.main_thread(), b.main_thread());
    if let (Some(first_a), Some(first_b)) = (first_a, first_b) {
        for factor in factors::of(Scope::Thread) {
            found.add(factor, None, &first_a.factors, &first_b.factors, one_boot);
            if factor.name == SECCOMP.name {
                found.add_filters(factor, a, b);
            }
            found.add_threads(factor, a, b);
        }
    }
    found.different.sort_by_key(|one| (one.of_the_moment, one.known.weight, one.threads.is_some()));
    found.same.sort();
    found.unavailable.sort();
    found.unavailable.dedup();
    found
}

impl Differences {
    fn add(&mut self, factor: &Factor, threads: Option<String>, a: &Readings, b: &Readings, one_boot: bool) {
        let (Some(a), Some(b)) = (a.get(factor.name), b.get(factor.name)) else {
            // Saved by a version that did not know the factor.
            let reason = "one of the contexts was saved without it".to_owned();
            self.unavailable.push(gap(factor, reason, "save it again with `slowpath context save`"));
            return;
        };
        if factor.lasts == Lasts::Boot && !one_boot {
            self.unavailable.push(gap(factor, "numbers of two machines do not compare".to_owned(), "none needed"));
            return;
        }
        for (side, reading) in [("first", a), ("second", b)] {
            if let Reading::Unavailable { reason, remedy } = reading {
                self.unavailable.push(gap(factor, format!("in the {side} context: {reason}"), remedy));
                return;
            }
        }
        let parts = parts(a.value(), b.value());
        if parts.is_empty() {
            self.same.push(factor.name.to_owned());
            return;
        }
        let nothing = Value::Table(BTreeMap::new());
        let known = (factor.known)(a.value().unwrap_or(&nothing), b.value().unwrap_or(&nothing));
        self.different.push(Difference {
            factor: factor.name.to_owned(),
            title: factor.title.to_owned(),
            scope: factor.scope,
            threads,
            parts,
            known,
            of_the_moment: factor.lasts == Lasts::Moment,
        });
    }

    /// Filters that are as many as those of the other, and others.
    fn add_filters(&mut self, factor: &Factor, a: &Snapshot, b: &Snapshot) {
        let (Some(of_a), Some(of_b)) = (&a.filters, &b.filters) else { return };
        if of_a == of_b || of_a.len() != of_b.len() {
            return;
        }
        let lengths = |filters: &[Filter]| {
            let lengths: Vec<String> = filters.iter().map(|filter| filter.instructions().to_string()).collect();
            format!("of {} instructions", lengths.join(", "))
        };
        let (of_a, of_b) = (lengths(of_a), lengths(of_b));
        let of_b = if of_a == of_b { format!("others {of_b}") } else { of_b };
        let parts = vec![Part { name: Some("programs".to_owned()), a: Some(of_a), b: Some(of_b) }];
        let nothing = Value::Table(BTreeMap::new());
        self.same.retain(|name| name != factor.name);
        self.different.push(Difference {
            factor: factor.name.to_owned(),
            title: factor.title.to_owned(),
            scope: factor.scope,
            threads: None,
            parts,
            known: (factor.known)(&nothing, &nothing),
            of_the_moment: false,
        });
    }

    /// Threads that have the same name in both contexts, where they differ otherwise than the first ones do.
    fn add_threads(&mut self, factor: &Factor, a: &Snapshot, b: &Snapshot) {
        let (of_a, of_b) = (by_name(factor, &a.threads), by_name(factor, &b.threads));
        for (name, values_a) in &of_a {
            let Some(values_b) = of_b.get(name) else { continue };
            let (Some(one_a), Some(one_b)) = (single(values_a), single(values_b)) else { continue };
            let parts = parts(Some(one_a), Some(one_b));
            let is_known = self.different.iter().any(|one| one.factor == factor.name && one.parts == parts);
            if !parts.is_empty() && !is_known {
                self.different.push(Difference {
                    factor: factor.name.to_owned(),
                    title: factor.title.to_owned(),
                    scope: factor.scope,
                    threads: Some((*name).to_owned()),
                    parts,
                    known: (factor.known)(one_a, one_b),
                    of_the_moment: factor.lasts == Lasts::Moment,
                });
            }
        }
    }
}

fn gap(factor: &Factor, reason: String, remedy: &str) -> Unavailable {
    Unavailable { what: factor.name.to_owned(), reason, remedy: remedy.to_owned() }
}

/// Distinct values of a factor by the name of the thread, but for the first thread.
fn by_name<'a>(factor: &Factor, threads: &'a [Thread]) -> BTreeMap<&'a str, Vec<&'a Value>> {
    let mut found: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for thread in threads.iter().skip(1) {
        let Some(value) = thread.factors.get(factor.name).and_then(Reading::value) else { continue };
        let values = found.entry(&thread.name).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    found
}

fn single<'a>(values: &[&'a Value]) -> Option<&'a Value> {
    match values {
        [one] => Some(one),
        _ => None,
    }
}

/// The parts in which two values differ; a factor that a machine does not have has no parts.
fn parts(a: Option<&Value>, b: Option<&Value>) -> Vec<Part> {
    let plain = |a: Option<String>, b: Option<String>| {
        if a == b { Vec::new() } else { vec![Part { name: None, a, b }] }
    };
    match (a, b) {
        (Some(Value::Table(a)), Some(Value::Table(b))) => of_tables(a, b),
        (Some(Value::Table(a)), None) => of_tables(a, &BTreeMap::new()),
        (None, Some(Value::Table(b))) => of_tables(&BTreeMap::new(), b),
        (Some(Value::Set(a)), Some(Value::Set(b))) => {
            let only = |from: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
                from.difference(other).cloned().collect()
            };
            let of_a = only(a, b).into_iter().map(|one| Part { name: None, a: Some(one), b: None });
            of_a.chain(only(b, a).into_iter().map(|one| Part { name: None, a: None, b: Some(one) })).collect()
        }
        (a, b) => plain(a.map(in_words), b.map(in_words)),
    }
}

fn of_tables(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<Part> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differs = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    differs.map(|name| Part { name: Some(name.clone()), a: a.get(name).cloned(), b: b.get(name).cloned() }).collect()
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Set(words) => words.iter().cloned().collect::<Vec<_>>().join(", "),
        Value::Table(parts) => {
            parts.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        }
    }
}
