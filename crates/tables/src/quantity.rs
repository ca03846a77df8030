//! The words that every command's JSON shares: a quantity with its interval, losses, and what was unavailable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Unit of a [`Quantity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// Bytes.
    Bytes,
    /// 4 KiB pages.
    Pages,
    /// A number of things.
    Count,
    /// A quotient.
    Ratio,
    /// A share of a hundred.
    Percent,
}

/// A measured or predicted value with its interval: at 95 % where several launches were measured; of a single recording, the least and the
/// most that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval; null where no interval can be given.
    pub low: Option<f64>,
    /// Upper end of the interval; null where no interval can be given.
    pub high: Option<f64>,
    /// Unit of all three.
    pub unit: Unit,
}

impl Quantity {
    /// A value without an interval.
    pub fn exact(value: f64, unit: Unit) -> Self {
        Self { value, low: None, high: None, unit }
    }
    /// A value with its interval.
    pub fn interval(value: f64, low: f64, high: f64, unit: Unit) -> Self {
        Self { value, low: Some(low), high: Some(high), unit }
    }
}

/// A change seen from the other side: a change of -300 ms is a saving of 300 ms. The ends of the interval change places.
impl std::ops::Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        // From zero, so that nothing is 0 and not -0.
        let less = |end: f64| 0.0 - end;
        Self { value: less(self.value), low: self.high.map(less), high: self.low.map(less), unit: self.unit }
    }
}

/// By a factor that is not negative.
impl std::ops::Mul<f64> for Quantity {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        let times = |end: f64| end * factor;
        Self { value: self.value * factor, low: self.low.map(times), high: self.high.map(times), unit: self.unit }
    }
}

/// Something that could not be observed or done here; data, not an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Unavailable {
    /// What is missing.
    pub what: String,
    /// Why.
    pub reason: String,
    /// What would change that.
    pub remedy: String,
}

impl Unavailable {
    /// The same with another reason.
    #[must_use]
    pub fn with_reason(self, reason: String) -> Self {
        Self { reason, ..self }
    }
}

/// Events that were lost, by kind; kinds without losses are listed with 0 so that silence is not mistaken for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Losses(pub BTreeMap<String, u64>);

impl Losses {
    /// The kind of losses whose kind is not known, behind who lost them: perf says that its buffer was full, and not of which events
    /// (`perf.any`).
    pub const ANY_KIND: &'static str = "any";

    /// Counts `lost` events of `kind`.
    pub fn add(&mut self, kind: &str, lost: u64) {
        let sum = self.0.entry(kind.to_owned()).or_default();
        *sum = sum.saturating_add(lost);
    }
    /// Lost events of a kind or table, wherever they were lost: counters are named by it alone where the kernel had no room, or
    /// behind a prefix that says why (`over_memory_limit.`, `writer_behind.`, `not_run.`, `not_written.`,
    /// `damaged.`, `not_sampled.`). Losses of [`Self::ANY_KIND`] may be of this one, and count. Sums end at 2^64-1: counts can be foreign.
    pub fn of(&self, kind: &str) -> u64 {
        self.of_kinds(&[kind])
    }
    /// Lost events of several kinds or tables together. Those of [`Self::ANY_KIND`] count once, as they would not in a sum of [`Self::of`].
    pub fn of_kinds(&self, kinds: &[&str]) -> u64 {
        let is_meant = |kind: &str| kind == Self::ANY_KIND || kinds.contains(&kind);
        let of_name = |name: &str| name.rsplit('.').next().is_some_and(is_meant);
        self.0.iter().filter(|(name, _)| of_name(name)).fold(0, |sum, (_, lost)| sum.saturating_add(*lost))
    }
    /// All lost events.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, lost| sum.saturating_add(*lost))
    }
    /// Adds all counts of another list.
    pub fn merge(&mut self, other: &Self) {
        for (kind, lost) in &other.0 {
            self.add(kind, *lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_from_the_other_side_has_its_interval_round_its_value() {
        assert_eq!(
            -Quantity::interval(-300.0, -350.0, -20.0, Unit::Ms),
            Quantity::interval(300.0, 20.0, 350.0, Unit::Ms)
        );
        assert_eq!(-Quantity::exact(4.0, Unit::Bytes), Quantity::exact(-4.0, Unit::Bytes));
        let half = Quantity { low: Some(1.0), ..Quantity::exact(2.0, Unit::Ms) };
        assert_eq!((-half).high, Some(-1.0));
    }

    #[test]
    fn losses_of_an_unknown_kind_may_be_of_each_and_are_in_no_sum_twice() {
        let mut losses = Losses::default();
        for (kind, lost) in
            [("perf.any", 10), ("faults", 3), ("writer_behind.faults", 2), ("off_cpu", 1), ("many", 100)]
        {
            losses.add(kind, lost);
        }
        assert_eq!([losses.of("faults"), losses.of("off_cpu"), losses.of("reads")], [15, 11, 10]);
        assert_eq!([losses.of_kinds(&["faults", "off_cpu"]), losses.total()], [16, 116]);
    }

    #[test]
    fn losses_that_no_counter_can_hold_are_as_many_as_one_can() {
        let mut losses = Losses::default();
        for kind in ["faults", "faults", "writer_behind.faults"] {
            losses.add(kind, u64::MAX - 1);
        }
        assert_eq!([losses.of("faults"), losses.total(), losses.0["faults"]], [u64::MAX; 3]);
    }
}
