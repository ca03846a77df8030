//! What fixes need to know of a finding beyond what it is about: values, where its evidence is for readers.
//!
//! Owns the type that carries them. The values are made by the findings; a fix reads its own and computes none.

use crate::inherited_loads::InheritedLoads;
use crate::memory_fixes::MallocSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one finding has for fixes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FixInputs {
    /// For `allocator_tunables`: settings of glibc's malloc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malloc: Option<MallocSettings>,
    /// For `preload_in_zygote`: what children could inherit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherited_loads: Option<InheritedLoads>,
    /// Fixes whose saving the finding's predicted one is, of those that do not end every cost that they are named for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predicted_for: Vec<String>,
}

impl FixInputs {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the finding's predicted saving is that of a fix.
    pub fn is_predicted_for(&self, fix: &str) -> bool {
        self.predicted_for.iter().any(|one| one == fix)
    }
}
