//! How launches on a device are made. Leaves checking of names to who reads them, and launching to `script`.

use crate::startup::StartupKind;
use std::time::Duration;

/// What is launched, and how.
#[derive(Clone, Debug)]
pub struct LaunchSettings<'a> {
    /// Packages, of which slices are traced; they have passed [`crate::text::is_package_name`] where they are launched.
    pub packages: &'a [String],
    /// Blocks.
    pub blocks: u32,
    /// How each launch is prepared.
    pub kind: StartupKind,
    /// Compilation before; it has passed [`super::is_compilation`] where packages are launched.
    pub compilation: Option<&'a str>,
    /// How long is waited behind the first frame, for children and for what the app says to be fully drawn.
    pub after: Duration,
    /// How long is waited before a launch, and after Perfetto has begun: what a device does after a launch ended, and Perfetto until its
    /// data sources run, takes about a second.
    pub settle: Duration,
    /// Whether Perfetto traces.
    pub is_traced: bool,
    /// Of the order.
    pub seed: u64,
}
