//! What `slowpath layout try --json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;
use slowpath_verify::benchmark::Benchmark;
use std::collections::BTreeMap;

/// Value of [`LayoutTrial::schema`].
pub const TRIAL_SCHEMA: &str = "slowpath-layout-trial/1";

/// What `slowpath layout try --json` prints: variants of a build, and what their launches took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutTrial {
    /// `slowpath-layout-trial/1`.
    #[schemars(extend("const" = TRIAL_SCHEMA))]
    pub schema: String,
    /// The command that builds.
    pub build: String,
    /// The command that is launched; `{binary}` stands for the binary of each variant.
    pub command: Vec<String>,
    /// The linker of all variants, where one of them is ordered.
    pub linker: Option<String>,
    /// Functions in the order; none without an ordered variant.
    pub ordered_functions: Option<u64>,
    /// The variants, the baseline first.
    pub variants: Vec<BuiltVariant>,
    /// Cold launches of those that were built; none where there is no lab, and with `--warm`.
    pub cold: Option<Benchmark>,
    /// Warm launches; none with `--cold`.
    pub warm: Option<Benchmark>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What could not be done here.
    pub unavailable: Vec<Unavailable>,
}

/// How a variant came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariantState {
    /// Built and launched.
    Built,
    /// The same bytes as the baseline: its flags had no effect, and it is not launched.
    SameAsBaseline,
    /// The build failed.
    Failed,
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuiltVariant {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Variables that its build had.
    pub variables: BTreeMap<String, String>,
    /// How it came out.
    pub state: VariantState,
    /// Why it failed.
    pub reason: Option<String>,
    /// What the file holds; none where the build failed.
    pub file: Option<BuiltFile>,
}

/// What a built file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuiltFile {
    /// Bytes.
    pub bytes: u64,
    /// Relocations that add the base address, each with an entry of 24 bytes; none of these counts where the file is not ELF of x86-64
    /// (a script that starts the binary).
    pub relative: Option<u64>,
    /// Addresses of the packed table, which get the base address too.
    pub packed: Option<u64>,
    /// Relocations of data by symbols.
    pub symbolic: Option<u64>,
    /// Relocations of calls.
    pub calls: Option<u64>,
    /// Bytes of all tables of relocations.
    pub table_bytes: Option<u64>,
}
