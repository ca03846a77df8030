//! What of the difference between two contexts becomes a candidate, and what only follows from others or stays.
//!
//! Owns the walk over all factors: what differs, what both contexts have unlike the caller of the launches, what could not be compared,
//! and the words in which each is named. Leaves to the factors which parts of a difference there are and what a launch needs for them
//! (`toggle`, `contrast`), to `here` what the caller has and may, and to `prepared` the conditions of a launch for a choice.

use super::contrast::{Contrast, DifferingPart, Outcome, or_none, words};
use super::error::ToggleError;
use super::here::Here;
use super::prepared::Prepared;
use super::setting::Setting;
use super::toggle::Toggle;
use crate::factor::{Factor, Known, Lasts, Scope};
use crate::factors;
use crate::factors::environment::InCommon;
use crate::reading::{Reading, Value};
use crate::snapshot::Snapshot;
use crate::trust::OTHER_CODE;
use slowpath_launch::Metric;
use slowpath_tables::Unavailable;
use std::collections::{BTreeMap, BTreeSet};

/// One part of a difference that can be applied here alone, everything else equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Stable: the factor and, where it has parts, the part (`environment MALLOC_PERTURB_`).
    pub name: String,
    /// The factor.
    pub factor: &'static str,
    /// What it is.
    pub title: String,
    /// In the fast context, in words. Foreign text.
    pub fast: String,
    /// In the slow context. Foreign text.
    pub slow: String,
    /// What is known of its cost.
    pub known: Known,
    /// Whether a process that has it cannot give it back. Each launch is a process of its own, so it can be left out all the same.
    pub irreversible: bool,
    /// Numbers of a launch that rise where the mechanism is at work; any of them suffices.
    pub counters: &'static [Metric],
    /// By what it costs time, in words.
    pub mechanism: &'static str,
    /// What the launches get that do not have it.
    pub sham: &'static str,
}

/// Something that differs and is not toggled by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// As of a candidate.
    pub name: String,
    /// What it is.
    pub title: String,
    /// In the fast context. Foreign text.
    pub fast: String,
    /// In the slow context. Foreign text.
    pub slow: String,
    /// What is known of its cost.
    pub known: Known,
    /// Why.
    pub why: String,
}

/// Something that both contexts have and the caller of a launch has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    /// As of a candidate.
    pub name: String,
    /// What it is.
    pub title: String,
    /// The contexts' value. Foreign text.
    pub value: String,
    /// The caller's own.
    pub own: String,
}

/// What can be done with the difference between two contexts here.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What can be applied, in the order of the factors.
    pub candidates: Vec<Candidate>,
    /// What differs and cannot be applied here.
    pub remaining: Vec<Remaining>,
    /// What differs because of a candidate, or only for the moment, and is reported for completeness.
    pub follows: Vec<Remaining>,
    /// What both have, unlike the caller: applied to every launch.
    pub common: Vec<Common>,
    /// What both have, unlike the caller, and cannot be applied here: `fast` is the contexts' value, `slow` the caller's own.
    pub lacking: Vec<Remaining>,
    /// Factors that could not be compared, and why.
    pub unavailable: Vec<Unavailable>,
    settings: Vec<[Vec<Setting>; 2]>,
    common_settings: Vec<Setting>,
    /// Variables that both have alike; none where they are not known.
    variables: Option<InCommon>,
}

/// What of the difference between two contexts can be applied here, for a caller who has and may what `here` says.
pub fn plan(fast: &Snapshot, slow: &Snapshot, here: &Here) -> Plan {
    let mut plan = Plan {
        candidates: Vec::new(),
        remaining: Vec::new(),
        follows: Vec::new(),
        common: Vec::new(),
        lacking: Vec::new(),
        unavailable: Vec::new(),
        settings: Vec::new(),
        common_settings: Vec::new(),
        variables: None,
    };
    for factor in factors::ALL.iter() {
        plan.add_differences(factor, fast, slow, here);
    }
    let settled: BTreeSet<String> = {
        let candidates = plan.candidates.iter().map(|one| one.name.clone());
        candidates.chain(plan.remaining.iter().map(|one| one.name.clone())).collect()
    };
    for factor in factors::ALL.iter().filter(|factor| factor.scope != Scope::Machine && factor.lasts != Lasts::Moment) {
        plan.add_common(factor, fast, here, &settled);
    }
    plan.variables = factors::environment::in_common(fast, slow, here);
    plan.add_refused(here);
    plan
}

impl Plan {
    /// Holds what must live as long as the launches (cgroups that were made), removed when dropped. `base`: the command with
    /// the conditions that the contexts say nothing of.
    ///
    /// # Errors
    /// A cgroup cannot be made.
    pub fn prepare(&self, base: &slowpath_launch::LaunchSpec) -> Result<Prepared, ToggleError> {
        Prepared::new(base, &self.settings, &self.common_settings, self.variables.as_ref())
    }

    /// What is changed of a launch in any case: what both contexts have, unlike the caller and `base`.
    pub fn applied_to(&self, base: &slowpath_launch::LaunchSpec) -> Vec<Common> {
        let text = |value: &std::ffi::OsString| value.to_string_lossy().into_owned();
        let own: BTreeMap<String, String> = base.env.iter().map(|(name, value)| (text(name), text(value))).collect();
        let factor = &factors::environment::ENVIRONMENT;
        let change = |name: &String, value: Option<&String>| Common {
            name: format!("{} {name}", factor.name),
            title: factor.title.to_owned(),
            value: or_none(value.map(String::as_str)),
            own: or_none(own.get(name).map(String::as_str)),
        };
        let variables = self.variables.as_ref().map(|variables| {
            let removed = own.keys().filter(|name| variables.removes(name));
            let set = variables.variables.iter().filter(|(name, value)| own.get(*name) != Some(*value));
            set.map(|(name, value)| change(name, Some(value))).chain(removed.map(|name| change(name, None))).collect()
        });
        let variables: Vec<Common> = variables.unwrap_or_default();
        self.common.iter().cloned().chain(variables).collect()
    }

    /// The candidate with this name.
    pub fn candidate(&self, name: &str) -> Option<usize> {
        self.candidates.iter().position(|one| one.name == name)
    }

    fn add_differences(&mut self, factor: &'static Factor, fast: &Snapshot, slow: &Snapshot, here: &Here) {
        let (Some(a), Some(b)) = (self.value(factor, fast, "fast"), self.value(factor, slow, "slow")) else { return };
        let filters_differ = factor.name == factors::seccomp::SECCOMP.name && fast.filters != slow.filters;
        if a == b && !filters_differ {
            return;
        }
        let known = |part: &DifferingPart| known_of(factor, part.part.as_deref(), a, b);
        if factor.lasts == Lasts::Moment {
            let part = DifferingPart::whole(words(a), words(b), Outcome::Follows(OF_THE_MOMENT.to_owned()));
            self.follows.push(remaining(factor, &part, known(&part)));
            return;
        }
        for part in parts_of(factor, fast, slow, a, b, here) {
            let known = known(&part);
            match &part.outcome {
                Outcome::Set { settings, how } => {
                    self.candidates.push(Candidate {
                        name: name(factor, &part),
                        factor: factor.name,
                        title: title(factor, &part),
                        fast: part.fast.clone(),
                        slow: part.slow.clone(),
                        known,
                        irreversible: how.irreversible,
                        counters: how.counters,
                        mechanism: how.mechanism,
                        sham: how.sham,
                    });
                    self.settings.push(settings.as_ref().clone());
                }
                Outcome::Follows(_) => self.follows.push(remaining(factor, &part, known)),
                Outcome::Not(_) => self.remaining.push(remaining(factor, &part, known)),
            }
        }
    }

    /// What the contexts have alike and the caller has otherwise.
    fn add_common(&mut self, factor: &'static Factor, context: &Snapshot, here: &Here, settled: &BTreeSet<String>) {
        let value = |snapshot: &'_ Snapshot| snapshot.reading(factor.name).map(|reading| reading.value().cloned());
        let (Some(theirs), Some(own)) = (value(context), value(&here.own)) else { return };
        // A launch gets its environment from its specification, and its code from its command; neither from this process.
        let of_launch = [factors::environment::ENVIRONMENT.name, factors::loaded_libraries::LOADED_LIBRARIES.name];
        if theirs == own || of_launch.contains(&factor.name) {
            return;
        }
        for part in parts_of(factor, context, &here.own, theirs.as_ref(), own.as_ref(), here) {
            let name = name(factor, &part);
            // Where one part differs between the contexts, the whole is chosen there.
            let is_program = part.part.as_deref() == Some(factors::file_systems::EXECUTABLE);
            if is_program || settled.contains(&name) || settled.contains(factor.name) {
                continue;
            }
            match &part.outcome {
                Outcome::Set { settings, .. } => {
                    let title = title(factor, &part);
                    self.common.push(Common { name, title, value: part.fast.clone(), own: part.slow.clone() });
                    self.common_settings.extend(settings[0].iter().cloned());
                }
                Outcome::Not(_) => {
                    let known = known_of(factor, part.part.as_deref(), theirs.as_ref(), own.as_ref());
                    self.lacking.push(remaining(factor, &part, known));
                }
                Outcome::Follows(_) => {}
            }
        }
    }

    /// Variables that both have and a launch does not get.
    fn add_refused(&mut self, here: &Here) {
        let factor = &factors::environment::ENVIRONMENT;
        for (name, value) in self.variables.iter().flat_map(|variables| &variables.refused) {
            let own = here.value(factor.name).and_then(|own| own.part(name));
            if own == Some(value) {
                continue;
            }
            let part =
                DifferingPart::whole(value.clone(), or_none(own), Outcome::Not(OTHER_CODE.to_owned())).named(name);
            let known = factors::environment::of_variable(name, value, own);
            self.lacking.push(remaining(factor, &part, known));
        }
    }

    /// The value of a factor, none where the machine has none of it; `None`: it is not known.
    fn value<'a>(&mut self, factor: &Factor, context: &'a Snapshot, side: &str) -> Option<Option<&'a Value>> {
        let (reason, remedy) = match context.reading(factor.name) {
            Some(Reading::Known { value }) => return Some(Some(value)),
            Some(Reading::Absent { .. }) => return Some(None),
            Some(Reading::Unavailable { reason, remedy }) => (reason.clone(), remedy.clone()),
            None => ("it was saved without it".to_owned(), "save it again with `slowpath context save`".to_owned()),
        };
        let what = factor.name.to_owned();
        let reason = format!("in the {side} context: {reason}");
        self.unavailable.push(Unavailable { what, reason, remedy });
        None
    }
}

const OF_THE_MOMENT: &str = "a state of the moment, which differs between two looks at the same process";

fn parts_of(
    factor: &Factor,
    fast: &Snapshot,
    slow: &Snapshot,
    a: Option<&Value>,
    b: Option<&Value>,
    here: &Here,
) -> Vec<DifferingPart> {
    match factor.toggle {
        Toggle::Parts(parts) => parts(&Contrast { fast: a, slow: b, contexts: (fast, slow), here }),
        Toggle::Never(why) => vec![DifferingPart::whole(words(a), words(b), Outcome::Not(why.to_owned()))],
    }
}

fn known_of(factor: &Factor, part: Option<&str>, a: Option<&Value>, b: Option<&Value>) -> Known {
    let only = |value: Option<&Value>| match (value, part) {
        (Some(value @ Value::Table(_)), Some(part)) => {
            Value::table(value.part(part).map(|value| (part.to_owned(), value.to_owned())))
        }
        (Some(value), _) => value.clone(),
        (None, _) => Value::Table(BTreeMap::new()),
    };
    (factor.known)(&only(a), &only(b))
}

fn name(factor: &Factor, part: &DifferingPart) -> String {
    part.part.as_ref().map_or_else(|| factor.name.to_owned(), |part| format!("{} {part}", factor.name))
}

fn title(factor: &Factor, part: &DifferingPart) -> String {
    part.part.as_ref().map_or_else(|| factor.title.to_owned(), |part| format!("{}: {}", factor.title, part))
}

fn remaining(factor: &Factor, part: &DifferingPart, known: Known) -> Remaining {
    let why = match &part.outcome {
        Outcome::Follows(why) | Outcome::Not(why) => why.clone(),
        Outcome::Set { .. } => String::new(),
    };
    let (name, title) = (name(factor, part), title(factor, part));
    Remaining { name, title, fast: part.fast.clone(), slow: part.slow.clone(), known, why }
}
