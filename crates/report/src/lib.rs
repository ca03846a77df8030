//! Showing what was found: terminal, JSON, one self-contained HTML page, and exports for other tools.
//!
//! Owns the types that `--json` prints and their published schemas, the summary for a terminal, filling the page that
//! `report-ui` builds, and recordings in the forms of other tools: Perfetto's trace, folded stacks, CSV, the Firefox Profiler's
//! profile. Leaves finding causes to `analysis`, judging arms to `experiment`, and choosing between the forms to the command line.

mod benchmark;
mod both_launches;
mod children;
pub mod collapsed;
mod comparison_page;
mod context;
mod context_bisection;
mod diagnosis;
pub mod explain;
pub mod exports;
pub mod firefox;
mod flame_graphs;
pub mod gaps;
mod hidden_by_root;
pub mod html;
mod page_ledger;
pub mod perfetto;
mod recording_comparison;
mod saved_diagnosis;
mod scenario;
pub mod schema;
pub mod table_csv;
pub mod terminal;
mod verdict;

pub use benchmark::{ArmComparison, ArmQuantile, Benchmark, BenchmarkArm, LAUNCH_SCHEMA, OneLaunch, Outlier};
pub use children::{
    CHILDREN_SCHEMA, ChildBucket, ChildKind, ChildLaunches, ChildOrigin, ChildSpread, ChildTimes,
    of_runs as children_of_runs,
};
pub use comparison_page::{COMPARISON_PAGE_SCHEMA, ComparisonPage};
pub use context::{CONTEXT_DIFF_SCHEMA, ComparedContext, ContextComparison, ShownContext, ShownToggle};
pub use context_bisection::{
    BisectedAnswer, BisectedCandidate, BisectedCause, BisectedReproduction, BisectedTotal, BisectedWay, BisectionEnd,
    CONTEXT_BISECT_SCHEMA, CandidateVerdict, CauseKind, ContextBisection, MovedCounter, RemainingDifference,
    change_in_percent,
};
pub use diagnosis::{
    ArmRole, ArmSummary, DIAGNOSE_SCHEMA, Decision, Diagnosis, GapShare, LaunchSummary, Machine, MetricChange,
    OtherLaunches, Outcome, REPORT_SCHEMA, ReportData, RunningSummary, Verdict, quantity,
};
pub use flame_graphs::{
    DifferentialFlames, DifferentialGraph, DifferentialTree, FlameFrames, FlameGraph, FlameGraphs, FlamePlace,
    FlameRecordings, FlameTree, FlameWeight, NodesOfChance, PlaceKind, of_tables as flame_graphs_of,
};
pub use hidden_by_root::{DenyingRule, HiddenArtifact, HiddenByRoot};
pub use page_ledger::{LedgerSum, PageLedger, of_ledger as page_ledger_of};
pub use recording_comparison::{
    Basis, COMPARE_SCHEMA, Change, Compared, ComparedRecording, FindingChange, FindingState, FunctionChange,
    LedgerChange, ProgramChange, RecordingComparison, TotalChange, compare_recordings,
};
pub use saved_diagnosis::{DiagnosisError, MOST_DIAGNOSIS_BYTES};
pub use scenario::{
    OneVisit, SCENARIO_SCHEMA, Scenario, ScenarioArm, ScenarioComparison, ScenarioMeasure, ScenarioRound,
};
pub use slowpath_analysis::printed::critical_path::{
    CriticalPath, PathStep, PathThread, of_tables as critical_path_of,
};
pub use slowpath_analysis::printed::ledger::{Ledger, LedgerProcess, LedgerRow, LedgerThread, of_tables as ledger_of};
pub use slowpath_analysis::printed::round_trips::{ReplyPair, of_tables as round_trips_of};
pub use slowpath_analysis::printed::shares::{
    FunctionShare, ProcessShare, Share, Shares, Used, of_tables as shares_of,
};
pub use slowpath_analysis::printed::time_spent::{Condition, TimeSpent, TimeSpentRow, of_tables as time_spent_of};
pub use slowpath_analysis::printed::{ANALYZE_SCHEMA, Analysis};

/// A thread of a process.
type ThreadKey = (slowpath_tables::ProcessKey, u32);
