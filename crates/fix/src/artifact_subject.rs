//! What findings about artifacts are about, in the words of a plan.

use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_artifacts::families::{self, Family};
use std::path::Path;

/// The subject of a finding about artifacts.
#[derive(Debug)]
pub(crate) struct ArtifactSubject {
    /// The most costly artifact, and how many others of its family there are.
    pub artifacts: String,
    /// Who cannot use them: `user 65534`.
    pub user: String,
    /// The program that needs them.
    pub process: String,
    /// Their family, where one is known.
    pub family: Option<&'static Family>,
}

impl ArtifactSubject {
    /// That of a finding.
    pub fn of(finding: &Finding) -> Self {
        let text = |name: &str| finding.subject.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| finding.subject.get(name).and_then(Value::as_u64);
        let artifact = text("artifact");
        let more = match number("artifacts").unwrap_or(1).saturating_sub(1) {
            0 => String::new(),
            others => format!(" and {others} more of {}", text("family")),
        };
        Self {
            artifacts: format!("{artifact}{more}"),
            user: number("uid").map_or_else(|| "the user of the process".to_owned(), |uid| format!("user {uid}")),
            process: if text("process").is_empty() { "the program".to_owned() } else { text("process").to_owned() },
            family: families::of_file(Path::new(artifact)),
        }
    }
}
