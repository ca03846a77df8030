//! The schemas of all documents that commands print and whose types this crate sees.

use crate::schema::{schema_of, schemas as of_results};

/// File name in `docs/schemas` and content.
pub(super) fn schemas() -> Vec<(&'static str, String)> {
    let mut all = of_results();
    all.extend([
        ("android-audit.json", schema_of::<slowpath_android::audit::AndroidAudit>()),
        ("android-collect.json", schema_of::<slowpath_android::evidence::EvidenceManifest>()),
        ("android-launch.json", schema_of::<slowpath_android::launch::AndroidLaunches>()),
        ("android-repair.json", schema_of::<slowpath_android::adb::AndroidRepair>()),
        ("android-startup.json", schema_of::<slowpath_android::startup::TraceStartups>()),
        ("artifacts-audit.json", schema_of::<slowpath_artifacts::audit::Audited>()),
        ("check.json", schema_of::<slowpath_budget::Check>()),
        ("doctor.json", schema_of::<slowpath_verify::doctor::Doctor>()),
        ("error.json", schema_of::<slowpath_session::failure::PrintedFailure>()),
        ("fix-apply.json", schema_of::<slowpath_diagnose::kept::FixApplied>()),
        ("fix-list.json", schema_of::<slowpath_diagnose::kept::FixList>()),
        ("fix-show.json", schema_of::<slowpath_diagnose::kept::FixShown>()),
        ("fix-undo.json", schema_of::<slowpath_diagnose::kept::FixUndone>()),
        ("guard-line.json", schema_of::<slowpath_guard::Line>()),
        ("import.json", schema_of::<slowpath_import::Imported>()),
        ("ipc-compare.json", schema_of::<slowpath_ipc::comparison::Comparison>()),
        ("ipc-doctor.json", schema_of::<slowpath_ipc::doctor::IpcDoctor>()),
        ("ipc-latency.json", schema_of::<slowpath_ipc::latency::outcome::Latency>()),
        ("ipc-pool.json", schema_of::<slowpath_ipc::latency::pool::Pool>()),
        ("ipc-throughput.json", schema_of::<slowpath_ipc::throughput::google::Report>()),
        ("lab-list.json", schema_of::<slowpath_verify::lab_launches::Labs>()),
        ("lab-run.json", schema_of::<slowpath_verify::lab_launches::LabLaunches>()),
        ("launch-children.json", schema_of::<crate::ChildLaunches>()),
        ("launch-ladder.json", schema_of::<slowpath_verify::benchmark::Ladder>()),
        ("launch-selftest.json", schema_of::<slowpath_verify::benchmark::selftest::Selftest>()),
        ("layout-order.json", schema_of::<slowpath_layout::ordered::Ordered>()),
        ("layout-repack.json", schema_of::<slowpath_layout::repacked::Repacked>()),
        ("layout-score.json", schema_of::<slowpath_layout::scored::Scored>()),
        ("layout-trace.json", schema_of::<slowpath_layout::trace_file::Trace>()),
        ("layout-traced.json", schema_of::<slowpath_layout::traced::Summary>()),
        ("layout-trial.json", schema_of::<slowpath_layout::trial::LayoutTrial>()),
        ("layout-why.json", schema_of::<slowpath_layout::explained::Explained>()),
        ("preload-check.json", schema_of::<slowpath_fix::preload_plan::printed::PlanChecked>()),
        ("preload-replay.json", schema_of::<slowpath_fix::preload_plan::printed::PlanReplayed>()),
        ("record.json", schema_of::<crate::Recorded>()),
        ("zygote-advise.json", schema_of::<slowpath_analysis::starts::zygote_advice::ZygoteAdvice>()),
    ]);
    all
}
