//! Showing what was found: terminal, JSON, one self-contained HTML page, and exports for other tools.
//!
//! Owns the list of published schemas ([`schema`]), the types of what it makes itself, the summary for a terminal, filling the page that
//! `report-ui` builds, and recordings in the forms of other tools: Perfetto's trace, folded stacks, CSV, the Firefox Profiler's
//! profile, a summary in Markdown; and what a user sees while a command works ([`progress`]). Leaves finding causes to `analysis`,
//! judging arms to `experiment`, and choosing between the forms to the command line.

pub mod chrome_trace;
pub mod collapsed;
mod columns;
mod compared_directories;
mod context_bisection;
pub mod explain;
pub mod exports;
pub mod firefox;
mod flame_graphs;
pub mod gaps;
pub mod html;
mod html_comparison;
pub mod html_file;
mod html_ledger;
pub mod ipc;
mod json_documents;
mod json_values;
mod json_words;
pub mod markdown;
mod page;
pub mod perfetto;
pub mod pprof;
pub mod printed_result;
pub mod progress;
pub mod recording_exports;
pub mod schema;
mod schema_comments;
mod side_by_side;
pub mod speedscope;
mod stack_sums;
pub mod stack_weight;
pub mod table_csv;
pub mod terminal;
mod terms;
mod timeline;

pub use compared_directories::compare_directories;
pub use context_bisection::context_bisection_of;
pub use flame_graphs::{
    DifferentialFlames, DifferentialGraph, DifferentialTree, FlameFrames, FlameGraph, FlameGraphs, FlamePlace,
    FlameRecordings, FlameRows, FlameThreads, FlameTree, FlameWeight, NodesOfChance, PlaceKind,
    of_tables as flame_graphs_of,
};
pub use html_comparison::{HTML_COMPARISON_SCHEMA, HtmlComparison};
pub use html_ledger::{HtmlLedger, LedgerSum, of_ledger as html_ledger_of};
pub use page::{Machine, REPORT_SCHEMA, ReportData};
pub use side_by_side::{LaunchBeside, Launches, SideBySide, SpanBeside};
pub use slowpath_analysis::printed::critical_path::{
    CriticalPath, PathStep, PathThread, of_tables as critical_path_of,
};
pub use slowpath_analysis::printed::ledger::{Ledger, LedgerProcess, LedgerRow, LedgerThread, of_tables as ledger_of};
pub use slowpath_analysis::printed::round_trips::{ReplyPair, of_tables as round_trips_of};
pub use slowpath_analysis::printed::time_spent::{Condition, TimeSpent, TimeSpentRow, of_tables as time_spent_of};
pub use slowpath_analysis::printed::usage::{FunctionUsage, ProcessUsage, Share, Usage, Used, of_tables as usage_of};
pub use slowpath_analysis::printed::{ANALYZE_SCHEMA, Analysis};
pub use slowpath_analysis::recording_comparison::{
    Basis, COMPARE_SCHEMA, Change, Compared, ComparedRecording, FindingChange, FindingState, FunctionChange,
    LedgerChange, ProgramChange, RecordingComparison, TotalChange, compare_recordings,
};
pub use slowpath_analysis::starts::sibling_starts::{
    AlikeWork, SiblingKind, SiblingStart, SiblingStarts, sibling_starts as siblings_of,
};
pub use slowpath_context::printed::{
    CONTEXT_DIFF_SCHEMA, ComparedContext, ContextComparison, ShownContext, ShownToggle,
};
pub use slowpath_diagnose::printed::{
    ArmRole, ArmSummary, DIAGNOSE_SCHEMA, Decision, DenyingRule, Diagnosis, DiagnosisError, GapShare, HiddenArtifact,
    HiddenByRoot, LaunchSummary, MOST_DIAGNOSIS_BYTES, MetricChange, OtherLaunches, RunningSummary, Verdict,
};
pub use slowpath_session::printed::Recorded;
pub use slowpath_verify::benchmark::{
    ArmComparison, ArmQuantile, Benchmark, BenchmarkArm, LAUNCH_SCHEMA, OneLaunch, Outlier,
};
pub use slowpath_verify::children::{
    CHILDREN_SCHEMA, ChildBucket, ChildKind, ChildLaunches, ChildOrigin, ChildSpread, ChildTimes,
    of_runs as children_of_runs,
};
pub use slowpath_verify::context_bisection::printed::{
    BisectedAnswer, BisectedCandidate, BisectedCause, BisectedCounterShift, BisectedReproduction, BisectedSide,
    BisectedTotal, BisectionEnd, CONTEXT_BISECT_SCHEMA, CandidateVerdict, CauseKind, ContextBisection,
    RemainingDifference, change_in_percent,
};
pub use slowpath_verify::printed::{Outcome, quantity};
pub use slowpath_verify::scenario::{
    OneVisit, SCENARIO_SCHEMA, Scenario, ScenarioArm, ScenarioComparison, ScenarioMeasure, ScenarioRound,
};
pub use timeline::{
    Milestone, MilestoneKind, PageTimeline, SpanColumns, TimelineDevice, TimelineLine, TimelinePath, TimelineProcess,
    WakeColumns, of_tables as timeline_of,
};

/// A thread of a process.
type ThreadKey = (slowpath_tables::ProcessKey, u32);
