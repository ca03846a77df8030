//! What is printed follows the published schemas. That their files are those of the types is a check of the house.

use crate::samples;
use serde_json::Value;
use slowpath_fix::preload_plan::open::SkipReason;
use slowpath_fix::preload_plan::printed::PlanReplayed;
use slowpath_fix::preload_plan::replay::{ReplayReport, Skipped};
use slowpath_report::schema::PUBLISHED;

/// A check of `value` against the part of JSON Schema that the schemas use.
fn problem(schema: &Value, root: &Value, value: &Value, path: &str) -> Option<String> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("no {reference}"));
        return problem(target, root, value, path);
    }
    if let Some(options) = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array) {
        let problems: Vec<_> = options.iter().map(|option| problem(option, root, value, path)).collect();
        return if problems.iter().any(Option::is_none) { None } else { problems.into_iter().flatten().next() };
    }
    if schema.get("const").is_some_and(|constant| constant != value) {
        return Some(format!("{path} is not {}", schema["const"]));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        return Some(format!("{path} is {value}"));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
    };
    let allowed = |name: &Value| name == kind || (name == "number" && kind == "integer");
    match schema.get("type") {
        Some(Value::Array(names)) if !names.iter().any(allowed) => return Some(format!("{path} is a {kind}")),
        Some(name @ Value::String(_)) if !allowed(name) => return Some(format!("{path} is a {kind}, not {name}")),
        _ => {}
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        return values.iter().enumerate().find_map(|(i, value)| problem(items, root, value, &format!("{path}[{i}]")));
    }
    let fields = value.as_object()?;
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            return Some(format!("{path} lacks {name}"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    fields.iter().find_map(|(name, value)| {
        let property = properties.and_then(|properties| properties.get(name)).or(schema.get("additionalProperties"));
        match property {
            Some(Value::Object(_)) => problem(property?, root, value, &format!("{path}.{name}")),
            Some(Value::Bool(true)) => None,
            _ if properties.is_none() => None,
            _ => Some(format!("{path}.{name} is not in the schema")),
        }
    })
}

fn check(name: &str, value: &Value) -> Option<String> {
    let schema = PUBLISHED.iter().find(|schema| schema.name == name).unwrap();
    let schema: Value = serde_json::from_str(&(schema.text)()).unwrap();
    problem(&schema, &schema, value, "$")
}

#[test]
fn what_is_printed_follows_its_schema_and_what_is_not_does_not() {
    let diagnosis = serde_json::to_value(samples::diagnosis()).unwrap();
    assert_eq!(check("diagnose", &diagnosis), None);
    assert_eq!(check("diagnose", &serde_json::to_value(samples::warm()).unwrap()), None);
    assert_eq!(check("report", &serde_json::to_value(samples::report(samples::diagnosis())).unwrap()), None);
    let manifest = serde_json::to_value(slowpath_recording::Manifest::default()).unwrap();
    assert_eq!(check("manifest", &manifest), None);
    let skipped = [(SkipReason::Missing, Skipped { files: 1, ranges: 2 })].into();
    let replayed = PlanReplayed::from(ReplayReport { skipped, ..ReplayReport::default() });
    assert_eq!(check("preload-replay", &serde_json::to_value(replayed).unwrap()), None);

    let broken = |edit: fn(&mut Value)| {
        let mut value = diagnosis.clone();
        edit(&mut value);
        check("diagnose", &value).unwrap_or_default()
    };
    assert_eq!(
        broken(|value| value["schema"] = "slowpath-diagnose/2".into()),
        "$.schema is not \"slowpath-diagnose/1\""
    );
    assert!(broken(|value| value["launch"]["arms"][0]["role"] = "hero".into()).contains("role"));
    assert!(broken(|value| value["verdicts"][0]["pairs"] = "many".into()).contains("pairs"));
    assert!(broken(|value| drop(value.as_object_mut().unwrap().remove("losses"))).contains("losses"));
}
