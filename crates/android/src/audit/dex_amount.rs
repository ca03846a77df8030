//! How much DEX a process reads and verifies that cannot use what was compiled: an estimate, and where it is from.

use crate::evidence::Evidence;
use crate::format::Vdex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From where the number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DexFrom {
    /// The members of the APK (`unzip -l`): all DEX in it.
    ApkMembers,
    /// The section of DEX files in the vdex file.
    Vdex,
}

/// An amount of DEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DexAmount {
    /// Its bytes. What a process verifies of it is at most that: classes are verified when they are used first.
    pub bytes: u64,
    /// From where this is.
    pub from: DexFrom,
}

impl DexAmount {
    /// By the evidence; `vdex` is the header of the vdex file, where it is in it.
    pub(super) fn of(evidence: &Evidence, apk: &str, vdex: Option<&Vdex>) -> Option<Self> {
        let of_apk = evidence.members(apk).map(|members| (members.dex_bytes, DexFrom::ApkMembers));
        let of_vdex = || vdex.map(|vdex| (vdex.dex_bytes(), DexFrom::Vdex));
        let (bytes, from) = of_apk.or_else(of_vdex).filter(|(bytes, _)| *bytes > 0)?;
        Some(Self { bytes, from })
    }

    /// In words, with one decimal: `8.4 MB`.
    pub fn words(self) -> String {
        format!("{:.1} MB", self.bytes as f64 / 1e6)
    }
}
