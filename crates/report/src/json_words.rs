//! Words that JSON prints for verdicts, rows of time and metrics, each explained once.
//!
//! Owns their titles and texts. `slowpath explain` and pages of `docs/reference` are made from here; a test compares the names with
//! the enumerations that are printed.

mod json_word;
mod metrics;
mod time;
mod verdicts;

pub use json_word::JsonWord;

/// All of them.
pub fn all() -> impl Iterator<Item = JsonWord> {
    verdicts::all().chain(time::all()).chain(metrics::all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::NameKind;
    use schemars::JsonSchema;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// The words of an enumeration in its schema.
    fn words_of<T: JsonSchema>() -> BTreeSet<String> {
        let schema: Value = serde_json::from_str(&crate::schema::schema_of::<T>()).unwrap();
        let variants = schema["oneOf"].as_array().into_iter().flatten();
        variants.filter_map(|variant| Some(variant["const"].as_str()?.to_owned())).collect()
    }

    #[test]
    fn every_word_that_json_can_hold_is_explained() {
        let explained = |kind: NameKind| -> BTreeSet<String> {
            all().filter(|word| word.kind == kind).map(|word| word.name.to_owned()).collect()
        };
        for (kind, words) in [
            (NameKind::Outcome, words_of::<slowpath_verify::printed::Outcome>()),
            (NameKind::Decision, words_of::<slowpath_diagnose::printed::Decision>()),
            (NameKind::CheckVerdict, words_of::<slowpath_budget::Verdict>()),
            (NameKind::BisectionVerdict, words_of::<crate::CandidateVerdict>()),
            (NameKind::BisectedCause, words_of::<crate::CauseKind>()),
            (NameKind::TimePart, words_of::<slowpath_analysis::time::time_spent::Part>()),
            (NameKind::LedgerCategory, words_of::<slowpath_analysis::time::ledger::Category>()),
            (NameKind::Metric, words_of::<slowpath_verify::Metric>()),
        ] {
            assert!(words.len() >= 4, "{kind:?}: {words:?}");
            assert_eq!(words, explained(kind), "{kind:?}");
        }
    }
}
