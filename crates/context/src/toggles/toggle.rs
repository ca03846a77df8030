//! What a factor declares of how a launch gets another value.

use super::contrast::{Contrast, DifferingPart};

/// How a factor's difference gets into a launch; one in each factor's file.
#[derive(Clone, Copy)]
pub(crate) enum Toggle {
    /// It names the parts in which two contexts differ, and how each is set.
    Parts(fn(&Contrast<'_>) -> Vec<DifferingPart>),
    /// Why it cannot be set.
    Never(&'static str),
}

/// Why no factor of the machine is ever set.
pub(crate) const OF_MACHINE: Toggle = Toggle::Never(
    "it is the same for all programs of a machine, and changing it takes a setting of the system or a restart: compare on two \
     machines, or on one before and after",
);
