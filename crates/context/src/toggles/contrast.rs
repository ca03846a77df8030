//! What a factor's toggle is asked with, and what it answers.

use super::here::Here;
use super::setting::Setting;
use crate::reading::{Reading, Value};
use crate::snapshot::Snapshot;
use slowpath_launch::Metric;
use std::collections::BTreeSet;

/// One factor in two contexts.
pub(crate) struct Contrast<'a> {
    /// Its value in the fast context; none where there is none of it.
    pub(crate) fast: Option<&'a Value>,
    /// In the slow one.
    pub(crate) slow: Option<&'a Value>,
    /// The contexts as a whole, for what follows from other factors.
    pub(crate) contexts: (&'a Snapshot, &'a Snapshot),
    /// What the caller has and may.
    pub(crate) here: &'a Here,
}

/// What is said of all parts that are set alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) irreversible: bool,
    pub(crate) counters: &'static [Metric],
    pub(crate) mechanism: &'static str,
    pub(crate) sham: &'static str,
}

/// One part of a difference.
#[derive(Clone, Debug)]
pub(crate) struct DifferingPart {
    /// Its name; none where the factor has no parts.
    pub(crate) part: Option<String>,
    pub(crate) fast: String,
    pub(crate) slow: String,
    pub(crate) outcome: Outcome,
}

/// What can be done with it.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is set, so in fast launches and so in slow ones.
    Set { settings: Box<[Vec<Setting>; 2]>, how: How },
    /// It is nothing of its own.
    Follows(String),
    /// Why it cannot be set here.
    Not(String),
}

impl DifferingPart {
    pub(crate) fn whole(fast: String, slow: String, outcome: Outcome) -> Self {
        Self { part: None, fast, slow, outcome }
    }

    /// The same under the name of a part.
    pub(crate) fn named(mut self, part: &str) -> Self {
        self.part = Some(part.to_owned());
        self
    }
}

impl<'a> Contrast<'a> {
    /// Whether the factor reads the same.
    pub(crate) fn is_same(&self) -> bool {
        self.fast == self.slow
    }

    /// The factor as a whole, each value set by what `set` makes of it.
    pub(crate) fn whole(
        &self,
        how: &How,
        set: impl Fn(Option<&Value>) -> Result<Vec<Setting>, String>,
    ) -> Vec<DifferingPart> {
        self.whole_of(how, |value, _| set(value))
    }

    /// The same where it matters whose context it is.
    pub(crate) fn whole_of(
        &self,
        how: &How,
        set: impl Fn(Option<&Value>, &Snapshot) -> Result<Vec<Setting>, String>,
    ) -> Vec<DifferingPart> {
        if self.is_same() {
            return Vec::new();
        }
        let outcome = both(set(self.fast, self.contexts.0), set(self.slow, self.contexts.1), how);
        vec![DifferingPart::whole(words(self.fast), words(self.slow), outcome)]
    }

    /// The factor as a whole, which is not set.
    pub(crate) fn not(&self, outcome: Outcome) -> Vec<DifferingPart> {
        if self.is_same() {
            Vec::new()
        } else {
            vec![DifferingPart::whole(words(self.fast), words(self.slow), outcome)]
        }
    }

    /// The parts of a table that differ: name, value in the fast context, in the slow one.
    pub(crate) fn differing(&self) -> Vec<(&'a str, Option<&'a str>, Option<&'a str>)> {
        let parts = |value: Option<&'a Value>| value.into_iter().flat_map(Value::parts);
        let names: BTreeSet<&str> = parts(self.fast).chain(parts(self.slow)).map(|(name, _)| name).collect();
        let of = |name: &str| (self.part(self.fast, name), self.part(self.slow, name));
        names
            .into_iter()
            .map(|name| (name, of(name)))
            .filter(|(_, (fast, slow))| fast != slow)
            .map(|(name, (fast, slow))| (name, fast, slow))
            .collect()
    }

    fn part(&self, value: Option<&'a Value>, name: &str) -> Option<&'a str> {
        value.and_then(|value| value.part(name))
    }

    /// Another factor in both contexts.
    pub(crate) fn other(&self, factor: &str) -> (Option<&'a Value>, Option<&'a Value>) {
        let of = |context: &'a Snapshot| context.reading(factor).and_then(Reading::value);
        (of(self.contexts.0), of(self.contexts.1))
    }

    /// Whether another factor, or one part of it, differs too.
    pub(crate) fn differs(&self, factor: &str, part: Option<&str>) -> bool {
        let (fast, slow) = self.other(factor);
        match part {
            Some(part) => self.part(fast, part) != self.part(slow, part),
            None => fast != slow,
        }
    }
}

/// The part that is set where both sides can be.
pub(crate) fn both(fast: Result<Vec<Setting>, String>, slow: Result<Vec<Setting>, String>, how: &How) -> Outcome {
    match (fast, slow) {
        (Ok(fast), Ok(slow)) => Outcome::Set { settings: Box::new([fast, slow]), how: *how },
        (Err(why), _) | (_, Err(why)) => Outcome::Not(why),
    }
}

/// A value in words.
pub(crate) fn words(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Set(words)) if words.is_empty() => "none".to_owned(),
        Some(Value::Set(words)) => words.iter().cloned().collect::<Vec<_>>().join(", "),
        Some(Value::Table(parts)) => {
            parts.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The value of a part in words.
pub(crate) fn or_none(value: Option<&str>) -> String {
    value.unwrap_or("none").to_owned()
}
