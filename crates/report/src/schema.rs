//! The JSON schemas that are published in `docs/schemas`, made from the types that are printed.
//!
//! Owns the one list of them: `make schemas` writes its files, and the tests compare these with it. What the Python package prints has a
//! list of its own there, of its commands. Leaves what a result holds to the crate that makes it.

use crate::explain::Explanations;
use crate::page::ReportData;
use crate::{
    Benchmark, ChildLaunches, ContextBisection, ContextComparison, HtmlComparison, Recorded, RecordingComparison,
    Scenario, ShownContext,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use slowpath_analysis::printed::Analysis;
use slowpath_analysis::starts::zygote_advice::ZygoteAdvice;
use slowpath_android::adb::AndroidRepair;
use slowpath_android::audit::AndroidAudit;
use slowpath_android::evidence::EvidenceManifest;
use slowpath_android::launch::AndroidLaunches;
use slowpath_android::startup::TraceStartups;
use slowpath_artifacts::audit::Audited;
use slowpath_budget::Check;
use slowpath_diagnose::kept::{FixApplied, FixList, FixShown, FixUndone};
use slowpath_diagnose::printed::Diagnosis;
use slowpath_fix::preload_plan::printed::{PlanChecked, PlanReplayed};
use slowpath_import::Imported;
use slowpath_ipc::comparison::Comparison;
use slowpath_ipc::doctor::IpcDoctor;
use slowpath_ipc::latency::outcome::Latency;
use slowpath_ipc::latency::pool::Pool;
use slowpath_ipc::throughput::google;
use slowpath_layout::explained::Explained;
use slowpath_layout::ordered::Ordered;
use slowpath_layout::repacked::Repacked;
use slowpath_layout::scored::Scored;
use slowpath_layout::trace_file::Trace;
use slowpath_layout::traced::Summary;
use slowpath_layout::trial::LayoutTrial;
use slowpath_recording::Manifest;
use slowpath_session::failure::PrintedFailure;
use slowpath_syscall_cost::SyscallCost;
use slowpath_verify::benchmark::Ladder;
use slowpath_verify::benchmark::selftest::Selftest;
use slowpath_verify::doctor::Doctor;
use slowpath_verify::lab_launches::{LabLaunches, Labs};
use slowpath_zygote::printed::{Served, SpawnedChild, ZygoteStatus};

/// A published schema.
#[derive(Clone, Copy, Debug)]
pub struct PublishedSchema {
    /// Name of its file in `docs/schemas`, without `.json`.
    pub name: &'static str,
    /// Its content.
    pub text: fn() -> String,
}

impl PublishedSchema {
    /// Its path below the root of the repository.
    pub fn path(&self) -> String {
        format!("docs/schemas/{}.json", self.name)
    }
}

const fn of<T: JsonSchema>(name: &'static str) -> PublishedSchema {
    PublishedSchema { name, text: schema_of::<T> }
}

/// Every published schema, by name.
pub const PUBLISHED: &[PublishedSchema] = &[
    of::<Analysis>("analyze"),
    of::<AndroidAudit>("android-audit"),
    of::<EvidenceManifest>("android-collect"),
    of::<AndroidLaunches>("android-launch"),
    of::<AndroidRepair>("android-repair"),
    of::<TraceStartups>("android-startup"),
    of::<Audited>("artifacts-audit"),
    of::<Check>("check"),
    of::<RecordingComparison>("compare"),
    of::<HtmlComparison>("comparison-page"),
    of::<ShownContext>("context"),
    of::<ContextBisection>("context-bisect"),
    of::<ContextComparison>("context-diff"),
    of::<Diagnosis>("diagnose"),
    of::<Doctor>("doctor"),
    of::<PrintedFailure>("error"),
    of::<Explanations>("explain"),
    of::<FixApplied>("fix-apply"),
    of::<FixList>("fix-list"),
    of::<FixShown>("fix-show"),
    of::<FixUndone>("fix-undo"),
    of::<slowpath_guard::Line>("guard-line"),
    of::<Imported>("import"),
    of::<Comparison>("ipc-compare"),
    of::<IpcDoctor>("ipc-doctor"),
    of::<Latency>("ipc-latency"),
    of::<Pool>("ipc-pool"),
    of::<google::Report>("ipc-throughput"),
    of::<Labs>("lab-list"),
    of::<LabLaunches>("lab-run"),
    of::<Benchmark>("launch"),
    of::<ChildLaunches>("launch-children"),
    of::<Ladder>("launch-ladder"),
    of::<Scenario>("launch-scenario"),
    of::<Selftest>("launch-selftest"),
    of::<Ordered>("layout-order"),
    of::<Repacked>("layout-repack"),
    of::<Scored>("layout-score"),
    of::<Trace>("layout-trace"),
    of::<Summary>("layout-traced"),
    of::<LayoutTrial>("layout-trial"),
    of::<Explained>("layout-why"),
    of::<Manifest>("manifest"),
    of::<PlanChecked>("preload-check"),
    of::<PlanReplayed>("preload-replay"),
    of::<Recorded>("record"),
    of::<ReportData>("report"),
    of::<SyscallCost>("syscall-cost"),
    of::<ZygoteAdvice>("zygote-advise"),
    of::<Served>("zygote-serve"),
    of::<SpawnedChild>("zygote-spawn"),
    of::<ZygoteStatus>("zygote-status"),
];

/// The schema of one printed type.
pub fn schema_of<T: JsonSchema>() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.root_schema_for::<T>();
    // A schema is a JSON value already.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
