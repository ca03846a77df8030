//! What this machine offers to fixes.
//!
//! Stands apart because it is looked at once, before any fix is asked: a fix then proposes without looking at the machine. Leaves which
//! allocators are looked for to `installed_allocator`, reading the kernel's settings to `recording`, and what a program can do with them to
//! [`crate::program`].

use crate::installed_allocator;
use serde::{Deserialize, Serialize};
use slowpath_recording::HugePages;

/// What this machine offers to fixes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The allocator that is installed and preferred: its library.
    pub allocator: Option<String>,
    /// Mode of transparent huge pages (`always`, `madvise`, `never`); `None` where the kernel has none.
    pub huge_pages: Option<String>,
}

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Self {
        Self {
            allocator: installed_allocator::preferred(),
            huge_pages: HugePages::of_this_machine().map(|settings| settings.enabled),
        }
    }
}
