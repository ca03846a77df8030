//! What `slowpath android audit --json` prints.

use super::dex_amount::DexAmount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_artifacts::audit::DeniedBy;
use slowpath_experiment::Estimate;
use slowpath_tables::Unavailable;

/// Name and version of an audit.
pub const AUDIT_SCHEMA: &str = "slowpath-android-audit/1";

/// What `slowpath android audit --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AndroidAudit {
    /// `slowpath-android-audit/1`.
    #[schemars(extend("const" = AUDIT_SCHEMA))]
    pub schema: String,
    /// The device, as far as the evidence says.
    pub device: DeviceFacts,
    /// The isolated user that was decided for: one that owns nothing and is in no group of an app.
    pub uid: u32,
    /// Packages, in the order of their names.
    pub packages: Vec<PackageAudit>,
    /// Libraries that several of the packages use: their code is in each of these apps.
    pub engines: Vec<Engine>,
    /// What could not be looked at.
    pub unavailable: Vec<Unavailable>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFacts {
    /// As adb names it.
    pub serial: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its release (`14`).
    pub release: Option<String>,
    /// Its API level (34).
    pub api_level: Option<u32>,
    /// Its build.
    pub build: Option<String>,
}

/// One package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackageAudit {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// Isolated processes that it had when the evidence was collected; `null` where processes were not listed.
    pub isolated_processes: Option<u64>,
    /// Its APKs and libraries, each for each instruction set.
    pub code: Vec<CodeAudit>,
    /// The worst of them.
    pub outcome: CodeOutcome,
    /// What follows, in a sentence for each.
    pub verdicts: Vec<String>,
    /// What can be done, in the order in which to try it; empty where nothing is to be done.
    pub repairs: Vec<Repair>,
    /// What traces show of starts of its isolated processes; null without a trace that has one.
    #[serde(default)]
    pub measured: Option<MeasuredStarts>,
}

/// One way to repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    /// Its name.
    pub name: String,
    /// What changes.
    pub what: String,
    /// The command on the device; `null` where it is a change of the app.
    pub command: Option<String>,
    /// Whether `android audit --apply` runs it.
    pub can_apply: bool,
    /// What it costs.
    pub price: String,
    /// What it costs in security.
    pub security: String,
    /// How it is undone.
    pub undo: Option<String>,
}

/// What starts of a package's isolated processes took, over all traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredStarts {
    /// Traces with a start.
    pub traces: u32,
    /// Starts.
    pub starts: u32,
    /// From the request until the component is made, median with its interval (95 %), ms.
    pub duration_ms: Estimate,
    /// Verifying classes, ms.
    pub verify_class_ms: Estimate,
    /// Opening DEX files and compiled code, ms.
    pub dex_open_ms: Estimate,
    /// Starts in which ART said that it runs code out of the APK.
    pub from_apk: u32,
}

/// What is counted, the ones to act on first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodeOutcome {
    /// There is compiled code, and isolated processes may not read it.
    Unreadable,
    /// There is none: each process takes the code out of the APK.
    Missing,
    /// It is there, of a compiler filter that compiles nothing.
    NotCompiled,
    /// It cannot be decided from the evidence.
    Unknown,
    /// The main process uses it, and isolated processes may read it.
    Usable,
}

impl CodeOutcome {
    /// All, the ones to act on first.
    pub const ALL: [Self; 5] = [Self::Unreadable, Self::Missing, Self::NotCompiled, Self::Unknown, Self::Usable];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Missing => "missing",
            Self::NotCompiled => "not_compiled",
            Self::Unknown => "unknown",
            Self::Usable => "usable",
        }
    }

    /// Whether compiling again could help.
    pub fn calls_for_repair(self) -> bool {
        matches!(self, Self::Unreadable | Self::Missing | Self::NotCompiled)
    }
}

/// One APK for one instruction set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeAudit {
    /// The APK.
    pub apk: String,
    /// It is a library's that the package uses.
    pub is_library: bool,
    /// ART's name of the instruction set.
    pub isa: String,
    /// The app runs in it first; `null` where the evidence does not say.
    pub is_primary: Option<bool>,
    /// The compiler filter, or `run-from-apk`; `null` where neither dexopt nor the file says.
    pub filter: Option<String>,
    /// Why it was compiled.
    pub reason: Option<String>,
    /// It is compiled by a profile.
    pub is_profile_guided: bool,
    /// The profile came with the APK (a dm file is beside it, or the reason says so); `null` where the evidence does not show it.
    pub has_cloud_profile: Option<bool>,
    /// Compiled code.
    pub odex: FileAudit,
    /// What was verified.
    pub vdex: FileAudit,
    /// What the header of the odex says, where it is in the evidence.
    pub header: Option<OatFacts>,
    /// How much DEX that is.
    pub dex: Option<DexAmount>,
    /// What is counted.
    pub outcome: CodeOutcome,
    /// What follows for renderers and the like.
    pub verdict: String,
}

/// Whether isolated processes may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadState {
    /// Permissions of the file and of every directory above it allow it. What SELinux says, no listing shows.
    Readable,
    /// A permission denies it.
    Unreadable,
    /// It is not there.
    Missing,
    /// The evidence does not show it, or not all directories above it.
    Unknown,
}

/// A file of compiled code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileAudit {
    /// Where it is, or would be.
    pub path: String,
    /// Whether isolated processes may read it.
    pub state: ReadState,
    /// Its permission bits (`0640`).
    pub mode: Option<String>,
    /// Its owner.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Its bytes.
    pub bytes: Option<u64>,
    /// Who denies.
    pub denied_by: Option<DeniedBy>,
    /// The smallest change of permissions that would allow it, as commands of a shell. The next compilation takes it back.
    pub change: Option<String>,
    /// Why it is unknown.
    pub reason: Option<String>,
}

/// What an oat header says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OatFacts {
    /// Version of the format.
    pub oat_version: u32,
    /// The Android release that writes it, where one is known.
    pub release: Option<String>,
    /// `compiler-filter`.
    pub filter: Option<String>,
    /// `compilation-reason`.
    pub reason: Option<String>,
    /// `classpath`.
    pub class_path: Option<String>,
    /// DEX files.
    pub dex_files: u32,
}

/// A library of several packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    /// Its APK.
    pub library: String,
    /// The packages that use it, each with what is counted of its own code.
    pub packages: Vec<EnginePackage>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnginePackage {
    /// Its name.
    pub name: String,
    /// The worst of its code, without the library's.
    pub outcome: CodeOutcome,
}
