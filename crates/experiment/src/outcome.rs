//! The rule that turns an effect into a word.
//!
//! Lower is better: time, faults, bytes. A caller with a metric of which more is better negates it first. Whether a
//! sham arm moved too, and what follows for the fix, belongs to the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Effect;

/// Below this number of pairs nothing is judged: 6 is where a two-sided 95 % signed-rank interval first exists
/// (two tails of 1/64 each).
pub const MINIMUM_PAIRS: usize = 6;

/// What a comparison concluded about the treated arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval lies below zero: the treated arm is lower.
    Helps,
    /// The whole interval lies above zero: the treated arm is higher.
    Hurts,
    /// The interval contains zero and lies within the margin on both sides: any difference is too small to matter.
    NoDifference,
    /// The interval contains zero and reaches beyond the margin: more pairs are needed to say anything.
    Inconclusive,
    /// Too few pairs for an interval to exist, or the arm could not be tried.
    NotTestable,
}

impl Outcome {
    /// All.
    pub const ALL: [Self; 5] = [Self::Helps, Self::Hurts, Self::NoDifference, Self::Inconclusive, Self::NotTestable];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Hurts => "hurts",
            Self::NoDifference => "no_difference",
            Self::Inconclusive => "inconclusive",
            Self::NotTestable => "not_testable",
        }
    }

    /// The outcome in words for a reader.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoDifference => "no difference",
            Self::NotTestable => "not testable",
            Self::Helps | Self::Hurts | Self::Inconclusive => self.name(),
        }
    }
}

/// Applies the decision rule to [`Effect::difference`].
///
/// `margin` is the largest difference that does not matter, in the unit of the samples; the caller fixes it before it
/// sees the data. In this order:
///
/// 1. fewer than [`MINIMUM_PAIRS`] pairs, or no interval at this level: [`Outcome::NotTestable`];
/// 2. interval wholly below zero: [`Outcome::Helps`]; wholly above: [`Outcome::Hurts`];
/// 3. interval within `-margin ..= margin`: [`Outcome::NoDifference`];
/// 4. otherwise: [`Outcome::Inconclusive`].
///
/// Absence of evidence is thus never reported as evidence of absence. Rule 2 comes first, so a real but tiny effect is
/// `Helps` or `Hurts`, with its size in the effect. With identical arms rule 2 fires in at most 5 % of experiments
/// at 95 %; rule 3 errs in at most 2.5 % (two one-sided tests, one to each end of the interval: D. J. Schuirmann,
/// Journal of Pharmacokinetics and Biopharmaceutics 15 (1987), 657-680). A margin that is negative or not a number
/// never gives `NoDifference`.
pub fn judge(effect: &Effect, margin: f64) -> Outcome {
    let interval = effect.difference.and_then(|estimate| estimate.interval());
    match interval {
        Some((low, high)) if effect.pairs >= MINIMUM_PAIRS => {
            if high < 0.0 {
                Outcome::Helps
            } else if low > 0.0 {
                Outcome::Hurts
            } else if low >= -margin && high <= margin {
                Outcome::NoDifference
            } else {
                Outcome::Inconclusive
            }
        }
        _ => Outcome::NotTestable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    fn effect(low: f64, high: f64, pairs: usize) -> Effect {
        Effect {
            difference: Some(Estimate { value: (low + high) / 2.0, low: Some(low), high: Some(high) }),
            ratio: None,
            baseline: None,
            treated: None,
            pairs,
            dropped: 0,
            minimum_detectable_effect: None,
            sigma: None,
            level: 0.95,
        }
    }

    #[test]
    fn an_interval_on_one_side_of_zero_helps_or_hurts_even_inside_the_margin() {
        assert_eq!(judge(&effect(-9.0, -1.0, 12), 2.0), Outcome::Helps);
        assert_eq!(judge(&effect(-1.0, -0.5, 12), 2.0), Outcome::Helps);
        assert_eq!(judge(&effect(0.5, 9.0, 12), 2.0), Outcome::Hurts);
    }

    #[test]
    fn an_interval_that_touches_zero_does_not_help() {
        assert_eq!(judge(&effect(-9.0, 0.0, 12), 2.0), Outcome::Inconclusive);
        assert_eq!(judge(&effect(0.0, 9.0, 12), 2.0), Outcome::Inconclusive);
    }

    #[test]
    fn no_difference_needs_the_whole_interval_inside_the_margin() {
        assert_eq!(judge(&effect(-2.0, 2.0, 12), 2.0), Outcome::NoDifference);
        assert_eq!(judge(&effect(-2.1, 1.0, 12), 2.0), Outcome::Inconclusive);
        assert_eq!(judge(&effect(-1.0, 2.1, 12), 2.0), Outcome::Inconclusive);
        assert_eq!(judge(&effect(-1.0, 1.0, 12), -2.0), Outcome::Inconclusive);
        assert_eq!(judge(&effect(-1.0, 1.0, 12), f64::NAN), Outcome::Inconclusive);
    }

    #[test]
    fn too_few_pairs_or_no_interval_is_not_testable() {
        assert_eq!(judge(&effect(-9.0, -1.0, 5), 2.0), Outcome::NotTestable);
        let mut without = effect(-9.0, -1.0, 12);
        without.difference = None;
        assert_eq!(judge(&without, 2.0), Outcome::NotTestable);
    }

    #[test]
    fn outcomes_serialize_as_the_words_of_the_json_contract() {
        let words = serde_json::to_string(&[
            Outcome::Helps,
            Outcome::Hurts,
            Outcome::NoDifference,
            Outcome::Inconclusive,
            Outcome::NotTestable,
        ]);
        assert_eq!(words.expect("plain names"), r#"["helps","hurts","no_difference","inconclusive","not_testable"]"#);
    }
}
