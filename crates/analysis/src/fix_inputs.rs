//! What fixes need to know of a finding beyond what it is about, and where: values.
//!
//! Owns the type that carries them. The values are made by the findings; a fix reads its own and computes none. Places in the source
//! stay in the evidence.

use crate::memory::memory_fixes::MallocSettings;
use crate::starts::inherited_loads::InheritedLoads;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values that one finding has for its fixes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FixInputs {
    /// For `allocator_tunables`: settings of glibc's malloc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malloc: Option<MallocSettings>,
    /// For `preload_in_zygote`: what children could inherit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherited_loads: Option<InheritedLoads>,
    /// For `grant_read` and `regenerate_artifact`: the artifacts, most costly first, not all where there are many. Foreign text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// Fixes that would save what the finding predicts, where not all of them would.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predicted_for: Vec<String>,
    /// What is to be done for a fix, by its name, in words for readers; not of every fix. The evidence shows the same.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ways: BTreeMap<String, String>,
}

impl FixInputs {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is to be done for a fix, where the finding says it.
    pub fn way(&self, fix: &str) -> Option<&str> {
        self.ways.get(fix).map(String::as_str)
    }

    /// Whether the finding's predicted saving is that of a fix.
    pub fn is_predicted_for(&self, fix: &str) -> bool {
        self.predicted_for.iter().any(|one| one == fix)
    }
}
