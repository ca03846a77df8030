//! Figures of the same name, before and after.

use super::printed::{
    Basis, Change, Compared, FindingChange, FindingState, FunctionChange, LedgerChange, ProgramChange, TotalChange,
};
use super::scale;
use crate::findings;
use crate::metrics::{FindingCost, FindingKey, LedgerKey, Measure, RecordedMetrics, Source};
use crate::printed::quantities::of_estimate;
use crate::stacks::attribution::AttributedFunction;
use crate::time::ledger::Category;
use slowpath_experiment::{Level, median, rank_sum};
use slowpath_tables::{Quantity, Unit};
use std::collections::BTreeSet;

/// Functions that are listed for a measure.
const FUNCTIONS: usize = 50;

/// Time on the CPU that samples or ticks could not tell apart may be this share of it; above, it is not told apart anywhere.
const MOST_UNDIVIDED: f64 = 0.05;

impl Change {
    /// Compares values of independent recordings; `None` where a side has none.
    fn of(before: &[f64], after: &[f64], unit: Unit) -> Option<Self> {
        let found = rank_sum::independent(before, after, Level::P95)?;
        let quantity = |estimate| of_estimate(estimate, unit);
        Some(Self {
            before: quantity(found.before),
            after: quantity(found.after),
            difference: quantity(found.difference),
            ratio: found.ratio.map(|ratio| of_estimate(ratio, Unit::Ratio)),
        })
    }
}

/// A recording and what its figures are multiplied by.
struct Scaled<'a> {
    costs: &'a RecordedMetrics,
    factor: f64,
}

/// Both sets.
pub(super) struct Sides<'a> {
    before: Vec<Scaled<'a>>,
    after: Vec<Scaled<'a>>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(before: &'a [Compared], after: &'a [Compared], basis: Basis) -> Self {
        let scaled = |one: &'a Compared| Scaled { costs: &one.costs, factor: scale::factor(one, basis) };
        Self { before: before.iter().map(scaled).collect(), after: after.iter().map(scaled).collect() }
    }

    fn all(&self) -> impl Iterator<Item = &'a RecordedMetrics> {
        self.before.iter().chain(&self.after).map(|one| one.costs)
    }

    /// Whether all recordings have it.
    fn have(&self, source: Source) -> bool {
        self.all().all(|costs| costs.sources.contains(&source))
    }

    /// A figure on both sides; `None` where it is zero everywhere.
    fn change(&self, unit: Unit, grows_with_time: bool, of: impl Fn(&RecordedMetrics) -> f64) -> Option<Change> {
        let is_any = self.all().any(|costs| of(costs) != 0.0);
        self.either_way(unit, grows_with_time, of).filter(|_| is_any)
    }

    /// The same where it may be zero.
    fn either_way(&self, unit: Unit, grows_with_time: bool, of: impl Fn(&RecordedMetrics) -> f64) -> Option<Change> {
        let values = |side: &[Scaled<'_>]| -> Vec<f64> {
            side.iter().map(|one| of(one.costs) * if grows_with_time { one.factor } else { 1.0 }).collect()
        };
        Change::of(&values(&self.before), &values(&self.after), unit)
    }

    fn measured(&self, measure: Measure, of: impl Fn(&RecordedMetrics) -> f64) -> Option<Change> {
        self.change(measure.unit(), measure.grows_with_time(), of)
    }

    pub(super) fn totals(&self) -> Vec<TotalChange> {
        let comparable = Measure::ALL.into_iter().filter(|measure| self.have(measure.source()));
        let change = |measure: Measure| {
            let of = |costs: &RecordedMetrics| costs.totals.get(&measure).copied().unwrap_or(0.0);
            let change = match measure.is_reported_when_zero() {
                true => self.either_way(measure.unit(), measure.grows_with_time(), of),
                false => self.measured(measure, of),
            };
            Some(TotalChange { measure, change: change? })
        };
        comparable.filter_map(change).collect()
    }

    /// The functions with the largest differences of each measure, and how many others there are.
    pub(super) fn functions(&self) -> (Vec<FunctionChange>, u64) {
        let keys: BTreeSet<_> = self.all().flat_map(|costs| costs.functions.keys()).collect();
        let (mut listed, mut left_out) = (Vec::new(), 0);
        for measure in Measure::ALL {
            let sources = measure.sources_of_functions();
            if !sources.is_some_and(|sources| sources.into_iter().all(|source| self.have(source))) {
                continue;
            }
            let change = |key: &&(_, Measure)| {
                let (charged, _): &(AttributedFunction, Measure) = key;
                let of = |costs: &RecordedMetrics| costs.functions.get(*key).copied().unwrap_or(0.0);
                Some(FunctionChange {
                    function: charged.function.clone(),
                    file: charged.place.clone(),
                    measure,
                    change: self.measured(measure, of)?,
                })
            };
            let mut changes: Vec<FunctionChange> =
                keys.iter().filter(|(_, of)| *of == measure).filter_map(change).collect();
            largest_first(&mut changes, |one| &one.change);
            left_out += changes.len().saturating_sub(FUNCTIONS) as u64;
            changes.truncate(FUNCTIONS);
            listed.append(&mut changes);
        }
        (listed, left_out)
    }

    pub(super) fn programs(&self) -> Vec<ProgramChange> {
        let keys: BTreeSet<_> = self.all().flat_map(|costs| costs.programs.keys()).collect();
        let mut listed = Vec::new();
        for measure in Measure::ALL.into_iter().filter(|measure| self.have(measure.source())) {
            let change = |key: &&(String, Measure)| {
                let of = |costs: &RecordedMetrics| costs.programs.get(*key).copied().unwrap_or(0.0);
                Some(ProgramChange { program: key.0.clone(), measure, change: self.measured(measure, of)? })
            };
            let mut changes: Vec<ProgramChange> =
                keys.iter().filter(|(_, of)| *of == measure).filter_map(change).collect();
            largest_first(&mut changes, |one| &one.change);
            listed.append(&mut changes);
        }
        listed
    }

    /// The rows of the ledger, and what was put together in them.
    pub(super) fn ledger(&self) -> (Vec<LedgerChange>, Vec<String>) {
        if !self.have(Source::Ledger) {
            return (Vec::new(), Vec::new());
        }
        let mut notes = Vec::new();
        let is_undivided = self.all().any(|costs| undivided(costs) > MOST_UNDIVIDED);
        if is_undivided {
            notes.push("in the time ledger user and kernel time are one row: a recording has too few CPU samples to tell them apart");
        }
        let with_calls = self.all().filter(|costs| costs.sources.contains(&Source::MemoryCalls)).count();
        let calls_differ = with_calls > 0 && !self.have(Source::MemoryCalls);
        if calls_differ {
            notes.push("in the time ledger memory calls are kernel time: not all recordings have them");
        }
        let row = |key: LedgerKey| match key {
            Some(Category::MemoryCall) if calls_differ && is_undivided => Some(Category::OnCpu),
            Some(Category::MemoryCall) if calls_differ => Some(Category::Kernel),
            Some(Category::User | Category::Kernel) if is_undivided => Some(Category::OnCpu),
            other => other,
        };
        let keys = self.all().flat_map(|costs| costs.ledger.keys());
        let keys: BTreeSet<(Option<&str>, LedgerKey)> =
            keys.flat_map(|(program, key)| [(Some(program.as_str()), row(*key)), (None, row(*key))]).collect();
        let change = |(program, key): (Option<&str>, LedgerKey)| {
            let of = |costs: &RecordedMetrics| {
                let is_meant =
                    |name: &str, one: LedgerKey| program.is_none_or(|meant| meant == name) && row(one) == key;
                costs.ledger.iter().filter(|((name, one), _)| is_meant(name, *one)).map(|(_, ms)| ms).sum()
            };
            let change = self.change(Unit::Ms, true, of)?;
            Some(LedgerChange { program: program.map(str::to_owned), category: key, change })
        };
        let mut changes: Vec<LedgerChange> = keys.into_iter().filter_map(change).collect();
        largest_first(&mut changes, |one| &one.change);
        // All programs together first.
        changes.sort_by_key(|one| one.program.is_some());
        (changes, notes.into_iter().map(str::to_owned).collect())
    }

    pub(super) fn findings(&self) -> Vec<FindingChange> {
        let keys: BTreeSet<&FindingKey> = self.all().flat_map(|costs| costs.findings.keys()).collect();
        let mut changes: Vec<FindingChange> = keys.into_iter().filter_map(|key| self.finding(key)).collect();
        let cost = |one: &FindingChange| {
            let value = |cost: Option<Quantity>| cost.map_or(0.0, |cost| cost.value);
            value(one.before).max(value(one.after))
        };
        changes.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
        changes
    }

    fn finding(&self, key: &FindingKey) -> Option<FindingChange> {
        let costs = |side: &[Scaled<'a>]| -> Vec<(f64, &'a FindingCost)> {
            let of = |one: &Scaled<'a>| {
                let found = one.costs.findings.get(key)?;
                Some((found.cost.value * if found.grows_with_time { one.factor } else { 1.0 }, found))
            };
            side.iter().filter_map(of).collect()
        };
        let (before, after) = (costs(&self.before), costs(&self.after));
        let (_, first) = before.first().or(after.first())?;
        let unit = first.cost.unit;
        let values = |side: &[(f64, &FindingCost)]| side.iter().map(|(value, _)| *value).collect::<Vec<f64>>();
        let (values_before, values_after) = (values(&before), values(&after));
        let median = |values: &[f64]| {
            let estimate = median::median(values, Level::P95)?;
            Some(of_estimate(estimate, unit))
        };
        let everywhere = before.len() == self.before.len() && after.len() == self.after.len();
        let difference = Change::of(&values_before, &values_after, unit).map(|change| change.difference);
        let state = match (before.is_empty(), after.is_empty()) {
            (false, true) if could_show(&self.after, &self.before, key) => FindingState::Gone,
            (true, false) if could_show(&self.before, &self.after, key) => FindingState::New,
            (false, false) => FindingState::Both,
            _ => FindingState::Unknown,
        };
        Some(FindingChange {
            name: key.name.clone(),
            former_name: findings::former_name(&key.name),
            program: key.program.clone(),
            function: key.function.clone(),
            title: first.title.clone(),
            state,
            found_before: before.len() as u64,
            found_after: after.len() as u64,
            before: median(&values_before),
            after: median(&values_after),
            difference: difference.filter(|_| everywhere),
        })
    }
}

/// Whether recordings without a finding could have shown it: they have all that those with it have.
fn could_show(without: &[Scaled<'_>], with: &[Scaled<'_>], key: &FindingKey) -> bool {
    let mut with = with.iter().filter(|one| one.costs.findings.contains_key(key));
    with.any(|with| {
        without.iter().all(|without| {
            with.costs.probes.is_subset(&without.costs.probes) && with.costs.sources.is_subset(&without.costs.sources)
        })
    })
}

/// Which share of the time on the CPU is neither user nor kernel time.
fn undivided(costs: &RecordedMetrics) -> f64 {
    let time = |category: Category| -> f64 {
        costs.ledger.iter().filter(|((_, row), _)| *row == Some(category)).map(|(_, ms)| ms).sum()
    };
    let undivided = time(Category::OnCpu);
    undivided / (undivided + time(Category::User) + time(Category::Kernel)).max(f64::MIN_POSITIVE)
}

fn largest_first<T>(changes: &mut [T], of: impl Fn(&T) -> &Change) {
    let size = |one: &T| of(one).difference.value.abs();
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
}
