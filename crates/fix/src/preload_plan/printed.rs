//! What `slowpath preload check`, `preload replay` and `preload run` print or write as JSON: a report of [`super::check`] or
//! [`super::replay`] under the name and version of its format.

use super::check::CheckReport;
use super::replay::ReplayReport;
use schemars::JsonSchema;
use serde::Serialize;

/// Name and version of what a check found.
pub const CHECK_SCHEMA: &str = "slowpath-plan-check/1";
/// Name and version of what a replay did.
pub const REPLAY_SCHEMA: &str = "slowpath-replay/1";

/// What `slowpath preload check --json` prints: the state of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanChecked {
    /// `slowpath-plan-check/1`.
    #[schemars(extend("const" = CHECK_SCHEMA))]
    schema: &'static str,
    /// The state.
    #[serde(flatten)]
    pub report: CheckReport,
}

impl From<CheckReport> for PlanChecked {
    fn from(report: CheckReport) -> Self {
        Self { schema: CHECK_SCHEMA, report }
    }
}

/// What `slowpath preload replay --json` prints: what a replay did. `slowpath preload run --report FILE` writes the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanReplayed {
    /// `slowpath-replay/1`.
    #[schemars(extend("const" = REPLAY_SCHEMA))]
    schema: &'static str,
    /// What it did.
    #[serde(flatten)]
    pub report: ReplayReport,
}

impl From<ReplayReport> for PlanReplayed {
    fn from(report: ReplayReport) -> Self {
        Self { schema: REPLAY_SCHEMA, report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn keys(value: &Value) -> BTreeSet<&str> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }

    #[test]
    fn what_is_printed_has_the_keys_of_its_schema() {
        let check = serde_json::to_value(PlanChecked::from(CheckReport::default())).unwrap();
        let replay = serde_json::to_value(PlanReplayed::from(ReplayReport::default())).unwrap();
        for (printed, schema) in
            [(check, schemars::schema_for!(PlanChecked)), (replay, schemars::schema_for!(PlanReplayed))]
        {
            let schema = serde_json::to_value(&schema).unwrap();
            assert_eq!(keys(&printed), keys(&schema["properties"]));
            assert_eq!(printed["schema"], schema["properties"]["schema"]["const"]);
        }
    }
}
