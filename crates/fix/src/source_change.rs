//! Changes of a program's source that a finding asks for: where, and one proposal for each.
//!
//! Owns saying where: function, file and line, from the finding's evidence. slowpath predicts what such a change saves and does not
//! try it. Leaves what is to be changed to the fixes.

use crate::plan::FixPlan;
use crate::proposal::{Case, Proposal, predicted};
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::finding::Row;

/// One proposal a finding: each is another place in the source. `plan` makes it, with the number that its name ends with where there
/// are several.
pub(crate) fn proposals(case: &Case<'_>, plan: fn(&Finding, &str) -> FixPlan) -> Vec<Proposal> {
    let number = |at: usize| if case.findings.len() == 1 { String::new() } else { format!(" {}", at + 1) };
    let made = case.findings.iter().enumerate().map(|(at, one)| Proposal {
        plan: plan(one.1, &number(at)),
        findings: vec![one.0],
        environment: Vec::new(),
        predicted: predicted(&[*one]),
        gap: None,
        caution: None,
    });
    made.collect()
}

/// Who asked: the row of the stack that is marked so.
pub(crate) fn place(finding: &Finding) -> Option<String> {
    let mut rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    let row = rows.find(|row| row.get("asked").and_then(Value::as_bool) == Some(true))?;
    let text = |column: &str| row.get(column).and_then(Value::as_str);
    let function = text("function")?;
    Some(match (source(row), text("file")) {
        (Some(source), _) => format!("{function} ({source})"),
        (None, Some(file)) => format!("{function} in {file}"),
        (None, None) => function.to_owned(),
    })
}

fn source(row: &Row) -> Option<String> {
    let path = row.get("source_file")?.as_str()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(match row.get("source_line").and_then(Value::as_u64) {
        Some(line) => format!("{name}:{line}"),
        None => name.to_owned(),
    })
}
