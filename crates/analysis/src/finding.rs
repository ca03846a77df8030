//! What a finding carries: a hidden cost with its evidence.
//!
//! Owns the types that every command prints. Leaves the findings themselves to [`crate::findings`].

use crate::fix_inputs::FixInputs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slowpath_tables::Quantity;
use std::collections::BTreeMap;

pub use crate::evidence::{Evidence, Row, milliseconds, row};

/// How far a finding can be trusted; each finding documents its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Something needed for the claim is missing or was lost.
    Low,
    /// The claim holds, its size is uncertain.
    Medium,
    /// Nothing known speaks against claim or size.
    High,
}

impl Confidence {
    /// The word as it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// A hidden cost and what proves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the bad pattern (`cold_file_reads`).
    pub name: String,
    /// The name that it had in the version before, for programs that look for that one; left out where it had no other. From its
    /// declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_name: Option<String>,
    /// One line for the reader.
    pub title: String,
    /// What it is about: process, pid, file, function, ...
    pub subject: BTreeMap<String, Value>,
    /// The cost it explains.
    pub cost: Quantity,
    /// What the best fix is predicted to save; null until it is predicted.
    pub predicted_saving: Option<Quantity>,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// Why not more, and what must be known to read the figures.
    pub reasons: Vec<String>,
    /// What proves it.
    pub evidence: Vec<Evidence>,
    /// Names of the fixes that apply.
    pub fixes: Vec<String>,
    /// Values that the fixes take; left out where they take none.
    #[serde(default, skip_serializing_if = "FixInputs::is_empty")]
    pub fix_inputs: FixInputs,
    /// How to see it with a standard tool.
    pub see_by_hand: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::Unit;

    #[test]
    fn a_former_name_stands_beside_the_name_and_is_left_out_where_there_is_none() {
        let now = Finding {
            name: "now".to_owned(),
            former_name: Some("before".to_owned()),
            title: String::new(),
            subject: BTreeMap::new(),
            cost: Quantity::exact(1.0, Unit::Ms),
            predicted_saving: None,
            confidence: Confidence::High,
            reasons: Vec::new(),
            evidence: Vec::new(),
            fixes: Vec::new(),
            fix_inputs: FixInputs::default(),
            see_by_hand: String::new(),
        };
        let printed = serde_json::to_value(&now).unwrap();
        assert_eq!((&printed["name"], &printed["former_name"]), (&"now".into(), &"before".into()));
        let never = Finding { former_name: None, ..now };
        let printed = serde_json::to_value(&never).unwrap();
        assert!(printed.get("former_name").is_none(), "{printed}");
        // As an earlier version wrote it.
        assert_eq!(serde_json::from_value::<Finding>(printed).unwrap(), never);
    }
}
