//! The categories of samples and markers: their names, and the colours that the profiler shows them in.

use fxprof_processed_profile::{CategoryColor, CategoryHandle, Profile};

/// Colours and groups.
#[derive(Clone, Copy)]
pub(super) struct Categories {
    pub(super) user: CategoryHandle,
    pub(super) kernel: CategoryHandle,
    pub(super) generated: CategoryHandle,
    pub(super) wait: CategoryHandle,
    pub(super) fault: CategoryHandle,
    pub(super) memory: CategoryHandle,
}

impl Categories {
    pub(super) fn of(profile: &mut Profile) -> Self {
        let mut add = |name, color| profile.add_category(name, color);
        Self {
            user: add("User", CategoryColor::Yellow),
            kernel: add("Kernel", CategoryColor::Orange),
            generated: add("Generated code", CategoryColor::Green),
            wait: add("Off CPU", CategoryColor::Blue),
            fault: add("Page fault", CategoryColor::Red),
            memory: add("Memory call", CategoryColor::Purple),
        }
    }
}
