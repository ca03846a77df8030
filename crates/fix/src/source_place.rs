//! Fixes that are a change of the source: where it belongs, from the stack in the finding's evidence, and what all their plans share.

use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::treatment::Treatment;
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::finding::Row;

/// The plan of a change at a place in the source, which slowpath does not try. What it changes, its side effects, its price and what it
/// costs in security are the fix's own to say.
pub(crate) fn plan_in_source(fix: &str, number: &str, place: &str) -> FixPlan {
    FixPlan {
        fix: fix.to_owned(),
        name: format!("{fix}{number}"),
        title: format!("in the source: {place}"),
        changes: Vec::new(),
        scope: Scope::Source,
        privilege: Privilege::User,
        side_effects: Vec::new(),
        price: String::new(),
        security_cost: String::new(),
        undo: "take the change of the source back".to_owned(),
        trial: Trial { possible: false, how: format!("change the source: {place}") },
        treatment: Treatment::Source { place: place.to_owned() },
    }
}

/// The change at the place that asks for the memory: `before` stands in front of its stack, `otherwise` where the finding names no way.
pub(crate) fn change_of_asker(finding: &Finding, fix: &str, place: &str, before: &str, otherwise: &str) -> Change {
    let stack = finding.subject.get("stack").and_then(Value::as_str).filter(|stack| !stack.is_empty());
    Change {
        what: format!("the source: {place}"),
        from: stack.map(|stack| format!("{before} {stack}")),
        to: finding.fix_inputs.way(fix).unwrap_or(otherwise).to_owned(),
    }
}

/// Who asked: the row of the stack that is marked so.
pub(crate) fn place(finding: &Finding) -> Option<String> {
    let mut rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    function_at(rows.find(|row| row.get("asked").and_then(Value::as_bool) == Some(true))?)
}

/// The function of a row, and where it is: its source line, else its file.
pub(crate) fn function_at(row: &Row) -> Option<String> {
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
