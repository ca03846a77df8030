//! The published JSON schemas of what the commands themselves print; those of analyses and diagnoses belong to `report`.

use slowpath_artifacts::audit::Audited;
use slowpath_budget::Check;
use slowpath_diagnose::kept::{FixApplied, FixList, FixShown, FixUndone};
use slowpath_fix::preload_plan::printed::{PlanChecked, PlanReplayed};
use slowpath_report::ChildLaunches;
use slowpath_report::schema::schema_of;
use slowpath_session::failure::PrintedFailure;
use slowpath_verify::benchmark::Ladder;
use slowpath_verify::benchmark::selftest::Selftest;
use slowpath_verify::doctor::Doctor;
use slowpath_verify::lab_launches::LabLaunches;
use std::path::Path;

#[test]
fn published_schemas_are_those_of_the_printed_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let schemas = [
        ("android-audit.json", schema_of::<slowpath_android::audit::AndroidAudit>()),
        ("android-collect.json", schema_of::<slowpath_android::evidence::EvidenceManifest>()),
        ("android-launch.json", schema_of::<slowpath_android::launch::AndroidLaunches>()),
        ("android-startup.json", schema_of::<slowpath_android::startup::TraceStartups>()),
        ("android-repair.json", schema_of::<slowpath_android::adb::AndroidRepair>()),
        ("artifacts-audit.json", schema_of::<Audited>()),
        ("guard-line.json", schema_of::<slowpath_guard::Line>()),
        ("doctor.json", schema_of::<Doctor>()),
        ("error.json", schema_of::<PrintedFailure>()),
        ("import.json", schema_of::<slowpath_import::Imported>()),
        ("record.json", schema_of::<slowpath_report::Recorded>()),
        ("lab-run.json", schema_of::<LabLaunches>()),
        ("launch-ladder.json", schema_of::<Ladder>()),
        ("launch-selftest.json", schema_of::<Selftest>()),
        ("launch-children.json", schema_of::<ChildLaunches>()),
        ("check.json", schema_of::<Check>()),
        ("fix-list.json", schema_of::<FixList>()),
        ("fix-show.json", schema_of::<FixShown>()),
        ("fix-apply.json", schema_of::<FixApplied>()),
        ("fix-undo.json", schema_of::<FixUndone>()),
        ("ipc-doctor.json", schema_of::<slowpath_ipc::doctor::IpcDoctor>()),
        ("ipc-throughput.json", schema_of::<slowpath_ipc::throughput::google::Report>()),
        ("ipc-latency.json", schema_of::<slowpath_ipc::latency::outcome::Latency>()),
        ("ipc-pool.json", schema_of::<slowpath_ipc::latency::pool::Pool>()),
        ("ipc-compare.json", schema_of::<slowpath_ipc::comparison::Comparison>()),
        ("layout-trace.json", schema_of::<slowpath_layout::trace_file::Trace>()),
        ("layout-traced.json", schema_of::<slowpath_layout::traced::Summary>()),
        ("layout-order.json", schema_of::<slowpath_layout::ordered::Ordered>()),
        ("layout-repack.json", schema_of::<slowpath_layout::repacked::Repacked>()),
        ("layout-score.json", schema_of::<slowpath_layout::scored::Scored>()),
        ("layout-trial.json", schema_of::<slowpath_layout::trial::LayoutTrial>()),
        ("layout-why.json", schema_of::<slowpath_layout::explained::Explained>()),
        ("lab-list.json", schema_of::<slowpath_verify::lab_launches::Labs>()),
        ("preload-check.json", schema_of::<PlanChecked>()),
        ("preload-replay.json", schema_of::<PlanReplayed>()),
        ("zygote-advise.json", schema_of::<slowpath_analysis::starts::zygote_advice::ZygoteAdvice>()),
        ("zygote-serve.json", schema_of::<slowpath_zygote::printed::Served>()),
        ("zygote-spawn.json", schema_of::<slowpath_zygote::printed::SpawnedChild>()),
        ("zygote-status.json", schema_of::<slowpath_zygote::printed::ZygoteStatus>()),
    ];
    for (name, schema) in schemas {
        let path = directory.join(name);
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == schema, "{name} is out of date: run the tests with UPDATE_SCHEMAS=1");
    }
}
