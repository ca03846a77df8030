//! Where in the source a fix belongs: who asked for the memory, from the stack in the finding's evidence.

use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::finding::Row;

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
