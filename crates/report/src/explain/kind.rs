//! What names stand for, and where each kind is listed.

use schemars::JsonSchema;
use serde::Serialize;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A hidden cost.
    Finding,
    /// What ends one.
    Fix,
    /// Something of an execution context that can make the same code slower.
    ContextFactor,
    /// A kind of compiled or cached file that processes need.
    ArtifactFamily,
    /// What a product's start counts of an artifact.
    GuardOutcome,
    /// What a diagnosis launches beside a fix.
    Arm,
    /// What launches said of an arm.
    Outcome,
    /// What follows for a fix.
    Decision,
    /// A kind of file that keeps a fix.
    FixTarget,
    /// What `check` says of a limit.
    CheckVerdict,
    /// What `context bisect` says of a difference.
    BisectionVerdict,
    /// How the differences of a cause act.
    BisectedCause,
    /// A row of the table of where time goes.
    TimePart,
    /// A row of the time ledger.
    LedgerCategory,
    /// What launches are compared by.
    Metric,
    /// What the recorder can see.
    Probe,
    /// A table of a recording.
    Table,
    /// A trace of another tool that becomes a recording.
    Importer,
    /// A form of a recording for other tools.
    Export,
    /// A form of a launch benchmark for other tools.
    BenchmarkExport,
    /// What carries a message between two processes in `ipc`.
    Transport,
    /// A build that `layout try` launches.
    LayoutVariant,
    /// An order of functions that `layout score` compares.
    LayoutOrder,
    /// A form of such an order for linkers.
    OrderFormat,
    /// What a document of `--json` calls itself.
    JsonDocument,
    /// A value of a field that can have a few only.
    JsonValue,
    /// What can be missing in a result.
    Unavailable,
    /// A term that screens use.
    Term,
}

impl NameKind {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 28] = [
        Self::Finding,
        Self::Fix,
        Self::ContextFactor,
        Self::ArtifactFamily,
        Self::GuardOutcome,
        Self::Arm,
        Self::Outcome,
        Self::Decision,
        Self::FixTarget,
        Self::CheckVerdict,
        Self::BisectionVerdict,
        Self::BisectedCause,
        Self::TimePart,
        Self::LedgerCategory,
        Self::Metric,
        Self::Probe,
        Self::Table,
        Self::Importer,
        Self::Export,
        Self::BenchmarkExport,
        Self::Transport,
        Self::LayoutVariant,
        Self::LayoutOrder,
        Self::OrderFormat,
        Self::JsonDocument,
        Self::JsonValue,
        Self::Unavailable,
        Self::Term,
    ];

    /// The heading of a list.
    pub fn heading(self) -> &'static str {
        self.listed().0
    }

    /// Its page in `docs/reference`, without `.md`.
    pub fn page(self) -> &'static str {
        self.listed().1
    }

    /// Heading and page of a list.
    fn listed(self) -> (&'static str, &'static str) {
        match self {
            Self::Finding => ("Findings", "findings"),
            Self::Fix => ("Fixes", "fixes"),
            Self::ContextFactor => ("Context factors", "context-factors"),
            Self::ArtifactFamily => ("Artifact families", "artifact-families"),
            Self::GuardOutcome => ("Outcomes of a guard", "guard-outcomes"),
            Self::Arm => ("Arms of a diagnosis", "arms"),
            Self::Outcome => ("Outcomes of an arm", "outcomes"),
            Self::Decision => ("Decisions on a fix", "decisions"),
            Self::FixTarget => ("Files that keep a fix", "fix-targets"),
            Self::CheckVerdict => ("Verdicts of check", "check-verdicts"),
            Self::BisectionVerdict => ("Verdicts of context bisect", "bisection-verdicts"),
            Self::BisectedCause => ("How causes act", "bisected-causes"),
            Self::TimePart => ("Rows of the time table", "time-parts"),
            Self::LedgerCategory => ("Categories of the time ledger", "ledger-categories"),
            Self::Metric => ("Metrics of launches", "metrics"),
            Self::Probe => ("Probes", "probes"),
            Self::Table => ("Tables of a recording", "tables"),
            Self::Importer => ("Importers", "importers"),
            Self::Export => ("Exports", "exports"),
            Self::BenchmarkExport => ("Exports of a launch benchmark", "benchmark-exports"),
            Self::Transport => ("Transports of ipc", "transports"),
            Self::LayoutVariant => ("Variants of layout try", "layout-variants"),
            Self::LayoutOrder => ("Orders of functions", "layout-orders"),
            Self::OrderFormat => ("Formats of an order of functions", "order-formats"),
            Self::JsonDocument => ("Documents of JSON", "json-documents"),
            Self::JsonValue => ("Values of JSON fields", "json-values"),
            Self::Unavailable => ("What can be unavailable", "unavailable"),
            Self::Term => ("Terms", "terms"),
        }
    }
}
