//! The JSON schemas that are published in `docs/schemas`, made from the types that are printed.

use crate::explain::Explanations;
use crate::page::ReportData;
use crate::{
    Benchmark, ContextBisection, ContextComparison, HtmlComparison, RecordingComparison, Scenario, ShownContext,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use slowpath_analysis::printed::Analysis;
use slowpath_diagnose::printed::Diagnosis;
use slowpath_recording::Manifest;
use slowpath_syscall_cost::SyscallCost;

/// The schema of one printed type.
pub fn schema_of<T: JsonSchema>() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.root_schema_for::<T>();
    // A schema is a JSON value already.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Every published schema: file name in `docs/schemas` and content.
pub fn schemas() -> Vec<(&'static str, String)> {
    vec![
        ("analyze.json", schema_of::<Analysis>()),
        ("compare.json", schema_of::<RecordingComparison>()),
        ("comparison-page.json", schema_of::<HtmlComparison>()),
        ("context.json", schema_of::<ShownContext>()),
        ("context-bisect.json", schema_of::<ContextBisection>()),
        ("context-diff.json", schema_of::<ContextComparison>()),
        ("diagnose.json", schema_of::<Diagnosis>()),
        ("explain.json", schema_of::<Explanations>()),
        ("launch.json", schema_of::<Benchmark>()),
        ("launch-scenario.json", schema_of::<Scenario>()),
        ("manifest.json", schema_of::<Manifest>()),
        ("report.json", schema_of::<ReportData>()),
        ("syscall-cost.json", schema_of::<SyscallCost>()),
    ]
}
